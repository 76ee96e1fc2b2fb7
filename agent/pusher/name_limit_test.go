package pusher

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// refusing returns a hook that refuses a whole batch, as Azure ML does, if bad returns true for the names of its
// metrics.
func refusing(bad func(names map[string]bool) bool) mlflowtest.Hook {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/runs/log-batch") {
			return false
		}
		body, _ := io.ReadAll(r.Body) // the body is in memory
		var in struct{ Metrics []mlflow.Metric }
		if err := json.Unmarshal(body, &in); err != nil {
			panic(err)
		}
		names := make(map[string]bool)
		for _, m := range in.Metrics {
			names[m.Key] = true
		}
		if !bad(names) {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error_code":"INVALID_PARAMETER_VALUE",`+
			`"message":"A field of the entity is over the size limit."}`)
		return true
	}
}

// full returns a function for refusing: it simulates a server with room for n metric names.
func full(n int) func(names map[string]bool) bool {
	var mu sync.Mutex
	has := make(map[string]bool)
	return func(names map[string]bool) bool {
		mu.Lock()
		defer mu.Unlock()
		more := 0
		for name := range names {
			if !has[name] {
				more++
			}
		}
		if len(has)+more > n {
			return true
		}
		for name := range names {
			has[name] = true
		}
		return false
	}
}

// reportOf returns the report of a host after the given number of seconds.
func reportOf(seconds int) *reporter.Report {
	h := hostAfter(seconds)
	r := h.report()
	r.Run.Start = reporter.Time{Time: h.rec.Start.Wall}
	r.Run.End = reporter.Time{Time: h.rec.Start.Wall.Add(time.Duration(seconds) * time.Second)}
	return r
}

// A run with room for few names gets perf.py's metrics and the job's metrics first. A second push adds nothing and
// loses nothing.
func TestSend_FullRunGetsTheMostImportantMetrics(t *testing.T) {
	t.Parallel()
	r := reportOf(12)
	for _, room := range []int{21, 30, maxRunNames, 64} {
		fake, _, c := serve(t)
		fake.SetBefore(refusing(full(room)))
		o := Options{Destination: Destination{Invocation: "i"}, Artifacts: file("node-0.json", "{}")}
		plan, got := check.Value(push(t, c, r, o))(t), fake.Runs()[0]
		if n := asked(fake, "/runs/log-batch"); len(got.Metrics) != room || n > 30 {
			t.Errorf("room for %d: %d names after %d requests, want the room used up after at most 30 requests", room, len(got.Metrics), n)
		}
		note := strings.Join(plan.Notes, "; ")
		for _, m := range reporter.Metrics() {
			_, measured := r.Nodes["0"].Metrics[m.Name]
			_, there := got.Metrics[m.Name]
			switch {
			case m.PerfPy && measured && !there:
				t.Errorf("room for %d: %s was not sent, want all metrics that perf.py also has", room, m.Name)
			case measured && !there && !strings.Contains(note, m.Name):
				t.Errorf("room for %d: %s is neither in the run nor in the note %q", room, m.Name, note)
			}
		}
		if !strings.HasSuffix(note, " series") || len(got.Artifacts) != 1 || got.Tags[TagRunID] != "r" {
			t.Errorf("room for %d: note %q, artifacts %v, tags %v; want series in the note, 1 artifact, the run ID r", room, note, got.Artifacts, got.Tags)
		}
		if sent := plan.Metrics + plan.Points; sent < room || plan.Metrics > room {
			t.Errorf("room for %d: %d metrics and %d points, want at most as many metrics as there is room, and at least as many values", room, plan.Metrics, plan.Points)
		}

		if _, err := push(t, c, r, o); err != nil {
			t.Errorf("room for %d: second push: %v", room, err)
		}
		wantSame(t, "pushed twice", got, fake.Runs()[0])
	}
}

// If a server refuses a metric for another reason, only that metric is left out.
func TestSend_LeavesOutOnlyTheRefusedMetric(t *testing.T) {
	t.Parallel()
	fake, _, c := serve(t)
	fake.SetBefore(refusing(func(names map[string]bool) bool { return names["max_t_mem_percent"] }))
	r := reportOf(12)
	plan := check.Value(push(t, c, r, Options{Destination: Destination{Invocation: "i"}}))(t)
	got := fake.Runs()[0].Metrics
	if _, there := got["max_t_mem_percent"]; there || len(got) < maxRunNames || !strings.HasSuffix(plan.Notes[0], ": max_t_mem_percent") {
		t.Errorf("%d names, notes %q; want at least %d, only max_t_mem_percent left out", len(got), plan.Notes, maxRunNames)
	}

	fake, _, c = serve(t)
	fake.SetBefore(refusing(func(names map[string]bool) bool { return len(names) > 0 }))
	if _, err := push(t, c, r, Options{Destination: Destination{Invocation: "i"}}); !refused(err) {
		t.Errorf("push to a server that refuses every name: %v, want its error", err)
	}
}

// In a run with a limit, the live push leaves room for the metrics of the report and of the job.
func TestLive_LeavesRoomForFinalMetrics(t *testing.T) {
	t.Parallel()
	fake, l, c := serve(t)
	fake.SetBefore(refusing(full(maxRunNames)))
	h := hostAfter(0)
	run := newRun(t, c, h.rec.Start.Wall)
	check.Must(t, c.LogBatch(t.Context(), run.ID, mlflow.Batch{Metrics: []mlflow.Metric{{Key: "loss"}, {Key: "accuracy"}}}))
	live := NewLive(h.head(0), Destination{RunID: run.ID, Given: true, LimitsNames: true}, connecting(l.URL))
	h.after(35)
	windows := newLiveSeries(h.rec, "0", 0).windows()
	for _, w := range windows {
		check.Must(t, live.push(t.Context(), liveBatch{windows: []window{w}}))
	}
	got := fake.Runs()[0].Metrics
	if len(windows) != 3 || len(got) != maxRunNames-endNames || len(got["system/0/job_cpu_cores"]) != 3 {
		t.Errorf("%d windows, %d names, job_cpu_cores %v; want 3, %d, and 3 points", len(windows), len(got), got["system/0/job_cpu_cores"], maxRunNames-endNames)
	}

	r := h.report()
	check.Value(push(t, c, r, Options{Destination: Destination{RunID: run.ID, Given: true}, Live: live}))(t)
	got = fake.Runs()[0].Metrics
	for _, m := range reporter.Metrics() {
		_, measured := r.Nodes["0"].Metrics[m.Name]
		if _, there := got[m.Name]; measured && m.PerfPy && !there {
			t.Errorf("%s was not sent at the end, want all metrics that perf.py also has", m.Name)
		}
	}
	if len(got) != maxRunNames {
		t.Errorf("%d names after the end, want %d", len(got), maxRunNames)
	}
}

func TestLimitsMetricNames_DetectsAzureML(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		uri, run string
		want     bool
	}{
		{"https://eastus.api.azureml.ms/mlflow/v1.0/subscriptions/x", "", true},
		{"http://localhost:5000", "job-1", true},
		{"http://localhost:5000", "", false},
		{"https://azureml.ms.example.org", "", false},
		{"://", "", false},
	} {
		lookup := func(key string) (string, bool) { return tt.run, key == "AZUREML_RUN_ID" && tt.run != "" }
		if got := LimitsMetricNames(tt.uri, lookup); got != tt.want {
			t.Errorf("LimitsMetricNames(%s) with AZUREML_RUN_ID %q = %t, want %t", tt.uri, tt.run, got, tt.want)
		}
	}
}

// The command of a run comes from the node that creates it, whichever node pushes last.
func TestSend_CommandComesFromTheNodeThatCreatesTheRun(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"0", "1", "2"}, {"2", "1", "0"}, {"1", "0", "2"}} {
		fake, _, c := serve(t)
		for _, node := range order {
			r := reportOf(3)
			r.Nodes = map[string]*reporter.Node{node: r.Nodes["0"]}
			r.Run.Command = []string{"work", "--rank", node}
			check.Value(push(t, c, r, Options{Destination: Destination{Invocation: "i" + node}}))(t)
			first := slices.Index(order, node) == 0
			if got := fake.Runs()[0].Tags[tagCommand]; first && got != "work --rank "+node {
				t.Errorf("command %q after the push of node %s alone, want work --rank %s", got, node, node)
			}
		}
		if runs := fake.Runs(); len(runs) != 1 || runs[0].Tags[tagCommand] != "work --rank 0" {
			t.Errorf("pushes of the nodes %v: %d runs with the command %q, want 1 with work --rank 0", order, len(runs), runs[0].Tags[tagCommand])
		}
	}
}
