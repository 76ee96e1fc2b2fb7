package host

import (
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
)

// A limit that changes has a range, a number of changes, and the time of the last change.
func TestLimits_WithRangesRecordsChanges(t *testing.T) {
	none := series.Unknown()
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	l := Limits{CPUs: 0, CPUQuota: none, MemoryMB: none} // nothing is known yet
	for i, step := range []struct {
		now                 Limits
		cpus, quota, memory *LimitRange
	}{
		{now: Limits{CPUs: 2, CPUQuota: none, MemoryMB: 100}},
		{now: Limits{CPUs: 2, CPUQuota: none, MemoryMB: 100}},
		{now: Limits{CPUs: .5, CPUQuota: .5, MemoryMB: 100},
			cpus: &LimitRange{Min: .5, Max: 2, Changes: 1}, quota: &LimitRange{Min: .5, Max: none, Changes: 1}},
		{now: Limits{CPUs: 1, CPUQuota: 1, MemoryMB: none},
			cpus: &LimitRange{Min: .5, Max: 2, Changes: 2}, quota: &LimitRange{Min: .5, Max: none, Changes: 2},
			memory: &LimitRange{Min: 100, Max: none, Changes: 1}},
		{now: Limits{CPUs: 4, CPUQuota: 4, MemoryMB: 50},
			cpus: &LimitRange{Min: .5, Max: 4, Changes: 3}, quota: &LimitRange{Min: .5, Max: none, Changes: 3},
			memory: &LimitRange{Min: 50, Max: none, Changes: 2}},
	} {
		at = at.Add(time.Second)
		before := l
		l = step.now.WithRanges(&before, at)
		for name, c := range map[string]struct{ got, want *LimitRange }{
			"cpus": {l.CPUsRange, step.cpus}, "quota": {l.QuotaRange, step.quota}, "memory": {l.MemoryRange, step.memory},
		} {
			same := func(a, b series.Optional) bool { return a == b || !a.Known() && !b.Known() }
			switch {
			case c.want == nil && c.got == nil:
			case c.want == nil || c.got == nil || !same(c.got.Min, c.want.Min) || !same(c.got.Max, c.want.Max) ||
				c.got.Changes != c.want.Changes || c.got.Changes > 0 && name != "memory" && !c.got.ChangedAt.Equal(at):
				t.Errorf("step %d: range of %s = %+v, want %+v changed at %v", i, name, c.got, c.want, at)
			}
		}
	}
	check.True(t, l.LeastCPUs() == .5 && l.MostCPUs() == 4 && l.MeanCPUs() == 4 && l.LeastQuota() == .5 && l.LeastMemoryMB() == 50,
		"limits = %+v, want CPUs from .5 to 4, mean 4, lowest quota .5, lowest memory 50", l)
}
