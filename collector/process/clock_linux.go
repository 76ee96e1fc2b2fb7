package process

import (
	"time"

	"github.com/perfagent/perfagent/internal/procfile"
)

// cpuClock is the kernel's CPUCLOCK_SCHED (posix-timers.h): the run time of a process.
const cpuClock = 2

// processClock returns the CPU time of a process from its clock (clock_getcpuclockid(3)). It reports false if no
// process has that ID; the ID of a thread is none.
func processClock(pid int32) (time.Duration, bool) {
	return procfile.ClockGettime(^pid<<3 | cpuClock)
}

// CPUTime returns the CPU time of a process without its children, from its clock: the kernel returns it immediately,
// whatever the process is doing, even if procfs hides the process. It reports false if no process has that ID.
func CPUTime(pid int) (time.Duration, bool) {
	if pid <= 0 {
		return 0, false
	}
	return processClock(int32(pid))
}

// clockOf returns the CPU time of a process from its clock; 0 is unknown, as for processes in another procfs.
func (t *Tree) clockOf(pid int32) time.Duration {
	if !t.dir.own {
		return 0
	}
	used, _ := processClock(pid)
	return used
}

// addTickRemainders adds the fractions of ticks that /proc/PID/stat lacks, up to 20 ms per process: in short windows
// ticks are a large part. Each process has a clock in nanoseconds (clock_getcpuclockid(3)). A clock that is not near
// the ticks belongs to another process that took the ID.
func (t *Tree) addTickRemainders() {
	const most = time.Second // what a process may use between the reads of its clock and its ticks
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
