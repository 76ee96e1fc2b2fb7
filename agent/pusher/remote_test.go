package pusher

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/mlflow"
)

// Each window has a point of at least one anchor, and there are few anchors.
func TestAnchors_AreInEveryWindow(t *testing.T) {
	t.Parallel()
	for seed := range uint64(trials(100)) {
		all := anyHost(rand.New(rand.NewPCG(seed, 7))).series().windows()
		keys := anchors(all)
		for _, m := range all {
			if !slices.ContainsFunc(keys, m.has) {
				t.Fatalf("seed %d: no anchor %v has a point in the window %v", seed, keys, keysOf(m.points))
			}
		}
		if len(keys) > 6 || len(all) == 0 != (len(keys) == 0) {
			t.Errorf("seed %d: %d anchors for %d windows, want at most 6, and some if there are windows", seed, len(keys), len(all))
		}
	}
}

// The last point is found wherever a push was interrupted and whatever other recordings the run has. If the run has no
// other recordings, few histories are requested.
func TestRemoteState_FindsTheLastPoint(t *testing.T) {
	t.Parallel()
	fake, _, c := serve(t)
	for seed := range uint64(trials(30)) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		h := anyHost(rnd)
		tr := h.series()
		all := tr.windows()
		if len(all) == 0 {
			continue
		}
		run, n := newRun(t, c, h.rec.Start.Wall), rnd.IntN(len(all)+1)
		send(t, c, run.ID, all[:n])
		find := func(exclusive bool) {
			t.Helper()
			want := int64(-1)
			if n > 0 {
				want = all[n-1].end
			}
			run := check.Value(c.Run(t.Context(), run.ID))(t)
			there := newRemoteState(c, run, all[0].end, all[len(all)-1].end)
			there.exclusive = exclusive
			if got, err := there.lastPoint(t.Context(), tr, all); err != nil || got != want {
				t.Errorf("seed %d: the last point of %d of %d windows is at %d (%v), want %d", seed, n, len(all), got, err, want)
			}
		}
		before := asked(fake, "get-history")
		if find(false); asked(fake, "get-history")-before > 6 {
			t.Errorf("seed %d: %d histories requested, want at most 6", seed, asked(fake, "get-history")-before)
		}
		alone := true
		for _, shift := range []int64{-40_000_000, 50_000_000_000} { // another recording's, before and after
			if rnd.IntN(2) == 0 {
				send(t, c, run.ID, shifted(all, shift))
				alone = false
			}
		}
		switch twin := rnd.IntN(3); {
		case tr.thinned:
		case twin == 0: // another recording's, by chance the same except for the first windows
			k := 1 + rnd.IntN(len(all))
			send(t, c, run.ID, all[k:])
			if n >= k {
				n = len(all)
			}
			alone = false
		case twin == 1: // or the same except for one value in each window
			send(t, c, run.ID, nearly(rnd, all))
			alone = false
		}
		find(alone && rnd.IntN(2) == 0)
	}
}

// nearly returns a copy of all in which one value of each window is different.
func nearly(rnd *rand.Rand, all []window) []window {
	out := shifted(all, 0)
	for _, m := range out {
		m.points[rnd.IntN(len(m.points))].Value += 0.5
	}
	return out
}

func shifted(all []window, by int64) (out []window) {
	for _, m := range all {
		points := slices.Clone(m.points)
		for i := range points {
			points[i].Timestamp += by
		}
		out = append(out, window{end: m.end + by, step: m.step, points: points})
	}
	return out
}

func send(t *testing.T, c *mlflow.Client, runID string, windows []window) {
	t.Helper()
	for _, b := range pack(nil, nil, windows) {
		check.Must(t, logBatch(t.Context(), c, runID, b))
	}
}

// If a recording was thinned and the run has another recording of the same time, only the process that sent the points
// can identify the last one.
func TestSend_ContinuesLivePushNextToAnotherRecording(t *testing.T) {
	t.Parallel()
	const key = "system/0/system_memory_usage_percentage"
	s := staged(t, 75, func(s *stage) { s.rec.Ring = series.NewRing(40, int(s.rec.NumColumns())) })
	if s.rec.Ring.Stride() == 1 {
		t.Fatal("the ring has the stride 1, want it thinned")
	}
	all := s.series().windows()
	sent, sure := s.live.sentUntil(s.live.run.ID)
	late := 0
	for _, m := range all {
		if m.end > sent {
			late++
		}
	}
	c := connect(t, s.l.URL)
	send(t, c, s.live.run.ID, shifted(all, -1)) // a recording that began a millisecond earlier
	had := len(s.fake.Runs()[0].Metrics[key])
	o := Options{Destination: Destination{Invocation: "i", RunID: s.live.run.ID, Given: true}, Live: s.live}
	check.Value(push(t, c, s.report(), o))(t)
	if got := len(s.fake.Runs()[0].Metrics[key]); !sure || late == 0 || got != had+late {
		t.Errorf("%d points, want the %d points from before plus %d more (at least 1); Live certain %v, want true", got, had, late, sure)
	}
}

// No matter which request of a push fails, the next push completes it. The run has another recording with nearly the
// same values, and the server refuses large requests with points that it already has.
func TestSend_CompletesAFailedPushNextToASimilarRecording(t *testing.T) {
	t.Parallel()
	h := hostAfter(250)
	r, all := h.report(), h.series().windows()
	twin := nearly(rand.New(rand.NewPCG(2, 2)), all)
	prepare := func() (*mlflowtest.Fake, *mlflow.Client, Options) {
		fake, _, c := serve(t)
		run := newRun(t, c, h.rec.Start.Wall)
		send(t, c, run.ID, twin)
		return fake, c, Options{Destination: Destination{RunID: run.ID, Given: true, Invocation: "i"}}
	}
	fake, c, o := prepare()
	check.Value(push(t, c, r, o))(t)
	for key, points := range onlyRun(t, fake).Metrics {
		if has := slices.ContainsFunc(all, func(w window) bool { return w.has(key) }); has && len(points) < len(all) {
			t.Fatalf("%s has %d points, want at least %d", key, len(points), len(all))
		}
	}
	wantCompleted(t, r, fake, prepare)
}

// A push at the end sends few queries, even if the run has a longer recording.
func TestPrepare_RequestsFewHistories(t *testing.T) {
	t.Parallel()
	s := staged(t, 99, func(*stage) {})
	c, all := connect(t, s.l.URL), s.series().windows()
	longer := shifted(all, -10_000_000)
	for i := range longer {
		for k := range longer[i].points {
			longer[i].points[k].Step += 1000
		}
	}
	send(t, c, s.live.run.ID, longer)
	d := Destination{Invocation: "i", RunID: s.live.run.ID, Given: true}
	p := check.Value(push(t, c, s.report(), Options{Destination: d, Live: s.live}))(t)
	if n := asked(s.fake, "get-history", "system"); n > 1 || p.Points == 0 || p.AlreadyStored == 0 {
		t.Errorf("%d histories requested, %d points sent, %d stored already; want at most 1 history, and some points of each kind", n, p.Points, p.AlreadyStored)
	}
	fake, _, c := serve(t)
	for range 2 {
		check.Value(push(t, c, s.report(), Options{Destination: Destination{Invocation: "j"}}))(t)
	}
	if n := asked(fake, "get-history"); n > 0 {
		t.Errorf("%d histories requested to repeat a complete push, want none", n)
	}
}

// Live has a last point only for the run to which it has sent points. In all other cases, the server is asked.
func TestPrepare_AsksTheServerIfLiveHasNoLastPoint(t *testing.T) {
	t.Parallel()
	s := staged(t, 75, func(s *stage) { s.rec.Ring = series.NewRing(40, int(s.rec.NumColumns())) })
	c := connect(t, s.l.URL)
	for name, live := range map[string]*Live{"Live of another run": s.live, "Live without points": {}, "no Live": nil} {
		run, all := newRun(t, c, time.Now()), s.series().windows()
		send(t, c, run.ID, all[:2]) // another process pushed the journal
		d := Destination{Invocation: "i", RunID: run.ID, Given: true}
		p, err := push(t, c, s.report(), Options{Destination: d, Live: live})
		lacking := 0
		for _, m := range all[2:] {
			lacking += len(m.points)
		}
		if err != nil || p.Points != lacking {
			t.Errorf("%s: %d points sent, error %v, want %d", name, p.Points, err, lacking)
		}
	}
}
