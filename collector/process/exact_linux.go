package process

import (
	"time"

	"github.com/perfagent/perfagent/internal/procfile"
)

// cpuClock is CPUCLOCK_SCHED of the kernel's posix-timers.h: the run time of a process.
const cpuClock = 2

// sumExact adds what the ticks of /proc/PID/stat cut off, up to 20 ms for each process. The kernel
// has a clock for the CPU time of each (clock_getcpuclockid(3)), in nanoseconds. Of short windows
// ticks are a large part. A clock that is not near the ticks belongs to another process, which took
// the ID.
func (t *Tree) sumExact() {
	if t.proc() != "/proc" {
		return // IDs of another system
	}
	const most = time.Second // what a process may use between the reading of its ticks and of its clock
	for _, p := range t.ours {
		cut := clock(^p.pid<<3|cpuClock) - time.Duration(p.own)*time.Second/procfile.UserHZ
		if p.cut = 0; !p.stale && cut > 0 && cut < most {
			p.cut = cut
			t.use.CPUSeconds += cut.Seconds()
		}
	}
}
