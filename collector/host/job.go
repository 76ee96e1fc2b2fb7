package host

import (
	"math"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/process"
)

// The sources of the job's usage.
const (
	JobFromGroup   = "cgroup"  // a control group that holds only perfagent and the job
	JobFromCreated = "created" // a control group that was created for the job
	JobFromTree    = "tree"    // the job's processes, from procfs
)

// The ways to count the job's memory.
const (
	MemoryPSS   = "pss"    // shared pages are divided among their processes, so that sums are exact (smaps_rollup)
	MemoryRSS   = "rss"    // resident pages of each process; sums count shared pages several times
	MemoryGroup = "cgroup" // memory charged to the group, without page cache
)

// JobOptions configures where the job's usage is read. The zero value means that there is no job.
type JobOptions struct {
	// Source is JobFromGroup, JobFromCreated or JobFromTree; "" = there is no job.
	Source string
	// Group is the group that the job is in: a group created for it or perfagent's group, which has the same limits. nil
	// means that no group is visible; GroupErr may contain the reason.
	Group    *cgroup.Group
	GroupErr error
	// Tree finds the job's processes. nil means that they cannot be found; TreeErr contains the reason.
	Tree    *process.Tree
	TreeErr error
	// Running reports whether the job is already running at the baseline. The baseline then reads the earlier usage of its
	// processes.
	Running bool
	// AgentOutsideGroup reports whether this process is outside Group.
	AgentOutsideGroup bool
	// PID is a process with the affinity and control groups that were given to the job; 0 = this process.
	PID int
	// Reaped returns the usage of the job's processes that were waited for. Set it before the first Reading. nil means
	// that there are none.
	Reaped func() ReapedUsage
	// IdleChildren returns the number of children of this process that are in its group but not part of the job. They must
	// be idle and have one thread. nil means that there are none.
	IdleChildren func() int
	// Env is the job's environment, which selects the job's GPUs.
	Env []string
	// VerifyGroup compares the CPU times of the job's group and of its processes in each Reading, for a rule that
	// depends on CPU time. Otherwise they are compared only when the processes are scanned anyway.
	VerifyGroup bool
}

// ReapedUsage is the usage of processes that have ended and were waited for; CPUSeconds is user and system time.
// JobEnded reports whether the job has no process left. MainPID is the ID of the job's main process; 0 means that the
// process has ended or is unknown.
type ReapedUsage struct {
	CPUSeconds float64
	process.IO
	JobEnded bool
	MainPID  int
}

// MemoryParts are parts of the job's memory, in bytes. NaN means unknown. Without swap, the parts of a control group
// add up to its usage, including page cache and perfagent's own memory. The parts of processes have no Kernel and Sock.
type MemoryParts struct{ Anon, File, Shmem, Kernel, Sock, HugeTLB float64 }

// unknownParts returns MemoryParts with all numbers unknown.
func unknownParts() MemoryParts {
	nan := math.NaN()
	return MemoryParts{Anon: nan, File: nan, Shmem: nan, Kernel: nan, Sock: nan, HugeTLB: nan}
}

// JobUsage is the job's usage at one instant. NaN means unknown.
type JobUsage struct {
	// CPUSeconds and IO are counters. The counters of a control group start when it is created.
	CPUSeconds float64
	process.IO
	// LivingCPUSeconds is the part of CPUSeconds used by processes that have not ended.
	LivingCPUSeconds float64
	// Lag is the time from the Reading until CPUSeconds was read, during which the job kept running.
	Lag time.Duration
	// Outside reports whether the group was found not to count all processes of the job. After that, the sums over the
	// processes are used where they are greater. LateCPUSeconds is the part of CPUSeconds that was missing from earlier
	// Readings for this reason.
	Outside        bool
	LateCPUSeconds float64
	// Memory is in bytes, counted according to MemoryKind. It excludes PageCache, which the kernel reclaims when memory
	// is short.
	Memory, PageCache float64
	// Swap is the part of Memory that was swapped out, in bytes.
	Swap float64
	// Parts are the other parts of Memory.
	Parts MemoryParts
	// Unowned is the growth of the host's shared memory since the baseline, in bytes, minus the shared memory in Memory:
	// see process.TreeUsage. It is known only if Memory comes from the job's processes.
	Unowned float64
	// Own is the rest of the group's memory, in bytes: perfagent's, and memory charged before the job started.
	Own        float64
	MemoryKind string
	// MemoryStale reports whether Memory was measured for an earlier Reading and may have decreased since.
	MemoryStale bool
	// MemoryLowerBound is memory that the job certainly has, in bytes: the maximum of its group's memory, its largest
	// process and the sum of PSS. A sum of RSS is not a bound, because it counts shared pages several times.
	MemoryLowerBound   float64
	Processes, Threads float64
	// Group holds the counters of the job's control group; nil if there is none. Shared reports whether the group contains
	// other processes as well, so that only its limits apply to the job.
	Group  *cgroup.Counters
	Shared bool
	Limits Limits
	// InnerMemoryGroup is the innermost of several groups with the memory limit; "" if only one group has the limit.
	InnerMemoryGroup string
	// Environs holds the distinct environments of the job's processes, reduced to the variables that gpu.JobDevices reads;
	// nil if they were not read.
	Environs [][]string
	// Reclaim belongs to the group that sets Limits.MemoryMB; nil if it was not read.
	Reclaim *cgroup.Reclaim
	// Table lists the job's processes, see process.Tree.Table. It is nil in most Readings, and immutable. TableErr is the
	// reason why some or all processes could not be read, if the processes were read only for the Table.
	Table    []process.Process
	TableErr error
	// Deaths are the deaths of the job's processes so far, as of the newest scan; nil if they were not read. It is
	// immutable.
	Deaths *process.Deaths
}
