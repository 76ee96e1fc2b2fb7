package pusher

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/journal"
)

// A fakeHost takes deterministic samples of a busy host.
type fakeHost struct {
	rnd   *rand.Rand
	rec   *collector.Recording
	total [collector.NumColumns]float64
	// every is the usual interval. odd adds late ticks, suspends and failing sources.
	every time.Duration
	odd   bool
	lost  map[string]bool // sources that fail now
	job   *chatter        // reports operations, if not nil
}

func newHost(rnd *rand.Rand, every time.Duration, maxLength int) *fakeHost {
	wall := time.Date(2026, 1, 2, 3, 4, 5, rnd.IntN(1e9), time.UTC)
	start := host.Instant{Wall: wall, Mono: time.Hour, Boot: 2 * time.Hour}
	return &fakeHost{rnd: rnd, every: every, lost: make(map[string]bool),
		rec: collector.NewRecording(start, every, maxLength)}
}

// hostAfter returns a host after n samples, one per second.
func hostAfter(n int) *fakeHost {
	return newHost(rand.New(rand.NewPCG(1, 1)), time.Second, 1000).after(n)
}

// after takes n samples.
func (h *fakeHost) after(n int) *fakeHost {
	for range n {
		h.tick()
	}
	return h
}

// tick takes one sample.
func (h *fakeHost) tick() {
	mono := h.every
	boot := mono
	if h.odd {
		mono += time.Duration(h.rnd.Int64N(int64(h.every)/2)) - h.every/4
		if h.rnd.IntN(40) == 0 { // the process gets no CPU time for a while
			mono += time.Duration(h.rnd.Int64N(int64(40 * time.Second)))
		}
		boot = mono
		if h.rnd.IntN(100) == 0 { // the machine is suspended
			boot += time.Duration(h.rnd.Int64N(int64(2 * time.Hour)))
		}
		for _, source := range []string{host.SourceCPU, host.SourceMemory, host.SourceDisk,
			host.SourceDiskIO, host.SourceNetwork} {
			if h.rnd.IntN(30) == 0 {
				h.lost[source] = !h.lost[source]
			}
		}
	}
	h.rec.End.Mono += mono
	h.rec.End.Boot += boot
	h.rec.End.Wall = h.rec.End.Wall.Add(boot)
	h.add(mono.Seconds())
}

func (h *fakeHost) add(weight float64) {
	var s collector.Sample
	for c := range s.Values {
		s.Weights[c] = weight
		s.Values[c] = math.Round(h.rnd.Float64()*1000) / 10
	}
	for _, c := range collector.Counters() {
		moved := float64(h.rnd.IntN(200<<20)) / collector.MiB
		h.total[c] += moved
		s.Values[c] = h.total[c]
		s.Values[c.Info().Rate] = moved / weight
	}
	for c := range s.Values {
		if h.lost[collector.Column(c).Info().Source] {
			s.Values[c] = math.NaN()
		}
	}
	at := h.rec.Start.Wall.Add(h.rec.End.Boot - h.rec.Start.Boot)
	s.Values[collector.Timestamp] = float64(at.UnixMilli()) / 1000 // rounded as in the collector
	if h.job != nil {
		h.job.say(h.rnd, h.rec)
	}
	h.rec.Add(&s)
}

// series returns the series of the report of the current Recording.
func (h *fakeHost) series() nodeSeries {
	return newNodeSeries("0", h.report().Nodes["0"])
}

func (h *fakeHost) report() *reporter.Report {
	code := 0
	return reporter.New(reporter.Input{Run: reporter.Run{ID: "r", Command: []string{"job"}, ExitCode: &code},
		Recording: h.rec})
}

// head returns the head of the journal at the start.
func (h *fakeHost) head(node int) journal.Head {
	return journal.Head{Run: reporter.Run{ID: "r", Command: []string{"job"},
		Start: reporter.Time{Time: h.rec.Start.Wall}}, Node: node}
}

// serve starts a strict fake server, and returns it with a client that does not retry.
func serve(t testing.TB) (*mlflowtest.Fake, *mlflowtest.Listener, *mlflow.Client) {
	t.Helper()
	fake := mlflowtest.NewFake()
	l := mlflowtest.Serve(t, fake)
	return fake, l, connect(t, l.URL)
}

func connect(t testing.TB, uri string) *mlflow.Client {
	t.Helper()
	c := check.Value(mlflow.New(mlflow.Config{URI: uri}))(t)
	t.Cleanup(c.Close)
	return c
}

// newRun creates a run, as a job does.
func newRun(t testing.TB, c *mlflow.Client, start time.Time, tags ...mlflow.Tag) *mlflow.Run {
	t.Helper()
	return check.Value(c.CreateRun(context.Background(), mlflow.NewRun{ExperimentID: "0", StartTime: start, Tags: tags}))(t)
}

// stepsOf returns the steps of a history.
func stepsOf(points []mlflowtest.Point) (out []int64) {
	for _, p := range points {
		out = append(out, p.Step)
	}
	return out
}

// keysOf returns the sorted names of points.
func keysOf(points []mlflow.Metric) (out []string) {
	for _, p := range points {
		out = append(out, p.Key)
	}
	slices.Sort(out)
	return out
}

// onlyRun returns the only run of a server.
func onlyRun(t testing.TB, fake *mlflowtest.Fake) mlflowtest.RunData {
	t.Helper()
	runs := fake.Runs()
	if len(runs) != 1 {
		t.Fatalf("%d runs, want 1", len(runs))
	}
	return runs[0]
}

// asked returns the number of requests with all parts in their paths.
func asked(fake *mlflowtest.Fake, parts ...string) (n int) {
	for _, q := range fake.Requests() {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(q.Path, part) }) {
			n++
		}
	}
	return n
}

// wantRising checks that steps and times rise from point to point.
func wantRising(t testing.TB, key string, points []mlflowtest.Point) {
	t.Helper()
	for i := 1; i < len(points); i++ {
		if points[i].Step <= points[i-1].Step || points[i].Timestamp <= points[i-1].Timestamp {
			t.Fatalf("%s: point %+v after %+v, want a higher step and a later time", key, points[i], points[i-1])
		}
	}
}

// trials returns the number of attempts in a test: n, or a tenth of it under -short.
func trials(n int) int { return n / shortStride(10) }

// shortStride returns n under -short and 1 otherwise.
func shortStride(n int) int {
	if testing.Short() {
		return n
	}
	return 1
}
