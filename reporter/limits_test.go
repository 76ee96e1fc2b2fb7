package reporter

import (
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/series"
)

// The ranges of the ranks' limits, and the CPUs that ranks were given, are combined like the limits.
func TestCombine_CombinesLimitRangesAndBindings(t *testing.T) {
	at := time.Date(2026, 7, 1, 12, 0, 18, 0, time.UTC)
	limits := func(groups string, parts ...Limits) *Limits {
		var c combiner
		for i, l := range parts {
			l.CPUGroup, l.MemoryMB = "/"+groups[i:i+1], series.Unknown()
			c.parts = append(c.parts, &rankPart{Node: &Node{Host: &Host{CPUs: 16}, Limits: &l}, ranks: []*Rank{{Cgroup: l.CPUGroup}}})
		}
		return c.limits()
	}
	halved := &LimitRange{Min: 2, Max: 4, Mean: 3, Changes: 1, ChangedAt: at}
	quota := Limits{CPUs: 2, CPUQuota: 2, CPUsRange: halved, QuotaRange: halved}
	reclaimed := quota
	reclaimed.Reclaim = &Reclaim{SwapMB: 7}
	if l := limits("aa", quota, reclaimed); l.CPUs != 2 || *l.CPUsRange != *halved || *l.QuotaRange != *halved || l.Reclaim.SwapMB != 7 {
		t.Errorf("ranks in one group: limits %+v, want 2 CPUs and 7 MiB of swap; range %+v, want %+v", l, l.CPUsRange, halved)
	}
	want := LimitRange{Min: 6, Max: 8, Mean: 7, Changes: 1, ChangedAt: at}
	if l := limits("ab", quota, Limits{CPUs: 4, CPUQuota: 4}); l.CPUs != 6 || *l.CPUsRange != want || l.QuotaRange != nil {
		t.Errorf("ranks in two groups: limits %+v, want 6 CPUs and no range of the quota; range %+v, want %+v", l, l.CPUsRange, want)
	}
	bound := Limits{CPUs: 1, CPUSetCPUs: 16, AffinityCPUs: 1, GivenCPUs: 16, CPUQuota: series.Unknown()}
	if l := limits("aa", bound, bound); l.CPUs != 2 || l.GivenCPUs != 16 || l.CPUsRange != nil {
		t.Errorf("bound ranks: limits %+v, want 2 CPUs, 16 given, and no range", l)
	}
}
