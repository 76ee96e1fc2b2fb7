package host

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/timeout"
)

// selfUsage returns the usage of this process and its helpers, which the group's numbers include. It is zero if these
// processes are not in the group.
func (j *jobReader) selfUsage() process.Usage {
	if j.Source == JobFromCreated || j.AgentOutsideGroup {
		return process.Usage{}
	}
	u := j.self.Self()
	u.Processes = 1
	u.CPUSeconds = 0 // /proc includes the reaped processes of the job
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) == nil {
		u.CPUSeconds = time.Duration(ru.Utime.Nano() + ru.Stime.Nano()).Seconds()
	}
	u = u.Plus(j.helper.read(j.gpus.PID()))
	if j.IdleChildren != nil {
		n := float64(j.IdleChildren())
		u.Processes, u.Threads = u.Processes+n, u.Threads+n
	}
	return u
}

// A helper reads the usage of the process that queries the GPUs. The group's CPU time still includes that process after
// it has ended.
type helper struct {
	pid         int
	ended, last float64 // CPU seconds of helpers that have ended, and of the current one
	usage       process.Usage
	reader      process.UsageReader
	caller      *timeout.Caller[process.Usage]
}

// helperTimeout is the longest time that a Reading waits for the helper's usage: the driver may block the kernel.
const helperTimeout = 200 * time.Millisecond

func newHelper() *helper { return &helper{caller: timeout.NewCaller[process.Usage]()} }

// read returns the usage of the helper process pid and its children, with the CPU time of all earlier helpers. pid 0
// means that no helper runs. On a timeout it returns the last known usage.
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
