package process

import "math"

// Options configures a Tree.
type Options struct {
	Proc    string // the procfs; "" = /proc
	Root    int    // the job is its descendants; 0 = none
	Members []int  // the job is these and their descendants; only without Root
	// Ignore selects processes that, with their descendants, are not the job's: among the children of Root, or anywhere
	// below Members. nil selects none.
	Ignore func(pid int) bool

	// For the table of processes:

	// Running reports whether the job runs before the first Read: then the usage of its processes counts from that Read
	// on.
	Running bool
	// Reaped returns the processes that Root has waited for since the last call; nil if Root is not this process.
	Reaped func() []ReapedProcess
	// Command is the command of the job's main process, in case that ends before it is seen.
	Command []string
	// Redact removes secrets from the arguments of a command line; nil shows them unchanged.
	Redact func(args []string) []string
}

// TreeUsage is the usage of the job's processes. NaN is unknown.
type TreeUsage struct {
	// CPUSeconds is the user and system time of the existing processes, including zombies, and of their reaped children
	// (utime, stime, cutime and cstime of /proc/PID/stat, each cut to 10 ms). It falls when Root reaps a process: the
	// caller adds the rusage of reaped processes, and reads that sum before it calls Read. With Members, the last known
	// usage of ended processes stays in it. A process is read after its parent, so time that moves from one to the
	// other between the two reads may be missing once but is never counted twice.
	CPUSeconds float64
	// Processes and Threads exclude zombies.
	Processes, Threads float64
	// Memory is the last measurement in bytes, at most 5 s old, or a minute if no sign of a change was seen, unless
	// scans are deferred for longer; NaN before the first. If no process is left it is the last one. It includes Swap,
	// the swapped-out part, huge pages, and files of tmpfs and memfd_create(2) that processes hold open but have not
	// mapped.
	Memory, Swap float64
	// MemoryKind is "pss" (shared pages divided among the processes that share them, from /proc/PID/smaps_rollup) or
	// "rss" (shared pages counted in each process, maybe only for some processes); "" before the first measurement.
	MemoryKind string
	// MemoryUpToDate reports that Memory is current: it was measured in this call, or has not changed, or has grown
	// since and is at least that. MemoryLowerBound is the memory, in bytes, that the processes certainly have: the
	// maximum of the largest process and of the sum of PSS, without resident sizes that replace PSS. 0 = unknown.
	MemoryUpToDate   bool
	MemoryLowerBound float64
	// Unowned is the growth of the host's shared memory in bytes, including tmpfs, since the Tree was created, beyond
	// the highest amount that was part of Memory. NaN is unknown: it is measured as often as descriptors are read.
	Unowned float64
	// IO is of the same processes as CPUSeconds, including their reaped children. It is the last measurement, at most 5
	// s old as Memory is.
	IO
	// Fresh reports that CPUSeconds, Processes and Threads were measured in this call, IOFresh and MemoryFresh the same
	// for IO and Memory.
	IOFresh, MemoryFresh, Fresh bool
	// Skipped reports that the scan was deferred to limit its cost: all values are from the previous call.
	Skipped bool
	// Failed has the reason why some processes could not be read, and how many: by "stat", "memory" and "io". It is
	// immutable. nil means that nothing failed.
	Failed map[string]error
}

// unknownUsage returns a TreeUsage with all numbers unknown.
func unknownUsage() TreeUsage {
	nan := math.NaN()
	return TreeUsage{CPUSeconds: nan, Processes: nan, Threads: nan, Memory: nan, Swap: nan, Unowned: nan, IO: UnknownIO()}
}
