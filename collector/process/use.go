package process

import (
	"errors"
	"math"

	"github.com/perfagent/perfagent/internal/procfile"
)

// Options configures a Tree.
type Options struct {
	Proc    string // the procfs; "" = /proc
	Root    int    // the job is the descendants of this process; 0 = none
	Members []int  // the job is these processes and their descendants; only without Root
	// Ignore selects processes that are not part of the job, nor are their descendants. It is asked about the children
	// of Root, or about all descendants of Members. nil selects none.
	Ignore func(pid int) bool

	// The rest is for the table of processes.

	// Running reports whether the job already runs at the first Read. The usage of its processes then counts from that
	// Read on.
	Running bool
	// Reaped returns the processes that Root has waited for since the last call; nil if Root is not this process.
	Reaped func() []ReapedProcess
	// Command is the command of the job's main process, in case the process ends before it is seen.
	Command []string
	// Redact removes secrets from the arguments of a command line; nil shows them unchanged.
	Redact func(args []string) []string
}

// A Request selects what a Read measures. The zero value is all that is due.
type Request struct {
	NoMemory bool // without memory, which is most of the cost
	NoIO     bool // without storage I/O
	Now      bool // CPU time and storage I/O are due, whatever the last Read cost
	// NewestPID is the ID of the newest process or thread, the last number in /proc/loadavg, if it was just read; 0 =
	// unknown.
	NewestPID int64
}

// TreeUsage is the usage of the job's processes. NaN means unknown.
type TreeUsage struct {
	// CPUSeconds is the user and system time of the existing processes, including zombies, and of their reaped children
	// (utime, stime, cutime and cstime of /proc/PID/stat, each truncated to a multiple of 10 ms). It falls when Root
	// reaps a process, so the caller must add the rusage of reaped processes, which it must read before it calls Read.
	// With Members, CPUSeconds includes the last known usage of ended processes. A process is read after its parent, so
	// time that moves from the process to its parent in between may be missing from one Read but is never counted
	// twice.
	CPUSeconds float64
	// Processes and Threads exclude zombies.
	Processes, Threads float64
	// Memory is the last measurement in bytes; NaN before the first. It is at most 5 s old, or a minute if nothing
	// suggested a change, unless scans are deferred for longer. After the last process has ended it stays as it was. It
	// includes Swap, the swapped-out part, huge pages, and files of tmpfs and memfd_create(2) that processes hold open
	// but have not mapped.
	Memory, Swap float64
	// MemoryKind is "pss" (each shared page is divided among the processes that share it, from /proc/PID/smaps_rollup)
	// or "rss" (each of some or all processes counts its shared pages in full); "" before the first measurement.
	MemoryKind string
	// MemoryUpToDate reports that the processes have at least Memory: it was measured in this call, or has since not
	// changed or only grown. MemoryLowerBound is the memory, in bytes, that the processes certainly have: the maximum
	// of the largest process and of the sum of PSS, without resident sizes that replace PSS. 0 = unknown.
	MemoryUpToDate   bool
	MemoryLowerBound float64
	// Unowned is by how many bytes the host's shared memory, including tmpfs, has grown since the Tree was created,
	// less the highest amount that was part of Memory. It is NaN if it was not measured in this call.
	Unowned float64
	// IO belongs to the processes in CPUSeconds, including their reaped children. It is the last measurement, at most 5
	// s old unless scans are deferred for longer.
	IO
	// Fresh reports that CPUSeconds, Processes and Threads were measured in this call, IOFresh that IO was, MemoryFresh
	// that Memory was.
	IOFresh, MemoryFresh, Fresh bool
	// Skipped reports that the scan was deferred to limit its cost, so that all values are from the previous call.
	Skipped bool
	// Failed has the reason why some processes could not be read, and how many, by "stat", "memory" and "io". It is
	// immutable. nil means that nothing failed.
	Failed map[string]error
}

// unknownUsage returns a TreeUsage with all numbers unknown.
func unknownUsage() TreeUsage {
	nan := math.NaN()
	return TreeUsage{CPUSeconds: nan, Processes: nan, Threads: nan, Memory: nan, Swap: nan, Unowned: nan, IO: UnknownIO()}
}

// IO is the I/O of processes from /proc/PID/io: bytes read from and written to storage (read_bytes and write_bytes),
// and calls to read(2), write(2) and the like (syscr and syscw). NaN means unknown.
type IO struct{ ReadBytes, WriteBytes, ReadCalls, WriteCalls float64 }

// UnknownIO returns an IO with all numbers unknown.
func UnknownIO() IO {
	return IO{ReadBytes: math.NaN(), WriteBytes: math.NaN(), ReadCalls: math.NaN(), WriteCalls: math.NaN()}
}

// With returns an IO with the results of f for each pair of numbers of io and o.
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
