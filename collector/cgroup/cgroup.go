package cgroup

import (
	"errors"
	"math"
)

var (
	// ErrNone says that there are no control groups to be seen: none mounted, or
	// none of the process's. The error that wraps it has the reason.
	ErrNone = errors.New("no control groups")

	// ErrBusy says that a group still holds processes and therefore stays.
	ErrBusy = errors.New("group is not empty")
)

// Options says whose groups are looked for, and where. The zero value is this
// process on this machine.
type Options struct {
	// Proc and Sys are the roots of procfs and sysfs; "" is /proc and /sys. In a
	// container with the host's at /host/proc and /host/sys these are meant. Mount
	// points below Sys are then taken as they are; where there are none, those
	// below /sys are looked for below Sys.
	Proc, Sys string

	// PID is the process; 0 is this one.
	PID int
}

// Limits are what a process may use. They are never more than what an ancestor
// allows, as far as ancestors are visible.
type Limits struct {
	// CPUs is the least quota divided by period over the group and its visible
	// ancestors, in cores; NaN without a quota. (v2 cpu.max, v1 cpu.cfs_quota_us.)
	CPUs float64

	// CPUSet is how many CPUs are in the effective cpuset; 0 if unknown.
	CPUSet int

	// Memory is the least limit in bytes over the group and its visible ancestors;
	// NaN without one. It is what the kernel says even if it is more than the
	// machine has. (v2 memory.max; v1 memory.limit_in_bytes, and
	// hierarchical_memory_limit of memory.stat, which knows of hidden ancestors.)
	Memory float64

	// CPUGroup and MemoryGroup are the paths of the groups that set these, as in
	// /proc/PID/cgroup; "" without a limit, or when a hidden ancestor sets it.
	CPUGroup, MemoryGroup string

	// MemoryInner is the innermost group with the same memory limit, where that is
	// another than MemoryGroup, the outermost.
	MemoryInner string

	// Failed has, by the name of the file, why a limit that may be there is not
	// known; nil when nothing failed.
	Failed map[string]error
}

// A TaskLimit is a limit on the processes and threads of a group, and how many of
// them exist.
type TaskLimit struct {
	Name      string // the file that sets it, ".../pids.max"
	Max, Used int64
}

// Counters are one sample. NaN is absent. All grow from the group's creation on
// unless said otherwise; seconds and bytes. Each is of the group in the hierarchy
// of its controller. Memory, Processes and Threads go down too.
type Counters struct {
	// CPUSeconds is the CPU time of the group and all below it, of processes that
	// have ended too. (v2 cpu.stat usage_usec, v1 cpuacct.usage.)
	CPUSeconds float64

	// Periods, ThrottledPeriods and ThrottledSeconds are of the group that sets
	// Limits.CPUs, NaN when none does. A period is counted when somebody in the group
	// was runnable in it. ThrottledSeconds adds up over the CPUs. (cpu.stat.)
	Periods, ThrottledPeriods, ThrottledSeconds float64

	// Memory is what is charged to the group now: memory.current, or
	// memory.usage_in_bytes. WorkingSet is Memory less inactive_file, never below 0,
	// as the kubelet has it: pages that can be dropped at once are left out.
	// PageCache is the cache of files, which is reclaimable; memory of tmpfs and
	// shared memory, which the kernel counts among them, is not, and is left out
	// (file − shmem; v1 total_cache − total_shmem). PeakMemory is the kernel's own
	// highest Memory (memory.peak from Linux 5.19, memory.max_usage_in_bytes).
	Memory, WorkingSet, PageCache, PeakMemory float64

	// LimitWorkingSet, LimitPageCache and LimitPeak are WorkingSet, PageCache and
	// PeakMemory of the group that sets Limits.Memory: the group's own, or those of an
	// ancestor, with all that runs beside us in it. NaN without a limit, and when a
	// hidden ancestor sets it.
	LimitWorkingSet, LimitPageCache, LimitPeak float64

	// OOMKills counts the processes of the group and of all below it that the kernel
	// killed for want of memory, whoever's limit it was. (v2 memory.events oom_kill,
	// which includes what is below; v1 memory.oom_control counts in the victim's own
	// group only, so that those below are added up. A group that has gone stays in
	// the sum with what it had when it was last read.)
	OOMKills float64

	// ReadBytes and WriteBytes are storage bytes, discards left out, of devices that
	// are not made of others. (v2 io.stat; v1 blkio.throttle.io_service_bytes, which
	// counts only where there is a throttle rule: without a device in it they are
	// absent. v1 also leaves them out when the blkio group is not that of CPU or memory.)
	ReadBytes, WriteBytes float64

	// Processes and Threads are those of the group and all below it now. Where they
	// are many they may be those of an earlier Read: see Group.Read.
	Processes, Threads float64

	// Pressure is that of the v2 group.
	Pressure Pressure

	// Failed has, by the name of the file, why what was there when the group was
	// found could not be read now; nil when nothing failed.
	Failed map[string]error
}

// Pressure is how long work waited for resources (PSI).
type Pressure struct{ CPU, Memory, IO Stall }

// Stall is the time in seconds, since boot or the group's creation, in which some
// or all of the tasks that had something to do waited ("total=" of PSI / 1e6). NaN
// is absent.
type Stall struct{ Some, Full float64 }

// absent are Counters of which nothing is known.
func absent() Counters {
	n := math.NaN()
	return Counters{
		CPUSeconds: n, Periods: n, ThrottledPeriods: n, ThrottledSeconds: n,
		Memory: n, WorkingSet: n, PageCache: n, PeakMemory: n,
		LimitWorkingSet: n, LimitPageCache: n, LimitPeak: n, OOMKills: n,
		ReadBytes: n, WriteBytes: n, Processes: n, Threads: n,
		Pressure: noPressure(),
	}
}

func noPressure() Pressure {
	s := Stall{math.NaN(), math.NaN()}
	return Pressure{s, s, s}
}

func noLimits() Limits { return Limits{CPUs: math.NaN(), Memory: math.NaN()} }
