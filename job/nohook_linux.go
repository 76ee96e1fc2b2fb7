//go:build !amd64 && !arm64

package job

import (
	"os/signal"
	"syscall"
)

// On these architectures no handler of ours runs before the runtime's, and where a
// signal came from is guessed (see Signals.guess): an INT or QUIT sent by kill(2)
// while we are in the terminal's foreground is taken for the terminal's and not
// relayed. Nor is it known whether SIGTSTP or SIGCONT was ignored.

func hook(syscall.Signal) bool        { return false }
func unhook(syscall.Signal)           {}
func counted(syscall.Signal) origins  { return origins{} }
func sentBy(syscall.Signal) int       { return -1 }
func ignored(sig syscall.Signal) bool { return signal.Ignored(sig) }

// sigaction is a disposition, which cannot be set here.
type sigaction struct{}

// setDefault does what Reraise needs for the signals by which the runtime dies as
// the kernel would let us die.
func setDefault(sig syscall.Signal) (was sigaction, ok bool) {
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP:
		signal.Reset(sig)
		return sigaction{}, true
	}
	return sigaction{}, false
}

func (sigaction) restore(syscall.Signal) {}

// There is no entry point here that looks before the runtime does; see
// entry_linux.go.

// PlainBuild is false: no build knows more.
func PlainBuild() bool { return false }

func ignoredAtStart(syscall.Signal) bool { return false }
func closedAtStart(int) bool             { return false }
