package reporter

import (
	"github.com/perfagent/perfagent/internal/text"
)

// CPUsText returns how many CPUs the job could use in the course of the run: "2", or "0.5 to 2".
func CPUsText(l *Limits) string { return rangeText(l.CPUsRange, l.CPUs, text.CPUs) }

// QuotaText returns the CPU quota in the course of the run in the same form.
func QuotaText(l *Limits) string { return rangeText(l.QuotaRange, float64(l.CPUQuota), text.CPUs) }

// MemoryLimitText returns the memory limit in the course of the run: "2.0 GiB", or "1.0 GiB to 2.0 GiB".
func MemoryLimitText(l *Limits, size func(float64) string) string {
	return rangeText(l.MemoryRange, float64(l.MemoryMB), size)
}

// BoundText returns to how many of the CPUs that it was given the job bound itself: "bound itself to 1 of the 2 CPUs
// it was given". It returns "" if it did not.
func BoundText(l *Limits) string {
	if l == nil || !(l.GivenCPUs > 0) {
		return ""
	}
	return "bound itself to " + CPUsText(l) + " of the " + text.CPUs(l.GivenCPUs) + " CPUs it was given"
}

func rangeText(r *LimitRange, now float64, format func(float64) string) string {
	switch {
	case r == nil:
		return format(now)
	case !(r.Max > 0):
		return format(float64(r.Min)) + " to no limit"
	}
	return format(float64(r.Min)) + " to " + format(float64(r.Max))
}

// ChangedText returns when the limits of a range changed: "changed at 12:00:18 UTC". It returns "" for nil.
func ChangedText(r *LimitRange) string {
	if r == nil {
		return ""
	}
	at := r.ChangedAt.UTC().Format("15:04:05") + " UTC"
	if r.Changes > 1 {
		return "changed " + text.Count(r.Changes, "time", "times") + ", last at " + at
	}
	return "changed at " + at
}
