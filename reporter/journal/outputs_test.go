package journal

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/agent/exporter"
	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/reporter"
)

// update rewrites the golden files: go test ./reporter/journal -run Outputs -update.
var update = flag.Bool("update", false, "rewrite the golden files")

// The output of /metrics at the end of each recording equals its golden file, except for the order of
// lines. The other outputs of the recordings are tested in cmd/perfagent.
func TestOutputs_MetricsEqualTheGoldenFiles(t *testing.T) {
	paths, err := filepath.Glob("../../cmd/perfagent/testdata/outputs/*/*.jsonl")
	if err != nil || len(paths) < 8 {
		t.Fatalf("recordings %q, want at least 8; error %v", paths, err)
	}
	for _, path := range paths {
		file := strings.TrimSuffix(path, ".jsonl") + ".prom"
		got := metricsOf(t, check.Value(os.ReadFile(path))(t))
		if *update {
			check.Must(t, os.WriteFile(file, []byte(strings.Join(got, "")), 0o644))
		}
		want := slices.Collect(strings.Lines(string(check.Value(os.ReadFile(file))(t))))
		same(t, "update with go test ./reporter/journal -run Outputs -update: "+file, got, want)
	}
}

// metricsOf returns the sorted lines of /metrics after the newest sample of a journal.
func metricsOf(t *testing.T, data []byte) []string {
	t.Helper()
	j := taken(t, data)
	j.setOperations()
	options := exporter.Options{
		RunID: j.head.Run.ID, Node: j.head.Node, Version: j.head.Agent.Version, Interval: j.head.Interval,
		Agent: func() reporter.Agent { return reporter.Agent{CPUSeconds: j.agentCPU, MaxRSSMB: 14.5} },
	}
	if j.rec.Operations != nil {
		options.Operations = func() *aggregate.Aggregator { return j.rec.Operations.Aggregator }
	}

	var s collector.Sample
	for c := range s.Values {
		s.Values[c] = float64(series.Unknown())
		if c < len(j.newest) && j.newest[c].at > 0 {
			s.Values[c] = j.newest[c].value
		}
	}
	e := exporter.New(options)
	e.Begin(j.rec)
	e.Observe(&s, j.rec)
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9100/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("GET /metrics: status %d, want 200: %s", w.Code, w.Body)
	}

	return slices.Sorted(strings.Lines(w.Body.String()))
}
