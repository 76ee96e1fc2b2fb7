//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/timeout"
)

// watchSignals returns the signals that end the live view or announce a new size. TSTP is not among them: with a Go
// handler it loses its default action, which stopGroup needs.
func watchSignals() []os.Signal {
	return []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGWINCH}
}

// notifyResumed sends to ch when this process is continued.
func notifyResumed(ch chan os.Signal) { signal.Notify(ch, unix.SIGCONT) }

func isResize(sig os.Signal) bool { return sig == unix.SIGWINCH }

// signalNumber returns the number n of the exit code 128+n.
func signalNumber(sig os.Signal) int {
	if s, ok := sig.(syscall.Signal); ok {
		return int(s)
	}
	return 0
}

// stopGroup stops this process group, as Ctrl-Z does, and returns once it is continued. If the kernel does not stop the
// group because no shell could continue it, stopGroup returns after 200 ms.
func stopGroup(resumed <-chan os.Signal) {
	for len(resumed) > 0 {
		<-resumed
	}
	_ = unix.Kill(0, unix.SIGTSTP)
	timeout.Receive(resumed, 200*time.Millisecond)
}
