//go:build !amd64 && !arm64

package job

import (
	"os/signal"
	"syscall"
)

// On these architectures no handler of ours stands before the runtime's: where
// a signal came from is guessed, see Signals.guess.

func hook(syscall.Signal) bool        { return false }
func unhook(syscall.Signal)           {}
func counted(syscall.Signal) origins  { return origins{} }
func ignored(sig syscall.Signal) bool { return signal.Ignored(sig) }

// sigaction stands for a disposition that we cannot set here.
type sigaction struct{}

func setDefault(syscall.Signal) (was sigaction, ok bool) { return sigaction{}, false }
func (sigaction) restore(syscall.Signal)                 {}
