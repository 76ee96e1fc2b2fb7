//go:build amd64 || arm64

package job

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// hasJob reports whether a job is running that the signals go to.
func (s *Signals) hasJob() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jobState == jobRunning
}

// attach names the process that signals go to, and delivers the early ones.
func (s *Signals) attach(pid int, f *family) {
	if s == nil {
		return
	}
	s.resumeIgnored()
	s.mu.Lock()
	defer s.mu.Unlock()
	// What was delivered until now may have come before the job existed, whoever it was sent to.
	for _, sig := range relayedSignals() {
		s.deliver(sig)
	}
	s.jobState, s.pid, s.family = jobRunning, pid, f
	for _, e := range s.early {
		if !s.fromJob(e.sender) { // which has begun meanwhile
			s.send(e.sig)
		}
	}
	s.early = nil
}

// detach notes that the job is no more. The caller holds the lock.
func (s *Signals) detach() {
	if s != nil {
		s.jobState, s.pid = jobEnded, 0
	}
}

// forget drops what was delivered of sig until now. The caller holds the lock.
func (s *Signals) forget(sig syscall.Signal) {
	if s != nil {
		s.seen[sig] = readDeliveries(sig)
		s.dropHeldBack(sig)
	}
}

// passOn gives the job n signals that processes sent us, or those of them that it lacks.
func (s *Signals) passOn(sig syscall.Signal, n uint32) {
	switch {
	case n == 0:
		return
	case s.witness != nil:
		s.holdBack(sig, n)
		return
	case s.fromJob(lastSender(sig)):
		s.markDelivered(sig)
		n-- // of those before the newest the sender is not known
	}
	for range n {
		s.send(sig)
	}
}

// markDelivered notes that a signal has reached the job directly.
func (s *Signals) markDelivered(sig syscall.Signal) {
	if sig == syscall.SIGCONT {
		s.continued() // by this one; the next one that is sent to us alone must be passed on
	}
}

// missed returns how many of n signals that the kernel sent us the job lacks.
func (s *Signals) missed(sig syscall.Signal, n uint32) uint32 {
	switch sig {
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTSTP, syscall.SIGWINCH:
		if s.leftGroup() {
			return min(n, 1)
		}
	case syscall.SIGALRM:
		return n // a timer that was set before this program was executed
	case syscall.SIGHUP, syscall.SIGCONT:
		// On hang-up the kernel signals only the leader of the session, which
		// without us would be the job.
		if sid, err := unix.Getsid(0); err == nil && sid == os.Getpid() {
			return min(n, 1)
		}
	}
	return 0 // sent to the whole group, and to the job itself
}

// leftGroup reports whether the job made a process group of its own where without
// us it would have been its group's leader already, and in the terminal's
// foreground.
func (s *Signals) leftGroup() bool {
	group, err := unix.Getpgid(s.pid)
	if err != nil || group != s.pid || unix.Getpgrp() != os.Getpid() {
		return false
	}
	theirs, err := unix.Getsid(s.pid)
	ours, errOurs := unix.Getsid(0)
	return err == nil && errOurs == nil && theirs == ours
}

// send gives the job a signal. If the job has another user's ID and may not be
// signalled by us, that is as it would be without us.
func (s *Signals) send(sig syscall.Signal) {
	if sig != syscall.SIGCONT {
		_ = unix.Kill(s.pid, sig)
		return
	}
	// The shell's fg and bg continue the whole group: by the time we are continued,
	// the job has been, too.
	if s.continued() {
		return
	}
	_ = unix.Kill(s.pid, sig)
	s.continued()
}

// continued reports whether the job has been continued from a stop since the last
// call.
func (s *Signals) continued() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, s.pid, &info, unix.WCONTINUED|unix.WNOHANG, nil)
	return err == nil && info.Signo != 0
}
