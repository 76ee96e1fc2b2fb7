package diagnosis

import (
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/reporter"
)

// judged returns the finding with an ID of a changed node; "" if it does not fire.
func judged(id string, change func(*reporter.Node)) (words string, evidence map[string]any) {
	n := findingNode()
	change(n)
	for _, f := range findings(n, findingRun) {
		if f.ID == id {
			return f.Severity + ": " + f.Text, f.Evidence
		}
	}
	return "", nil
}

func limitRange(low, high float64) *reporter.LimitRange {
	return &reporter.LimitRange{Min: series.Optional(low), Max: series.Optional(high), Mean: series.Optional((low + high) / 2), Changes: 1,
		ChangedAt: time.Date(2026, 7, 1, 12, 0, 18, 0, time.UTC)}
}

// Findings contain all values of a limit that changed, and judge by the lowest.
func TestFindings_ListAllValuesOfChangedLimits(t *testing.T) {
	for name, c := range map[string]struct {
		id     string
		change func(*reporter.Node)
		want   string
		number string
		value  any
	}{
		"throttled": {ruleThrottled, findingAll(findingSet(reporter.MetricThrottled, 40.0, reporter.MetricThrottledSeconds, 100.0),
			func(n *reporter.Node) { n.Limits.QuotaRange, n.Limits.CPUsRange = limitRange(6, 8), limitRange(6, 8) }),
			"warning: Ask for more CPUs, or run fewer threads: the CPU quota of 6 to 8 CPUs (changed at 12:00:18 UTC) stopped the job in 40 %", "cpu_quota", 6.0},
		"tight": {MemoryTight, findingAll(findingSet(reporter.MetricLimitMemory, 95.0), func(n *reporter.Node) {
			n.Limits.MemoryRange = limitRange(4096, 8192)
			n.Summaries[collector.LimitMemory.Key()] = reporter.Summary{Max: 6000}
		}), "warning: Set the limit to 8 GiB: memory came to 95 % of the limit of 4 GiB to 8 GiB (changed at 12:00:18 UTC) (this is the peak + 25 %, rounded).",
			"peak_mb", 6000.0},
		"unused where it was least": {ruleMemoryUnused, findingAll(
			findingSet(reporter.MetricJobMemoryPeak, 1500.0, reporter.MetricLimitMemory, 18.0),
			func(n *reporter.Node) { n.Limits.MemoryRange = limitRange(4096, 8192) }), "", "", nil},
		"CPUs unused where they were fewest": {ruleCPUsUnused, findingAll(
			findingSet(reporter.MetricJobCores, 1.3, reporter.MetricJobCoresPeak, 2.0),
			func(n *reporter.Node) { n.Limits.CPUsRange = limitRange(2, 8) }), "", "", nil},
		"CPUs unused": {ruleCPUsUnused, findingAll(
			findingSet(reporter.MetricJobCores, 1.3, reporter.MetricJobCoresPeak, 2.0),
			func(n *reporter.Node) { n.Limits.CPUsRange = limitRange(6, 8) }),
			"warning: Ask for 3 CPUs instead of 6: on average it used 1.3 of its 6 to 8 CPUs, and 2 at most.", "limit_cpus", 6.0},
		"offline CPUs were not chosen": {ruleCPUsUnused, findingAll(
			findingSet(reporter.MetricJobCores, 1.3, reporter.MetricJobCoresPeak, 2.0),
			findingLimits(reporter.Limits{CPUs: 32, AffinityCPUs: 32, CPUsRange: limitRange(32, 64)})), "", "", nil},
	} {
		got, evidence := judged(c.id, c.change)
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) || c.number != "" && evidence[c.number] != c.value {
			t.Errorf("%s: finding %q with evidence %v; want %q and %s = %v", name, got, evidence, c.want, c.number,
				c.value)
		}
	}
}

// A job that bound itself to fewer CPUs than it was given is advised about the given ones.
func TestFindings_AdviseBoundJobsOnGivenCPUs(t *testing.T) {
	one := findingSet(reporter.MetricJobCores, 0.97, reporter.MetricJobCoresPeak, 1.0)
	for name, c := range map[string]struct {
		id     string
		change func(*reporter.Node)
		want   string
	}{
		"one of the CPUs that were asked for": {ruleOneThread,
			findingAll(one, findingLimits(reporter.Limits{CPUs: 1, CPUQuota: 8, AffinityCPUs: 1, GivenCPUs: 8})),
			"warning: Use the other CPUs, or ask for 1 CPU: it used 0.97 of the 8 CPUs it was given, of which it bound itself to 1."},
		"one of the node's": {ruleOneThread,
			findingAll(one, findingLimits(reporter.Limits{CPUs: 1, AffinityCPUs: 1, GivenCPUs: 64})), ""},
		"four of eight": {ruleCPUsUnused, findingAll(
			findingSet(reporter.MetricJobCores, 3.8, reporter.MetricJobCoresPeak, 4.0),
			findingLimits(reporter.Limits{CPUs: 4, CPUQuota: 8, AffinityCPUs: 4, GivenCPUs: 8})),
			"warning: Ask for 4 CPUs instead of 8: on average it used 3.8 of the 8 CPUs it was given, of which it bound itself " +
				"to 4, and 4 at most."},
		"a quota of its own": {ruleThrottled, findingAll(
			findingSet(reporter.MetricThrottled, 40.0, reporter.MetricThrottledSeconds, 100.0, reporter.MetricJobCores, 1.9),
			findingLimits(reporter.Limits{CPUs: 2, CPUQuota: 2, GivenCPUs: 64})),
			"warning: Raise the quota, or run fewer threads: the job was given 64 CPUs, and the CPU quota of 2 CPUs stopped the " +
				"job in 40 % of its periods, for 1 min 40 s summed over CPUs."},
	} {
		if got, _ := judged(c.id, c.change); got != c.want {
			t.Errorf("%s: finding %q, want %q", name, got, c.want)
		}
	}
}
