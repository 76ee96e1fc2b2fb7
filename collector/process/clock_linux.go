package process

import (
	"time"

	"github.com/perfagent/perfagent/internal/procfile"
)

// cpuClock is CPUCLOCK_SCHED of the kernel's posix-timers.h: the run time of a process.
const cpuClock = 2

// processClock returns the CPU time of a process by its clock (clock_getcpuclockid(3)). It reports false if there is no
// process with that ID; a thread is none.
func processClock(pid int32) (time.Duration, bool) {
	return procfile.ClockGettime(^pid<<3 | cpuClock)
}

// CPUTime returns the CPU time of a process, without that of its children, by its clock: the kernel answers at once,
// whatever the process does, and also where procfs hides it. It reports false if there is no process with that ID.
func CPUTime(pid int) (time.Duration, bool) {
	if pid <= 0 {
		return 0, false
	}
	return processClock(int32(pid))
}

// clockOf returns the CPU time of a process by its clock; 0 is not known, as of processes of another system.
func (t *Tree) clockOf(pid int32) time.Duration {
	if !t.dir.own {
		return 0
	}
	used, _ := processClock(pid)
	return used
}

// sumExact adds what the ticks of /proc/PID/stat cut off, up to 20 ms for each process. The kernel
// has a clock for the CPU time of each (clock_getcpuclockid(3)), in nanoseconds. Of short windows
// ticks are a large part. A clock that is not near the ticks belongs to another process, which took
// the ID.
func (t *Tree) sumExact() {
	const most = time.Second // what a process may use between the reading of its clock and of its ticks
	t.clocks = false
	for _, p := range t.jobProcs {
		t.clocks = t.clocks || p.clock > 0
		cut := p.clock - time.Duration(p.own)*time.Second/procfile.UserHZ
		if p.cut = 0; !p.stale && cut > 0 && cut < most {
			p.cut = cut
			t.use.CPUSeconds += cut.Seconds()
		}
	}
}
