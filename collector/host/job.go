package host

import (
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/collector/series"
)

// Where the numbers of the job come from.
const (
	JobFromGroup   = "cgroup"  // a control group that holds just us and the job
	JobFromCreated = "created" // a control group that was made for the job
	JobFromTree    = "tree"    // the job's processes, from procfs
)

// How the job's memory is counted.
const (
	MemoryPSS   = "pss"    // each shared page once: its parts add up (smaps_rollup)
	MemoryRSS   = "rss"    // resident pages of each process: shared ones several times
	MemoryGroup = "cgroup" // what the kernel charges to the group, page cache not counted
)

// JobOptions say where the job's own use is read. The zero value reads nothing of it.
type JobOptions struct {
	// Source is one of JobFromGroup, JobFromCreated and JobFromTree; "" = there is no job.
	Source string
	// Group holds the job: one made for it, or our own, the limits of which are the job's
	// too. nil = there are none to be seen; NoGroup may say why.
	Group   *cgroup.Group
	NoGroup error
	// Tree finds the job's processes. nil = they cannot be found; NoTree says why.
	Tree   *process.Tree
	NoTree error
	// Running reports whether the job runs already at the baseline, which then reads what its
	// processes have used so far. What the caller waits for is among them.
	Running bool

	// Reaped tells what the dead processes of the job have used that we waited for. It must
	// be set before Run. nil = nothing.
	Reaped func() Reaped
	// Env is the job's environment: which GPUs are its own.
	Env []string
}

// Reaped is what processes used that are dead and waited for: seconds of user and
// system time, bytes read from and written to storage.
// Over tells that no process of the job is left.
type Reaped struct {
	CPUSeconds, ReadBytes, WriteBytes float64
	Over                              bool
}

// JobUse is what the accounts of the job said at one instant. NaN = not known.
type JobUse struct {
	// CPUSeconds, Read and Write (bytes of storage) grow; of a control group they count
	// from its creation.
	CPUSeconds, Read, Write float64
	// Living is the part of CPUSeconds of processes that have not ended.
	Living float64
	// Lag is how long after the Reading CPUSeconds was known: the job went on meanwhile.
	Lag time.Duration
	// Memory, bytes, counted as MemoryKind tells; PageCache, which the kernel takes back
	// when memory is short, is not in it.
	Memory, PageCache float64
	// Own is what is in the group's memory beside these two: ours, and what was there
	// before the job, bytes.
	Own                float64
	MemoryKind         string
	Processes, Threads float64
	// Group has the counters of the control group that the job is in; nil = there is none.
	// Shared tells that others are in it, too: only its limits are then the job's.
	Group  *cgroup.Counters
	Shared bool
	Limits Limits
}

// Limits is what bounds the job.
type Limits struct {
	CPUs        float64         `json:"cpus"` // least of all below; 0 = not known
	Quota       series.Optional `json:"quota"`
	CPUSet      int             `json:"cpuset"`    // 0 = not known
	Affinity    int             `json:"affinity"`  // 0 = not known
	MemoryMB    series.Optional `json:"memory_mb"` // Unknown = none
	CPUGroup    string          `json:"cpu_group,omitempty"`
	MemoryGroup string          `json:"memory_group,omitempty"`
	// MemoryInner is the innermost of several groups with that limit; "" = there is one.
	MemoryInner string `json:"memory_inner,omitempty"`
}

// leastCPUs is the least of what bounds the CPUs; 0 = nothing is known.
func (l Limits) leastCPUs() float64 {
	least := 0.0
	for _, v := range []float64{float64(l.Quota), float64(l.CPUSet), float64(l.Affinity)} {
		if v > 0 && (least == 0 || v < least) { // NaN is not
			least = v
		}
	}
	return least
}
