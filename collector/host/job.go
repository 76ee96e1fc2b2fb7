package host

import (
	"math"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/process"
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
	Group    *cgroup.Group
	GroupErr error
	// Tree finds the job's processes. nil means that they cannot be found; NoTree says why.
	Tree    *process.Tree
	TreeErr error
	// Running reports whether the job is running at the baseline, which then reads what its
	// processes have used so far.
	Running bool
	// AgentOutsideGroup reports that this process is not in Group.
	AgentOutsideGroup bool
	// PID is a process of the job, whose affinity and control groups are what the job was given; 0 is this process.
	PID int
	// Reaped returns what the dead processes of the job have used that we waited for. It must be
	// set before Run. nil means nothing.
	Reaped func() ReapedUsage
	// IdleChildren returns how many children of this process are in its group that are not the job's, use nothing and
	// have one thread. nil means none.
	IdleChildren func() int
	// Env is the job's environment: it says which GPUs are the job's.
	Env []string
	// VerifyGroup holds the CPU time of the job's group against that of its processes in each Reading: a
	// rule is judged by it. Else that is done whenever the processes are scanned.
	VerifyGroup bool
}

// ReapedUsage is the usage of processes that are dead and were waited for, with the seconds of user and system
// time. Over reports that no process of the job is left. Main is
// the job's main process; 0 = it has ended, or is not known.
type ReapedUsage struct {
	CPUSeconds float64
	process.IO
	JobEnded bool
	MainPID  int
}

// JobUsage is what the job used at one instant. NaN is unknown.
type JobUsage struct {
	// CPUSeconds and IO are counters. In a control group they count from its creation.
	CPUSeconds float64
	process.IO
	// LivingCPUSeconds is the part of CPUSeconds that belongs to processes that have not ended.
	LivingCPUSeconds float64
	// Lag is how long after the Reading CPUSeconds was known; the job ran on until then.
	Lag time.Duration
	// Outside reports that the group has not counted all processes of the job: what the processes say
	// is taken from then on, where it is more. Late is the part of CPUSeconds that earlier Readings
	// lacked therefore.
	Outside        bool
	LateCPUSeconds float64
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
	// MemoryStale reports whether Memory was measured for an earlier Reading, and may have gone down since.
	MemoryStale bool
	// MemoryLowerBound is the memory that the job certainly has, in bytes: the greatest of that of its group, of
	// its largest process and of the sum of PSS. A sum of resident sizes proves nothing.
	MemoryLowerBound   float64
	Processes, Threads float64
	// Group has the counters of the control group that the job is in; nil if there is none. Shared
	// reports that others are in it, too: then only its limits are the job's.
	Group  *cgroup.Counters
	Shared bool
	Limits Limits
	// InnerMemoryGroup is the innermost of several groups with the memory limit, or "" if there is one.
	InnerMemoryGroup string
	// Environs are the different environments of the job's processes, of each what gpu.OfJob reads; nil if they
	// were not read.
	Environs [][]string
	// Reclaim is of the group that Limits.MemoryMB is of; nil if it was not read.
	Reclaim *cgroup.Reclaim
	// Table has the job's processes, see process.Tree.Table. It is made now and then, else nil, and
	// never changes. TableErr is why some or all of them could not be read, where they were read for
	// the Table alone.
	Table    []process.Process
	TableErr error
}

// unknownJobUsage returns a JobUse with nothing known.
func unknownJobUsage() JobUsage {
	nan := math.NaN()
	return JobUsage{CPUSeconds: nan, IO: process.UnknownIO(), LivingCPUSeconds: nan, Memory: nan, PageCache: nan,
		Swap:    nan,
		Unowned: nan, MemoryLowerBound: nan, Processes: nan, Threads: nan}
}
