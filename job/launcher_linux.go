//go:build amd64 || arm64

package job

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
	"github.com/perfagent/perfagent/internal/scheduler"
)

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
		if p.Parent == os.Getpid() { // an orphan of the job, or a child from before
			return s.family.isJobs(p.PID)
		}
	}
	return false
}
