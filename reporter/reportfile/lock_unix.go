//go:build unix

package reportfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/durable"
)

// Lock prevents other perfagent processes from pushing the same report at the same time: on this machine and, if the
// file system supports it, on other machines. The lock is advisory, and is released when the process ends. When ctx
// ends, Lock stops waiting for the lock.
func Lock(ctx context.Context, path string) (release func(), err error) {
	for {
		f, err := durable.Open(path)
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

		f.Close() // the file was replaced while Lock waited: lock the new file
		if errThere != nil {
			return nil, fmt.Errorf("lock report: %w", errThere)
		}
	}
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
