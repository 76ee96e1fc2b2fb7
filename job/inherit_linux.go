//go:build amd64 || arm64

package job

import (
	"os/signal"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// uncaughtSignals returns the signals that the runtime catches although we do not, and that can be ignored again. (The
// runtime needs CHLD, URG, PROF and the signals of program errors.)
func uncaughtSignals() []syscall.Signal {
	return []syscall.Signal{syscall.SIGVTALRM, syscall.SIGIO, syscall.SIGPWR}
}

// ignoreAgain ignores each of sigs that was ignored at start, so that the next program inherits it ignored.
func ignoreAgain(sigs []syscall.Signal) {
	for _, sig := range sigs {
		if ignoredAtStart(sig) {
			signal.Ignore(sig)
		}
	}
}

// yieldStart ignores all signals that were ignored at start, so that the program that replaces this one inherits them
// so.
func yieldStart() {
	ignoreAgain(slices.Concat(relayedSignals(), swallowedSignals(), uncaughtSignals()))
}

// yieldIgnored ignores the signals that were ignored at start, so that the next child inherits them so: in a child, the
// runtime resets every signal with a handler to the default action. Until resumeIgnored is called, such signals are
// lost.
func (s *Signals) yieldIgnored() {
	if s == nil {
		return
	}
	for _, sig := range s.ignored {
		signal.Ignore(sig)
	}
}

// resumeIgnored undoes yieldIgnored.
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

// deathSignal returns the signal that the kernel sends the job when this process ends, or 0. If our launcher tied our
// life to its own, the job's life is tied to ours; otherwise the job may outlive us. In a program that was not taken
// over, the job is never tied.
func (j *Job) deathSignal() syscall.Signal {
	if j.signals == nil {
		return 0
	}
	return launcherDeath
}

// dieWithLauncher gives this thread, which is about to become the job, the main thread's PR_SET_PDEATHSIG.
func dieWithLauncher() {
	if launcherDeath != 0 {
		_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(launcherDeath), 0, 0, 0)
	}
}
