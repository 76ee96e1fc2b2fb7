//go:build !amd64 && !arm64

package job

import (
	"os/signal"
	"syscall"
)

// On these architectures no handler of ours stands before the runtime's: where
// a signal came from is guessed, see Signals.guess: an INT or QUIT sent by kill(2)
// while we are in the terminal's foreground is taken for the terminal's and not
// relayed. That SIGTSTP or SIGCONT were ignored is not known, either.

func hook(syscall.Signal) bool        { return false }
func unhook(syscall.Signal)           {}
func counted(syscall.Signal) origins  { return origins{} }
func sentBy(syscall.Signal) int       { return -1 }
func ignored(sig syscall.Signal) bool { return signal.Ignored(sig) }

// sigaction stands for a disposition that we cannot set here.
type sigaction struct{}

// setDefault can do what Reraise needs for the signals by which the runtime dies
// as the kernel would have us die.
func setDefault(sig syscall.Signal) (was sigaction, ok bool) {
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP:
		signal.Reset(sig)
		return sigaction{}, true
	}
	return sigaction{}, false
}

func (sigaction) restore(syscall.Signal) {}

// ignoredAtStart cannot be known: see entry_linux.go.
func ignoredAtStart(syscall.Signal) bool { return false }

// closedAtStart cannot be known: see entry_linux.go.
func closedAtStart(int) bool { return false }
