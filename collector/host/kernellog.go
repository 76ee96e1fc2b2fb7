package host

import (
	"os"
	"time"

	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/procfile"
)

// maxKernelLog bounds what is read of the kernel's log at once.
const maxKernelLog = 8 << 20

// The constraints under which the kernel ran out of memory, by its log.
const (
	OOMOfGroup  = "memcg"         // at a limit of a control group
	OOMOfHost   = "none"          // all memory of the host was in use
	OOMOfCPUSet = "cpuset"        // the memory of the NUMA nodes of a cpuset was
	OOMOfPolicy = "memory_policy" // that of the nodes of a process's memory policy was
)

// A Victim is a process that the kernel's OOM killer killed.
type Victim struct {
	Process string    `json:"process"` // its name
	PID     int       `json:"pid"`     // 0 = unknown
	At      time.Time `json:"at,omitzero"`
	Group   string    `json:"group,omitempty"` // of the victim
	// Constraint is one of those above; "" = unknown.
	Constraint string `json:"constraint,omitempty"`
	// LimitGroup is the group whose limit was hit: the victim's or one above it; "" = unknown.
	LimitGroup string `json:"limit_group,omitempty"`
	// Nodes are the NUMA nodes of the cpuset or policy, as the kernel lists them: "0-1,3".
	Nodes string `json:"nodes,omitempty"`
	// Parent is the process that was its parent when it ended; 0 = unknown.
	Parent  int  `json:"parent,omitempty"`
	Host    bool `json:"host"`              // no group's limit was hit
	InJob   bool `json:"ours,omitempty"`    // it was the job's, by its parents
	Foreign bool `json:"foreign,omitempty"` // it was not the job's, by its parents
}

// Neighbours returns how many processes are in the group that counts the job's memory and are neither
// the job's nor needed for it: perfagent's own, and those above it, which live as it does. It stops
// at the first. It returns false if that is not known.
func (r *Reader) Neighbours() (n int, known bool) {
	if r.job.Group == nil || r.job.Tree == nil {
		return 0, false
	}
	pids, err := r.job.Group.MemoryPIDs()
	if err != nil {
		return 0, false
	}

	for _, pid := range pids {
		needed := func() bool { return pid == os.Getpid() || pid == r.job.helperPid() || procfile.DescendsFrom(pid) }
		if r.job.tree.relation(pid) == process.Foreign && !needed() {
			return 1, true
		}
	}
	return 0, true
}
