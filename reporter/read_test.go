package reporter_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// null in a report means absent, not 0.
func TestDecode_NullMeansAbsent(t *testing.T) {
	text := `{"schema":"perfagent.report/1","run":{"id":"r"},"nodes":{"0":{"metrics":{"max_t_mem_percent":null,"node_cpu_hours":2},"samples":[]}}}`
	r := readBack(t, []byte(text))
	n := r.Nodes["0"]
	if v, ok := n.Metrics["max_t_mem_percent"]; ok || n.Metrics["node_cpu_hours"] != 2 {
		t.Errorf("max_t_mem_percent is %v (present: %v), want none; metrics %v, want 2 CPU hours", v, ok, n.Metrics)
	}
	if again := string(encodedReport(t, r)); strings.Contains(again, "null") {
		t.Errorf("the encoded report contains null:\n%s", again)
	}
}

// A rank has the number in its key. The key must be a number, and the value must not be null.
func TestDecode_RankHasNumberOfItsKey(t *testing.T) {
	withRanks := func(ranks string) []byte {
		return []byte(`{"schema":"perfagent.report/1","run":{},"nodes":{"0":{"ranks":` + ranks + `}}}`)
	}
	for ranks, want := range map[string]string{
		`{"03":{}}`: `has a rank "03", which is not a number`, `{"3":null}`: "rank 3: null is not a rank",
	} {
		_, err := reporter.Decode(withRanks(ranks))
		check.Error(t, err, want)
	}
	three := readBack(t, withRanks(`{"3":{"rank":9}}`)).Nodes["0"].Ranks["3"]
	wantValues(t, "number of the rank, absence of a list of missing values", "3 false", three.Rank,
		three.Missing == nil)
}

// A step of the wall clock does not affect the length of a run, even after a merge.
func TestMerge_KeepsMeasuredLengthOfSingleRun(t *testing.T) {
	r := reportertest.NodeReport(0, 10, 0, nil)
	r.Run.End = reporter.Time{Time: r.Run.End.Add(time.Hour)}
	check.Equal(t, mustMerge(t, sources(r)...).Run.WallSeconds, 10, "wall_seconds")
}

func TestWhyMissing_ReturnsReasonThatApplies(t *testing.T) {
	start := host.Instant{Wall: reportertest.RunStart}
	rec := collector.NewRecording(start, time.Second, 10)
	var s collector.Sample
	for c := range s.Values {
		s.Values[c] = math.NaN()
	}
	rec.Add(&s)
	rec.End.Mono = 3 * time.Millisecond
	check.Error(t, reporter.WhyAbsent(rec, collector.CPUAvg), "3ms is too short")
	rec.End.Mono = 3 * time.Second
	check.Error(t, reporter.WhyAbsent(rec, collector.CPUAvg), "did not advance")
	rec.Failures = []collector.Failure{{Source: host.SourceCPU, Why: "read /proc/stat: no", Count: 2}}
	check.Equal(t, reporter.WhyAbsent(rec, collector.CPUAvg).Error(), "read /proc/stat: no", "error after a failure")
}
