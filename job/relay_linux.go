//go:build amd64 || arm64

package job

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

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
	// Signals delivered until now may have been sent before the job existed, so none of them counts as sent to the job
	// directly.
	for _, sig := range relayedSignals() {
		s.deliver(sig)
	}
	s.jobState, s.pid, s.family = jobRunning, pid, f
	for _, e := range s.early {
		if !s.fromJob(e.sender) { // the job has begun in the meantime
			s.send(e.sig)
		}
	}
	s.early = nil
}

// detach records that the job has ended. The caller holds the lock.
func (s *Signals) detach() {
	if s != nil {
		s.jobState, s.pid = jobEnded, 0
	}
}

// forget drops the deliveries of sig that have not been relayed yet. The caller holds the lock.
func (s *Signals) forget(sig syscall.Signal) {
	if s != nil {
		s.seen[sig] = readDeliveries(sig)
		s.dropHeldBack(sig)
	}
}

// passOn handles n deliveries of sig from processes. It sends the job those that the job has not received directly.
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

// leftGroup reports whether the job made a new process group, although without us it would already lead our group,
// which is the terminal's foreground group.
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
