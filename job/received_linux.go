//go:build amd64 || arm64

package job

import (
	"bytes"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/perfagent/perfagent/internal/procfile"
)

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
	switch sig {
	case syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGTSTP:
		return // these end nothing
	}
	if user+kernel == 0 {
		return // counted with an earlier delivery
	}

	n := ReceivedSignal{Signal: sig, Name: signalName(sig), At: time.Now(), Kernel: user == 0, PID: -1}
	if !n.Kernel {
		if n.PID = lastSender(sig); n.PID > 0 {
			n.Process = nameOf(n.PID)
		}
	}
	if i := len(s.received) - 1; i >= 0 && s.received[i].repeatedBy(n) {
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

// repeatedBy reports whether b repeats a within a second: timeout(1) sends each signal to its child and to the whole
// group.
func (a ReceivedSignal) repeatedBy(b ReceivedSignal) bool {
	return a.Signal == b.Signal && a.PID == b.PID && a.Kernel == b.Kernel && b.At.Sub(a.At) < time.Second
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
func (s *Signals) Received() []ReceivedSignal {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
}

// Incoming returns a channel that delivers each signal of Received as it arrives. It does not block: signals beyond its
// buffer are dropped. On a nil *Signals, Incoming returns a nil channel, which never delivers.
func (s *Signals) Incoming() <-chan ReceivedSignal {
	if s == nil {
		return nil
	}
	return s.incoming
}

// awaitReceived returns the signals sent to us. It waits for our copy of death, the signal that ended the job, because
// the job's copy may arrive first.
func (s *Signals) awaitReceived(death syscall.Signal) []ReceivedSignal {
	if s == nil {
		return nil
	}
	for i := 0; ; i++ {
		sent := s.Received()
		arrived := !slices.Contains(relayedSignals(), death) ||
			slices.ContainsFunc(sent, func(n ReceivedSignal) bool { return n.Signal == death })
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
