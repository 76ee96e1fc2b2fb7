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
	counts *testimony
	groups []byte // the control groups of the job when it began, as /proc/PID/cgroup lists them

	seen  [lastSignal + 1]uint32 // its counts, as of the last look
	alone []sighting             // what it was sent, but not this process so far
}

// A sighting is a signal and when it was noticed.
type sighting struct {
	sig syscall.Signal
	at  time.Time
}

// suspense is how long after one process of a group another one may get what a sender gives to each in turn.
const suspense = 50 * time.Millisecond

// overloaded is how long a witness may take to count a signal that it was sent.
const overloaded = time.Second

// summon makes the witness, if there is a launcher.
func (j *Job) summon() {
	if j.signals == nil || !launched() {
		return
	}
	w := &witness{}
	var err error
	if w.groups, err = groupsOf(j.pid); err != nil {
		return // the job has ended, or nothing can be known of it
	}
	err = j.StartHelper(func() (int, error) {
		w.pid, w.counts, err = bear()
		return w.pid, err
	})
	if err != nil {
		return // a signal may reach the job twice
	}

	j.reaping.Lock()
	defer j.reaping.Unlock()
	w.look()
	w.alone = nil // nobody asked it about these
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

// dismiss ends the witness.
func (s *Signals) dismiss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.witness != nil {
		_ = unix.Kill(s.witness.pid, unix.SIGKILL)
		s.witness.counts.end()
		s.witness = nil
	}
}

// doubt keeps signals until the witness says whether the job has them. A stop and its end undo each other, as they do
// in the kernel while they are pending. The caller holds the lock.
func (s *Signals) doubt(sig syscall.Signal, n uint32) {
	switch sig {
	case syscall.SIGCONT:
		s.dropDoubts(syscall.SIGTSTP)
	case syscall.SIGTSTP:
		s.dropDoubts(syscall.SIGCONT)
	}
	now := time.Now()
	for range min(n, lastSignal) {
		s.doubts = append(s.doubts, sighting{sig, now})
	}
}

// dropDoubts has a signal not reach the job that is being kept. The caller holds the lock.
func (s *Signals) dropDoubts(sig syscall.Signal) {
	s.doubts = slices.DeleteFunc(s.doubts, func(d sighting) bool { return d.sig == sig })
}

// judge passes on what the witness was not sent in time. The caller holds the lock.
func (s *Signals) judge() {
	if s.witness == nil {
		return
	}
	s.witness.look()
	s.doubts = slices.DeleteFunc(s.doubts, func(d sighting) bool {
		switch age := time.Since(d.at); {
		case s.phase != running:
		case s.witness.saw(d.sig):
			if s.reachesJob() {
				s.hasAlready(d.sig)
			} else {
				s.send(d.sig)
			}
		case age < suspense, age < overloaded && isPending(s.witness.pid, d.sig):
			return false
		default:
			s.send(d.sig)
		}
		return true
	})
	s.forgetSightings()
	if len(s.doubts)+len(s.witness.alone) > 0 {
		time.AfterFunc(withoutBell, theBell.ring)
	}
}

// forgetSightings drops what the witness was sent so long ago that it will not reach us any more. On a busy machine the
// thread that is to take the signal may wait for its turn. The caller holds the lock.
func (s *Signals) forgetSightings() {
	s.witness.alone = slices.DeleteFunc(s.witness.alone, func(a sighting) bool {
		switch age := time.Since(a.at); {
		case age <= suspense, age < overloaded && isPending(os.Getpid(), a.sig), counted(a.sig) != s.seen[a.sig]:
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
	for _, sig := range relayed() {
		count := w.counts.of(sig)
		for range min(count-w.seen[sig], lastSignal) {
			w.alone = append(w.alone, sighting{sig, now})
		}
		w.seen[sig] = count
	}
}

// saw takes one of the signals that the witness was sent.
func (w *witness) saw(sig syscall.Signal) bool {
	i := slices.IndexFunc(w.alone, func(a sighting) bool { return a.sig == sig })
	if i < 0 {
		return false
	}
	w.alone = slices.Delete(w.alone, i, i+1)
	return true
}

// isPending reports whether a process was sent a signal that none of its threads has taken yet.
func isPending(pid int, sig syscall.Signal) bool {
	status, err := procfile.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	return err == nil && procfile.HasSignal(status, "ShdPnd", uint(sig))
}
