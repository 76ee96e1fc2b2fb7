package main

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// identity is which run and which node this is, as far as a scheduler tells.
type identity struct {
	runID string // "" = no scheduler
	node  int
}

// nodeVariables are those by which schedulers and launchers name the node index; the
// first that is set and usable wins. A rank is no node index: Open MPI and MPICH tell none.
var nodeVariables = []string{"SLURM_NODEID", "GROUP_RANK", "AWS_BATCH_JOB_NODE_INDEX", "PBS_NODENUM", "JOB_COMPLETION_INDEX", "VC_TASK_INDEX"}

// scheduler is one that may be in charge of the job, and the variables by which it tells.
type scheduler struct {
	name  string
	jobID string
	// beside is another variable of its own that must be set too; "" = none.
	beside string
	// limit has the time at which it ends the job, in seconds since 1970; "" = none does.
	limit string
}

// schedulers lists those that are known. Slurm 22.05 does not tell the end time yet. Grid
// Engine's variable has a common name: it is believed only beside another.
func schedulers() []scheduler {
	return []scheduler{
		{name: "Slurm", jobID: "SLURM_JOB_ID", limit: "SLURM_JOB_END_TIME"}, {name: "PBS", jobID: "PBS_JOBID"},
		{name: "LSF", jobID: "LSB_JOBID"}, {name: "Flux", jobID: "FLUX_JOB_ID"}, {name: "Cobalt", jobID: "COBALT_JOBID"},
		{name: "AWS Batch", jobID: "AWS_BATCH_JOB_ID"}, {name: "Grid Engine", jobID: "JOB_ID", beside: "SGE_TASK_ID"},
	}
}

// inCharge finds the scheduler that is in charge of the job, and what it calls the job;
// the zero value and "" where there is none.
func inCharge(lookup func(string) (string, bool)) (s scheduler, jobID string) {
	for _, s := range schedulers() {
		if s.beside != "" {
			if _, ok := lookup(s.beside); !ok {
				continue
			}
		}
		if id, _ := lookup(s.jobID); id != "" {
			return s, id
		}
	}
	return scheduler{}, ""
}

// whoAmI asks the environment.
func whoAmI(lookup func(string) (string, bool)) identity {
	_, jobID := inCharge(lookup)
	id := identity{runID: safeID(jobID)}
	for _, name := range nodeVariables {
		v, ok := lookup(name)
		if n, err := strconv.ParseUint(v, 10, 31); ok && err == nil {
			id.node = int(n)
			break
		}
	}
	return id
}

// safeID makes a scheduler's id, such as 123[4].server, the name of a folder.
func safeID(id string) string {
	safe := strings.Map(func(r rune) rune {
		if strings.ContainsRune(runIDLetters, r) {
			return r
		}
		return '_'
	}, id)
	if len(safe) > maxRunID {
		safe = safe[:maxRunID]
	}
	if strings.Trim(safe, ".") == "" {
		return strings.Repeat("_", len(safe))
	}
	return safe
}

// newRunID is time and random, sortable.
func newRunID(now time.Time) string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return now.UTC().Format("20060102-150405") + "-" + hex.EncodeToString(b[:])
}
