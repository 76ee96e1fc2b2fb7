package pusher

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/mlflow"
)

// closing returns a hook that closes the connection after each request, because a goroutine that reads from a socket
// would stop the clock of a synctest bubble.
func closing(h mlflowtest.Hook) mlflowtest.Hook {
	return func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Connection", "close")
		return h != nil && h(w, r)
	}
}

// connecting returns a function that connects a client to a server.
func connecting(url string) func() (*mlflow.Client, error) {
	return func() (*mlflow.Client, error) { return mlflow.New(mlflow.Config{URI: url}) }
}

// A stage is a Live in a synctest bubble, with a server outside the bubble.
type stage struct {
	*fakeHost
	fake *mlflowtest.Fake
	live *Live
	l    *mlflowtest.Listener
	work chan<- func() // runs outside the bubble
}

// outside calls a function whose goroutines must not belong to the bubble.
func (s *stage) outside(f func()) {
	s.work <- f
	s.work <- func() {} // is received once f has returned
}

// inBubble starts a server, and then a bubble with a Live that pushes to it.
func inBubble(t *testing.T, node int, d Destination, test func(t *testing.T, s *stage)) {
	t.Helper()
	fake, l, _ := serve(t)
	fake.SetBefore(closing(nil))
	work := make(chan func())
	defer close(work)
	go func() {
		for f := range work {
			f()
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		h := hostAfter(0)
		s := &stage{fakeHost: h, fake: fake, l: l, work: work}
		s.live = NewLive(h.head(node), d, connecting(l.URL))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.live.Run(ctx) }()
		test(t, s)
		cancel()
		<-done
	})
}

// staged returns a stage whose Live has pushed for the given number of seconds. prepare is called at the start.
func staged(t *testing.T, seconds int, prepare func(s *stage)) (s *stage) {
	t.Helper()
	inBubble(t, 0, Destination{Invocation: "i"}, func(_ *testing.T, in *stage) {
		s = in
		prepare(s)
		s.seconds(seconds, nil)
	})
	return s
}

// seconds advances the clock with a sample per second. After each sample, it calls each with the second and the number
// of requests sent in it.
func (s *stage) seconds(n int, each func(second, requests int)) {
	for i := range n {
		time.Sleep(time.Second)
		before := len(s.fake.Requests())
		s.tick()
		s.live.Observe(s.rec)
		synctest.Wait()
		if each != nil {
			each(i+1, len(s.fake.Requests())-before)
		}
	}
}

// steps returns the steps of the node's windows on the server, over all runs.
func (s *stage) steps(node int) (out []int64) {
	for _, r := range s.fake.Runs() {
		out = append(out, stepsOf(r.Metrics[fmt.Sprintf("system/%d/system_memory_usage_percentage", node)])...)
	}
	return out
}

// Once the run is known, Live sends one request per window and no other requests.
func TestLive_SendsOneRequestPerWindow(t *testing.T) {
	t.Parallel()
	inBubble(t, 0, Destination{Invocation: "i"}, func(t *testing.T, s *stage) {
		s.seconds(31, nil)
		if got := s.steps(0); !slices.Equal(got, []int64{0, 1, 2}) {
			t.Fatalf("windows %v after 31 s, want 0, 1 and 2", got)
		}
		s.seconds(600, func(second, n int) {
			if n > 1 || n == 1 && (second+31)%10 != 0 {
				t.Errorf("%d requests after %d s, want one every 10 s", n, second+31)
			}
		})
		if got := s.steps(0); len(got) != 63 {
			t.Errorf("%d windows %v after 631 s, want 63", len(got), got)
		}
	})
}

// Live waits for the job's run before it creates one: until the third window, and one more window on nodes other than
// 0.
func TestLive_GivesTheJobTimeToCreateTheRun(t *testing.T) {
	t.Parallel()
	for node, want := range map[int]int{0: 30, 1: 40, 12: 40} {
		t.Run(fmt.Sprint(node), func(t *testing.T) {
			t.Parallel()
			inBubble(t, node, Destination{Invocation: "i"}, func(t *testing.T, s *stage) {
				s.seconds(60, func(second, _ int) {
					if got := len(s.fake.Runs()); got != map[bool]int{false: 0, true: 1}[second >= want] {
						t.Errorf("node %d: %d runs after %d s, want one from second %d on", node, got, second, want)
					}
				})
				if got := s.steps(node); !slices.Equal(got, []int64{0, 1, 2, 3, 4, 5}) {
					t.Errorf("node %d: windows %v, want 0 to 5", node, got)
				}
				if r := s.fake.Runs()[0]; r.Tags[tagCreatedBy] != createdBy || r.Tags[TagInvocation] != "i" ||
					r.Info.Status != "RUNNING" || s.live.run.ID != r.Info.RunID {
					t.Errorf("run %+v, want Live's: RUNNING, created by perfagent, with the invocation i", r)
				}
			})
		})
	}
}

// The job's run gets the points as soon as it exists.
func TestLive_UsesTheJobsRun(t *testing.T) {
	t.Parallel()
	inBubble(t, 0, Destination{Invocation: "i"}, func(t *testing.T, s *stage) {
		s.seconds(15, nil)
		c := check.Value(mlflow.New(mlflow.Config{URI: s.l.URL}))(t)
		defer c.Close()
		id := newRun(t, c, s.rec.Start.Wall, mlflow.Tag{Key: TagInvocation, Value: "i"}).ID
		s.seconds(40, nil)
		if got := s.steps(0); !slices.Equal(got, []int64{0, 1, 2, 3, 4}) || len(s.fake.Runs()) != 1 || s.live.run.ID != id {
			t.Errorf("windows %v of %d runs, want 0 to 4 of 1; Live's run is %s, want %s", got, len(s.fake.Runs()), s.live.RunID(), id)
		}
	})
}

// After a temporary failure, Live tries again in each window. After a permanent failure, it tries less and less often.
func TestLive_TriesLessOftenAfterPermanentFailures(t *testing.T) {
	testenv.SkipIfShort(t, "a second of CPU to simulate many minutes")
	t.Parallel()
	refused := mlflowtest.Status(http.StatusUnauthorized, "text/plain", "no")
	for name, c := range map[string]struct {
		hook mlflowtest.Hook
		want []int // seconds of the first requests
	}{
		// Pauses of 10, 20, 40 … s, each until the next window.
		"wrong password":              {refused, []int{10, 20, 40, 80, 160, 320, 620, 920}},
		"status 500":                  {mlflowtest.Status(500, "text/plain", ""), []int{10, 20, 30, 40, 50, 60, 70, 80}},
		"Retry-After":                 {mlflowtest.RetryAfter(25), []int{10, 35, 60, 85}},
		"long Retry-After":            {mlflowtest.RetryAfter(86_400), []int{10, 310, 610}},
		"response of another service": {mlflowtest.Status(200, "text/html", "<html>"), []int{10, 20, 40, 80}},
		"dropped connection":          {mlflowtest.Drop(), []int{10, 20, 30}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 0, Destination{Invocation: "i"}, func(t *testing.T, s *stage) {
				s.fake.SetBefore(closing(c.hook))
				var at []int
				s.seconds(1000, func(second, n int) {
					if n > 1 {
						t.Errorf("%d requests after %d s, want at most one", n, second)
					}
					if n > 0 {
						at = append(at, second)
					}
				})
				wantAbout(t, at, c.want)
				s.fake.SetBefore(closing(nil))
				s.seconds(310, nil)
				if got := s.steps(0); len(got) < 100 || !slices.Equal(got[:3], []int64{0, 1, 2}) {
					t.Errorf("%d windows %v after the server recovered, want at least 100, from 0 on", len(got), got)
				}
			})
		})
	}
}

// wantAbout compares the times of requests, in seconds. A request may be one window late.
func wantAbout(t *testing.T, got, want []int) {
	t.Helper()
	for i := range want {
		if i >= len(got) || got[i] < want[i] || got[i] > want[i]+10 {
			t.Fatalf("requests after %v s, want %v", got[:min(len(got), 12)], want)
		}
	}
}

// After any outage, the points are the same as without an outage. Points are stored once even if a response is lost.
func TestLive_SendsEachPointOnceAfterAnOutage(t *testing.T) {
	t.Parallel()
	for _, applied := range []bool{false, true} {
		inBubble(t, 0, Destination{Invocation: "i"}, func(t *testing.T, s *stage) {
			rnd := rand.New(rand.NewPCG(4, 4))
			for range 12 {
				s.fake.SetBefore(closing(nil))
				s.seconds(1+rnd.IntN(60), nil)
				hook := mlflowtest.Drop()
				if applied {
					hook = mlflowtest.On("log-batch", s.fake.Applied(hook))
				}
				s.fake.SetBefore(closing(hook))
				s.seconds(1+rnd.IntN(60), nil)
			}
			s.fake.SetBefore(closing(nil))
			s.seconds(20, nil)
			if s.rec.Ring.Stride() != 1 {
				t.Fatal("the ring is too small for this test")
			}
			want := make(map[string][]mlflowtest.Point)
			for _, m := range wholeWindows(s.rec, 0) {
				for _, p := range m.points {
					want[p.Key] = append(want[p.Key], mlflowtest.Point{Timestamp: p.Timestamp, Step: p.Step, Value: p.Value})
				}
			}
			if got := onlyRun(t, s.fake).Metrics; !reflect.DeepEqual(want, got) { // faster than cmp
				t.Errorf("lost response %v: points on the server differ from the ring's (-want +got):\n%s", applied,
					cmp.Diff(want, got))
			}
		})
	}
}

// No step is stored twice, even if the ring is halved between a batch with a lost response and the next attempt.
func TestLive_SendsNoStepTwiceWhileTheRingHalves(t *testing.T) {
	t.Parallel()
	for _, capacity := range []int{12, 20, 40} {
		inBubble(t, 0, Destination{Invocation: "i"}, func(t *testing.T, s *stage) {
			s.rec.Ring = series.NewRing(capacity, int(s.rec.NumColumns()))
			s.fake.SetBefore(closing(mlflowtest.On("log-batch", every(2, s.fake.Applied(mlflowtest.Drop())))))
			s.seconds(700, nil)
			points := s.fake.Runs()[0].Metrics["system/0/system_memory_usage_percentage"]
			if len(points) < 5 || s.rec.Ring.Stride() == 1 {
				t.Fatalf("capacity %d: %d points, stride %d; want at least 5 points, and a stride other than 1", capacity, len(points), s.rec.Ring.Stride())
			}
			wantRising(t, fmt.Sprint("capacity ", capacity), points)
		})
	}
}

// every returns a hook that calls h for the first request and then for every nth request.
func every(n int64, h mlflowtest.Hook) mlflowtest.Hook {
	var seen atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) bool { return (seen.Add(1)-1)%n == 0 && h(w, r) }
}

// week is the number of samples in a week.
const week = 7 * 24 * 3600

// A week without a server takes little memory. When the server is back, the points arrive, a hundred windows at a time,
// with the resolution of the ring.
func TestLive_SurvivesAWeekWithoutAServer(t *testing.T) {
	samples := week
	if testing.Short() || raceEnabled {
		samples = week / 60
	}
	var before, after runtime.MemStats
	inBubble(t, 0, Destination{Invocation: "i"}, func(t *testing.T, s *stage) {
		connect, down, tries := s.live.connect, true, uint64(0)
		s.live.connect = func() (*mlflow.Client, error) {
			tries++
			if down {
				return nil, errors.New("no server")
			}
			return connect()
		}
		s.seconds(2000, nil) // by then the ring has allocated all its memory
		runtime.GC()
		runtime.ReadMemStats(&before)
		tries = 0
		for range samples {
			time.Sleep(time.Second)
			s.tick()
			s.live.Observe(s.rec)
		}
		synctest.Wait()
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 5<<20 {
			t.Errorf("an outage of %d samples takes %d bytes, want at most 5 MiB", samples, grown)
		}
		if per := (after.TotalAlloc - before.TotalAlloc) / tries; per > 5<<20 || tries < uint64(samples/400) {
			t.Errorf("%d tries that allocate %d bytes each, want at least %d tries that allocate at most 5 MiB each", tries, per, samples/400)
		}
		down = false
		s.seconds(1000, nil)
		points, all := s.fake.Runs()[0].Metrics["system/0/system_memory_usage_percentage"], wholeWindows(s.rec, 0)
		if n := len(points); n < len(all)-1 || n > len(all) {
			t.Errorf("%d points, want %d or one fewer", n, len(all))
		}
		wantRising(t, "memory", points)
	})
}

// A server that refuses connections for a long time gets all windows later.
func TestLive_SurvivesRefusedConnections(t *testing.T) {
	testenv.SkipIfShort(t, "half an hour of refused connections, simulated")
	t.Parallel()
	inBubble(t, 0, Destination{Invocation: "i"}, func(t *testing.T, s *stage) {
		s.outside(s.l.Close)
		s.seconds(1500, nil)
		s.outside(s.l.Reopen)
		s.seconds(60, nil)
		if got, all := s.steps(0), wholeWindows(s.rec, 0); len(got) != len(all) {
			t.Errorf("%d windows, want %d", len(got), len(all))
		}
	})
}

// The size of a batch is limited even if the ring is large.
func TestLive_LimitsItsBatches(t *testing.T) {
	const n = 5 * maxLiveBuckets
	h := newHost(rand.New(rand.NewPCG(1, 1)), 10*time.Millisecond, n)
	h.after(n)
	live := NewLive(h.head(0), Destination{}, nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	live.Observe(h.rec)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 20<<20 {
		t.Errorf("Observe allocates %d bytes for one batch, want at most 20 MiB", n)
	}
	if n := len((<-live.batches).windows); n == 0 || n > maxLiveWindows {
		t.Errorf("a batch has %d windows, want 1 to %d", n, maxLiveWindows)
	}
}

// Run ends as soon as its context ends, whatever the server does.
func TestLive_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	fake, l, _ := serve(t)
	came := make(chan struct{}, 100)
	hang := mlflowtest.Hang()
	fake.SetBefore(func(w http.ResponseWriter, r *http.Request) bool {
		came <- struct{}{}
		return hang(w, r)
	})
	h := hostAfter(0)
	live := NewLive(h.head(0), Destination{}, connecting(l.URL))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); live.Run(ctx) }()
	for range 15 {
		h.tick()
		live.Observe(h.rec)
	}
	<-came
	start := time.Now()
	cancel()
	<-done
	if took := time.Since(start); took > liveTimeout*4/5 { // a request that is not canceled takes the whole liveTimeout
		t.Errorf("Run ended after %v, want at most %v", took, liveTimeout*4/5)
	}
	if live.RunID() != "" {
		t.Errorf("RunID() = %s, want none", live.RunID())
	}
}

// BenchmarkLive_Window measures a window of ten samples when a ring of the default size is about to be halved, without
// a backlog.
func BenchmarkLive_Window(b *testing.B) { benchmarkLive(b, false) }

// BenchmarkLive_Outage measures the same after a permanent outage of the server.
func BenchmarkLive_Outage(b *testing.B) { benchmarkLive(b, true) }

func benchmarkLive(b *testing.B, outage bool) {
	h := hostAfter(999)
	live := NewLive(h.head(0), Destination{}, nil)
	if !outage {
		live.sent.Store(bucketEnd(h.rec, h.rec.Ring.Len()-15))
	}
	b.ReportAllocs()
	for b.Loop() {
		live.step = -1
		live.ready.Store(true)
		live.Observe(h.rec)
		<-live.batches
	}
}

// BenchmarkLive_Samples measures the cost of most samples, after which Live hands over nothing.
func BenchmarkLive_Samples(b *testing.B) {
	h := hostAfter(0)
	h.tick()
	live := NewLive(h.head(0), Destination{}, nil)
	b.ReportAllocs()
	for b.Loop() {
		live.Observe(h.rec)
	}
}
