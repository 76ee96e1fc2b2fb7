//go:build amd64 || arm64

package job

import (
	"os/signal"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// uncaughtSignals returns the signals that we do not catch but that the runtime does,
// and that it can ignore again. (It needs CHLD, URG, PROF and the signals of
// program errors.)
func uncaughtSignals() []syscall.Signal {
	return []syscall.Signal{syscall.SIGVTALRM, syscall.SIGIO, syscall.SIGPWR}
}

// ignoreAgain ignores the given signals that were ignored when we started, for a
// program that inherits this.
func ignoreAgain(sigs []syscall.Signal) {
	for _, sig := range sigs {
		if ignoredAtStart(sig) {
			signal.Ignore(sig)
		}
	}
}

// yieldStart lets the program that replaces this one have what was ignored when we
// started.
func yieldStart() {
	ignoreAgain(slices.Concat(relayedSignals(), swallowedSignals(), uncaughtSignals()))
}

// yieldIgnored lets the next child inherit what was ignored when we started: the
// runtime gives a child the default action for each signal that has a handler.
// Until resumeIgnored such a signal is lost on us, as it is on whoever ignores it.
func (s *Signals) yieldIgnored() {
	if s == nil {
		return
	}
	for _, sig := range s.ignored {
		signal.Ignore(sig)
	}
}

// resumeIgnored catches again what yieldIgnored left.
func (s *Signals) resumeIgnored() {
	if s == nil {
		return
	}
	for _, sig := range s.ignored {
		hook(sig)
	}
}

// launcherDeath is the signal that the launcher had the kernel send to this process when the launcher ends
// (PR_SET_PDEATHSIG), or 0. The setting outlives exec, but belongs to a thread: this is read as the program is
// initialized, which the main thread does.
var launcherDeath = parentDeathSignal()

// parentDeathSignal returns the setting of this thread.
func parentDeathSignal() syscall.Signal {
	var sig int32
	if unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&sig)), 0, 0, 0) != nil {
		return 0
	}
	return syscall.Signal(sig)
}

// deathSignal returns what the kernel sends to the job when this process ends. A launcher that wants its child to end
// with it wants the job to; without such a launcher nothing ties the job's life to ours. What runs in a program that
// was not taken over is the program's affair.
func (j *Job) deathSignal() syscall.Signal {
	if j.signals == nil {
		return 0
	}
	return launcherDeath
}

// dieWithLauncher gives this thread, which is about to become the job, the setting that the main thread has.
func dieWithLauncher() {
	if launcherDeath != 0 {
		_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(launcherDeath), 0, 0, 0)
	}
}
