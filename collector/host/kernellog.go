package host

import (
	"os"
	"time"

	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/procfile"
)

// maxKernelLog is the largest number of bytes that are read from the kernel's log at a time.
const maxKernelLog = 8 << 20

// The constraints under which the kernel ran out of memory, according to its log.
const (
	OOMOfGroup  = "memcg"         // limit of a control group
	OOMOfHost   = "none"          // the host had no free memory
	OOMOfCPUSet = "cpuset"        // the NUMA nodes of a cpuset had no free memory
	OOMOfPolicy = "memory_policy" // the NUMA nodes of a process's memory policy had no free memory
)

// A Victim is a process killed by the kernel's OOM killer.
type Victim struct {
	Process string    `json:"process"` // its name
	PID     int       `json:"pid"`     // 0 = unknown
	At      time.Time `json:"at,omitzero"`
	Group   string    `json:"group,omitempty"` // the victim's group
	// Constraint is one of the OOMOf constants; "" = unknown.
	Constraint string `json:"constraint,omitempty"`
	// LimitGroup is the group that hit its limit, the victim's or one above it; "" = unknown.
	LimitGroup string `json:"limit_group,omitempty"`
	// Nodes are the NUMA nodes of the cpuset or policy, in the kernel's format: "0-1,3".
	Nodes string `json:"nodes,omitempty"`
	// Parent is the victim's parent when it ended; 0 = unknown.
	Parent  int  `json:"parent,omitempty"`
	Host    bool `json:"host"`              // the host ran out of memory, rather than a group
	InJob   bool `json:"ours,omitempty"`    // part of the job, according to its parents
	Foreign bool `json:"foreign,omitempty"` // not part of the job, according to its parents
}

// Neighbours returns 1 if another program shares the group that counts the job's memory, otherwise 0. Perfagent, its
// helper and its ancestors do not count, because they exist as long as perfagent does. known is false if the processes
// of the group cannot be determined.
func (r *Reader) Neighbours() (n int, known bool) {
	if r.job.Group == nil || r.job.Tree == nil {
		return 0, false
	}
	pids, err := r.job.Group.MemoryPIDs()
	if err != nil {
		return 0, false
	}

	for _, pid := range pids {
		needed := func() bool { return pid == os.Getpid() || pid == r.job.gpus.PID() || procfile.DescendsFrom(pid) }
		if r.job.tree.relation(pid) == process.Foreign && !needed() {
			return 1, true
		}
	}
	return 0, true
}
