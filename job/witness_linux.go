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

// A witness is a bare child of this process, made where a launcher may signal more than this process. The kernel does
// not say how a signal was addressed. But the witness is where the job is: in our process group, among our children and
// in the control group in which we started the job, or around it. Whoever signals the group, the tree or each process
// of a control group reaches the witness as well as the job, and whoever means this process alone does not. The witness
// blocks all signals, counts what it is sent, and dies with us.
type witness struct {
	pid    int
	counts *witnessPage
	groups []byte // the control groups of the job when it began, as /proc/PID/cgroup lists them

	seen      [lastSignal + 1]uint32 // its counts, as of the last look
	unmatched []timedSignal          // what it was sent, but not this process so far
}

// A timedSignal is a signal and when it was noticed.
type timedSignal struct {
	sig syscall.Signal
	at  time.Time
}

// groupSignalWindow is how long after one process of a group another one may get what a sender gives to each in turn.
const groupSignalWindow = 50 * time.Millisecond

// witnessTimeout is how long a witness may take to count a signal that it was sent.
const witnessTimeout = time.Second

// startWitness makes the witness, if there is a launcher.
func (j *Job) startWitness() {
	if j.signals == nil || !isUnderLauncher() {
		return
	}
	w := &witness{}
	var err error
	if w.groups, err = groupsOf(j.pid); err != nil {
		return // the job has ended, or nothing can be known of it
	}
	err = j.StartHelper(func() (int, error) {
		w.pid, w.counts, err = forkWitness()
		return w.pid, err
	})
	if err != nil {
		return // a signal may reach the job twice
	}

	j.reaping.Lock()
	defer j.reaping.Unlock()
	w.look()
	w.unmatched = nil // nobody asked it about these
	j.signals.witness = w
}

// Witness returns the process ID of a child of this process that is there to see who is signalled, or 0. It is in the
// control group of this process, and is not the job's. ReapHelpers ends it.
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

// holdBack keeps signals until the witness says whether the job has them. A stop and its end undo each other, as they
// do in the kernel while they are pending. The caller holds the lock.
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

// dropHeldBack has a signal not reach the job that is being kept. The caller holds the lock.
func (s *Signals) dropHeldBack(sig syscall.Signal) {
	s.heldBack = slices.DeleteFunc(s.heldBack, func(d timedSignal) bool { return d.sig == sig })
}

// resolveHeldBack passes on what the witness was not sent in time. The caller holds the lock.
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

// expireUnmatched drops what the witness was sent so long ago that it will not reach us any more. On a busy machine the
// thread that is to take the signal may wait for its turn. The caller holds the lock.
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

// reachesJob reports whether what was sent to the witness was sent to the job as well: the job has left neither our
// process group nor the control groups in which it began.
func (s *Signals) reachesJob() bool {
	groups, err := groupsOf(s.pid)
	return err == nil && bytes.Equal(groups, s.witness.groups) && inOurGroup(s.pid) && inOurGroup(s.witness.pid)
}

// groupsOf returns the list of the control groups of a process.
func groupsOf(pid int) ([]byte, error) {
	return procfile.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
}

// inOurGroup reports whether a process is in our process group.
func inOurGroup(pid int) bool {
	group, err := unix.Getpgid(pid)
	return err == nil && group == unix.Getpgrp()
}

// look notices what the witness was sent.
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

// takeMatch takes one of the signals that the witness was sent.
func (w *witness) takeMatch(sig syscall.Signal) bool {
	i := slices.IndexFunc(w.unmatched, func(a timedSignal) bool { return a.sig == sig })
	if i < 0 {
		return false
	}
	w.unmatched = slices.Delete(w.unmatched, i, i+1)
	return true
}

// isPending reports whether a process was sent a signal that none of its threads has taken yet.
func isPending(pid int, sig syscall.Signal) bool {
	status, err := procfile.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	return err == nil && procfile.HasSignal(status, "ShdPnd", uint(sig))
}
