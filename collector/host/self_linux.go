package host

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/timeout"
)

// selfUsage returns the part of the group's numbers that belongs to this process and its helpers:
// nothing where they are not in it.
func (j *jobReader) selfUsage() process.Usage {
	if j.Source == JobFromCreated || j.AgentOutsideGroup {
		return process.Usage{}
	}
	u := j.self.Self()
	u.Processes = 1
	u.CPUSeconds = 0 // /proc counts what the job's dead processes used, too
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) == nil {
		u.CPUSeconds = time.Duration(ru.Utime.Nano() + ru.Stime.Nano()).Seconds()
	}
	u = u.Plus(j.helper.read(j.helperPid()))
	if j.IdleChildren != nil {
		n := float64(j.IdleChildren())
		u.Processes, u.Threads = u.Processes+n, u.Threads+n
	}
	return u
}

// A helper is the process that queries the GPUs. When one has ended, its time still has to be left
// out of the group's.
type helper struct {
	pid         int
	ended, last float64 // CPU seconds: of those that have ended, of the one that runs
	usage       process.Usage
	reader      process.UsageReader
	caller      *timeout.Caller[process.Usage]
}

// helperTimeout is how long a Reading waits for what the helper uses: the driver may keep the
// kernel from answering.
const helperTimeout = 200 * time.Millisecond

func newHelper() *helper { return &helper{caller: timeout.NewCaller[process.Usage]()} }

// read returns the usage of the helper that runs now, with the CPU time of all before it; pid 0
// means that none runs. Where the kernel does not answer, it is what it was before.
func (h *helper) read(pid int) process.Usage {
	if pid != h.pid {
		h.ended, h.last, h.pid, h.usage = h.ended+h.last, 0, pid, process.Usage{}
	}
	if pid > 0 {
		if u, ok := h.caller.Call(helperTimeout, func() process.Usage { return h.reader.Subtree(pid) }); ok {
			h.usage = u
		}
	}
	h.last = max(h.last, h.usage.CPUSeconds)

	u := h.usage
	u.CPUSeconds = h.ended + h.last
	return u
}
