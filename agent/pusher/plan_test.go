package pusher

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// Requests stay within the limits, nothing is lost or reordered, and no window is split.
func TestPack_KeepsWindowsWhole(t *testing.T) {
	t.Parallel()
	for seed := range uint64(trials(100)) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		var metrics []mlflow.Metric
		for i := range []int{0, 1, 34, 999, 1000, 1001, 4000}[rnd.IntN(7)] {
			metrics = append(metrics, mlflow.Metric{Key: fmt.Sprint("metric_", i), Step: int64(i)})
		}
		var tags []mlflow.Tag
		for i := range []int{0, 1, 10, 99, 100, 101, 350}[rnd.IntN(7)] {
			tags = append(tags, mlflow.Tag{Key: fmt.Sprint("tag_", i),
				Value: strings.Repeat("x", []int{1, 100, 5000}[rnd.IntN(3)])})
		}
		var windows []window
		for i := range []int{0, 1, 47, 48, 360, 1000}[rnd.IntN(6)] {
			m := window{end: int64(i + 1), step: int64(i)}
			for k := range 1 + rnd.IntN(21) {
				m.points = append(m.points, mlflow.Metric{Key: fmt.Sprint("system/0/", k), Timestamp: m.end,
					Step: m.step, Value: rnd.Float64()})
			}
			windows = append(windows, m)
		}
		wantPacked(t, seed, pack(metrics, tags, windows), metrics, tags, windows)
	}
}

func wantPacked(t *testing.T, seed uint64, batches []mlflow.Batch, metrics []mlflow.Metric, tags []mlflow.Tag,
	windows []window) {
	t.Helper()
	var all []mlflow.Metric
	var allTags []mlflow.Tag
	in := make(map[int64]int) // the index of the request by window
	for i, b := range batches {
		size := 0
		for _, m := range b.Metrics {
			size += len(m.Key) + 100
			if before, ok := in[m.Timestamp]; m.Timestamp > 0 && ok && before != i {
				t.Fatalf("seed %d: window %d is split between requests %d and %d", seed, m.Timestamp, before, i)
			}
			in[m.Timestamp] = i
		}
		size += tagBytes(b.Tags) + 30*len(b.Tags)
		if n := len(b.Metrics) + len(b.Tags); n == 0 || n > 1000 || len(b.Tags) > 100 || size > 900_000 {
			t.Fatalf("seed %d: request %d has %d values, %d tags, %d bytes; want 1 to 1000 items, at most 100 tags, 900 kB",
				seed, i, len(b.Metrics), len(b.Tags), size)
		}
		all, allTags = append(all, b.Metrics...), append(allTags, b.Tags...)
	}
	want := slices.Clone(metrics)
	for _, m := range windows {
		want = append(want, m.points...)
	}
	if !slices.Equal(all, want) || !slices.Equal(allTags, tags) {
		t.Fatalf("seed %d: the values and tags in the requests differ from the given ones (-want +got):\n%s%s",
			seed, cmp.Diff(want, all), cmp.Diff(tags, allTags))
	}
	if n := len(want) + len(tags); len(batches) > n/900+len(tags)/90+3 {
		t.Errorf("seed %d: %d requests for %d items, want at most %d", seed, len(batches), n, n/900+len(tags)/90+3)
	}
}

// push pushes a report and returns its plan.
func push(t *testing.T, c *mlflow.Client, r *reporter.Report, o Options) (*Plan, error) {
	t.Helper()
	p, err := Prepare(t.Context(), c, r, o)
	if err == nil {
		err = p.Send(t.Context())
	}
	return p, err
}

func file(name, text string) []Artifact {
	return []Artifact{{Name: name, ContentType: "application/json",
		Data: func(string) ([]byte, error) { return []byte(text), nil }}}
}

// No matter which request of a push fails, the next push completes it in the same run.
func TestSend_CompletesAPushThatFailedAtAnyRequest(t *testing.T) {
	t.Parallel()
	r := reportOf(700)
	prepare := func() (*mlflowtest.Fake, *mlflow.Client, Options) {
		fake, _, c := serve(t)
		d := Destination{Invocation: "i", ExperimentName: "new"}
		return fake, c, Options{Destination: d, Artifacts: file("node-0.json", "{}")}
	}
	fake, c, o := prepare()
	check.Value(push(t, c, r, o))(t)
	if requests := len(fake.Requests()); requests > 16 {
		t.Errorf("%d requests for 12 minutes, want at most 16", requests)
	}
	wantCompleted(t, r, fake, prepare)
}

// wantCompleted checks that the push of a report after one that fails at any request gives the same run as the only
// push to fake.
func wantCompleted(t *testing.T, r *reporter.Report, fake *mlflowtest.Fake,
	prepare func() (*mlflowtest.Fake, *mlflow.Client, Options)) {
	t.Helper()
	want, requests := onlyRun(t, fake), len(fake.Requests())
	for n := 0; n < requests; n += shortStride(5) {
		for _, applied := range []bool{false, true} {
			fake, c, o := prepare()
			hook := mlflowtest.Drop()
			if applied {
				hook = fake.Applied(hook)
			}
			fake.SetBefore(only(n, hook))
			_, _ = push(t, c, r, o) // only the creation of the run is retried
			fake.SetBefore(nil)
			where := fmt.Sprintf("request %d, applied %v", n, applied)
			if _, err := push(t, c, r, o); err != nil {
				t.Fatalf("%s: second push: %v", where, err)
			}
			got := fake.Runs()
			if len(got) != 1 {
				t.Fatalf("%s: %d runs, want 1", where, len(got))
			}
			wantSame(t, where, want, got[0])
		}
	}
}

// only returns a hook that calls h for the nth request and no other.
func only(n int, h mlflowtest.Hook) mlflowtest.Hook {
	var mu sync.Mutex
	seen := 0
	return func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		mine := seen == n
		seen++
		mu.Unlock()
		return mine && h(w, r)
	}
}

func wantSame(t *testing.T, what string, want, got mlflowtest.RunData) {
	t.Helper()
	want.Info.RunID, want.Info.ArtifactURI, got.Info.RunID, got.Info.ArtifactURI = "", "", "", ""
	if reflect.DeepEqual(want, got) { // faster than cmp
		return
	}
	t.Errorf("%s: the run differs (-want +got):\n%s", what, cmp.Diff(want, got))
}

// Two pushes, one after the other or at the same time, have the same result as one push.
func TestSend_RepeatedOrSimultaneousPushesGiveTheSameRun(t *testing.T) {
	t.Parallel()
	r, o := hostAfter(500).report(), Options{Destination: Destination{Invocation: "i"}, Artifacts: file("node-0.json", "{}")}
	fake, l, c := serve(t)
	newRun(t, c, time.Now(), mlflow.Tag{Key: TagInvocation, Value: "i"})
	var all sync.WaitGroup
	for range 3 {
		c := connect(t, l.URL)
		all.Go(func() {
			if p, err := Prepare(t.Context(), c, r, o); err != nil || p.Send(t.Context()) != nil {
				t.Errorf("simultaneous push failed: Prepare returned %v; if nil, Send failed", err)
			}
		})
	}
	all.Wait()
	before := asked(fake, "log-batch")
	if p, err := push(t, c, r, o); err != nil || p.Metrics != 0 || p.Points != 0 || p.AlreadyStored == 0 || p.Own() {
		t.Errorf("plan of a second push: %+v, %v, want nothing to send", p, err)
	}
	if n := asked(fake, "log-batch"); n != before {
		t.Errorf("a second push sent %d batches, want none", n-before)
	}
	for key, points := range onlyRun(t, fake).Metrics {
		wantRising(t, key, points)
	}
}

// Several nodes share the run that one of them created. The run keeps the worst status and the latest end.
func TestSend_NodesShareARun(t *testing.T) {
	t.Parallel()
	fake, _, c := serve(t)
	for node, code := range []int{0, 3, 0} {
		r := newHost(rand.New(rand.NewPCG(uint64(node), 1)), time.Second, 1000).after(30).report()
		n := r.Nodes["0"]
		n.Host = &reporter.Host{Hostname: fmt.Sprint("host", node)}
		r.Nodes = map[string]*reporter.Node{fmt.Sprint(node): n}
		start := time.Now().Add(time.Duration(node) * time.Second)
		r.Run.Start = reporter.Time{Time: start}
		r.Run.End, r.Run.ExitCode = reporter.Time{Time: start.Add(30 * time.Second)}, &code
		o := Options{Destination: Destination{Invocation: fmt.Sprint("i", node)},
			Artifacts: file(fmt.Sprintf("node-%d.json", node), "{}")}
		check.Value(push(t, c, r, o))(t)
	}
	got := onlyRun(t, fake)
	if got.Info.Status != "FAILED" || got.Info.EndTime-got.Info.StartTime < 31_000 || len(got.Artifacts) != 3 {
		t.Errorf("run %+v, want FAILED, 31 s or longer, with 3 artifacts", got)
	}
	for node := range 3 {
		if steps := stepsOf(got.Metrics[fmt.Sprintf("system/%d/system_memory_usage_percentage", node)]); len(steps) < 3 {
			t.Errorf("node %d has the windows %v, want at least 3", node, steps)
		}
	}
	steps := stepsOf(got.Metrics["max_t_mem_percent"])
	if slices.Sort(steps); !slices.Equal(steps, []int64{0, 1, 2}) {
		t.Errorf("max_t_mem_percent has the steps %v, want 0, 1 and 2", steps)
	}
}

// Three recordings of one node in one given run are all stored completely.
func TestSend_KeepsRecordingsInAGivenRunApart(t *testing.T) {
	t.Parallel()
	fake, _, c := serve(t)
	given := newRun(t, c, time.Now())
	for k := range 3 {
		h := newHost(rand.New(rand.NewPCG(uint64(k), 1)), time.Second, 1000)
		h.rec.Start.Wall = h.rec.Start.Wall.Add(time.Duration((k*2)%3) * time.Hour) // the second is the latest
		h.after(95 + k)
		o := Options{Destination: Destination{RunID: given.ID, Given: true, Invocation: fmt.Sprint("i", k)},
			Artifacts: file("node-0.json", fmt.Sprint(k))}
		for range 2 {
			check.Value(push(t, c, h.report(), o))(t)
		}
		got := fake.Runs()[0]
		n, want := len(got.Metrics["system/0/system_memory_usage_percentage"]), 10*(k+1)
		if n != want || len(got.Artifacts) != k+1 || got.Info.Status != "RUNNING" {
			t.Errorf("after recording %d: %d points, artifacts %v, status %s; want %d, one per recording, RUNNING",
				k, n, got.Artifacts, got.Info.Status, want)
		}
	}
}

// If a destination has both an experiment name and an experiment ID, they must agree.
func TestDestination_FindsTheExperiment(t *testing.T) {
	t.Parallel()
	_, _, c := serve(t)
	e := check.Value(c.EnsureExperiment(t.Context(), "there"))(t)
	for _, tt := range []struct {
		d    Destination
		id   string
		fail bool
	}{
		{Destination{}, "0", false}, {Destination{ExperimentName: "there"}, e.ID, false},
		{Destination{ExperimentID: e.ID}, e.ID, false},
		{Destination{ExperimentName: "there", ExperimentID: e.ID}, e.ID, false},
		{Destination{ExperimentName: "there", ExperimentID: "0"}, "", true},
		{Destination{ExperimentID: "77"}, "", true}, {Destination{ExperimentName: "new"}, "2", false},
	} {
		if id, err := tt.d.experiment(t.Context(), c, nil); id != tt.id || (err != nil) != tt.fail {
			t.Errorf("experiment of %+v: %q, error %v; want %q, error: %v", tt.d, id, err, tt.id, tt.fail)
		}
	}
}

// A permanent failure to create a run is not retried.
func TestSend_DoesNotRetryAPermanentFailureToCreateARun(t *testing.T) {
	t.Parallel()
	fake, _, c := serve(t)
	fake.SetBefore(mlflowtest.On("runs/create", mlflowtest.Status(http.StatusBadRequest, "application/json",
		`{"error_code": "INVALID_PARAMETER_VALUE", "message": "no"}`)))
	_, err := push(t, c, hostAfter(1).report(), Options{Destination: Destination{Invocation: "i"}})
	var e *mlflow.Error
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "create a run") {
		t.Errorf("push: %v, want the server's error with \"create a run\"", err)
	}
	if n := asked(fake, "runs/create"); n != 1 {
		t.Errorf("%d requests to create a run, want 1", n)
	}
}
