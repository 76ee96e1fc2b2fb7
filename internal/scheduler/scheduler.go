// Package scheduler reads the environment variables of schedulers and launchers: the run, the node, the time limit and
// the GPUs of a process. It also lists the daemons through which schedulers and launchers signal a job.
//
// To add a scheduler, add one row to [Systems].
package scheduler

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A System describes a scheduler by its environment variables. An empty name means that the system has no such
// variable.
type System struct {
	Name string

	JobID string // ID of the job
	// Required is a second variable that must be set together with JobID, if other programs also set a variable of that
	// name.
	Required string
	// ArrayJob and ArrayTask are the ID of a job array and the number of the task in the array, if JobID alone does not
	// contain both. In a job that is not an array, the task's number is one of NoTask.
	ArrayJob, ArrayTask string
	NoTask              []string

	// NodeSeparator is the separator before the node's index if job IDs end with one.
	NodeSeparator string

	Restart  string   // how often the job was restarted
	Attempts string   // how often it was started
	Nodes    string   // nodes of the job
	EndTime  string   // when the job will be ended, in seconds since 1970
	GPUs     []string // the job's GPUs, by their numbers on the node; the first variable set counts

	// Daemons are the processes that signal a job on behalf of the system. A final "*" matches any suffix.
	Daemons []string
}

// Slurm is the name of the only system for which perfagent can write resource requests.
const Slurm = "Slurm"

// The systems with special rules.
const (
	flux      = "Flux"
	sageMaker = "SageMaker"
	azureML   = "Azure ML"

	kubernetes = "Kubernetes"
	kubeflow   = "Kubeflow"
	volcano    = "Volcano"
)

// azureRun is the variable with the ID of a job of Azure ML.
const azureRun = "AZUREML_RUN_ID"

// Systems returns the table of all known systems, in order of precedence.
func Systems() []System {
	return []System{
		{
			Name: Slurm, JobID: "SLURM_JOB_ID", ArrayJob: "SLURM_ARRAY_JOB_ID", ArrayTask: "SLURM_ARRAY_TASK_ID",
			Restart: "SLURM_RESTART_COUNT", Nodes: "SLURM_JOB_NUM_NODES",
			EndTime: "SLURM_JOB_END_TIME", // not before Slurm 23.02
			GPUs:    []string{"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"},
			Daemons: []string{"slurmstepd", "slurmd"},
		},
		{Name: "PBS", JobID: "PBS_JOBID", Daemons: []string{"pbs_mom"}},
		{
			Name: "LSF", JobID: "LSB_JOBID", ArrayJob: "LSB_JOBID", ArrayTask: "LSB_JOBINDEX", NoTask: []string{"0"},
			Restart: "LSB_RESTART", Daemons: []string{"sbatchd", "res"},
		},
		{Name: flux, JobID: "FLUX_ENCLOSING_ID", Daemons: []string{"flux-*"}}, // FLUX_JOB_ID is relative to this job
		{Name: flux, JobID: "FLUX_JOB_ID"},
		{Name: "Cobalt", JobID: "COBALT_JOBID"},
		{
			Name: "AWS Batch", JobID: "AWS_BATCH_JOB_ID", NodeSeparator: "#",
			Attempts: "AWS_BATCH_JOB_ATTEMPT", Nodes: "AWS_BATCH_JOB_NUM_NODES",
		},
		{Name: sageMaker, JobID: "TRAINING_JOB_NAME"},
		{Name: azureML, JobID: azureRun, Nodes: "AZUREML_NODE_COUNT"},
		{
			Name: "Grid Engine", JobID: "JOB_ID", Required: "SGE_TASK_ID",
			ArrayJob: "JOB_ID", ArrayTask: "SGE_TASK_ID", NoTask: []string{"undefined"},
			Restart: "RESTARTED", Nodes: "NHOSTS", Daemons: []string{"sge_shepherd", "sge_execd"},
		},
	}
}

// DetectSystem returns the scheduler in charge of a process: the first one with a job ID in its variable. ok reports
// whether there is one.
func DetectSystem(lookup func(string) (string, bool)) (s System, ok bool) {
	for _, s := range Systems() {
		if s.isActive(lookup) {
			return s, true
		}
	}
	return System{}, false
}

// isActive reports whether the variables show that the system runs the job.
func (s System) isActive(lookup func(string) (string, bool)) bool {
	id, _ := lookup(s.JobID)
	if _, ok := lookup(s.Required); s.Required != "" && !ok {
		return false
	}
	return id != ""
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

// GPUs returns the list of the job's GPUs as a scheduler writes it, such as "0,2-3". ok is false if no scheduler sets
// one.
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

// IsDaemon reports whether process is the name of a daemon that signals jobs on behalf of a scheduler.
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

// runIDLetters are the characters allowed in a run ID. A regular expression would be compiled at every start, while the
// job waits.
const runIDLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

// maxRunID is the maximum length of a run ID.
const maxRunID = 128

// CheckRunID returns an error if id cannot name the folder of a run.
func CheckRunID(id string) error {
	switch {
	case strings.Trim(id, runIDLetters) != "":
		return fmt.Errorf("%q has characters other than letters, digits, '.', '_' and '-'", id)
	case strings.Trim(id, ".") == "":
		return fmt.Errorf("%q cannot be the name of a directory", id)
	case len(id) > maxRunID:
		return fmt.Errorf("%q is longer than %d characters", id[:32]+"…", maxRunID)
	}

	return nil
}

// SafeRunID makes a run ID from any text: characters that are not allowed become '_', and the ID is cut to maxRunID
// characters. The ID of the empty text is empty.
func SafeRunID(text string) string {
	safe := strings.Map(func(r rune) rune {
		if strings.ContainsRune(runIDLetters, r) {
			return r
		}
		return '_'
	}, text)
	safe = safe[:min(len(safe), maxRunID)]

	if strings.Trim(safe, ".") == "" {
		return strings.Repeat("_", len(safe))
	}

	return safe
}

// SafeHost makes a text for file names from the name of a host. The result contains a letter and begins with a letter
// or a digit, so that it is not mistaken for the index of a node.
func SafeHost(name string) string {
	const digits = "0123456789"

	safe := SafeRunID(name)
	if strings.Trim(safe, digits+"._-") == "" || strings.ContainsAny(safe[:1], "._-") {
		return "host-" + safe
	}
	return safe
}

// NewRunID returns a run ID made of the time and six random digits. IDs sort by time.
func NewRunID(now time.Time) string {
	var random [3]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)

	return fmt.Sprintf("%s-%x", now.UTC().Format("20060102-150405"), random)
}
