//go:build amd64 || arm64

package job

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// uncaughtSignals returns the signals that the runtime catches but this package does not, and that may be set to
// ignored. (The runtime needs CHLD, URG, PROF and the signals of program errors.)
func uncaughtSignals() []syscall.Signal {
	return []syscall.Signal{syscall.SIGVTALRM, syscall.SIGIO, syscall.SIGPWR}
}

// ignoreAgain ignores each of sigs that was ignored at start, so that the program executed next ignores it too.
func ignoreAgain(sigs []syscall.Signal) {
	for _, sig := range sigs {
		if ignoredAtStart(sig) {
			signal.Ignore(sig)
		}
	}
}

// yieldIgnored ignores the signals that were ignored at start, so that the next child ignores them too. In a child, the
// runtime resets every signal with a handler to its default action. These signals are lost until resumeIgnored is
// called.
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
// launcher), or 0. The setting survives exec but applies to one thread: package initialization runs on the main thread.
var launcherDeath = parentDeathSignal()

// parentDeathSignal returns PR_GET_PDEATHSIG of this thread.
func parentDeathSignal() syscall.Signal {
	var sig int32
	_ = unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&sig)), 0, 0, 0)
	return syscall.Signal(sig)
}

// State that the kernel handed to this process, recorded before the Go runtime sets its signal handlers and opens
// /dev/null for missing standard descriptors. It is set only in a binary linked with entry as its entry point (go build
// -ldflags '-E github.com/perfagent/perfagent/job.entry', as scripts/build.sh does). In any other binary these
// variables are 0 and the job starts with the defaults. They are package variables because no other memory is available
// when entry runs.
var (
	ignoredBits uint64 // bit n: signal n was ignored; bit 0: the program began at entry
	closedBits  uint64 // bit n: descriptor n (0 to 2) was closed

	// processorAdded is 1 if the environment lacked GOMAXPROCS and entry added GOMAXPROCS=1. With a higher value, the
	// runtime makes four threads before the program begins, which costs a short run 5 % of its time.
	processorAdded uint64
)

// RemoveAddedGOMAXPROCS reports whether entry added GOMAXPROCS=1 to the environment, and removes it. Call it before
// other code reads the environment.
func RemoveAddedGOMAXPROCS() bool {
	if processorAdded == 0 {
		return false
	}
	_ = os.Unsetenv("GOMAXPROCS")
	return true
}

// LacksEntryPoint reports whether this program was linked without entry, which records ignored signals and closed
// descriptors. It returns false on systems for which there is no such entry point.
func LacksEntryPoint() bool { return ignoredBits&1 == 0 }

// ignoredAtStart reports whether a signal was ignored when the program was executed.
func ignoredAtStart(sig syscall.Signal) bool { return ignoredBits>>uint(sig)&1 == 1 }

// closedAtStart reports whether a standard descriptor was closed when the program was executed.
func closedAtStart(fd int) bool { return closedBits>>uint(fd)&1 == 1 }
