package collector

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
)

// groupAt describes the control group at one Reading; NaN = no value.
type groupAt struct {
	quotaGroup, memoryGroup      string
	periods, throttled           float64
	limit, peak, cache, oomKills float64 // MiB
}

// accountAfter returns the account of a job after Readings of its control group, and the percentage of throttled
// periods in each sample. The first Reading is the baseline.
func accountAfter(t *testing.T, readings []groupAt) (*Account, []float64) {
	t.Helper()
	reading := func(i int) *host.Reading {
		g := readings[i]
		at := time.Duration(i) * time.Second
		return &host.Reading{At: host.Instant{Mono: at, Boot: at}, Job: &host.JobUsage{CPUSeconds: math.NaN(), IO: process.UnknownIO(), Memory: math.NaN(),
			Group: &cgroup.Counters{Periods: g.periods, ThrottledPeriods: g.throttled, ThrottledSeconds: g.throttled / 10,
				LimitPeak: g.peak * MiB, LimitPageCache: g.cache * MiB, LimitWorkingSet: math.NaN(), LimitUnreclaimable: math.NaN(), OOMKills: g.oomKills,
				OOMs: math.NaN(), LimitOOMs: math.NaN()},
			Limits: host.Limits{CPUQuota: 1, MemoryMB: series.Optional(g.limit), CPUGroup: g.quotaGroup, MemoryGroup: g.memoryGroup}}}
	}

	base := reading(0)
	l, p, a := newAccountTracker(base, host.JobOptions{}), NewCounterState(base), NoAccount()
	var pct []float64
	for i := range readings[1:] {
		r := reading(i + 1)
		var sample Sample
		p, sample = p.Next(r, time.Millisecond)
		l, a = l.next(a, r, trackerInput{})
		pct = append(pct, sample.Values[JobThrottled])
	}
	return &a, pct
}

// If another group starts to set the limits, its earlier counts are not the job's, and the counts of the previous group
// are kept.
func TestAccountTracker_KeepsCountsWhenQuotaGroupChanges(t *testing.T) {
	a, pct := accountAfter(t, []groupAt{
		{quotaGroup: "leaf", periods: 100, throttled: 50},
		{quotaGroup: "leaf", periods: 110, throttled: 52},
		{quotaGroup: "parent", periods: 9000, throttled: 8000},
		{quotaGroup: "parent", periods: 9010, throttled: 8001},
		{quotaGroup: "", periods: math.NaN(), throttled: math.NaN()},
		{quotaGroup: "leaf", periods: 500, throttled: 400},
		{quotaGroup: "leaf", periods: 520, throttled: 410},
	})

	check.True(t, a.Periods == 40 && a.ThrottledPeriods == 13 && math.Abs(float64(a.ThrottledSeconds)-1.3) <= 1e-9,
		"throttled in %v of %v periods, %v s; want 13 of 40, 1.3 s", a.ThrottledPeriods, a.Periods, a.ThrottledSeconds)

	same(t, "throttled periods in each sample, %", pct, []float64{20, absent, 10, absent, absent, 50})
}

// LimitReachedPct compares each peak with the limit at that time, and ignores peaks that did not rise while the job
// ran.
func TestAccountTracker_ComparesPeaksWithLimitAtThatTime(t *testing.T) {
	for name, c := range map[string]struct {
		readings []groupAt
		want     series.Optional
	}{
		"a peak from before the job":             {[]groupAt{{limit: 200, peak: 200}, {limit: 200, peak: 200}}, series.Unknown()},
		"a peak between two Readings":            {[]groupAt{{limit: 200, peak: 20}, {limit: 200, peak: 150, cache: 10}}, 70},
		"page cache is reclaimed":                {[]groupAt{{limit: 200, peak: 20}, {limit: 200, peak: 200, cache: 190}}, 5},
		"killed at the limit":                    {[]groupAt{{limit: 200, peak: 20}, {limit: 200, peak: 200, cache: 150, oomKills: 1}}, series.Unknown()},
		"killed below a lower limit":             {[]groupAt{{limit: 1000, peak: 20}, {limit: 1000, peak: 100, cache: 50, oomKills: 1}}, 5},
		"killed, and full already":               {[]groupAt{{limit: 200, peak: 200, oomKills: 1}, {limit: 200, peak: 200, oomKills: 2}}, series.Unknown()},
		"killed at the limit, then limit raised": {[]groupAt{{limit: 200, peak: 20}, {limit: 200, peak: 200, oomKills: 1}, {limit: 2000, peak: 200, oomKills: 1}}, series.Unknown()},
		"a kill before the baseline":             {[]groupAt{{limit: 200, peak: 20, oomKills: 1}, {limit: 200, peak: 200, cache: 150, oomKills: 1}}, 25},
		"the limit is lowered later":             {[]groupAt{{limit: 4000, peak: 20}, {limit: 4000, peak: 300}, {limit: 200, peak: 300}}, 7.5},
		"the limit is raised later":              {[]groupAt{{limit: 400, peak: 20}, {limit: 400, peak: 300}, {limit: 4000, peak: 310}}, 75},
		"another group with earlier peaks": {[]groupAt{{limit: 200, peak: 20, memoryGroup: "leaf"}, {limit: 200, peak: 40, memoryGroup: "leaf"},
			{limit: 400, peak: 390, memoryGroup: "parent"}, {limit: 400, peak: 390, memoryGroup: "parent"}}, 20},
		"no limit": {[]groupAt{{limit: math.NaN(), peak: math.NaN()}, {limit: math.NaN(), peak: math.NaN()}}, series.Unknown()},
	} {
		a, _ := accountAfter(t, c.readings)
		check.True(t, a.LimitReachedPct == c.want || !a.LimitReachedPct.Known() && !c.want.Known(),
			"%s: LimitReachedPct = %v, want %v", name, a.LimitReachedPct, c.want)
		if full := strings.HasPrefix(name, "killed at the limit") || strings.HasPrefix(name, "killed, and full"); full != (a.FullAtKillMB == 200) {
			t.Errorf("%s: FullAtKillMB = %v, want 200 only if the group was full (%v)", name, a.FullAtKillMB, full)
		}
	}
}

// If the limit changes, the account sums the allowed CPU time and records the range of the limit.
func TestAccountTracker_SumsAllowedCPUTimeOfChangingLimit(t *testing.T) {
	reading := func(second int, cpus float64) *host.Reading {
		at := time.Duration(second) * time.Second
		return &host.Reading{At: host.Instant{Mono: at, Boot: at, Wall: time.Unix(1000, 0).Add(at)}, Job: &host.JobUsage{
			CPUSeconds: math.NaN(), Limits: host.Limits{CPUs: cpus, CPUQuota: series.Unknown(), MemoryMB: series.Unknown()}}}
	}
	base := reading(0, 8) // the CPUs of perfagent itself, before the job's processes are known
	l, a := newAccountTracker(base, host.JobOptions{}), NoAccount()
	for second, cpus := range []float64{2, 2, 1, 1} {
		l, a = l.next(a, reading(second+1, cpus), trackerInput{})
	}
	got := a.LimitCPUSeconds
	check.True(t, got == 2+2+1.5+1, "LimitCPUSeconds = %v, want 6.5", got)
	if r := a.Limits.CPUsRange; r == nil || r.Min != 1 || r.Max != 2 || r.Changes != 1 || !r.ChangedAt.Equal(time.Unix(1003, 0)) {
		t.Errorf("CPUsRange = %+v, want 1 to 2 with one change at 1003 s", r)
	}
}

// Memory pressure counts from the first reading. When another group sets the limit, it counts from the first reading of
// that group.
func TestAccountTracker_IgnoresEarlierReclaimOfNewGroup(t *testing.T) {
	l, a := accountTracker{start: host.Instant{}}, NoAccount()
	u := math.NaN()
	for _, h := range []struct {
		group string
		held  cgroup.Reclaim
	}{
		{"a", cgroup.Reclaim{Swap: 0, Refaults: 700 * MiB, High: 100 * MiB, HighEvents: 7}},
		{"a", cgroup.Reclaim{Swap: 30 * MiB, Refaults: 705 * MiB, High: 100 * MiB, HighEvents: 7}},
		{"a", cgroup.Reclaim{Swap: 20 * MiB, Refaults: 710 * MiB, High: u, HighEvents: u}},
		{"b", cgroup.Reclaim{Swap: 0, Refaults: 9000 * MiB, High: 50 * MiB, HighEvents: 99}},
		{"b", cgroup.Reclaim{Swap: 0, Refaults: 9001 * MiB, High: 50 * MiB, HighEvents: 99}},
	} {
		a.Limits.MemoryGroup = h.group
		l.noteReclaim(&a.Limits, &h.held)
	}
	got, want := a.Limits.Reclaim, (host.Reclaim{SwapMB: 30, RefaultedMB: 11})
	check.True(t, got != nil && *got == want, "Reclaim = %+v, want %+v", got, want)
	l.noteReclaim(&a.Limits, &cgroup.Reclaim{Swap: u, Refaults: u, High: 50 * MiB, HighEvents: 100})
	high := a.Limits.Reclaim.HighMB
	check.True(t, high == 50, "HighMB = %v after memory.high was exceeded, want 50", high)
}

// killReading is the memory in a Reading: the percentage of the host's memory that is available (0 = unknown), and the
// percentage of the limit that the group holds.
type killReading struct {
	available, held float64 // percent
	kills, ooms     float64 // of the group and those below it
	limitOOMs       float64 // of the group with the limit
	under           bool    // v1
	host            float64 // kills on the host
}

// A kill is attributed to a limit if the kernel's counters prove it: in v2 they count the kills due to a limit. In v1
// the unreclaimable memory before the kill decides. The host's available memory is also read before the kill, because
// the kill itself frees memory.
func TestAccountTracker_AttributesKillToProvenLimit(t *testing.T) {
	n := math.NaN()
	v1 := func(available, held, kills float64) killReading {
		return killReading{available: available, held: held, kills: kills, ooms: n, limitOOMs: n}
	}
	v2 := func(kills, ooms, limitOOMs float64) killReading {
		return killReading{available: 50, held: 99, kills: kills, ooms: ooms, limitOOMs: limitOOMs}
	}
	root := func(available, host float64) killReading {
		return killReading{available: available, held: n, kills: n, ooms: n, limitOOMs: n, host: host}
	}
	for name, c := range map[string]struct {
		readings []killReading // the first is the baseline
		want     *OOMKill      // without its time and AvailableMB
		at       int           // index of the Reading that counted it
		atLimit  series.Optional
	}{
		"none":                                   {[]killReading{v2(3, 3, 3), v2(3, 3, 3)}, nil, 0, series.Unknown()},
		"v2, at the job's limit":                 {[]killReading{v2(3, 3, 3), v2(4, 4, 4)}, &OOMKill{InGroup: true, AtLimit: true, LimitEventsCounted: true, AvailablePct: series.Unknown()}, 1, 1},
		"v2, limit counted a Reading earlier":    {[]killReading{v2(3, 3, 3), v2(3, 4, 4), v2(4, 4, 4)}, &OOMKill{InGroup: true, AtLimit: true, LimitEventsCounted: true, AvailablePct: 50}, 2, 1},
		"v2, at the limit of a group below":      {[]killReading{v2(0, 0, 0), v2(0, 0, 0), v2(2, 1, 0)}, &OOMKill{InGroup: true, LimitEventsCounted: true, AvailablePct: 50}, 2, series.Unknown()},
		"v2, others hit the limit before":        {[]killReading{v2(0, 0, 0), v2(0, 0, 5), v2(0, 0, 5), v2(1, 0, 5)}, &OOMKill{LimitEventsCounted: true, AvailablePct: 50}, 3, series.Unknown()},
		"v2, not at a limit":                     {[]killReading{v2(0, 7, 7), v2(0, 7, 7), v2(1, 7, 7)}, &OOMKill{LimitEventsCounted: true, AvailablePct: 50}, 2, series.Unknown()},
		"v2, at the limit, then not at a limit":  {[]killReading{v2(0, 0, 0), v2(1, 1, 1), v2(2, 1, 1)}, &OOMKill{LimitEventsCounted: true, AvailablePct: 50}, 2, 1},
		"v2, twice at the limit":                 {[]killReading{v2(0, 0, 0), v2(1, 1, 1), v2(3, 3, 3)}, &OOMKill{InGroup: true, AtLimit: true, LimitEventsCounted: true, AvailablePct: 50}, 2, 3},
		"v2, kills due to limit not counted":     {[]killReading{v2(0, 0, n), v2(0, 0, n), v2(1, 0, n)}, &OOMKill{InGroup: true, AtLimit: true, AvailablePct: 50}, 2, 1},
		"v1, group was full":                     {[]killReading{v1(50, 10, 0), v1(50, 90, 0), v1(50, 10, 1)}, &OOMKill{InGroup: true, AtLimit: true, AvailablePct: 50}, 2, 1},
		"v1, group was full only after the kill": {[]killReading{v1(50, 10, 0), v1(50, 89, 0), v1(50, 95, 1)}, &OOMKill{AvailablePct: 50}, 2, series.Unknown()},
		"v1, group and host were full":           {[]killReading{v1(50, 10, 0), v1(4.9, 95, 0), v1(50, 10, 1)}, &OOMKill{AvailablePct: 4.9}, 2, series.Unknown()},
		"v1, group was full, host unknown":       {[]killReading{v1(0, 95, 0), v1(0, 95, 0), v1(50, 10, 1)}, &OOMKill{AvailablePct: series.Unknown()}, 2, series.Unknown()},
		"v1, under_oom was read":                 {[]killReading{v1(50, 10, 0), {available: 50, held: 10, ooms: n, limitOOMs: n, under: true}, v1(50, 10, 1)}, &OOMKill{InGroup: true, AtLimit: true, AvailablePct: 50}, 2, 1},
		"no group, host was full":                {[]killReading{root(50, 0), root(1, 0), root(88, 1)}, &OOMKill{AvailablePct: 1}, 2, series.Unknown()},
		"a kill outside the group":               {[]killReading{{available: 50, ooms: n, limitOOMs: n}, {available: 1, ooms: n, limitOOMs: n}, {available: 50, host: 1, ooms: n, limitOOMs: n}}, nil, 0, series.Unknown()},
	} {
		reading := func(i int) *host.Reading {
			k, at := c.readings[i], time.Duration(i)*time.Second
			r := &host.Reading{At: host.Instant{Wall: time.Unix(100, 0), Mono: at, Boot: at}, VM: &host.VMStat{OOMKills: k.host}, Job: &host.JobUsage{
				CPUSeconds: n, IO: process.UnknownIO(), Memory: n, Limits: host.Limits{CPUQuota: series.Unknown(), MemoryMB: 100},
				Group: &cgroup.Counters{LimitPeak: 100 * MiB, LimitUnreclaimable: k.held * MiB, OOMKills: k.kills, OOMs: k.ooms, LimitOOMs: k.limitOOMs, UnderOOM: k.under}}}
			if k.available > 0 && i > 0 { // a baseline reads no gauges
				r.Memory = &host.Memory{Total: 1000 * MiB, Available: uint64(k.available * 10 * MiB)}
			}
			return r
		}
		l, a := newAccountTracker(reading(0), host.JobOptions{}), NoAccount()
		for i := range c.readings[1:] {
			l, a = l.next(a, reading(i+1), trackerInput{})
		}
		got := a.LastOOMKill
		if got != nil {
			if at := time.Unix(100+int64(c.at), 0); !got.At.Equal(at) || got.AvailablePct.Known() && math.Abs(float64(got.AvailableMB-10*got.AvailablePct)) > 0.01 {
				t.Errorf("%s: last kill = %+v, want it at %v, with AvailableMB = 10 * AvailablePct", name, got, at)
			}
			got = &OOMKill{InGroup: got.InGroup, AtLimit: got.AtLimit, LimitEventsCounted: got.LimitEventsCounted, AvailablePct: got.AvailablePct}
		}
		check.True(t, fmt.Sprintf("%+v", got) == fmt.Sprintf("%+v", c.want) && fmt.Sprint(a.LimitOOMKills) == fmt.Sprint(c.atLimit),
			"%s: last kill = %+v, LimitOOMKills = %v; want %+v, %v", name, got, a.LimitOOMKills, c.want, c.atLimit)
	}
}
