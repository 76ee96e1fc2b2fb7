package host

import (
	"math"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/collector/series"
)

// The sources of the job's numbers.
const (
	JobFromGroup   = "cgroup"  // a control group that holds just us and the job
	JobFromCreated = "created" // a control group that was made for the job
	JobFromTree    = "tree"    // the job's processes, from procfs
)

// The ways in which the job's memory is counted.
const (
	MemoryPSS   = "pss"    // each shared page once: its parts add up (smaps_rollup)
	MemoryRSS   = "rss"    // resident pages of each process: shared ones several times
	MemoryGroup = "cgroup" // what the kernel charges to the group, page cache not counted
)

// JobOptions say where the job's usage is read. The zero value means that there is no job.
type JobOptions struct {
	// Source is one of JobFromGroup, JobFromCreated and JobFromTree; "" = there is no job.
	Source string
	// Group holds the job: a group that was made for it, or our own, whose limits are the job's
	// too. nil means that none is visible; NoGroup may say why.
	Group   *cgroup.Group
	NoGroup error
	// Tree finds the job's processes. nil means that they cannot be found; NoTree says why.
	Tree   *process.Tree
	NoTree error
	// Running reports whether the job is running at the baseline, which then reads what its
	// processes have used so far.
	Running bool
	// Apart reports that this process is not in Group.
	Apart bool
	// PID is a process of the job, whose affinity is the job's; 0 is this process.
	PID int
	// Reaped returns what the dead processes of the job have used that we waited for. It must be
	// set before Run. nil means nothing.
	Reaped func() Reaped
	// Env is the job's environment: it says which GPUs are the job's.
	Env []string
	// Prove holds the CPU time of the job's group against that of its processes in each Reading: a
	// rule is judged by it. Else that is done whenever the processes are scanned.
	Prove bool
}

// Reaped is the usage of processes that are dead and were waited for: seconds of user and system
// time, bytes read from and written to storage. Over reports that no process of the job is left. Main is
// the job's main process; 0 = it has ended, or is not known.
type Reaped struct {
	CPUSeconds, ReadBytes, WriteBytes float64
	Over                              bool
	Main                              int
}

// JobUse is what the job used at one instant. NaN is unknown.
type JobUse struct {
	// CPUSeconds, Read and Write (bytes of storage) are counters. In a control group they count
	// from its creation.
	CPUSeconds, Read, Write float64
	// Living is the part of CPUSeconds that belongs to processes that have not ended.
	Living float64
	// Lag is how long after the Reading CPUSeconds was known; the job ran on until then.
	Lag time.Duration
	// Outside reports that the group has not counted all processes of the job: what the processes say
	// is taken from then on, where it is more. Late is the part of CPUSeconds that earlier Readings
	// lacked therefore.
	Outside bool
	Late    float64
	// Memory is in bytes, counted as MemoryKind says. PageCache, which the kernel takes back when
	// memory is short, is not in it.
	Memory, PageCache float64
	// Swap is the part of Memory that was swapped out, in bytes.
	Swap float64
	// Unowned is by how many bytes the host's shared memory has grown since the baseline, beyond what is in
	// Memory: see process.Use. It is known only where Memory is that of processes.
	Unowned float64
	// Own is what the group's memory has beside these two: our own, and what was there before the
	// job. Bytes.
	Own        float64
	MemoryKind string
	// MemoryHeld reports whether Memory was measured for an earlier Reading, and may have gone down since.
	MemoryHeld bool
	// MemoryProven is the memory that the job certainly has, in bytes: the greatest of that of its group, of
	// its largest process and of the sum of PSS. A sum of resident sizes proves nothing.
	MemoryProven       float64
	Processes, Threads float64
	// Group has the counters of the control group that the job is in; nil if there is none. Shared
	// reports that others are in it, too: then only its limits are the job's.
	Group  *cgroup.Counters
	Shared bool
	Limits Limits
	// MemoryInner is the innermost of several groups with the memory limit, or "" if there is one.
	MemoryInner string
	// Table has the job's processes, see process.Tree.Table. It is made now and then, else nil, and
	// never changes. TableErr is why some or all of them could not be read, where they were read for
	// the Table alone.
	Table    []process.Process
	TableErr error
}

// unknownUse returns a JobUse with nothing known.
func unknownUse() JobUse {
	nan := math.NaN()
	return JobUse{CPUSeconds: nan, Read: nan, Write: nan, Living: nan, Memory: nan, PageCache: nan,
		Swap: nan, Unowned: nan, MemoryProven: nan, Processes: nan, Threads: nan}
}

// Limits are the bounds on the job's use of CPUs and memory.
type Limits struct {
	// CPUs is the least of the CPU quota over the visible control groups, their cpuset, and
	// the affinity mask; 0 is unknown.
	CPUs         float64         `json:"cpus,omitzero"`
	CPUQuota     series.Optional `json:"cpu_quota,omitzero"`     // in CPUs; unknown is none
	CPUSetCPUs   int             `json:"cpuset_cpus,omitzero"`   // 0 is unknown
	AffinityCPUs int             `json:"affinity_cpus,omitzero"` // 0 is unknown
	// MemoryMB is the least over the visible control groups, MiB; unknown is none.
	MemoryMB series.Optional `json:"memory_mb,omitzero"`
	// CPUGroup and MemoryGroup are the groups that set the quota and the limit.
	CPUGroup    string `json:"cpu_group,omitempty"`
	MemoryGroup string `json:"memory_group,omitempty"`
}

// limited reports whether CPU time or memory is limited.
func (l Limits) limited() bool { return l.CPUQuota.Known() || l.MemoryMB.Known() }

// minCPUs returns the least of the bounds on CPUs; 0 is unknown.
func (l Limits) minCPUs() float64 {
	least := 0.0
	for _, v := range [...]float64{float64(l.CPUQuota), float64(l.CPUSetCPUs), float64(l.AffinityCPUs)} {
		if v > 0 && (least == 0 || v < least) { // NaN is not
			least = v
		}
	}
	return least
}
