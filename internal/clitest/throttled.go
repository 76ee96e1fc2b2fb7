package clitest

import (
	"math"
	"testing"

	"github.com/perfagent/perfagent/reporter"
)

// Counters holds the kernel's counters of a job's control group.
type Counters struct {
	CPU          float64 `json:"cpu"`
	Agent        float64 `json:"agent"` // CPU time of perfagent in seconds
	Periods      float64 `json:"periods"`
	Throttled    float64 `json:"throttled"`
	OOMKills     float64 `json:"oom_kills"`
	Peak         float64 `json:"peak"`
	ThrottledFor float64 `json:"throttled_for"` // seconds
	Own          float64 `json:"own"`           // CPU time of the job's program so far, in seconds
}

// Metric returns the named metric of n. If it is missing, Metric reports a failure and returns NaN.
func Metric(t *testing.T, n *reporter.Node, name string) float64 {
	t.Helper()
	v, ok := n.Metrics[name]
	if !ok {
		t.Errorf("no metric %s; missing: %+v", name, n.Missing)
		return math.NaN()
	}
	return v
}

// WantThrottled checks the share of throttled periods and the throttled time. before and after are counters that the
// job read, so their difference covers less than the run. around is the growth over more than the run. The share must
// be a quotient of counts between these two.
func WantThrottled(t *testing.T, n *reporter.Node, before, after, around Counters) {
	t.Helper()
	in := Counters{Periods: after.Periods - before.Periods, Throttled: after.Throttled - before.Throttled,
		ThrottledFor: after.ThrottledFor - before.ThrottledFor}
	if in.Throttled < 3 {
		t.Errorf("job was throttled in %v periods, want at least 3 for a meaningful test", in.Throttled)
	}

	share, found := Metric(t, n, "job_throttled_periods_pct"), false
	for periods := in.Periods; periods <= around.Periods; periods++ {
		for throttled := in.Throttled; throttled <= min(around.Throttled, periods); throttled++ {
			found = found || math.Abs(100*throttled/periods-share) < 1e-6
		}
	}

	t.Logf("throttled in %.2f %% of the periods; the kernel: %v of %v in the job, %v of %v around the run",
		share, in.Throttled, in.Periods, around.Throttled, around.Periods)
	if !found {
		t.Errorf("throttled in %v %% of the periods, want a share between the kernel's %v of %v periods in the job and "+
			"%v of %v around the run", share, in.Throttled, in.Periods, around.Throttled, around.Periods)
	}

	if v := Metric(t, n, "job_throttled_seconds"); v < in.ThrottledFor || v > around.ThrottledFor {
		t.Errorf("job_throttled_seconds = %v, want between the kernel's %v in the job and %v around the run",
			v, in.ThrottledFor, around.ThrottledFor)
	}
}
