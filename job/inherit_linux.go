//go:build amd64 || arm64

package job

import (
	"os/signal"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// uncaughtSignals returns the signals that the runtime catches, but we do not, and that it can ignore again. (It needs
// CHLD, URG, PROF and the signals of program errors.)
func uncaughtSignals() []syscall.Signal {
	return []syscall.Signal{syscall.SIGVTALRM, syscall.SIGIO, syscall.SIGPWR}
}

// ignoreAgain ignores those of the given signals that were ignored at start, for a program that inherits this.
func ignoreAgain(sigs []syscall.Signal) {
	for _, sig := range sigs {
		if ignoredAtStart(sig) {
			signal.Ignore(sig)
		}
	}
}

// yieldStart lets the program that replaces this one inherit the signals ignored at start.
func yieldStart() {
	ignoreAgain(slices.Concat(relayedSignals(), swallowedSignals(), uncaughtSignals()))
}

// yieldIgnored lets the next child inherit the signals ignored at start: in a child, the runtime resets every signal
// with a handler to the default action. Until resumeIgnored, such signals are lost.
func (s *Signals) yieldIgnored() {
	if s == nil {
		return
	}
	for _, sig := range s.ignored {
		signal.Ignore(sig)
	}
}

// resumeIgnored catches the signals of yieldIgnored again.
func (s *Signals) resumeIgnored() {
	if s == nil {
		return
	}
	for _, sig := range s.ignored {
		hook(sig)
	}
}

// launcherDeath is the signal that the kernel sends this process when its launcher ends (PR_SET_PDEATHSIG, set by the
// launcher), or 0. The setting survives exec but belongs to a thread: package initialization runs on the main thread.
var launcherDeath = parentDeathSignal()

// parentDeathSignal returns PR_GET_PDEATHSIG of this thread.
func parentDeathSignal() syscall.Signal {
	var sig int32
	if unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&sig)), 0, 0, 0) != nil {
		return 0
	}
	return syscall.Signal(sig)
}

// deathSignal returns the signal that the kernel sends the job when this process ends, or 0. A launcher that ties its
// child's life to its life ties the job's life as well; without such a launcher the job is independent of us. In a
// program that was not taken over, that is left to the program.
func (j *Job) deathSignal() syscall.Signal {
	if j.signals == nil {
		return 0
	}
	return launcherDeath
}

// dieWithLauncher gives this thread, which is about to become the job, the main thread's setting.
func dieWithLauncher() {
	if launcherDeath != 0 {
		_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(launcherDeath), 0, 0, 0)
	}
}
