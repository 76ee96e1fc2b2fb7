package process

import (
	"errors"
	"math"

	"github.com/perfagent/perfagent/internal/procfile"
)

// Options configures a Tree.
type Options struct {
	Proc    string // the procfs; "" = /proc
	Root    int    // the descendants of this process are the job; 0 = none
	Members []int  // these processes and their descendants are the job; used only if Root is 0
	// Ignore selects processes that, like their descendants, are not part of the job. It is called for the children of
	// Root, or for all descendants of Members. nil selects none.
	Ignore func(pid int) bool

	// The remaining fields are for the table of processes.

	// Running reports whether the job is already running at the first Read. If so, the usage of its processes is
	// counted from that Read.
	Running bool
	// Reaped returns the processes that Root has waited for since the last call. It is nil if Root is not this process.
	Reaped func() []ReapedProcess
	// Command is the command of the job's main process, which is shown if the process ends before the first scan.
	Command []string
	// Redact removes secrets from the arguments of a command line; nil shows them unchanged.
	Redact func(args []string) []string
}

// A Request selects what a Read measures. The zero value selects everything that is due.
type Request struct {
	NoMemory bool // do not measure memory, which is most of the cost
	NoIO     bool // do not measure storage I/O
	Now      bool // measure CPU time and storage I/O, whatever the last Read cost
	// NewestPID is the ID of the newest process or thread, the last number in /proc/loadavg, if the caller has just
	// read it; 0 = unknown.
	NewestPID int64
}

// TreeUsage is the usage of the job's processes. NaN means unknown.
type TreeUsage struct {
	// CPUSeconds is the user and system time of the existing processes, including zombies, and of their reaped children
	// (utime, stime, cutime and cstime of /proc/PID/stat, each truncated to a multiple of 10 ms). It falls when Root
	// reaps a process, so the caller must add the rusage of reaped processes, which it must read before it calls Read.
	// With Members, CPUSeconds includes the last known usage of ended processes. A process is read after its parent, so
	// time that moves from the process to its parent between the two reads may be missing from one result but is never
	// counted twice.
	CPUSeconds float64
	// Processes and Threads exclude zombies.
	Processes, Threads float64
	// Memory is the last measurement in bytes; NaN before the first. It is at most 5 s old, or a minute if nothing
	// suggested a change, unless scans are deferred for longer. After the last process has ended, it keeps its last
	// value. It includes Swap, the swapped-out part, huge pages, and files of tmpfs and memfd_create(2) that processes
	// hold open but have not mapped.
	Memory, Swap float64
	// Anon, File, Shmem and HugeTLB are the parts of Memory other than Swap, at the last measurement. Shmem includes the
	// files of tmpfs and memfd_create(2) that are only open. All are NaN unless MemoryKind is "pss" and the kernel divides
	// PSS into parts (since Linux 5.3).
	Anon, File, Shmem, HugeTLB float64
	// MemoryKind is "pss" (each shared page is divided among the processes that share it, from /proc/PID/smaps_rollup)
	// or "rss" (some or all processes count their shared pages in full); "" before the first measurement.
	MemoryKind string
	// MemoryUpToDate reports whether the processes have at least Memory: it was measured in this call, or has not
	// shrunk since it was measured. MemoryLowerBound is the memory, in bytes, that the processes certainly have: the
	// size of the largest process or, if larger, the sum of PSS without the resident sizes that replace PSS. 0 =
	// unknown.
	MemoryUpToDate   bool
	MemoryLowerBound float64
	// Unowned is the growth of the host's shared memory, including tmpfs, since the Tree was created, in bytes, minus
	// the highest amount that was part of Memory. It is NaN if it was not measured in this call.
	Unowned float64
	// IO is the last measured I/O of the processes in CPUSeconds, including their reaped children. It is at most 5 s
	// old unless scans are deferred for longer.
	IO
	// Fresh reports whether CPUSeconds, Processes and Threads were measured in this call. IOFresh and MemoryFresh
	// report the same for IO and Memory.
	IOFresh, MemoryFresh, Fresh bool
	// Skipped reports whether the scan was deferred to limit its cost; all values are then from the previous call.
	Skipped bool
	// Failed maps "stat", "memory" and "io" to errors that give the number of unreadable processes and the reason. It
	// is immutable. nil means that nothing failed.
	Failed map[string]error
}

// unknownUsage returns a TreeUsage with all numbers unknown.
func unknownUsage() TreeUsage {
	nan := math.NaN()
	return TreeUsage{CPUSeconds: nan, Processes: nan, Threads: nan, Memory: nan, Swap: nan, Unowned: nan, IO: UnknownIO(),
		Anon: nan, File: nan, Shmem: nan, HugeTLB: nan}
}

// IO is the I/O of processes from /proc/PID/io: bytes read from and written to storage (read_bytes and write_bytes),
// and calls to read(2), write(2) and the like (syscr and syscw). NaN means unknown.
type IO struct{ ReadBytes, WriteBytes, ReadCalls, WriteCalls float64 }

// UnknownIO returns an IO with all numbers unknown.
func UnknownIO() IO {
	return IO{ReadBytes: math.NaN(), WriteBytes: math.NaN(), ReadCalls: math.NaN(), WriteCalls: math.NaN()}
}

// With returns an IO in which each number is the result of f for the corresponding numbers in io and o.
func (io IO) With(o IO, f func(a, b float64) float64) IO {
	return IO{
		f(io.ReadBytes, o.ReadBytes), f(io.WriteBytes, o.WriteBytes),
		f(io.ReadCalls, o.ReadCalls), f(io.WriteCalls, o.WriteCalls),
	}
}

// Plus returns io + o.
func (io IO) Plus(o IO) IO { return io.With(o, func(a, b float64) float64 { return a + b }) }

// Minus returns io − o.
func (io IO) Minus(o IO) IO { return io.With(o, func(a, b float64) float64 { return a - b }) }

// parseIO parses /proc/PID/io.
func parseIO(data []byte) (IO, error) {
	var v [4]float64
	for i, key := range [...]string{"read_bytes", "write_bytes", "syscr", "syscw"} {
		n, ok := procfile.ParseCount(procfile.Value(data, key))
		if !ok {
			return IO{}, errors.New("it lacks " + key)
		}
		v[i] = float64(n)
	}
	return IO{ReadBytes: v[0], WriteBytes: v[1], ReadCalls: v[2], WriteCalls: v[3]}, nil
}

// Usage is the usage of processes at one instant. Unknown numbers are 0.
type Usage struct {
	// CPUSeconds is user and system time, including that used by reaped children.
	CPUSeconds float64
	// Private is the memory, in bytes, that no other process shares.
	Private            float64
	Processes, Threads float64
}

// Plus returns u + v.
func (u Usage) Plus(v Usage) Usage {
	return Usage{u.CPUSeconds + v.CPUSeconds, u.Private + v.Private, u.Processes + v.Processes, u.Threads + v.Threads}
}
