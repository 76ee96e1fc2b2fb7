package pusher

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// refusing returns a hook that refuses a whole batch, as Azure ML does, if bad is true for the names of its metrics.
func refusing(bad func(names map[string]bool) bool) mlflowtest.Hook {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/runs/log-batch") {
			return false
		}
		body, _ := io.ReadAll(r.Body) // in memory
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

// full returns bad for a server with room for n names of metrics.
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

// reportOf returns the report of a host after some seconds.
func reportOf(seconds int) *reporter.Report {
	h := newHost(rand.New(rand.NewPCG(1, 1)), time.Second, 1000)
	for range seconds {
		h.tick()
	}
	r := h.report()
	r.Run.Start = reporter.Time{Time: h.rec.Start.Wall}
	r.Run.End = reporter.Time{Time: h.rec.Start.Wall.Add(time.Duration(seconds) * time.Second)}
	return r
}

// A server that limits the names of metrics gets perf.py's metrics and the job's, and the points of names that it has. A
// second push adds nothing. If it refuses these, too, the error is its own.
func TestSend_FullRunGetsTheImportantMetrics(t *testing.T) {
	t.Parallel()
	r := reportOf(12)
	fake, _, c := serve(t)
	fake.SetBefore(refusing(full(30)))
	o := Options{Destination: Destination{Invocation: "i"}, Artifacts: file("node-0.json", "{}")}
	plan, err := push(t, c, r, o)
	if err != nil {
		t.Fatal(err)
	}
	got := fake.Runs()[0]
	for _, m := range reporter.Metrics() {
		_, measured := r.Nodes["0"].Metrics[m.Name]
		if _, there := got.Metrics[m.Name]; there != (measured && isImportant(m.Name)) || m.PerfPy && !isImportant(m.Name) {
			t.Errorf("%s: measured %t, in the run %t; want it exactly if it is important, as all of perf.py's are", m.Name, measured, there)
		}
	}
	if len(plan.Notes) != 1 || !strings.HasSuffix(plan.Notes[0], " series") || len(got.Artifacts) != 1 || got.Tags[TagRunID] != "r" {
		t.Errorf("notes %q, artifacts %v, tags %v; want series in one note, 1 artifact, the run ID r", plan.Notes, got.Artifacts, got.Tags)
	}
	if plan.Metrics != len(got.Metrics) || plan.Points != 0 {
		t.Errorf("%d metrics and %d points sent, want %d and 0", plan.Metrics, plan.Points, len(got.Metrics))
	}

	if _, err := push(t, c, r, o); err != nil {
		t.Errorf("second push: %v", err)
	}
	wantSame(t, "pushed twice", got, fake.Runs()[0])

	for _, room := range []int{0, 10} {
		fake, _, c = serve(t)
		fake.SetBefore(refusing(full(room)))
		if _, err := push(t, c, r, o); !refused(err) {
			t.Errorf("push to a server with room for %d names: %v, want its error", room, err)
		}
	}
}

func TestLimitsMetricNames(t *testing.T) {
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
			if _, err := push(t, c, r, Options{Destination: Destination{Invocation: "i" + node}}); err != nil {
				t.Fatal(err)
			}
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
