//go:build unix

package reporter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Lock keeps other processes of ours from pushing the same report at once, on this
// machine and, where the file system can, on others. The lock is advisory and ends
// with the process. Waiting ends with ctx.
func Lock(ctx context.Context, path string) (release func(), err error) {
	for {
		f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
		if err != nil {
			return nil, fmt.Errorf("lock report: %w", err)
		}
		if err := flock(ctx, f); err != nil {
			f.Close()
			return nil, fmt.Errorf("lock report %s: %w", path, err)
		}
		ours, errOurs := f.Stat()
		there, errThere := os.Stat(path)
		if errOurs == nil && errThere == nil && os.SameFile(ours, there) {
			return func() { f.Close() }, nil
		}
		f.Close() // replaced while we waited: lock the new one
		if errThere != nil {
			return nil, fmt.Errorf("lock report: %w", errThere)
		}
	}
}

// holdJournal marks a journal as being written, for as long as it is open: see Running.
// A file system without locks takes no notice.
func holdJournal(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) }

// Writing asks the lock of a journal for its agent. A journal without a line is not
// asked while it is young: its agent may be about to lock it, and must find it free.
func Writing(journal string) Writer {
	f, err := os.OpenFile(journal, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return WriterUnknown
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || st.Size() == 0 && time.Since(st.ModTime()) < 5*time.Second {
		return WriterUnknown
	}
	alone := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case alone == nil:
		return WriterGone
	case !errors.Is(alone, unix.EWOULDBLOCK):
		return WriterUnknown
	case unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil:
		return WriterAlive
	}
	return WriterGone // another reader has it to itself, just now
}

func flock(ctx context.Context, f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.New("another process is pushing it")
		case <-time.After(50 * time.Millisecond):
		}
	}
}
