package job

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// maxSent is how many signals are remembered; a job that is sent USR1 all the time has no
// use for all of them.
const maxSent = 32

// note remembers who sent a signal. The caller holds the lock.
func (s *Signals) note(sig syscall.Signal, user, kernel uint32) {
	switch sig {
	case syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGTSTP:
		return // they end nothing
	}
	if user+kernel == 0 {
		return // told already, together with one before it
	}
	n := Sent{Signal: sig, Name: signalName(sig), At: time.Now(), Kernel: user == 0, PID: -1}
	if !n.Kernel && s.hooked[sig] {
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

// Noted delivers each signal of Sent as it comes. Nobody waits for one who does not take
// them: what comes when some are left is dropped. On nil it never delivers.
func (s *Signals) Noted() <-chan Sent {
	if s == nil {
		return nil
	}
	return s.noted
}

// repeatedBy tells whether another signal is the same once more: timeout(1) sends each to
// its child and to the whole group.
func (a Sent) repeatedBy(b Sent) bool {
	return a.Signal == b.Signal && a.PID == b.PID && a.Kernel == b.Kernel && b.At.Sub(a.At) < time.Second
}

// nameOf is a process's name, "" when it has ended.
func nameOf(pid int) string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSuffix(data, []byte{'\n'}))
}

// sentUntil lists the signals that were sent to us. One that ended the job, by its default
// action or its handler's will, may have been sent to us as well, and may not have been told
// to us yet: it is waited for, as sentByTerminal does.
func (s *Signals) sentUntil(death syscall.Signal) []Sent {
	if s == nil {
		return nil
	}
	for i := 0; ; i++ {
		sent := s.Sent()
		told := !slices.Contains(relayed(), death) || slices.ContainsFunc(sent, func(n Sent) bool { return n.Signal == death })
		if (told || i >= promptly) && (i >= patiently || !s.onTheWay(relayed()...)) {
			return sent
		}
		time.Sleep(time.Millisecond)
	}
}

// Sent lists the signals that were sent to us so far; see Status.
func (s *Signals) Sent() []Sent {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}
