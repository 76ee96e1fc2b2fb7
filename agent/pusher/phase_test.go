package pusher

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// Every server accepts the keys of phases, and each key is used once.
func TestMetrics_KeysOfPhasesAreValidAndUnique(t *testing.T) {
	r := reportertest.AddMarks(reportertest.ThreeNodes())
	n := r.Nodes["1"]
	for _, name := range []string{"a/b", "a:b", "a_b", "..", "/", "a//b", "ünï 1", strings.Repeat("x", 200)} {
		n.Phases = append(n.Phases, reporter.Phase{Name: name, Seconds: 3, Count: 1})
	}

	list, dropped := metrics(r)
	if dropped != 0 {
		t.Errorf("%d values were dropped, want none", dropped)
	}
	values, before := make(map[string]float64), make(map[string]bool)
	for _, m := range list {
		if !strings.HasPrefix(m.Key, "phase/") || m.Step != 1 {
			continue
		}
		if err := mlflow.CheckKey(m.Key); err != nil {
			t.Errorf("key %s: %v", m.Key, err)
		}
		if before[m.Key] {
			t.Errorf("duplicate key %s", m.Key)
		}
		before[m.Key], values[m.Key] = true, m.Value
		if m.Timestamp != n.Job.End.UnixMilli() {
			t.Errorf("%s has the timestamp %d, want %d, the node's end", m.Key, m.Timestamp, n.Job.End.UnixMilli())
		}
	}

	for key, want := range map[string]float64{
		"phase/load/seconds": 10, "phase/load/job_avg_cpu_cores": 0.25, "phase/load/job_peak_memory_mb": 100,
		"phase/train _b____31m/seconds": 40, "phase/save/seconds": 5, "phase/a/b/seconds": 3, "phase/a_b/seconds": 3,
		"phase/a_b_2/seconds": 3, "phase/__/seconds": 3, "phase/_/seconds": 3, "phase/a__b/seconds": 3,
	} {
		if got, ok := values[key]; !ok || got != want {
			t.Errorf("%s is %v, want %v; keys %q", key, got, want, slices.Sorted(maps.Keys(values)))
		}
	}
}
