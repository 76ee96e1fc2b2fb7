package reporter

import (
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/series"
)

// The ranges of the ranks' limits, and the CPUs that ranks were given, are combined like the limits.
func TestCombine_CombinesLimitRangesAndBindings(t *testing.T) {
	at := time.Date(2026, 7, 1, 12, 0, 18, 0, time.UTC)
	of := func(group string, l Limits) *rankPart {
		l.CPUGroup, l.MemoryMB = group, series.Unknown()
		return &rankPart{Node: &Node{Host: &Host{CPUs: 16}, Limits: &l}, ranks: []*Rank{{Cgroup: group}}}
	}
	halved := &LimitRange{Min: 2, Max: 4, Mean: 3, Changes: 1, ChangedAt: at}

	one := &combiner{parts: []*rankPart{
		of("/a", Limits{CPUs: 2, CPUQuota: 2, CPUsRange: halved, QuotaRange: halved}),
		of("/a", Limits{CPUs: 2, CPUQuota: 2, CPUsRange: halved, QuotaRange: halved, Reclaim: &Reclaim{SwapMB: 7}}),
	}}
	if l := one.limits(); l.CPUs != 2 || *l.CPUsRange != *halved || *l.QuotaRange != *halved || l.Reclaim.SwapMB != 7 {
		t.Errorf("ranks in one group: limits %+v, want 2 CPUs and 7 MiB of swap; range %+v, want %+v", l, l.CPUsRange,
			halved)
	}

	two := &combiner{parts: []*rankPart{
		of("/a", Limits{CPUs: 2, CPUQuota: 2, CPUsRange: halved, QuotaRange: halved}),
		of("/b", Limits{CPUs: 4, CPUQuota: 4}),
	}}
	want := LimitRange{Min: 6, Max: 8, Mean: 7, Changes: 1, ChangedAt: at}
	if l := two.limits(); l.CPUs != 6 || *l.CPUsRange != want || l.QuotaRange != nil {
		t.Errorf("ranks in two groups: limits %+v, want 6 CPUs and no range of the quota; range %+v, want %+v", l,
			l.CPUsRange, want)
	}

	bound := &combiner{parts: []*rankPart{
		of("/", Limits{CPUs: 1, CPUSetCPUs: 16, AffinityCPUs: 1, GivenCPUs: 16, CPUQuota: series.Unknown()}),
		of("/", Limits{CPUs: 1, CPUSetCPUs: 16, AffinityCPUs: 1, GivenCPUs: 16, CPUQuota: series.Unknown()}),
	}}
	if l := bound.limits(); l.CPUs != 2 || l.GivenCPUs != 16 || l.CPUsRange != nil {
		t.Errorf("bound ranks: limits %+v, want 2 CPUs, 16 given, and no range", l)
	}
}
