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

// The variables by which schedulers and launchers name the job and the node
// index; the first that is set and usable wins. A rank is no node index: Open
// MPI and MPICH tell none.
var (
	jobIDVariables = []string{"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "COBALT_JOBID", "AWS_BATCH_JOB_ID"}
	nodeVariables  = []string{"SLURM_NODEID", "GROUP_RANK", "AWS_BATCH_JOB_NODE_INDEX", "PBS_NODENUM", "JOB_COMPLETION_INDEX", "VC_TASK_INDEX"}
)

// whoAmI asks the environment.
func whoAmI(lookup func(string) (string, bool)) identity {
	var id identity
	for _, name := range jobIDVariables {
		if v, ok := lookup(name); ok && v != "" {
			id.runID = safeID(v)
			break
		}
	}
	// Grid Engine's variable has a common name: believe it only beside another of
	// its own.
	if _, ok := lookup("SGE_TASK_ID"); ok && id.runID == "" {
		v, _ := lookup("JOB_ID")
		id.runID = safeID(v)
	}
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
