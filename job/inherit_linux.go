//go:build amd64 || arm64

package job

import (
	"os/signal"
	"slices"
	"syscall"
)

// uncaught returns the signals that we do not catch but that the runtime does,
// and that it can ignore again. (It needs CHLD, URG, PROF and the signals of
// program errors.)
func uncaught() []syscall.Signal {
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
func yieldStart() { ignoreAgain(slices.Concat(relayed(), swallowed(), uncaught())) }

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
