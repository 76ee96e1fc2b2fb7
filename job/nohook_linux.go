//go:build !amd64 && !arm64

package job

import (
	"os"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// On these architectures no handler of ours tells where a signal came from, and it is
// guessed (see guess): an INT or QUIT sent by kill(2) while we are in the terminal's
// foreground is taken for the terminal's and not relayed. Nor is it known whether SIGTSTP
// or SIGCONT was ignored.

// An ear is how Signals hear of deliveries.
type ear struct {
	ch      chan os.Signal // nil once it was released
	guessed [lastSignal + 1]origins
}

// catch asks the runtime for the signals. The channel is larger than their number: each is
// pending in the runtime at most once, so none is dropped.
func (s *Signals) catch() {
	s.ear.ch = make(chan os.Signal, 4*lastSignal)
	for _, sig := range slices.Concat(relayed(), swallowed()) {
		signal.Notify(s.ear.ch, sig)
	}
}

// relay runs until release.
func (s *Signals) relay() {
	defer close(s.done)
	for sig := range s.ear.ch {
		if sig, ok := sig.(syscall.Signal); ok && !slices.Contains(swallowed(), sig) {
			s.handle(sig)
		}
	}
}

// handle takes one notice of the runtime.
func (s *Signals) handle(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.guess(sig)
	s.deliver(sig)
}

// stopped reports whether release was called.
func (s *Signals) stopped() bool { return s.ear.ch == nil }

// release gives the signals back to the runtime, and ends relay.
func (s *Signals) release() {
	signal.Stop(s.ear.ch)
	close(s.ear.ch)
	<-s.done
	s.ear.ch = nil
}

// awaitChild returns when a child may have changed as the options of waitid(2) say.
func (*Signals) awaitChild(options int) { waitable(unix.P_ALL, 0, options) }

// counted returns the deliveries of sig so far.
func (s *Signals) counted(sig syscall.Signal) origins { return s.ear.guessed[sig] }

// guess counts one delivery: what a terminal can send comes from the terminal while we are
// in its foreground.
func (s *Signals) guess(sig syscall.Signal) {
	switch sig {
	case syscall.SIGTSTP: // by now we may have been put in the background
		s.ear.guessed[sig].kernel++
		return
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGWINCH:
		if foreground() {
			s.ear.guessed[sig].kernel++
			return
		}
	}
	s.ear.guessed[sig].user++
}

// foreground reports whether our group is the terminal's foreground group.
func foreground() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// take does nothing: what is delivered comes by the channel.
func (*Signals) take() {}

// There is no witness without the sender of a signal.
func hearSoon() {}

// bear makes no witness.
func bear() (pid int, t *testimony, err error) { return 0, nil, syscall.ENOSYS }

// A testimony does not exist here.
type testimony struct{}

func (*testimony) of(syscall.Signal) uint32 { return 0 }
func (*testimony) end()                     {}

func (s *Signals) resume(sig syscall.Signal) { signal.Notify(s.ear.ch, sig) }
func sentBy(syscall.Signal) int              { return -1 }
func ignored(sig syscall.Signal) bool        { return signal.Ignored(sig) }

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

// OneProcessor reports false: nobody told the Go runtime.
func OneProcessor() bool { return false }
