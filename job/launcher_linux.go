package job

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// reachedJob reports whether the newest delivery of sig has reached the job directly. The
// kernel does not say how a signal was addressed, but the sender is known: launchers of
// parallel programs signal the whole process group of what they started. The caller holds
// the lock.
func (s *Signals) reachedJob(sig syscall.Signal) bool {
	pid := sentBy(sig)
	if pid <= 0 {
		return false
	}

	name, known := s.launchers[pid] // it may have ended since it sent the signal
	if !known {
		if name = nameOf(pid); !signalsGroups(name) || !procfile.Descends(pid) {
			return false
		}
	}
	if group, err := unix.Getpgid(s.pid); err != nil || group != unix.Getpgrp() {
		return false
	}

	return name != slurmStepd || !inSlurmGroup()
}

// noteLaunchers remembers the launchers above this process, where the environment says that there is one.
func (s *Signals) noteLaunchers() {
	if !slices.ContainsFunc(launcherVariables, func(name string) bool { return os.Getenv(name) != "" }) {
		return
	}
	launchers := make(map[int]string)
	for p := range procfile.Ancestors() {
		if signalsGroups(p.Name) {
			launchers[p.PID] = p.Name
		}
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.launchers = launchers
}

// launcherVariables are set by the launchers that signal process groups, each in its way.
var launcherVariables = []string{"PMI_RANK", "PMI_FD", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}

// slurmStepd is the process of Slurm that starts the tasks of a step.
const slurmStepd = "slurmstepd"

// signalsGroups reports whether a program of this name (comm) signals process groups:
// those of Open MPI, PRRTE, and Hydra, which is MPICH's and Intel MPI's, do; slurmstepd does
// unless it tracks processes by control groups.
func signalsGroups(name string) bool {
	switch name {
	case slurmStepd, "orterun", "orted", "prterun", "prted", "hydra_pmi_proxy":
		return true
	}
	return strings.HasPrefix(name, "mpirun") || strings.HasPrefix(name, "mpiexec")
}

// inSlurmGroup reports whether this process is in a control group of a Slurm step. Then
// Slurm may track the step by that group (proctrack/cgroup), and signals only the process
// that it started, which is this one.
func inSlurmGroup() bool {
	groups, err := procfile.ReadFile("/proc/self/cgroup")
	return err != nil || hasSlurmStep(groups)
}

// hasSlurmStep reports whether any line of a cgroup file of procfs names a step's group:
// /slurm/uid_0/job_4711/step_0/task_0, or /system.slice/slurmstepd.scope/job_4711/step_0/user.
func hasSlurmStep(groups []byte) bool {
	return slices.ContainsFunc(bytes.Split(groups, []byte{'\n'}), func(line []byte) bool {
		above, _, ok := bytes.Cut(line, []byte("/step_"))
		return ok && bytes.Contains(above, []byte("slurm")) && bytes.Contains(above, []byte("/job_"))
	})
}
