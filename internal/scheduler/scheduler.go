// Package scheduler reads what schedulers and launchers say about a process in its environment: the
// run, the node, the time limit and the GPUs. It also knows the daemons by which they signal a job.
//
// A new scheduler is one row of [Systems].
package scheduler

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// A System is a scheduler or a launcher, and the variables that it sets. An empty name of a
// variable means that the system has none.
type System struct {
	Name string

	JobID string // id of the job
	// Beside is another variable of the system. JobID counts only where it is set too, because its
	// own name is a common one.
	Beside string

	NodeIndex string   // index of the node among the job's nodes; a rank is not a node index
	EndTime   string   // when the job will be ended, in seconds since 1970
	GPUs      []string // the job's GPUs by the node's own numbers; the first that is set counts

	// Daemons are the processes that signal a job on behalf of the system. One that ends in "*" is
	// the beginning of a name.
	Daemons []string
}

// Slurm is the name of the system whose requests perfagent can write.
const Slurm = "Slurm"

// Systems returns the table of all known systems, in the order in which they are asked.
func Systems() []System {
	return []System{
		{
			Name: Slurm, JobID: "SLURM_JOB_ID", NodeIndex: "SLURM_NODEID",
			EndTime: "SLURM_JOB_END_TIME", // not before Slurm 23.02
			GPUs:    []string{"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"},
			Daemons: []string{"slurmstepd", "slurmd"},
		},
		{Name: "torchrun", NodeIndex: "GROUP_RANK"},
		{Name: "PBS", JobID: "PBS_JOBID", NodeIndex: "PBS_NODENUM", Daemons: []string{"pbs_mom"}},
		{Name: "LSF", JobID: "LSB_JOBID", Daemons: []string{"sbatchd", "res"}},
		{Name: "Flux", JobID: "FLUX_JOB_ID", Daemons: []string{"flux-*"}},
		{Name: "Cobalt", JobID: "COBALT_JOBID"},
		{Name: "AWS Batch", JobID: "AWS_BATCH_JOB_ID", NodeIndex: "AWS_BATCH_JOB_NODE_INDEX"},
		{Name: "Kubernetes", NodeIndex: "JOB_COMPLETION_INDEX"},
		{Name: "Volcano", NodeIndex: "VC_TASK_INDEX"},
		{
			Name: "Grid Engine", JobID: "JOB_ID", Beside: "SGE_TASK_ID",
			Daemons: []string{"sge_shepherd", "sge_execd"},
		},
	}
}

// An Identity says which job and which node a process belongs to.
type Identity struct {
	Scheduler string    // the system in charge of the job; "" if there is none
	JobID     string    // as the scheduler writes it: 123[4].server
	RunID     string    // the same, fit to name a folder: 123_4_.server
	Node      int       // index of the node; 0 if no system sets it
	EndTime   time.Time // when the scheduler ends the job; zero if unknown
}

// Detect reads the identity of a process from its environment. The scheduler is the first system
// whose job id is set; the node index comes from the first system that sets a usable one.
func Detect(lookup func(key string) (value string, ok bool)) Identity {
	var id Identity

	for _, s := range Systems() {
		if id.JobID = s.jobID(lookup); id.JobID != "" {
			id.Scheduler, id.RunID, id.EndTime = s.Name, SafeRunID(id.JobID), s.endTime(lookup)
			break
		}
	}

	for _, s := range Systems() {
		text, ok := lookup(s.NodeIndex)
		if n, err := strconv.ParseUint(text, 10, 31); ok && err == nil {
			id.Node = int(n)
			break
		}
	}

	return id
}

// jobID returns what the system calls the job; "" if the system is not in charge of it.
func (s System) jobID(lookup func(string) (string, bool)) string {
	if s.Beside != "" {
		if _, ok := lookup(s.Beside); !ok {
			return ""
		}
	}

	id, _ := lookup(s.JobID)

	return id
}

// endTime returns when the system ends the job; zero if unknown.
func (s System) endTime(lookup func(string) (string, bool)) time.Time {
	const latest = 1 << 40 // seconds since 1970: far beyond any limit

	text, _ := lookup(s.EndTime)
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds <= 0 || seconds >= latest {
		return time.Time{}
	}

	return time.Unix(seconds, 0)
}

// GPUs returns the list of the job's GPUs as a scheduler writes it, such as "0,2-3". ok reports
// whether one does.
func GPUs(lookup func(string) (string, bool)) (list string, ok bool) {
	for _, s := range Systems() {
		for _, variable := range s.GPUs {
			if list, ok := lookup(variable); ok {
				return list, true
			}
		}
	}

	return "", false
}

// IsDaemon reports whether a process of this name signals jobs on behalf of a scheduler.
func IsDaemon(process string) bool {
	return slices.ContainsFunc(Systems(), func(s System) bool {
		return slices.ContainsFunc(s.Daemons, func(name string) bool {
			if beginning, ok := strings.CutSuffix(name, "*"); ok {
				return strings.HasPrefix(process, beginning)
			}
			return process == name
		})
	})
}
