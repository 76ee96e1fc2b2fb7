package process

import (
	"time"

	"github.com/perfagent/perfagent/internal/procfile"
)

// cpuClock is the kernel's CPUCLOCK_SCHED (posix-timers.h), the clock of a process's CPU time.
const cpuClock = 2

// processClock returns the CPU time of process pid from its clock (clock_getcpuclockid(3)). It reports false if there
// is no such process, or if pid is the ID of a thread.
func processClock(pid int32) (time.Duration, bool) {
	return procfile.ClockGettime(^pid<<3 | cpuClock)
}

// CPUTime returns the CPU time of process pid, without its children, from its clock. The kernel returns it immediately,
// whatever the process is doing, and even if procfs hides the process. It reports false if there is no such process.
func CPUTime(pid int) (time.Duration, bool) {
	if pid <= 0 {
		return 0, false
	}
	return processClock(int32(pid))
}

// addTickRemainders adds the fractions of ticks that /proc/PID/stat lacks, up to 20 ms per process, because leaving
// them out would be a large error in a short window. They come from the process's clock, which counts nanoseconds
// (clock_getcpuclockid(3)). If the clock is not near the ticks, it belongs to a new process with the same ID.
func (t *Tree) addTickRemainders() {
	const most = time.Second // CPU time that a process may use between the reads of its clock and its ticks
	t.clocks = false
	for _, p := range t.jobProcs {
		t.clocks = t.clocks || p.clock > 0
		cut := p.clock - time.Duration(p.own)*time.Second/procfile.UserHZ
		if p.tickRemainder = 0; !p.stale && cut > 0 && cut < most {
			p.tickRemainder = cut
			t.use.CPUSeconds += cut.Seconds()
		}
	}
}
