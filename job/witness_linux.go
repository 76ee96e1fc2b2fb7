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
	"github.com/perfagent/perfagent/internal/scheduler"
)

// A witness is a minimal child of this process. It is made if there is a launcher, which may signal more than this
// process, because the kernel does not report whether a signal was sent to a process or to a group. The witness is
// where the job is: in our process group, among our children, and in the control group in which we started the job or
// in a parent of that group. A signal to the process group, the tree or each process of a control group reaches witness
// and job; a signal to this process alone reaches neither of them. The witness blocks all signals, counts those it
// receives, and dies with us.
type witness struct {
	pid    int
	counts *witnessPage
	groups []byte // the job's control groups at its start, from /proc/PID/cgroup

	seen      [lastSignal + 1]uint32 // counts at the last call of look
	unmatched []timedSignal          // received by the witness, not by this process so far
}

// A timedSignal is a signal and the time when it was noticed.
type timedSignal struct {
	sig syscall.Signal
	at  time.Time
}

// groupSignalWindow is how long a sender may take to signal all processes of a group one by one.
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
	w.unmatched = nil // sent before any signal was held back
	j.signals.witness = w
}

// Witness returns the process ID of the witness, a child of this process that shows which signals also reach the job,
// or 0 if there is none. It is in the control group of this process and is foreign to the job. ReapHelpers ends it.
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

// holdBack keeps n deliveries of sig until the witness shows whether they have reached the job. SIGTSTP and SIGCONT
// cancel each other, as they do in the kernel while they are pending. The caller holds the lock.
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

// dropHeldBack drops the held-back deliveries of sig. The caller holds the lock.
func (s *Signals) dropHeldBack(sig syscall.Signal) {
	s.heldBack = slices.DeleteFunc(s.heldBack, func(d timedSignal) bool { return d.sig == sig })
}

// resolveHeldBack sends the job those held-back signals that the witness did not receive within groupSignalWindow. The
// caller holds the lock.
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

// expireUnmatched drops signals that the witness received so long ago that we will get no copy. On a busy machine, our
// copy is late because the thread that takes it must wait for a CPU. The caller holds the lock.
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

// reachesJob reports whether a signal that the witness received was sent to the job as well. It was if the job has left
// neither our process group nor its initial control groups.
func (s *Signals) reachesJob() bool {
	groups, err := groupsOf(s.pid)
	return err == nil && bytes.Equal(groups, s.witness.groups) && inOurGroup(s.pid) && inOurGroup(s.witness.pid)
}

// groupsOf returns the list of the control groups of the process pid.
func groupsOf(pid int) ([]byte, error) {
	return procfile.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
}

// inOurGroup reports whether the process pid is in our process group.
func inOurGroup(pid int) bool {
	group, err := unix.Getpgid(pid)
	return err == nil && group == unix.Getpgrp()
}

// look adds the signals that the witness has received since the last call to unmatched.
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

// takeMatch removes one delivery of sig from unmatched, and reports whether there was one.
func (w *witness) takeMatch(sig syscall.Signal) bool {
	i := slices.IndexFunc(w.unmatched, func(a timedSignal) bool { return a.sig == sig })
	if i < 0 {
		return false
	}
	w.unmatched = slices.Delete(w.unmatched, i, i+1)
	return true
}

// isPending reports whether sig is pending for the process pid.
func isPending(pid int, sig syscall.Signal) bool {
	status, err := procfile.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	return err == nil && procfile.HasSignal(status, "ShdPnd", uint(sig))
}

// isUnderLauncher reports whether a launcher of parallel programs or a batch system started this process. Launchers and
// batch systems signal process groups, trees, or each process of a control group. A wrong result loses no signal.
func isUnderLauncher() bool {
	return slices.ContainsFunc(launcherVariables, func(name string) bool { return os.Getenv(name) != "" }) ||
		isLauncher(os.Getppid()) || isLauncher(groupLeaderParent())
}

// launcherVariables are environment variables that launchers and batch systems set.
var launcherVariables = []string{
	"PMI_RANK", "PMI_FD", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", // Hydra, Open MPI
	"SLURM_PROCID", "FLUX_TASK_RANK", "PALS_RANKID", "JSM_NAMESPACE_RANK", "TORCHELASTIC_RUN_ID",
	"PBS_JOBID", "LSB_JOBID", "SGE_TASK_ID", "PARALLEL_SEQ", // GNU parallel's is last
}

// groupLeaderParent returns the parent of the leader of our process group, or 0 if it is unknown or our own parent. In
// a container, the environment may lack the launcher's variables.
func groupLeaderParent() int {
	group := unix.Getpgrp()
	if group == os.Getpid() {
		return 0 // the caller checks our parent
	}
	leader, _ := procfile.ReadProcess(group)
	return leader.Parent
}

// isLauncher reports whether the process pid has the name of a launcher.
func isLauncher(pid int) bool { return scheduler.IsLauncher(nameOf(pid)) }

// fromJob reports whether pid, the sender of a signal, is a process of the job in our process group, as with "kill 0"
// in a script. If so, the job has received the signal as well, unless it has left the group. The caller holds the lock.
func (s *Signals) fromJob(pid int) bool {
	if pid <= 0 || !inOurGroup(pid) || !inOurGroup(s.pid) {
		return false
	}
	for p := range procfile.Lineage(pid) {
		if p.PID == s.pid {
			return true
		}
		if p.Parent == os.Getpid() { // an orphan of the job, or a child older than the job
			return s.family.isJobs(p.PID)
		}
	}
	return false
}
