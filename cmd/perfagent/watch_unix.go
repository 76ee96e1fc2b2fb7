//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/patience"
)

// watchSignals end the live view, or tell of a new size. TSTP is not among them: once Go
// has a handler for it, it has no more its default action, for which see stopGroup.
func watchSignals() []os.Signal {
	return []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGWINCH}
}

// notifyResumed tells of being continued.
func notifyResumed(ch chan os.Signal) { signal.Notify(ch, unix.SIGCONT) }

func isResize(sig os.Signal) bool { return sig == unix.SIGWINCH }

// signalNumber is the n of 128+n.
func signalNumber(sig os.Signal) int {
	if s, ok := sig.(syscall.Signal); ok {
		return int(s)
	}
	return 0
}

// stopGroup stops our process group, as the terminal's Ctrl-Z does, and returns once we
// are continued; at once where nobody could continue us, and the kernel therefore does
// not stop us.
func stopGroup(resumed <-chan os.Signal) {
	for len(resumed) > 0 {
		<-resumed
	}
	_ = unix.Kill(0, unix.SIGTSTP)
	patience.Receive(resumed, 200*time.Millisecond)
}
