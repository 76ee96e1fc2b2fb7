//go:build amd64 || arm64

package job

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/procfile"
)

func relayedSignals() []syscall.Signal {
	return []syscall.Signal{
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGCONT, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGALRM, syscall.SIGABRT, syscall.SIGXCPU,
	}
}

// swallowedSignals returns the signals that failing writes of this process may raise. The kernel sends them as if they
// came from a process, so they look like signals to relay.
func swallowedSignals() []syscall.Signal { return []syscall.Signal{syscall.SIGPIPE, syscall.SIGXFSZ} }

// lastSignal is the largest signal number of Linux, real-time signals included.
const lastSignal = 64

// A jobState is a stage in the life of the job.
type jobState int

const (
	jobNotStarted jobState = iota
	jobRunning
	jobEnded
)

// deliveryCounts counts deliveries of one signal by origin.
type deliveryCounts struct{ user, kernel uint32 }

// An earlySignal was delivered before the job existed.
type earlySignal struct {
	sig    syscall.Signal
	sender int // as returned by lastSender
}

// Signals catches the signals sent to this process and relays them to the job. A nil *Signals catches nothing; its
// methods may be called.
type Signals struct {
	closed     atomic.Bool
	oldActions [lastSignal + 1]sigaction // previous dispositions of the caught signals
	died       deliveryCounts            // deliveries of SIGCHLD handled by relay
	late       chan syscall.Signal
	incoming   chan process.Signal
	children   chan struct{}    // receives after a child has ended or stopped
	done       chan struct{}    // closed when relay has returned
	ignored    []syscall.Signal // caught, but ignored at start, so the job ignores them

	mu       sync.Mutex // guards the fields below; held while a child is reaped
	jobState jobState
	pid      int
	early    []earlySignal // oldest first
	seen     [lastSignal + 1]deliveryCounts
	first    [lastSignal + 1]deliveryCounts // the counts when catching began
	received []process.Signal               // oldest first

	family   *family       // of the job
	witness  *witness      // nil without a launcher
	heldBack []timedSignal // signals that may have reached the job directly, oldest first
}

// Catch takes this process over for one job and begins to catch signals. Signals that arrive before the job is started
// are delivered to it right after its start. Call Catch only once, and as early as possible: until then signals have
// the effect that the Go runtime gives them (TERM, INT and HUP end the process).
func Catch() *Signals {
	s := &Signals{
		late:     make(chan syscall.Signal, 1),
		incoming: make(chan process.Signal, maxReceived),
		children: make(chan struct{}, 1),
		done:     make(chan struct{}),
	}
	for _, sig := range relayedSignals() {
		if ignored(sig) || ignoredAtStart(sig) {
			s.ignored = append(s.ignored, sig)
		}
	}
	for _, sig := range swallowedSignals() {
		if ignoredAtStart(sig) {
			s.ignored = append(s.ignored, sig)
		}
	}

	s.catch()
	ignoreAgain(uncaughtSignals())
	go s.relay()
	return s
}

// Stop stops catching signals. Signals that arrive later have their default effect, which may be to kill the process,
// so call Stop only when all work is done.
func (s *Signals) Stop() { s.stop() }

// stop is Stop, but returns the caught signals that no job has received and that the job would not have ignored.
func (s *Signals) stop() []syscall.Signal {
	if s == nil || s.closed.Load() {
		return nil
	}
	s.release()
	<-s.done

	s.mu.Lock()
	defer s.mu.Unlock()
	var lost []syscall.Signal
	for _, e := range s.early {
		if !slices.Contains(s.ignored, e.sig) {
			lost = append(lost, e.sig)
		}
	}
	return lost
}

// Late delivers the first TERM, INT, HUP or QUIT that arrived after the job's end, from any sender. The program should
// then cut its remaining work short. On a nil *Signals, Late returns a nil channel, which never delivers.
func (s *Signals) Late() <-chan syscall.Signal {
	if s == nil {
		return nil
	}
	return s.late
}

// deliver relays the deliveries of sig since the last call. The caller holds the lock.
func (s *Signals) deliver(sig syscall.Signal) {
	now, last := readDeliveries(sig), s.seen[sig]
	s.seen[sig] = now
	user, kernel := now.user-last.user, now.kernel-last.kernel
	s.recordReceived(sig, user, kernel)

	switch s.jobState {
	case jobNotStarted:
		for range min(user+kernel, lastSignal) {
			if sig != syscall.SIGWINCH { // the job will query the size
				s.early = append(s.early, earlySignal{sig, lastSender(sig)})
			}
		}
	case jobRunning:
		s.passOn(sig, user)
		for range s.missed(sig, kernel) {
			s.send(sig)
		}
	case jobEnded:
		s.passLate(sig)
	}
}

// passLate passes sig, which arrived after the job's end, to Late.
func (s *Signals) passLate(sig syscall.Signal) {
	switch sig {
	case syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT:
		select {
		case s.late <- sig:
		default:
		}
	}
}

// hasJob reports whether a job is running that receives the signals.
func (s *Signals) hasJob() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jobState == jobRunning
}

// attach makes the process pid the receiver of the signals, and delivers the early ones.
func (s *Signals) attach(pid int, f *family) {
	if s == nil {
		return
	}
	s.resumeIgnored()
	s.mu.Lock()
	defer s.mu.Unlock()
	// Signals delivered until now may have been sent before the job existed, so none of them is assumed to have reached
	// the job directly.
	for _, sig := range relayedSignals() {
		s.deliver(sig)
	}
	s.jobState, s.pid, s.family = jobRunning, pid, f
	for _, e := range s.early {
		if !s.fromJob(e.sender) { // the job may already have run and sent the signal
			s.send(e.sig)
		}
	}
	s.early = nil
}

// forget drops the deliveries of sig that have not been relayed yet. The caller holds the lock.
func (s *Signals) forget(sig syscall.Signal) {
	s.seen[sig] = readDeliveries(sig)
	s.dropHeldBack(sig)
}

// passOn handles n deliveries of sig from processes. It relays the deliveries that the job has not received directly.
func (s *Signals) passOn(sig syscall.Signal, n uint32) {
	switch {
	case n == 0:
		return
	case s.witness != nil:
		s.holdBack(sig, n)
		return
	case s.fromJob(lastSender(sig)):
		s.markDelivered(sig)
		n-- // earlier senders are unknown
	}
	for range n {
		s.send(sig)
	}
}

// markDelivered records that sig has reached the job directly.
func (s *Signals) markDelivered(sig syscall.Signal) {
	if sig == syscall.SIGCONT {
		s.continued() // clears the flag, so that the next SIGCONT sent to us alone is passed on
	}
}

// missed returns how many of n deliveries of sig from the kernel did not reach the job.
func (s *Signals) missed(sig syscall.Signal, n uint32) uint32 {
	switch sig {
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTSTP, syscall.SIGWINCH:
		if s.leftGroup() {
			return min(n, 1)
		}
	case syscall.SIGALRM:
		return n // a timer set before this program was executed
	case syscall.SIGHUP, syscall.SIGCONT:
		// When the terminal hangs up, the kernel signals only the session leader, which would be the job without us.
		if sid, err := unix.Getsid(0); err == nil && sid == os.Getpid() {
			return min(n, 1)
		}
	}
	return 0 // sent to the whole group, job included
}

// leftGroup reports whether the job moved to a new process group, although without us it would lead our group, which is
// the terminal's foreground group.
func (s *Signals) leftGroup() bool {
	group, err := unix.Getpgid(s.pid)
	if err != nil || group != s.pid || unix.Getpgrp() != os.Getpid() {
		return false
	}
	jobSession, err := unix.Getsid(s.pid)
	session, errOwn := unix.Getsid(0)
	return err == nil && errOwn == nil && jobSession == session
}

// send sends sig to the job. That may fail if the job runs as another user, as it would without us.
func (s *Signals) send(sig syscall.Signal) {
	if sig != syscall.SIGCONT {
		_ = unix.Kill(s.pid, sig)
		return
	}
	// A shell's fg and bg continue the whole group: by the time we continue, the job has continued, too.
	if s.continued() {
		return
	}
	_ = unix.Kill(s.pid, sig)
	s.continued()
}

// continued reports whether the job has been continued from a stop since the last call.
func (s *Signals) continued() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, s.pid, &info, unix.WCONTINUED|unix.WNOHANG, nil)
	return err == nil && info.Signo != 0
}

// maxReceived bounds how many signals are kept, because a job may receive USR1 continuously.
const maxReceived = 32

// How long, in milliseconds, to wait for our own copy of the signal that ended the job: ownCopyWaitMillis if there is
// no sign of it, pendingCopyWaitMillis if it is pending because all CPUs are busy.
const (
	ownCopyWaitMillis     = 10
	pendingCopyWaitMillis = 1000
)

// recordReceived records a signal and its sender. The caller holds the lock.
func (s *Signals) recordReceived(sig syscall.Signal, user, kernel uint32) {
	endsNothing := sig == syscall.SIGWINCH || sig == syscall.SIGCONT || sig == syscall.SIGTSTP
	if endsNothing || user+kernel == 0 { // 0: counted with an earlier delivery
		return
	}

	n := process.Signal{Signal: signalName(sig), Number: int(sig), At: time.Now(), Kernel: user == 0, PID: -1}
	if !n.Kernel {
		if n.PID = lastSender(sig); n.PID > 0 {
			n.Process = nameOf(n.PID)
		}
	}
	if i := len(s.received) - 1; i >= 0 && repeats(s.received[i], n) {
		return
	}

	if len(s.received) == maxReceived {
		s.received = slices.Delete(s.received, 0, 1)
	}
	s.received = append(s.received, n)
	select {
	case s.incoming <- n:
	default:
	}
}

// repeats reports whether b repeats a within a second: timeout(1) sends each signal to its child and to the whole
// group.
func repeats(a, b process.Signal) bool {
	return a.Number == b.Number && a.PID == b.PID && a.Kernel == b.Kernel && b.At.Sub(a.At) < time.Second
}

// nameOf returns the name of the process pid, or "" if it has ended.
func nameOf(pid int) string {
	data, err := procfile.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm") // newer kernels may refuse access to stat
	if err != nil {
		return ""
	}
	return string(bytes.TrimSuffix(data, []byte{'\n'}))
}

// Received returns the signals that this process has received so far; see Status.
func (s *Signals) Received() []process.Signal {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
}

// Incoming returns a channel that delivers each signal of Received as it arrives. It does not block: signals beyond its
// buffer are dropped. On a nil *Signals, Incoming returns a nil channel, which never delivers.
func (s *Signals) Incoming() <-chan process.Signal {
	if s == nil {
		return nil
	}
	return s.incoming
}

// awaitReceived returns the signals sent to us. It waits for our copy of death, the signal that ended the job, because
// the job's copy may arrive first.
func (s *Signals) awaitReceived(death syscall.Signal) []process.Signal {
	if s == nil {
		return nil
	}
	for i := 0; ; i++ {
		sent := s.Received()
		arrived := !slices.Contains(relayedSignals(), death) ||
			slices.ContainsFunc(sent, func(n process.Signal) bool { return n.Number == int(death) })
		if (arrived || i >= ownCopyWaitMillis) && (i >= pendingCopyWaitMillis || !s.onTheWay(relayedSignals()...)) {
			return sent
		}
		time.Sleep(time.Millisecond)
	}
}

// sentByTerminal reports whether the kernel sent us sig, INT or QUIT, since catching began. Call it after
// awaitReceived: the job may die before we have been woken.
func (s *Signals) sentByTerminal(sig syscall.Signal) bool {
	if s == nil || sig != syscall.SIGINT && sig != syscall.SIGQUIT {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return readDeliveries(sig).kernel != s.first[sig].kernel
}

// onTheWay reports whether one of sigs was sent to us but not collected yet: it is pending, or its handler has run and
// relay has not been woken.
func (s *Signals) onTheWay(sigs ...syscall.Signal) bool {
	s.mu.Lock()
	delivered := slices.ContainsFunc(sigs, func(sig syscall.Signal) bool {
		return readDeliveries(sig) != s.seen[sig]
	})
	s.mu.Unlock()
	if delivered {
		return true
	}

	status, err := procfile.ReadFile("/proc/self/status")
	return err == nil && slices.ContainsFunc(sigs, func(sig syscall.Signal) bool {
		return procfile.HasSignal(status, "ShdPnd", uint(sig))
	})
}
