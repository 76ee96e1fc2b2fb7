//go:build unix

package journal

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/durable"
)

// hold marks a journal as being written, for as long as it is open. See Running. It does nothing on a
// file system without locks.
func hold(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) }

// WriterOf queries the lock of a journal. It does not touch the lock of a new journal without a line:
// its agent may be about to take it, and must find it free.
func WriterOf(journal string) Writer {
	f, err := durable.Open(journal)
	if err != nil {
		return Unknown
	}

	defer f.Close()
	if st, err := f.Stat(); err != nil || st.Size() == 0 && time.Since(st.ModTime()) < 5*time.Second {
		return Unknown
	}

	alone := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case alone == nil:
		return Gone
	case !errors.Is(alone, unix.EWOULDBLOCK):
		return Unknown
	case unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil:
		return Alive
	}
	return Gone // another reader holds it just now
}
