//go:build unix

package journal

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/durable"
)

// lockShared marks a journal as being written, until it is closed. See IsLocked. It does nothing on a
// file system without locks.
func lockShared(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) }

// ReadWriterState queries the lock of a journal. It does not touch the lock of a new, empty journal, because the agent
// may be about to take the lock and must find it free.
func ReadWriterState(journal string) WriterState {
	f, err := durable.Open(journal)
	if err != nil {
		return WriterUnknown
	}

	defer f.Close()
	if st, err := f.Stat(); err != nil || st.Size() == 0 && time.Since(st.ModTime()) < 5*time.Second {
		return WriterUnknown
	}

	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case err == nil:
		return WriterGone
	case !errors.Is(err, unix.EWOULDBLOCK):
		return WriterUnknown
	case unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil:
		return WriterAlive
	}
	return WriterGone // another reader holds the lock at the moment
}
