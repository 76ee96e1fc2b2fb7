package cgroup

import (
	"errors"
	"math"
)

var (
	// ErrNoGroups says that no control groups are visible: none is mounted, or none of the process's.
	// The error that wraps it has the reason.
	ErrNoGroups = errors.New("no control groups")

	// ErrBusy says that a group still holds processes and therefore stays.
	ErrBusy = errors.New("group is not empty")
)

// Options say whose groups to find, and where. The zero value is this process on this machine.
type Options struct {
	// Proc and Sys are the roots of procfs and sysfs; "" is /proc and /sys. In a copied tree the mount points below
	// /sys are looked for below Sys.
	Proc, Sys string

	// PID is the process; 0 is this one. Groups is its /proc/PID/cgroup, if that was read already.
	PID    int
	Groups string
}

// Limits are what a process may use. They are never more than what an ancestor allows, as far as
// ancestors are visible.
type Limits struct {
	// CPUs is the least quota divided by period over the group and its visible ancestors, in cores;
	// NaN if there is no quota. (v2 cpu.max, v1 cpu.cfs_quota_us.)
	CPUs float64

	// CPUSetCPUs is how many CPUs are in the effective cpuset; 0 if unknown.
	CPUSetCPUs int

	// Memory is the least limit in bytes over the group and its visible ancestors; NaN if there is
	// none. It is what the kernel says even if the machine has less. (v2 memory.max; v1
	// memory.limit_in_bytes, and hierarchical_memory_limit of memory.stat, which includes hidden
	// ancestors.)
	Memory float64

	// CPUGroup and MemoryGroup are the paths of the groups that set these, as in /proc/PID/cgroup;
	// "" without a limit, or if a hidden ancestor sets it.
	CPUGroup, MemoryGroup string

	// InnerMemoryGroup is the innermost group with the same memory limit, if that is another than
	// MemoryGroup, the outermost.
	InnerMemoryGroup string

	// Failed says, by file name, why a limit that may exist is unknown. nil means that nothing
	// failed.
	Failed map[string]error
}

// A TaskLimit is a limit on the processes and threads of a group, and how many of
// them exist.
type TaskLimit struct {
	Name      string // the file that sets it, ".../pids.max"
	Max, Used int64
}

// Counters are one sample of a group. NaN is absent. They grow from the group's creation on unless
// said otherwise, in seconds and bytes. Each is that of the group in the hierarchy of its
// controller. Memory, Processes and Threads fall, too.
type Counters struct {
	// CPUSeconds is the CPU time of the group and all below it, including processes that have
	// ended. (v2 cpu.stat usage_usec, v1 cpuacct.usage.)
	CPUSeconds float64

	// Periods, ThrottledPeriods and ThrottledSeconds belong to the group that sets Limits.CPUs; NaN
	// if none does. A period counts if somebody in the group was runnable in it. ThrottledSeconds
	// adds up over the CPUs. (cpu.stat.)
	Periods, ThrottledPeriods, ThrottledSeconds float64

	// Memory is what is charged to the group now: memory.current, or memory.usage_in_bytes.
	// WorkingSet is Memory less inactive_file, never below 0, as for the kubelet: without the pages
	// that can be dropped at once. PageCache is the cache of files, which is reclaimable. Memory of
	// tmpfs and shared memory, which the kernel counts with it, is not, and is left out (file −
	// shmem; v1 total_cache − total_shmem). PeakMemory is the kernel's own maximum of Memory
	// (memory.peak from Linux 5.19, memory.max_usage_in_bytes).
	Memory, WorkingSet, PageCache, PeakMemory float64

	// Swap is what of the group's memory was swapped out; it is not in Memory. (v2 memory.swap.current, v1
	// total_swap of memory.stat.)
	Swap float64

	// LimitWorkingSet, LimitPageCache and LimitPeak are WorkingSet, PageCache and PeakMemory of the
	// group that sets Limits.Memory: the group's own, or an ancestor's, with all that runs
	// beside us in it. LimitHeld is its Memory less its PageCache: what the kernel cannot reclaim
	// without swap. NaN without a limit, and if a hidden ancestor sets it.
	LimitWorkingSet, LimitPageCache, LimitPeak, LimitUnreclaimable float64

	// OOMKills counts the out-of-memory kills in the group and in all below it, for any group's
	// limit or for the host's memory. (v2 memory.events oom_kill, which includes the groups below;
	// v1 memory.oom_control counts in the victim's own group only, so the groups below are added
	// up. A removed group stays in the sum with its last count.)
	OOMKills float64

	// OOMs counts how often a limit of the group, or of one below it, left the kernel nothing but
	// to kill, LimitOOMs how often the limit of the group that sets Limits.Memory did, wherever the
	// killed process was. (v2 oom of memory.events and memory.events.local; NaN in v1.)
	OOMs, LimitOOMs float64

	// UnderOOM reports that the group was in that state at this very moment, for its own limit or
	// one above it. (v1 under_oom.)
	UnderOOM bool

	// ReadBytes and WriteBytes are storage bytes without discards, of devices that are not made of
	// others. (v2 io.stat; v1 blkio.throttle.io_service_bytes, which counts only where there is a
	// throttle rule: if it lists no device they are absent. They are also absent in v1 if the blkio
	// group is not that of CPU or memory.)
	ReadBytes, WriteBytes float64

	// Processes and Threads are counts of the group and all below it now. If there are many, the
	// counts may be of an earlier Read: see Group.Read.
	Processes, Threads float64

	// Pressure is that of the v2 group.
	Pressure Pressure

	// Failed says, by file name, why what existed when the group was found could not be read now.
	// nil means that nothing failed.
	Failed map[string]error
}

// Reclaim is what may have held the memory of a group down, so that its peak does not say how much it needs. NaN is
// absent.
type Reclaim struct {
	Swap float64 // bytes that are swapped out now
	// Refaults counts the bytes that were brought back after the kernel had dropped or swapped them out
	// (workingset_refault_file and _anon of memory.stat).
	Refaults float64
	// High is the lowest memory.high, in bytes, over the group that the Limits are of and its visible ancestors.
	// HighEvents counts how often it was exceeded and memory was taken back (v2 only).
	High, HighEvents float64
}

// CopyLimitCounters takes the counters of what limits another group.
func (c *Counters) CopyLimitCounters(of *Counters) {
	c.Periods, c.ThrottledPeriods, c.ThrottledSeconds = of.Periods, of.ThrottledPeriods, of.ThrottledSeconds
	c.LimitWorkingSet, c.LimitPageCache, c.LimitPeak = of.LimitWorkingSet, of.LimitPageCache, of.LimitPeak
	c.LimitUnreclaimable, c.LimitOOMs = of.LimitUnreclaimable, of.LimitOOMs
}

// Pressure is how long work waited for resources (PSI).
type Pressure struct{ CPU, Memory, IO Stall }

// Stall is the time in seconds, since boot or the group's creation, in which some or all of the
// tasks that had something to do waited ("total=" of PSI / 1e6). NaN is absent.
type Stall struct{ Some, Full float64 }

// absent returns Counters with nothing known.
func absent() Counters {
	n := math.NaN()
	return Counters{
		CPUSeconds: n, Periods: n, ThrottledPeriods: n, ThrottledSeconds: n,
		Memory: n, WorkingSet: n, PageCache: n, PeakMemory: n, Swap: n,
		LimitWorkingSet: n, LimitPageCache: n, LimitPeak: n, LimitUnreclaimable: n,
		OOMKills: n, OOMs: n, LimitOOMs: n,
		ReadBytes: n, WriteBytes: n, Processes: n, Threads: n,
		Pressure: UnknownPressure(),
	}
}

// UnknownPressure returns a Pressure with nothing known.
func UnknownPressure() Pressure {
	s := Stall{math.NaN(), math.NaN()}
	return Pressure{s, s, s}
}

func noLimits() Limits { return Limits{CPUs: math.NaN(), Memory: math.NaN()} }
