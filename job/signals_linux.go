package job

import (
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// relayed are the signals that the job gets when we are sent them.
func relayed() []syscall.Signal {
	return []syscall.Signal{
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGCONT, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGALRM, syscall.SIGABRT, syscall.SIGXCPU,
	}
}

// swallowed are the signals that our own failing writes earn us. They count as
// sent by a user to the kernel, so they cannot be told from relayable ones.
func swallowed() []syscall.Signal { return []syscall.Signal{syscall.SIGPIPE, syscall.SIGXFSZ} }

// lastSignal is the largest signal number of Linux, real-time ones included.
const lastSignal = 64

// phase is where the job is in its life.
type phase int

const (
	before phase = iota
	running
	ended
)

// origins counts deliveries of one signal by who sent it.
type origins struct{ user, kernel uint32 }

// Signals catches what is sent to this process and relays it to the job. Its
// methods may be called on nil, which catches nothing.
type Signals struct {
	ch      chan os.Signal
	late    chan syscall.Signal
	noted   chan Sent
	ready   chan struct{}    // closed when the handlers are set up
	done    chan struct{}    // closed when relay has returned
	ignored []syscall.Signal // ignored when we started, so to be by the job

	mu      sync.Mutex // guards what follows; held while a child is reaped
	phase   phase
	pid     int
	early   []syscall.Signal // sent before the job was there
	seen    [lastSignal + 1]origins
	first   [lastSignal + 1]origins // the counts when catching began
	guessed [lastSignal + 1]origins // counts of signals without a hook
	hooked  [lastSignal + 1]bool
	sent    []Sent // oldest first
}

// Catch begins to catch what is sent to this process. Signals that come before
// the job is started are delivered to it right after. Call it once, as early as
// possible: until then, and for less than a millisecond more, signals have the
// effect that the Go runtime gives them (TERM, INT and HUP end us).
func Catch() *Signals {
	s := &Signals{
		// Larger than the number of signals caught: each is pending in
		// the runtime at most once, so none is dropped.
		ch:    make(chan os.Signal, 4*lastSignal),
		late:  make(chan syscall.Signal, 1),
		noted: make(chan Sent, maxSent),
		ready: make(chan struct{}),
		done:  make(chan struct{}),
	}
	go s.relay()
	return s
}

// catch sets the handlers up. It is not done in Catch because each Notify makes
// the runtime switch threads twice, half a millisecond in all, in which the
// caller has better things to do than to wait.
func (s *Signals) catch() {
	defer close(s.ready)
	for _, sig := range relayed() {
		if ignored(sig) || ignoredAtStart(sig) {
			s.ignored = append(s.ignored, sig)
		}
		s.first[sig] = counted(sig)
		s.seen[sig] = s.first[sig]
		// Hook first where the runtime has its handler already: there is
		// no moment then in which a signal comes without its origin.
		s.hooked[sig] = hook(sig)
		signal.Notify(s.ch, sig)
		if !s.hooked[sig] {
			s.hooked[sig] = hook(sig)
		}
	}
	for _, sig := range swallowed() {
		if ignoredAtStart(sig) {
			s.ignored = append(s.ignored, sig)
		}
		signal.Notify(s.ch, sig)
	}
}

// wait returns when the handlers are set up.
func (s *Signals) wait() {
	if s != nil {
		<-s.ready
	}
}

// Stop ends the catching; what is sent to this process later has its default
// effect, which may be death. Call it when there is nothing left to lose.
func (s *Signals) Stop() { s.stop() }

// stop returns the signals that were caught, that no job was there to receive and
// that it would not have ignored.
func (s *Signals) stop() []syscall.Signal {
	if s == nil || s.ch == nil {
		return nil
	}
	s.wait()
	for _, sig := range relayed() {
		unhook(sig)
	}
	signal.Stop(s.ch)
	close(s.ch)
	<-s.done
	s.ch = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(s.early, func(sig syscall.Signal) bool {
		return slices.Contains(s.ignored, sig)
	})
}

// Late delivers the first TERM, INT, HUP or QUIT that came after the job's end,
// whoever sent it: a wish that what is still being done be cut short. On nil it
// never delivers.
func (s *Signals) Late() <-chan syscall.Signal {
	if s == nil {
		return nil
	}
	return s.late
}

// relay runs until stop.
func (s *Signals) relay() {
	defer close(s.done)
	s.catch()
	for sig := range s.ch {
		if sig, ok := sig.(syscall.Signal); ok && sig != syscall.SIGPIPE && sig != syscall.SIGXFSZ {
			s.handle(sig)
		}
	}
}

// handle passes on what has been delivered of sig since the last time.
func (s *Signals) handle(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hooked[sig] {
		s.guess(sig)
	}
	now, last := s.total(sig), s.seen[sig]
	s.seen[sig] = now
	user, kernel := now.user-last.user, now.kernel-last.kernel
	s.note(sig, user, kernel)
	switch s.phase {
	case before:
		s.keep(sig, user+kernel)
	case running:
		for range user + s.wanted(sig, kernel) {
			s.send(sig)
		}
	case ended:
		s.tell(sig)
	}
}

// total counts the deliveries of sig since the process began.
func (s *Signals) total(sig syscall.Signal) origins {
	if !s.hooked[sig] {
		return s.guessed[sig]
	}
	return counted(sig)
}

// guess says where one delivery of a signal without a hook came from: what a
// terminal can send comes from the terminal while we are in its foreground.
func (s *Signals) guess(sig syscall.Signal) {
	switch sig {
	case syscall.SIGTSTP: // by now we may have been put in the background
		s.guessed[sig].kernel++
		return
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGWINCH:
		if foreground() {
			s.guessed[sig].kernel++
			return
		}
	}
	s.guessed[sig].user++
}

// foreground tells whether our group is the terminal's foreground group.
func foreground() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// wanted says how many of n signals that the kernel sent us the job misses.
func (s *Signals) wanted(sig syscall.Signal, n uint32) uint32 {
	switch sig {
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTSTP, syscall.SIGWINCH:
		if s.leftGroup() {
			return min(n, 1)
		}
	case syscall.SIGALRM:
		return n // a timer set before perfagent was executed
	case syscall.SIGHUP, syscall.SIGCONT:
		// On hang-up the kernel signals only the leader of the session,
		// which without us would be the job.
		if sid, err := unix.Getsid(0); err == nil && sid == os.Getpid() {
			return min(n, 1)
		}
	}
	return 0 // sent to the whole group, and to the job itself
}

// leftGroup tells whether the job made a process group of its own where without us
// it would have been its group's leader already, and in the terminal's foreground.
func (s *Signals) leftGroup() bool {
	group, err := unix.Getpgid(s.pid)
	if err != nil || group != s.pid || unix.Getpgrp() != os.Getpid() {
		return false
	}
	theirs, err := unix.Getsid(s.pid)
	ours, errOurs := unix.Getsid(0)
	return err == nil && errOurs == nil && theirs == ours
}

// keep remembers a signal for the job that is not there yet.
func (s *Signals) keep(sig syscall.Signal, n uint32) {
	if sig == syscall.SIGWINCH {
		return // the job will ask for the size
	}
	for range min(n, lastSignal) {
		s.early = append(s.early, sig)
	}
}

// tell passes a signal that came after the job's end to who waits on Late.
func (s *Signals) tell(sig syscall.Signal) {
	switch sig {
	case syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT:
		select {
		case s.late <- sig:
		default:
		}
	}
}

// send gives the job a signal. That it has another user's id and may not be
// signalled by us is as it would be without us.
func (s *Signals) send(sig syscall.Signal) {
	if sig != syscall.SIGCONT {
		_ = unix.Kill(s.pid, sig)
		return
	}
	// The shell's fg and bg continue the whole group: the job has been
	// continued already, by the time we are.
	if s.continued() {
		return
	}
	_ = unix.Kill(s.pid, sig)
	s.continued()
}

// continued tells whether the job has been continued from a stop since it was
// last asked.
func (s *Signals) continued() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, s.pid, &info, unix.WCONTINUED|unix.WNOHANG, nil)
	return err == nil && info.Signo != 0
}

// attach names the process that signals go to, and delivers the early ones.
func (s *Signals) attach(pid int) {
	if s == nil {
		return
	}
	s.resumeIgnored()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase, s.pid = running, pid
	for _, sig := range s.early {
		s.send(sig)
	}
	s.early = nil
}

// hold keeps signals from being sent until the returned function is called.
func (s *Signals) hold() (release func()) {
	if s == nil {
		return func() {}
	}
	s.mu.Lock()
	return s.mu.Unlock
}

// forget drops what was delivered of sig until now. The caller holds the lock.
func (s *Signals) forget(sig syscall.Signal) {
	if s != nil && s.hooked[sig] {
		s.seen[sig] = counted(sig)
	}
}

// detach says that the job is no more. The caller holds the lock.
func (s *Signals) detach() {
	if s != nil {
		s.phase, s.pid = ended, 0
	}
}

// yieldIgnored lets the next child inherit what was ignored when we started: the
// runtime gives a child the default action for each signal that has a handler.
// Until resumeIgnored such a signal is lost on us, as it is on those who
// ignore it.
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
		signal.Notify(s.ch, sig)
		if s.hooked[sig] {
			hook(sig)
		}
	}
}

// yieldStart lets the program that replaces this one have what was ignored when
// we started.
func yieldStart() {
	for _, sig := range append(relayed(), swallowed()...) {
		if ignoredAtStart(sig) {
			signal.Ignore(sig)
		}
	}
}

// sentByTerminal tells whether the kernel sent us sig, INT or QUIT, since we
// began to catch: what kills the job may do so before we have been woken.
func (s *Signals) sentByTerminal(sig syscall.Signal) bool {
	if s == nil || sig != syscall.SIGINT && sig != syscall.SIGQUIT {
		return false
	}
	for i := 0; i < promptly || i < patiently && s.onTheWay(sig); i++ {
		s.mu.Lock()
		now, first := s.total(sig), s.first[sig]
		s.mu.Unlock()
		if now != first {
			return now.kernel != first.kernel
		}
		time.Sleep(time.Millisecond) // nobody told us, or not yet
	}
	return false
}

// How long, in milliseconds, we wait for a signal that ended the job to be told to us: where
// nothing says that it was sent to us as well, and where it is under way on a busy CPU.
const (
	promptly  = 10
	patiently = 1000
)

// onTheWay tells that one of these was sent to us and that relay does not know of it yet: it
// is pending, or its handler has run and nobody was woken.
func (s *Signals) onTheWay(sigs ...syscall.Signal) bool {
	s.mu.Lock()
	delivered := slices.ContainsFunc(sigs, func(sig syscall.Signal) bool { return s.hooked[sig] && counted(sig) != s.seen[sig] })
	s.mu.Unlock()
	if delivered {
		return true
	}
	status, err := os.ReadFile("/proc/self/status")
	return err == nil && slices.ContainsFunc(sigs, func(sig syscall.Signal) bool { return procfile.HasSignal(status, "ShdPnd", uint(sig)) })
}

// Reraise ends this process by sig without a core file, for its parent to see
// that the job died so. It does not return; where the signal cannot kill us
// (process 1), the exit code is 128+sig.
func Reraise(sig syscall.Signal) {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	// A core_pattern that is a pipe pays no heed to the limit.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	runtime.LockOSThread()
	if _, ok := setDefault(sig); ok {
		unblock(sig)
		_ = unix.Tgkill(os.Getpid(), unix.Gettid(), sig)
	}
	os.Exit(128 + int(sig))
}

// unblock lets sig be delivered to this thread.
func unblock(sig syscall.Signal) {
	var set unix.Sigset_t
	bits := 8 * int(unsafe.Sizeof(set.Val[0])) // a word has 32 or 64
	set.Val[(int(sig)-1)/bits] |= 1 << ((int(sig) - 1) % bits)
	_ = unix.PthreadSigmask(unix.SIG_UNBLOCK, &set, nil)
}
