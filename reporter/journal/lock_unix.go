//go:build unix

package journal

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/durable"
)

// hold marks a journal as being written, for as long as it is open: see Running.
// A file system without locks takes no notice.
func hold(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) }

// WriterOf asks the lock of a journal for its agent. A journal without a line is not
// asked while it is young: its agent may be about to lock it, and must find it free.
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
	return Gone // another reader has it to itself, just now
}
