package host

import (
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/series"
)

// Limits are the job's limits on CPUs and memory.
type Limits struct {
	// CPUs is the minimum of the affinity mask and of the CPU quota and the cpuset of the visible control groups; 0 =
	// unknown.
	CPUs         float64         `json:"cpus,omitzero"`
	CPUQuota     series.Optional `json:"cpu_quota,omitzero"`     // in CPUs; unknown = none
	CPUSetCPUs   int             `json:"cpuset_cpus,omitzero"`   // 0 = unknown
	AffinityCPUs int             `json:"affinity_cpus,omitzero"` // 0 = unknown
	// MemoryMB is the lowest limit of the visible control groups, in MiB; unknown = none.
	MemoryMB series.Optional `json:"memory_mb,omitzero"`
	// CPUGroup and MemoryGroup are the groups that set CPUQuota and MemoryMB.
	CPUGroup    string `json:"cpu_group,omitempty"`
	MemoryGroup string `json:"memory_group,omitempty"`

	// GivenCPUs and GivenMemoryMB are the limits given to the job. They are set only if the job limits itself further, by
	// the affinity of its threads or by a control group that its processes entered; otherwise they are 0.
	GivenCPUs     float64 `json:"given_cpus,omitzero"`
	GivenMemoryMB float64 `json:"given_memory_mb,omitzero"`

	// Reclaim holds the signs in the run that the job needed more memory than it had; nil if there were none. It is
	// immutable.
	Reclaim *Reclaim `json:"held_down,omitempty"`

	// CPUsRange, QuotaRange and MemoryRange are the ranges of CPUs, CPUQuota and MemoryMB during the run; nil if they
	// did not change. They are immutable.
	CPUsRange   *LimitRange `json:"cpus_range,omitempty"`
	QuotaRange  *LimitRange `json:"quota_range,omitempty"`
	MemoryRange *LimitRange `json:"memory_range,omitempty"`
}

// Reclaim holds signs that the job, or the group that limits it, needed more memory than it had, so that its peak
// memory is lower than its need. All values are in MiB.
type Reclaim struct {
	HighMB      float64 `json:"high_mb,omitzero"`      // memory.high, if the kernel reclaimed memory because of it
	SwapMB      float64 `json:"swap_mb,omitzero"`      // peak of swapped-out memory
	RefaultedMB float64 `json:"refaulted_mb,omitzero"` // memory read again after the kernel had dropped or swapped it out
}

// A LimitRange is the range of a limit during a run.
type LimitRange struct {
	Min series.Optional `json:"min"`
	Max series.Optional `json:"max,omitzero"` // unknown if there was no limit for some of the time
	// Mean is the mean over time. It is set only in reports, and only for CPUs.
	Mean      series.Optional `json:"mean,omitzero"`
	Changes   int             `json:"changes"`
	ChangedAt time.Time       `json:"changed_at"` // the last change
}

// limited reports whether CPU time or memory is limited.
func (l Limits) limited() bool { return l.CPUQuota.Known() || l.MemoryMB.Known() }

// minCPUs returns the minimum of the known limits on CPUs; 0 = unknown.
func (l Limits) minCPUs() float64 {
	least := 0.0
	for _, v := range [...]float64{float64(l.CPUQuota), float64(l.CPUSetCPUs), float64(l.AffinityCPUs)} {
		if v > 0 && (least == 0 || v < least) { // false for NaN
			least = v
		}
	}
	return least
}

// take sets the limits that come from control groups to the limits in g.
func (l *Limits) take(g *cgroup.Limits) {
	l.CPUQuota, l.CPUSetCPUs, l.MemoryMB = series.Optional(g.CPUs), g.CPUSetCPUs, series.Optional(g.Memory/mib)
	l.CPUGroup, l.MemoryGroup = g.CPUGroup, g.MemoryGroup
}

// WithRanges returns l with the Reclaim and the ranges of before. It extends the ranges to the limits in l, unless
// before is unknown. at is the time of l.
func (l Limits) WithRanges(before *Limits, at time.Time) Limits {
	l.CPUsRange, l.QuotaRange, l.MemoryRange = before.CPUsRange, before.QuotaRange, before.MemoryRange
	l.Reclaim = before.Reclaim
	if before.CPUs == 0 {
		return l
	}
	if l.CPUs > 0 {
		l.CPUsRange = l.CPUsRange.extend(series.Optional(before.CPUs), series.Optional(l.CPUs), at)
	}
	l.QuotaRange = l.QuotaRange.extend(before.CPUQuota, l.CPUQuota, at)
	l.MemoryRange = l.MemoryRange.extend(before.MemoryMB, l.MemoryMB, at)
	return l
}

// extend returns r extended by the change of a limit between from and to. Without a change it returns r.
func (r *LimitRange) extend(from, to series.Optional, at time.Time) *LimitRange {
	if from == to || !from.Known() && !to.Known() {
		return r
	}
	next := r.orConstant(from)
	if !next.Min.Known() || to < next.Min {
		next.Min = to
	}
	if !to.Known() || to > next.Max {
		next.Max = to
	}
	next.Changes, next.ChangedAt = next.Changes+1, at.UTC()
	return &next
}

// orConstant returns r or, if r is nil, the range of a limit that was always v.
func (r *LimitRange) orConstant(v series.Optional) LimitRange {
	if r == nil {
		return LimitRange{Min: v, Max: v}
	}
	return *r
}

// LeastCPUs returns the fewest CPUs that the job could use during the run; 0 = unknown.
func (l *Limits) LeastCPUs() float64 { return l.orCPUs(l.CPUsRange.orConstant(0).Min) }

// MeanCPUs returns the mean number of CPUs that the job could use during the run; 0 = unknown.
func (l *Limits) MeanCPUs() float64 { return l.orCPUs(l.CPUsRange.orConstant(0).Mean) }

// MostCPUs returns the most CPUs that the job could use during the run; 0 = unknown.
func (l *Limits) MostCPUs() float64 { return l.orCPUs(l.CPUsRange.orConstant(0).Max) }

func (l *Limits) orCPUs(cpus series.Optional) float64 {
	if cpus > 0 {
		return float64(cpus)
	}
	return l.CPUs
}

// MostMemoryMB returns the highest memory limit of the run; unknown = none.
func (l *Limits) MostMemoryMB() series.Optional { return l.MemoryRange.orConstant(l.MemoryMB).Max }

// LeastQuota returns the lowest CPU quota of the run; unknown = none.
func (l *Limits) LeastQuota() series.Optional { return l.QuotaRange.orConstant(l.CPUQuota).Min }

// LeastMemoryMB returns the lowest memory limit of the run; unknown = none.
func (l *Limits) LeastMemoryMB() series.Optional { return l.MemoryRange.orConstant(l.MemoryMB).Min }
