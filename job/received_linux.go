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

// maxReceived is how many signals are remembered; a job that is sent USR1 all the time
// has no use for all of them.
const maxReceived = 32

// How long, in milliseconds, we wait for our own copy of a signal that ended the job:
// promptly if nothing indicates that there is one, patiently if it is pending on a
// busy CPU.
const (
	ownCopyWaitMillis     = 10
	pendingCopyWaitMillis = 1000
)

// recordReceived remembers who sent a signal. The caller holds the lock.
func (s *Signals) recordReceived(sig syscall.Signal, user, kernel uint32) {
	switch sig {
	case syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGTSTP:
		return // they end nothing
	}
	if user+kernel == 0 {
		return // counted already, together with one before it
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

// repeatedBy reports whether b is a again: timeout(1) sends each signal to its
// child and to the whole group.
func (a ReceivedSignal) repeatedBy(b ReceivedSignal) bool {
	return a.Signal == b.Signal && a.PID == b.PID && a.Kernel == b.Kernel && b.At.Sub(a.At) < time.Second
}

// nameOf returns a process's name, or "" if it has ended.
func nameOf(pid int) string {
	data, err := procfile.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm") // a newer kernel may not answer for its stat
	if err != nil {
		return ""
	}
	return string(bytes.TrimSuffix(data, []byte{'\n'}))
}

// Received returns the signals that this process has been sent so far; see Status.
func (s *Signals) Received() []ReceivedSignal {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
}

// Incoming delivers each signal of Sent as it arrives. It waits for no receiver: what
// arrives while many are left is dropped. On nil it never delivers.
func (s *Signals) Incoming() <-chan ReceivedSignal {
	if s == nil {
		return nil
	}
	return s.incoming
}

// awaitReceived returns the signals that were sent to us. The signal that ended the job
// may have been sent to us as well and not have arrived yet: sentUntil waits for it.
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

// sentByTerminal reports whether the kernel sent us sig, INT or QUIT, since we
// began to catch. Call it after sentUntil: what kills the job may do so before we have been woken.
func (s *Signals) sentByTerminal(sig syscall.Signal) bool {
	if s == nil || sig != syscall.SIGINT && sig != syscall.SIGQUIT {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return readDeliveries(sig).kernel != s.first[sig].kernel
}

// onTheWay reports whether one of these signals was sent to us without relay
// knowing of it yet: it is pending, or its handler has run and relay was not woken.
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
