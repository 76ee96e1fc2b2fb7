//go:build amd64 || arm64

package job

import (
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
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
	died       deliveryCounts            // deliveries of SIGCHLD known to relay
	late       chan syscall.Signal
	incoming   chan ReceivedSignal
	children   chan struct{}    // receives after a child has ended or stopped
	done       chan struct{}    // closed when relay has returned
	ignored    []syscall.Signal // caught, but ignored at start, so the job ignores them

	mu       sync.Mutex // guards the fields below; held while a child is reaped
	jobState jobState
	pid      int
	early    []earlySignal // oldest first
	seen     [lastSignal + 1]deliveryCounts
	first    [lastSignal + 1]deliveryCounts // the counts when catching began
	received []ReceivedSignal               // oldest first

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
		incoming: make(chan ReceivedSignal, maxReceived),
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

// Stop stops catching signals. Later signals have their default effect, which may be to kill the process, so call Stop
// only when all work is done.
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

// Late delivers the first TERM, INT, HUP or QUIT that arrived after the job's end, from any sender: it asks to cut the
// remaining operations short. On a nil *Signals, Late returns a nil channel, which never delivers.
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
		s.keep(sig, user+kernel)
	case jobRunning:
		s.passOn(sig, user)
		for range s.missed(sig, kernel) {
			s.send(sig)
		}
	case jobEnded:
		s.passLate(sig)
	}
}

// keep stores n deliveries of sig for a job that does not exist yet.
func (s *Signals) keep(sig syscall.Signal, n uint32) {
	if sig == syscall.SIGWINCH {
		return // the job will query the size
	}
	for range min(n, lastSignal) {
		s.early = append(s.early, earlySignal{sig, lastSender(sig)})
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
