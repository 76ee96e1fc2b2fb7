//go:build amd64 || arm64

package job

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/procfile"
)

// maxEnded bounds how many reaped processes are kept individually between calls of TakeEnded. The ones with the most
// CPU time are kept. A job may leave thousands of orphans.
const maxEnded = 64

// lastStat holds values from /proc/PID/stat of the main process, read after its end and before it is reaped. rusage
// does not separate a process's own usage from its children's.
type lastStat struct {
	known    bool
	start    time.Duration // since boot
	children float64       // CPU seconds of the children that the process reaped
	alone    bool          // the process reaped no children
}

// readLastStat reads the stat of the main process if it has ended.
func (j *Job) readLastStat() {
	if j.last.known || !waitable(unix.P_PID, j.pid, unix.WEXITED|unix.WNOHANG) {
		return
	}
	data, err := procfile.ReadFile("/proc/" + strconv.Itoa(j.pid) + "/stat")
	if err != nil {
		return
	}

	var f [procfile.StatStart + 1][]byte
	pid, _, n := procfile.SplitStat(data, f[:])
	if n < len(f) || string(pid) != strconv.Itoa(j.pid) || string(f[procfile.StatParent]) != strconv.Itoa(os.Getpid()) {
		return // /proc shows another pid namespace
	}
	number := func(field int) uint64 {
		v, _ := procfile.ParseCount(f[field])
		return v
	}
	j.last = lastStat{
		known:    true,
		start:    time.Duration(number(procfile.StatStart)) * time.Second / procfile.UserHZ,
		children: float64(number(procfile.StatCUTime)+number(procfile.StatCSTime)) / procfile.UserHZ,
		alone:    number(procfile.StatCMinFlt) == 0, // each child has faulted in some pages
	}
}

// keepEnded adds a reaped process to the result of TakeEnded. The caller holds j.mu.
func (j *Job) keepEnded(pid int, ru syscall.Rusage) {
	u := usage(ru)
	now, _ := procfile.ClockGettime(unix.CLOCK_BOOTTIME)
	e := process.ReapedProcess{PID: pid, CPUSeconds: u.UserSeconds + u.SystemSeconds, At: now}
	if pid == j.pid {
		e.Main, e.Start, e.ChildrenSeconds = true, j.last.start, j.last.children
		if j.last.alone && u.MaxRSS > j.floor {
			e.MaxRSS = float64(u.MaxRSS)
		}
	}

	if len(j.endings) < maxEnded {
		j.endings = append(j.endings, e)
		return
	}
	least := &e
	for i := range j.endings {
		if other := &j.endings[i]; least.Main || !other.Main && other.CPUSeconds < least.CPUSeconds {
			least = other
		}
	}
	e, *least = *least, e
	j.otherCPUSeconds += e.CPUSeconds
}

// TakeEnded returns the processes of the job that were reaped since the last call. If there were more than maxEnded,
// the last element has no PID and holds the CPU time of all processes that are not in the list.
func (j *Job) TakeEnded() []process.ReapedProcess {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := j.endings
	if j.otherCPUSeconds > 0 {
		out = append(out, process.ReapedProcess{CPUSeconds: j.otherCPUSeconds})
	}
	j.endings, j.otherCPUSeconds = nil, 0
	return out
}

// PeakRSS returns the high-water mark of this process's memory in bytes (VmHWM of proc(5)), or 0 if it is unknown. A
// child made now is charged with at least this much. ru_maxrss of getrusage(2) is only the fallback, because it
// includes our parent's memory at the time of the fork.
func PeakRSS() int64 {
	if status, err := procfile.ReadFile("/proc/self/status"); err == nil {
		text := strings.TrimSuffix(procfile.StatusValue(status, "VmHWM"), " kB")
		if kib, err := strconv.ParseInt(text, 10, 64); err == nil {
			return kib * 1024
		}
	}

	own, _ := OwnUsage()
	return own.MaxRSS
}
