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

// maxSent is how many signals are remembered; a job that is sent USR1 all the time
// has no use for all of them.
const maxSent = 32

// How long, in milliseconds, we wait for our own copy of a signal that ended the job:
// promptly if nothing indicates that there is one, patiently if it is pending on a
// busy CPU.
const (
	promptly  = 10
	patiently = 1000
)

// note remembers who sent a signal. The caller holds the lock.
func (s *Signals) note(sig syscall.Signal, user, kernel uint32) {
	switch sig {
	case syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGTSTP:
		return // they end nothing
	}
	if user+kernel == 0 {
		return // counted already, together with one before it
	}

	n := Sent{Signal: sig, Name: signalName(sig), At: time.Now(), Kernel: user == 0, PID: -1}
	if !n.Kernel {
		if n.PID = sentBy(sig); n.PID > 0 {
			n.Process = nameOf(n.PID)
		}
	}
	if i := len(s.sent) - 1; i >= 0 && s.sent[i].repeatedBy(n) {
		return
	}

	if len(s.sent) == maxSent {
		s.sent = slices.Delete(s.sent, 0, 1)
	}
	s.sent = append(s.sent, n)
	select {
	case s.noted <- n:
	default:
	}
}

// repeatedBy reports whether b is a again: timeout(1) sends each signal to its
// child and to the whole group.
func (a Sent) repeatedBy(b Sent) bool {
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

// Sent returns the signals that this process has been sent so far; see Status.
func (s *Signals) Sent() []Sent {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

// Noted delivers each signal of Sent as it arrives. It waits for no receiver: what
// arrives while many are left is dropped. On nil it never delivers.
func (s *Signals) Noted() <-chan Sent {
	if s == nil {
		return nil
	}
	return s.noted
}

// sentUntil returns the signals that were sent to us. The signal that ended the job
// may have been sent to us as well and not have arrived yet: sentUntil waits for it.
func (s *Signals) sentUntil(death syscall.Signal) []Sent {
	if s == nil {
		return nil
	}
	for i := 0; ; i++ {
		sent := s.Sent()
		arrived := !slices.Contains(relayed(), death) ||
			slices.ContainsFunc(sent, func(n Sent) bool { return n.Signal == death })
		if (arrived || i >= promptly) && (i >= patiently || !s.onTheWay(relayed()...)) {
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
	return counted(sig).kernel != s.first[sig].kernel
}

// onTheWay reports whether one of these signals was sent to us without relay
// knowing of it yet: it is pending, or its handler has run and relay was not woken.
func (s *Signals) onTheWay(sigs ...syscall.Signal) bool {
	s.mu.Lock()
	delivered := slices.ContainsFunc(sigs, func(sig syscall.Signal) bool {
		return counted(sig) != s.seen[sig]
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
