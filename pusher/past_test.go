package pusher

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/series"
)

// Some anchor has a point in each moment, and there are no more than needed.
func TestAnchors(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		all := anyTrack(rand.New(rand.NewPCG(seed, 7))).track().moments()
		keys := anchors(all)
		for _, m := range all {
			if !slices.ContainsFunc(keys, m.has) {
				t.Fatalf("seed %d: no anchor %v has a point in the moment %v", seed, keys, keysOf(m))
			}
		}
		if len(keys) > 6 || len(all) == 0 != (len(keys) == 0) {
			t.Errorf("seed %d: %d anchors for %d moments", seed, len(keys), len(all))
		}
	}
}

// Wherever a push was cut off, and whatever other recordings are in the run, the last
// point is found.
func TestLastPoint(t *testing.T) {
	t.Parallel()
	_, _, c := serve(t)
	ctx := t.Context()
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		h := anyTrack(rnd)
		tr := h.track()
		all := tr.moments()
		if len(all) == 0 {
			continue
		}
		run := newRun(t, c, h.rec.Start.Wall)
		for _, shift := range []int64{-40_000_000, 50_000_000_000} { // somebody else's, before and after
			if rnd.IntN(2) == 0 {
				send(t, c, run.ID, shifted(all, shift))
			}
		}
		n := rnd.IntN(len(all) + 1)
		send(t, c, run.ID, all[:n])
		switch twin := rnd.IntN(3); {
		case tr.thinned:
		case twin == 0: // somebody else's, by chance the same but for the first
			send(t, c, run.ID, all[1:])
			if n > 0 {
				n = len(all)
			}
		case twin == 1: // or the same but for one value each
			send(t, c, run.ID, nearly(rnd, all))
		}
		want := int64(-1)
		if n > 0 {
			want = all[n-1].at
		}
		run, err := c.Run(ctx, run.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := newPast(c, run).lastPoint(ctx, tr, all); err != nil || got != want {
			t.Errorf("seed %d: the last point of %d of %d moments is at %d (%v), want %d", seed, n, len(all), got, err, want)
		}
	}
}

func nearly(rnd *rand.Rand, all []moment) []moment {
	out := shifted(all, 0)
	for _, m := range out {
		m.points[rnd.IntN(len(m.points))].Value += 0.5
	}
	return out
}

func shifted(all []moment, by int64) (out []moment) {
	for _, m := range all {
		points := slices.Clone(m.points)
		for i := range points {
			points[i].Timestamp += by
		}
		out = append(out, moment{at: m.at + by, step: m.step, points: points})
	}
	return out
}

func send(t *testing.T, c *mlflow.Client, runID string, moments []moment) {
	t.Helper()
	for _, b := range pack(nil, nil, moments) {
		if err := logBatch(t.Context(), c, runID, b); err != nil {
			t.Fatal(err)
		}
	}
}

// Of a recording that was thinned only whoever sent its points knows the last of them, where
// another recording of the same time has points in the same run.
func TestPush_AfterLivePushingBesideAnotherRecording(t *testing.T) {
	t.Parallel()
	const key = "system/0/system_memory_usage_percentage"
	var s *stage
	inBubble(t, 0, Destination{Invocation: "i"}, func(_ *testing.T, in *stage) {
		s = in
		s.rec.Ring = series.NewRing(40, int(collector.NumColumns))
		s.seconds(75, nil)
	})
	if s.rec.Ring.Stride() == 1 {
		t.Fatal("the ring is not thinned")
	}
	all := s.track().moments()
	sent, sure := s.live.sentUntil()
	late := 0
	for _, m := range all {
		if m.at > sent {
			late++
		}
	}
	c := connect(t, s.l.URL)
	send(t, c, s.live.run.ID, shifted(all, -1)) // of a recording that began a millisecond earlier
	had := len(s.fake.Runs()[0].Metrics[key])
	o := Options{Destination: Destination{Invocation: "i", RunID: s.live.run.ID, Given: true}, Live: s.live}
	if _, err := push(t, c, s.report(), o); err != nil {
		t.Fatal(err)
	}
	if got := len(s.fake.Runs()[0].Metrics[key]); !sure || late == 0 || got != had+late {
		t.Errorf("%d points, want %d and %d; sure %v", got, had, late, sure)
	}
}
