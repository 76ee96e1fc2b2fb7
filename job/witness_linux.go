//go:build amd64 || arm64

package job

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// A witness is a bare child of this process. It is made if there is a launcher, which may signal more than this
// process, because the kernel does not report how a signal was addressed. The witness is where the job is: in our
// process group, among our children, and in the control group in which we started the job or in a parent of that group.
// A signal to the group, the tree or each process of a control group reaches both the witness and the job; a signal to
// this process alone reaches neither. The witness blocks all signals, counts those it is sent, and dies with us.
type witness struct {
	pid    int
	counts *witnessPage
	groups []byte // the job's control groups at its start, from /proc/PID/cgroup

	seen      [lastSignal + 1]uint32 // counts at the last look
	unmatched []timedSignal          // received by the witness, not by this process so far
}

// A timedSignal is a signal and the time when it was noticed.
type timedSignal struct {
	sig syscall.Signal
	at  time.Time
}

// groupSignalWindow is the longest time between the first and the last process of a group when a sender signals each in
// turn.
const groupSignalWindow = 50 * time.Millisecond

// witnessTimeout is how long a witness may take to count a signal.
const witnessTimeout = time.Second

// startWitness makes the witness if there is a launcher.
func (j *Job) startWitness() {
	if j.signals == nil || !isUnderLauncher() {
		return
	}
	w := &witness{}
	var err error
	if w.groups, err = groupsOf(j.pid); err != nil {
		return // the job has ended, or /proc is not readable
	}
	err = j.StartHelper(func() (int, error) {
		w.pid, w.counts, err = forkWitness()
		return w.pid, err
	})
	if err != nil {
		return // without a witness a signal may reach the job twice
	}

	j.reaping.Lock()
	defer j.reaping.Unlock()
	w.look()
	w.unmatched = nil // sent before we held anything back
	j.signals.witness = w
}

// Witness returns the process ID of the witness, a child of this process that shows which signals reach the job too, or
// 0 if there is none. It is in the control group of this process and is foreign to the job. ReapHelpers ends it.
func (j *Job) Witness() int {
	j.reaping.Lock()
	defer j.reaping.Unlock()
	if j.signals == nil || j.signals.witness == nil {
		return 0
	}
	return j.signals.witness.pid
}

// stopWitness ends the witness.
func (s *Signals) stopWitness() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.witness != nil {
		_ = unix.Kill(s.witness.pid, unix.SIGKILL)
		s.witness.counts.end()
		s.witness = nil
	}
}

// holdBack keeps signals until the witness shows whether the job has them. A stop and its end cancel each other, as
// they do in the kernel while they are pending. The caller holds the lock.
func (s *Signals) holdBack(sig syscall.Signal, n uint32) {
	switch sig {
	case syscall.SIGCONT:
		s.dropHeldBack(syscall.SIGTSTP)
	case syscall.SIGTSTP:
		s.dropHeldBack(syscall.SIGCONT)
	}
	now := time.Now()
	for range min(n, lastSignal) {
		s.heldBack = append(s.heldBack, timedSignal{sig, now})
	}
}

// dropHeldBack drops the held-back signals of kind sig. The caller holds the lock.
func (s *Signals) dropHeldBack(sig syscall.Signal) {
	s.heldBack = slices.DeleteFunc(s.heldBack, func(d timedSignal) bool { return d.sig == sig })
}

// resolveHeldBack sends the job those held-back signals that the witness did not receive in time. The caller holds the
// lock.
func (s *Signals) resolveHeldBack() {
	if s.witness == nil {
		return
	}
	s.witness.look()
	s.heldBack = slices.DeleteFunc(s.heldBack, func(d timedSignal) bool {
		switch age := time.Since(d.at); {
		case s.jobState != jobRunning:
		case s.witness.takeMatch(d.sig):
			if s.reachesJob() {
				s.markDelivered(d.sig)
			} else {
				s.send(d.sig)
			}
		case age < groupSignalWindow, age < witnessTimeout && isPending(s.witness.pid, d.sig):
			return false
		default:
			s.send(d.sig)
		}
		return true
	})
	s.expireUnmatched()
	if len(s.heldBack)+len(s.witness.unmatched) > 0 {
		time.AfterFunc(notifierPollInterval, signalNotifier.notify)
	}
}

// expireUnmatched drops signals that the witness received too long ago for our copy to arrive any more. On a busy
// machine the thread that takes the signal may wait for its turn. The caller holds the lock.
func (s *Signals) expireUnmatched() {
	s.witness.unmatched = slices.DeleteFunc(s.witness.unmatched, func(a timedSignal) bool {
		switch age := time.Since(a.at); {
		case age <= groupSignalWindow, age < witnessTimeout && isPending(os.Getpid(), a.sig),
			readDeliveries(a.sig) != s.seen[a.sig]:
			return false
		}
		return true
	})
}

// reachesJob reports whether a signal sent to the witness was sent to the job as well: the job has left neither our
// process group nor its initial control groups.
func (s *Signals) reachesJob() bool {
	groups, err := groupsOf(s.pid)
	return err == nil && bytes.Equal(groups, s.witness.groups) && inOurGroup(s.pid) && inOurGroup(s.witness.pid)
}

// groupsOf returns the list of a process's control groups.
func groupsOf(pid int) ([]byte, error) {
	return procfile.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
}

// inOurGroup reports whether a process is in our process group.
func inOurGroup(pid int) bool {
	group, err := unix.Getpgid(pid)
	return err == nil && group == unix.Getpgrp()
}

// look adds new signals of the witness to unmatched.
func (w *witness) look() {
	now := time.Now()
	for _, sig := range relayedSignals() {
		count := w.counts.count(sig)
		for range min(count-w.seen[sig], lastSignal) {
			w.unmatched = append(w.unmatched, timedSignal{sig, now})
		}
		w.seen[sig] = count
	}
}

// takeMatch removes a signal from unmatched, and reports whether there was one.
func (w *witness) takeMatch(sig syscall.Signal) bool {
	i := slices.IndexFunc(w.unmatched, func(a timedSignal) bool { return a.sig == sig })
	if i < 0 {
		return false
	}
	w.unmatched = slices.Delete(w.unmatched, i, i+1)
	return true
}

// isPending reports whether a signal to the process is pending.
func isPending(pid int, sig syscall.Signal) bool {
	status, err := procfile.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	return err == nil && procfile.HasSignal(status, "ShdPnd", uint(sig))
}
