package pusher

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// A cluster is a launch on many nodes in a synctest bubble, with one server outside the bubble. Nodes share a few
// recordings, which have only memory series: the tests count requests, and more series would only make the requests
// larger.
type cluster struct {
	fake  *mlflowtest.Fake
	url   string
	hosts []*fakeHost
	lives []*Live
	stop  func() // ends the live pushes

	requests atomic.Int64
	seconds  []int // requests in each second
}

const clusterInterval = 5 * time.Second

// inCluster starts a launch and calls test in a bubble.
func inCluster(t *testing.T, nodes int, test func(t *testing.T, c *cluster)) {
	t.Helper()
	fake, l, _ := serve(t)
	c := &cluster{fake: fake, url: l.URL}
	fake.SetBefore(closing(func(http.ResponseWriter, *http.Request) bool {
		c.requests.Add(1)
		return false
	}))
	synctest.Test(t, func(t *testing.T) {
		for i := range 5 {
			h := newHost(rand.New(rand.NewPCG(uint64(i), 9)), clusterInterval, 1000)
			for c := range collector.Column(collector.MaxColumns) {
				source := c.Info().Source
				h.lost[source] = source != host.SourceMemory
			}
			c.hosts = append(c.hosts, h)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for i := range nodes {
			head := c.host(i).head(i)
			head.Identity = member(i, nodes)
			live := NewLive(head, Destination{Invocation: fmt.Sprintf("i.%d", i)}, connecting(c.url))
			c.lives = append(c.lives, live)
			running.Go(func() { live.Run(ctx) })
		}
		c.stop = func() { cancel(); running.Wait() }
		test(t, c)
	})
}

func (c *cluster) host(node int) *fakeHost { return c.hosts[node%len(c.hosts)] }

// second calls do, lets a second pass, and counts the requests in that second.
func (c *cluster) second(do func()) {
	before := c.requests.Load()
	if do != nil {
		do()
	}
	time.Sleep(time.Second)
	synctest.Wait()
	c.seconds = append(c.seconds, int(c.requests.Load()-before))
}

// run runs the jobs for the given number of seconds.
func (c *cluster) run(seconds int) {
	for range seconds {
		now := len(c.seconds) % len(c.hosts)
		c.second(func() {
			c.hosts[now].tick()
			for i, live := range c.lives {
				if i%len(c.hosts) == now {
					live.Observe(c.host(i).rec)
				}
			}
		})
	}
}

// end ends the job of each node with a code, pushes, and counts requests until all pushes are done.
func (c *cluster) end(t *testing.T, timeout time.Duration, code func(node int) int) {
	t.Helper()
	c.stop()
	var pushing sync.WaitGroup
	for i, live := range c.lives {
		o := Options{Destination: Destination{Invocation: fmt.Sprintf("i.%d", i)}, RunTimeout: 1500 * time.Millisecond}
		if live.RunID() != "" {
			o.Live, o.RunID = live, live.RunID()
		}
		report, name := c.report(i, code(i)), fmt.Sprintf("node-%d.json", i)
		o.Artifacts = []Artifact{{Name: name, Data: func(string) ([]byte, error) { return []byte("{}"), nil }}}
		pushing.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			if err := c.push(ctx, report, o, timeout); err != nil {
				t.Errorf("push of node %d: %v", i, err)
			}
		})
	}

	done := make(chan struct{})
	go func() { defer close(done); pushing.Wait() }()
	for open := true; open; {
		c.second(nil)
		select {
		case <-done:
			open = false
		default:
		}
	}
}

func (c *cluster) push(ctx context.Context, r *reporter.Report, o Options, timeout time.Duration) error {
	client, err := mlflow.New(mlflow.Config{URI: c.url})
	if err != nil {
		return err
	}
	defer client.Close()
	o.Schedule = NewSchedule(r, timeout)
	plan, err := Prepare(ctx, client, r, o)
	if err != nil {
		return err
	}
	return plan.Send(ctx)
}

// report returns the report of a node whose job has ended.
func (c *cluster) report(node, code int) *reporter.Report {
	r := c.host(node).report()
	n := r.Nodes["0"]
	n.Identity = member(node, len(c.lives))
	n.Job = &reporter.Job{ExitCode: &code}
	r.Run.ExitCode = &code
	r.Nodes = map[string]*reporter.Node{strconv.Itoa(node): n}
	return r
}

// most returns the highest number of requests in a second, and the mean.
func most(seconds []int) (peak int, mean float64) {
	sum := 0
	for _, n := range seconds {
		peak, sum = max(peak, n), sum+n
	}
	return peak, float64(sum) / float64(len(seconds))
}

// thousand returns the number of simulated nodes: 1000, or fewer under -short.
func thousand() int { return 1000 / shortStride(4) }

// wantAll checks that the server has one run, with all values of all nodes.
func (c *cluster) wantAll(t *testing.T, status, code string) {
	t.Helper()
	r := onlyRun(t, c.fake)
	if r.Info.Status != status || r.Tags[TagExitCode] != code {
		t.Errorf("status %s, exit code %s; want %s, %s", r.Info.Status, r.Tags[TagExitCode], status, code)
	}
	for i := range c.lives {
		want := c.report(i, 0)
		if got := r.Tags[fmt.Sprintf("perfagent.node.%d.exit_code", i)]; got == "" {
			t.Errorf("the run has no exit code of node %d", i)
		}
		windows := newNodeSeries(strconv.Itoa(i), want.Nodes[strconv.Itoa(i)]).windows()
		if got := len(r.Metrics[fmt.Sprintf("system/%d/system_memory_usage_percentage", i)]); got != len(windows) {
			t.Errorf("node %d has %d points, want %d", i, got, len(windows))
		}
		for _, w := range windows {
			for _, p := range w.points {
				if !slices.Contains(r.Metrics[p.Key], mlflowtest.Point{Timestamp: p.Timestamp, Step: p.Step, Value: p.Value}) {
					t.Fatalf("the run lacks the point of %s at step %d", p.Key, p.Step)
				}
			}
		}
	}
	if got := len(r.Metrics[MetricExitCode]); got != len(c.lives) {
		t.Errorf("%d exit codes in the run, want %d", got, len(c.lives))
	}
	if got := len(r.Artifacts); got != len(c.lives) {
		t.Errorf("%d artifacts in the run, want %d", got, len(c.lives))
	}
}

// If the jobs of many nodes end before a run exists, the first node creates the run, and the others find it before any
// node sends.
func TestSchedule_ShortJobsOfManyNodesShareOneRun(t *testing.T) {
	t.Parallel()
	inCluster(t, 40, func(t *testing.T, c *cluster) {
		c.run(8)
		c.end(t, time.Minute, func(int) int { return 0 })
		c.wantAll(t, "FINISHED", "0")
	})
}

// If many nodes fail at the same time, the first failed node determines the end of the run, and few nodes read the run
// from the server.
func TestSchedule_FewFailedNodesReadTheRun(t *testing.T) {
	t.Parallel()
	inCluster(t, 40, func(t *testing.T, c *cluster) {
		c.run(60)
		before := asked(c.fake, "runs/get?")
		c.end(t, time.Minute, func(node int) int { return 100 + node })
		c.wantAll(t, "FAILED", "100")
		if n := asked(c.fake, "runs/get?") - before; n == 0 || n > 8 {
			t.Errorf("the run was requested %d times, want 1 to 8", n)
		}
	})
}
