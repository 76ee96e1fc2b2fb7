package process

import "math"

// Options say whose processes are read, and where.
type Options struct {
	Proc    string // the procfs; "" = /proc
	Root    int    // its descendants are the job's; 0 = none
	Members []int  // processes that are the job's, and whose descendants are; only without Root
	// Ignore selects processes that are not the job's, nor what is below them: among the children of
	// Root, or anywhere below Named. nil selects none.
	Ignore func(pid int) bool

	// Of the table of processes:

	// Running reports whether the job runs before the first Read: then its processes count from that
	// on.
	Running bool
	// Reaped returns the processes that Root has waited for since the last call; nil if Root is not
	// this process.
	Reaped func() []ReapedProcess
	// Command is the command of the job's main process, in case it ends before it is seen.
	Command []string
	// Redact returns the arguments of a command line as they may be shown; nil shows them as they are.
	Redact func(args []string) []string
}

// TreeUsage is what the job's processes use. NaN is unknown.
type TreeUsage struct {
	// CPUSeconds is the user and system time of the processes that exist, zombies included, and of
	// the children that they waited for (utime, stime, cutime and cstime of /proc/PID/stat, which
	// are cut to 10 ms each). It falls when Root reaps a process: the caller adds the rusage of
	// what it reaped, and takes that sum before it calls Read. With Named, what ended processes had
	// used when they were read last stays in it. A process is read after its parent,
	// so time that passes from one to the other between the two reads may be missing once and is
	// never counted twice.
	CPUSeconds float64
	// Processes and Threads do not count zombies.
	Processes, Threads float64
	// Memory is in bytes. It is the newest measurement, at most 5 s old unless scans are put off
	// for longer; NaN before the first. If no process is left it is the last one that was taken.
	// It includes what was swapped out (Swap), huge pages, and files of tmpfs and memfd_create(2) that
	// processes hold open and have not mapped.
	Memory, Swap float64
	// MemoryKind is "pss" (shared pages divided among those that share them, from
	// /proc/PID/smaps_rollup) or "rss" (shared pages counted for each process, if only for some of
	// them); "" before the first measurement.
	MemoryKind string
	// MemoryUpToDate reports that Memory is what the processes have at this moment: it was measured in this
	// call, or it has not moved, or it has grown since and is at least that. Proven is how much memory
	// they certainly have, in bytes: the greater of the largest process and of the sum of PSS, without the
	// resident sizes that stand in for it. 0 is not known.
	MemoryUpToDate   bool
	MemoryLowerBound float64
	// Unowned is by how many bytes the shared memory of the host, with its tmpfs, has grown since the
	// Tree was made, beyond the most that was in Memory at a time. NaN is unknown: it is looked at as often as
	// descriptors are.
	Unowned float64
	// IO is of the same processes as CPUSeconds and of the children that they waited for. It is the newest
	// measurement, at most 5 s old as Memory is.
	IO
	// Fresh reports that CPUSeconds, Processes and Threads were measured in this call; the others
	// report it of the storage bytes and of Memory.
	IOFresh, MemoryFresh, Fresh bool
	// Skipped reports that the scan was put off to bound its cost: all values are of the call
	// before.
	Skipped bool
	// Failed says why some processes could not be read, and how many: by "stat", "memory" and "io".
	// It is never changed later. nil means that nothing failed.
	Failed map[string]error
}

// unknownUsage returns a Use with nothing known.
func unknownUsage() TreeUsage {
	nan := math.NaN()
	return TreeUsage{CPUSeconds: nan, Processes: nan, Threads: nan, Memory: nan, Swap: nan, Unowned: nan, IO: UnknownIO()}
}
