package cgroup

import (
	"errors"
	"math"
)

var (
	// ErrNoGroups means that no control groups are visible: no hierarchy is mounted, or the mounts do not show the groups
	// of the process. The wrapping error states the reason.
	ErrNoGroups = errors.New("no control groups")

	// ErrBusy means that a group still holds processes and was not removed.
	ErrBusy = errors.New("group is not empty")
)

// Options selects a process and the roots of the kernel's files. The zero value selects this process on this machine.
type Options struct {
	// Proc and Sys are the roots of procfs and sysfs; "" means /proc and /sys. If Sys is the root of a copied tree, the
	// mount points below /sys are expected below Sys.
	Proc, Sys string

	// PID is the process ID; 0 means this process. Groups is the content of the process's /proc/PID/cgroup if it was
	// already read; "" = not read.
	PID    int
	Groups string
}

// Limits are the limits of a process. They include the limits of all visible ancestors.
type Limits struct {
	// CPUs is the lowest CPU quota (quota / period) of the group and its visible ancestors, in cores; NaN if there is
	// none. (v2 cpu.max, v1 cpu.cfs_quota_us.)
	CPUs float64

	// CPUSetCPUs is the number of CPUs in the effective cpuset; 0 if unknown.
	CPUSetCPUs int

	// Memory is the lowest memory limit of the group and its visible ancestors, in bytes; NaN if there is none. It may
	// exceed the machine's memory. (v2 memory.max; v1 memory.limit_in_bytes, and hierarchical_memory_limit of
	// memory.stat, which includes hidden ancestors.)
	Memory float64

	// CPUGroup and MemoryGroup are the paths of the groups that set CPUs and Memory, as in /proc/PID/cgroup; "" without
	// a limit, or if a hidden ancestor sets it. If several groups have the same Memory, MemoryGroup is the outermost.
	CPUGroup, MemoryGroup string

	// InnerMemoryGroup is the innermost group with the limit Memory; "" if only MemoryGroup has it.
	InnerMemoryGroup string

	// Failed maps file names to reasons for limits that may exist but are unknown. nil means that nothing failed.
	Failed map[string]error
}

// A TaskLimit is a limit on the number of processes and threads of a group, and their current number.
type TaskLimit struct {
	Name      string // path of the file that sets the limit, ".../pids.max"
	Max, Used int64
}

// Counters are one sample of a group, in seconds and bytes. NaN means unknown. Unless noted otherwise, they count from
// the group's creation; Memory, Processes and Threads are current values. Each counter belongs to the process's group
// in the hierarchy of the counter's controller.
type Counters struct {
	// CPUSeconds is the CPU time of the group and all groups below it, including processes that have ended. (v2
	// cpu.stat usage_usec, v1 cpuacct.usage.)
	CPUSeconds float64

	// Periods, ThrottledPeriods and ThrottledSeconds belong to the group that sets Limits.CPUs; they are NaN without a
	// limit. A period counts if any task of the group was runnable in it. ThrottledSeconds is summed over the CPUs.
	// (cpu.stat.)
	Periods, ThrottledPeriods, ThrottledSeconds float64

	// Memory is the memory currently charged to the group: memory.current, or memory.usage_in_bytes. WorkingSet excludes
	// the pages that can be dropped immediately (Memory − inactive_file, at least 0, as in the kubelet). PageCache is the
	// reclaimable cache of files. It excludes tmpfs and shared memory, which the kernel counts as cache (file − shmem; v1
	// total_cache − total_shmem). PeakMemory is the maximum of Memory that the kernel recorded (memory.peak since Linux
	// 5.19, memory.max_usage_in_bytes).
	Memory, WorkingSet, PageCache, PeakMemory float64

	// Anon, Shmem, Kernel, Sock and HugeTLB are the parts of Memory other than PageCache: anonymous memory, tmpfs and
	// shared memory, memory of the kernel, socket buffers, and huge pages. In v1, and in v2 before Linux 5.18, Kernel is
	// the rest of Memory. Sock and HugeTLB are NaN if they are not part of Memory: Sock in v1, and HugeTLB unless the
	// mount option memory_hugetlb_accounting is set.
	Anon, Shmem, Kernel, Sock, HugeTLB float64

	// Swap is the group's swapped-out memory, which is not part of Memory. (v2 memory.swap.current, v1 total_swap of
	// memory.stat.)
	Swap float64

	// LimitWorkingSet, LimitPageCache and LimitPeak are WorkingSet, PageCache and PeakMemory of the group that sets
	// Limits.Memory. This is either the process's group or an ancestor, including all other processes in it.
	// LimitUnreclaimable is Memory − PageCache of the same group, which the kernel cannot reclaim without swap. They are
	// NaN without a limit, or if a hidden ancestor sets the limit.
	LimitWorkingSet, LimitPageCache, LimitPeak, LimitUnreclaimable float64

	// OOMKills counts the OOM kills in the group and all groups below it, no matter whether a group or the host ran out of
	// memory. (v2 memory.events oom_kill includes the groups below. v1 memory.oom_control counts a kill only in the
	// victim's group, so the groups below are added; a removed group stays in the sum with its last count.)
	OOMKills float64

	// OOMs counts how often a limit of the group, or of a group below it, forced the kernel to kill. LimitOOMs counts how
	// often the limit of the group that sets Limits.Memory did so, no matter in which group the victim was. (v2 oom of
	// memory.events and memory.events.local; NaN in v1.)
	OOMs, LimitOOMs float64

	// UnderOOM reports whether the group is currently out of memory, because of its limit or an ancestor's. (v1
	// under_oom.)
	UnderOOM bool

	// ReadBytes and WriteBytes are the bytes read from and written to storage, without discards, on devices that are not
	// stacked on other devices. (v2 io.stat; v1 blkio.throttle.io_service_bytes, which counts only if there is a throttle
	// rule, so they are NaN if it lists no device. In v1 they are also NaN if the blkio group differs from the CPU and
	// memory groups.)
	ReadBytes, WriteBytes float64

	// Processes and Threads are the numbers of current processes and threads in the group and all groups below it. If
	// there are many, the numbers may be from an earlier Read: see Group.Read.
	Processes, Threads float64

	// Pressure is the PSI of the v2 group.
	Pressure Pressure

	// Failed maps file names to reasons for files that existed when the group was found but could not be read. nil means
	// that nothing failed.
	Failed map[string]error
}

// Reclaim holds signs that a group needed more memory than it had, so that its peak memory is lower than its need. NaN
// means unknown.
type Reclaim struct {
	Swap float64 // bytes that are currently swapped out
	// Refaults counts the bytes that were read again after the kernel had dropped or swapped them out
	// (workingset_refault_file and _anon of memory.stat).
	Refaults float64
	// High is the lowest memory.high, in bytes, of the process's group and its visible ancestors. HighEvents counts how
	// often High was exceeded and memory was reclaimed. Both are known only in v2.
	High, HighEvents float64
}

// CopyLimitCounters copies the counters of the limiting groups (Limit…, Periods and Throttled…) from of.
func (c *Counters) CopyLimitCounters(of *Counters) {
	c.Periods, c.ThrottledPeriods, c.ThrottledSeconds = of.Periods, of.ThrottledPeriods, of.ThrottledSeconds
	c.LimitWorkingSet, c.LimitPageCache, c.LimitPeak = of.LimitWorkingSet, of.LimitPageCache, of.LimitPeak
	c.LimitUnreclaimable, c.LimitOOMs = of.LimitUnreclaimable, of.LimitOOMs
}

// Pressure is the pressure stall information (PSI) by resource.
type Pressure struct{ CPU, Memory, IO Stall }

// Stall is the time during which some or all non-idle tasks waited, in seconds since boot or the group's creation
// ("total=" of PSI / 1e6). NaN means unknown.
type Stall struct{ Some, Full float64 }

// unknownCounters returns Counters with all numbers unknown.
func unknownCounters() Counters {
	n := math.NaN()
	return Counters{
		CPUSeconds: n, Periods: n, ThrottledPeriods: n, ThrottledSeconds: n,
		Memory: n, WorkingSet: n, PageCache: n, PeakMemory: n, Swap: n,
		Anon: n, Shmem: n, Kernel: n, Sock: n, HugeTLB: n,
		LimitWorkingSet: n, LimitPageCache: n, LimitPeak: n, LimitUnreclaimable: n,
		OOMKills: n, OOMs: n, LimitOOMs: n,
		ReadBytes: n, WriteBytes: n, Processes: n, Threads: n,
		Pressure: UnknownPressure(),
	}
}

// UnknownPressure returns a Pressure with all numbers unknown.
func UnknownPressure() Pressure {
	s := Stall{math.NaN(), math.NaN()}
	return Pressure{s, s, s}
}

func noLimits() Limits { return Limits{CPUs: math.NaN(), Memory: math.NaN()} }
