package pusher

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/collectortest"
	"github.com/perfagent/perfagent/reporter"
)

// oneSample returns a host with one sample.
func oneSample() *fakeHost {
	return newHost(rand.New(rand.NewPCG(3, 3)), time.Second, 2).after(1)
}

// withRanks turns the only node of a report into one of two nodes without an index. The node has the given ranks, out
// of 32.
func withRanks(r *reporter.Report, ranks ...int) *reporter.Node {
	n := r.Nodes["0"]
	n.Identity = &reporter.Identity{NodeFrom: "none", RanksOnNode: len(ranks), WorldSize: 2 * len(ranks)}
	n.Host = &reporter.Host{Hostname: "gpu7"}
	n.Job = &reporter.Job{ExitCode: new(0)}
	n.Ranks = make(map[string]*reporter.Rank)
	for _, rank := range ranks {
		n.Ranks[strconv.Itoa(rank)] = &reporter.Rank{Rank: rank, ExitCode: new(rank % 2), Metrics: reporter.Values{
			reporter.MetricJobCPU: 1.5, reporter.MetricJobMemoryPeak: 100, "job_threads": 3,
		}}
	}
	return n
}

func TestMetrics_HaveRanksAndExitCode(t *testing.T) {
	r := oneSample().report()
	withRanks(r, 9, 10, 4)
	list, _ := metrics(r)
	collectortest.Same(t, "metrics of ranks", valuesUnder(list, "rank/", "node_exit_code"), map[string]float64{
		"rank/4/job_cpu_seconds": 1.5, "rank/4/job_peak_memory_mb": 100, "rank/4/exit_code": 0,
		"rank/9/job_cpu_seconds": 1.5, "rank/9/job_peak_memory_mb": 100, "rank/9/exit_code": 1,
		"rank/10/job_cpu_seconds": 1.5, "rank/10/job_peak_memory_mb": 100, "rank/10/exit_code": 0,
		"node_exit_code": 0,
	})
	for _, m := range list {
		if m.Step != 4 {
			t.Errorf("%s has step %d, want 4", m.Key, m.Step)
		}
	}
}

// Of many ranks, the lowest are pushed. Ranks are ordered as numbers, not as text.
func TestMetrics_HaveTheLowestOfManyRanks(t *testing.T) {
	r := oneSample().report()
	var ranks []int
	for i := range 20 {
		ranks = append(ranks, 95+i)
	}
	withRanks(r, ranks...)
	list, _ := metrics(r)
	if got := valuesUnder(list, "rank/"); len(got) != 3*maxRanks || got["rank/110/job_cpu_seconds"] != 1.5 {
		t.Errorf("metrics of many ranks: %v, want 3 for each of %d ranks, including rank 110", got, maxRanks)
	}
}

// The rank that measures the host pushes its series live. Another rank pushes the node at the end. It fills gaps, and
// does not resend stored windows, even if a third rank with a different start sent them. The job's series combine all
// ranks, and are sent only at the end.
func TestSend_RankFillsGapsOfOtherRanks(t *testing.T) {
	t.Parallel()
	s := staged(t, 65, func(s *stage) {
		s.live.SetHostOnly()
		s.rec.Host.Hostname = "gpu7"
		rank := 0
		s.live.about.Identity = &reporter.Identity{NodeFrom: "none", Rank: &rank, WorldSize: 2}
	})
	live := s.fake.Runs()[0]
	for key := range live.Metrics {
		if !strings.HasPrefix(key, "system/gpu7/") || strings.Contains(key, "/job_") {
			t.Errorf("%s was sent live, want only series of the host", key)
		}
	}

	for range 60 { // not pushed live
		s.tick()
	}
	r := s.report()
	n := withRanks(r, 0, 1)
	n.Identity.WorldSize = 2
	all := newNodeSeries("gpu7", n)
	all.filter = hostOnly
	windows, c := all.windows(), connect(t, s.l.URL)
	send(t, c, live.Info.RunID, shifted(windows[9:10], -300)) // a rank that began a little earlier

	for range 2 {
		o := Options{Destination: Destination{Invocation: "i", RunID: live.Info.RunID}}
		check.Value(push(t, c, r, o))(t)
	}
	got := s.fake.Runs()[0]
	for _, key := range []string{"system_memory_usage_percentage", "job_cpu_cores"} {
		points := got.Metrics["system/gpu7/"+key]
		if want := len(windows); len(points) != want {
			t.Errorf("%s has %d points, want %d: %v", key, len(points), want, stepsOf(points))
		}
	}
	if got.Tags["perfagent.node.gpu7.host"] != "gpu7" || got.Tags["perfagent.node.gpu7.exit_code"] != "0" {
		t.Errorf("tags %v, want the host gpu7 and the exit code 0 of node gpu7", got.Tags)
	}
	if got.Info.Status != "FINISHED" || got.Tags[TagExitCode] != "0" {
		t.Errorf("status %s, exit code %s; want FINISHED, 0", got.Info.Status, got.Tags[TagExitCode])
	}
}

// The exit code of the run comes from the first failed node, even if nodes are named after hosts.
func TestSend_ExitCodeIsFromTheFirstFailedHost(t *testing.T) {
	t.Parallel()
	fake, _, c := serve(t)
	for i, code := range []int{0, 7, 9} {
		r := oneSample().report()
		n := withRanks(r, 2*i, 2*i+1)
		n.Host.Hostname = fmt.Sprintf("host%d", i)
		n.Job.ExitCode, r.Run.ExitCode = &code, &code
		check.Value(push(t, c, r, Options{}))(t)
	}
	if runs := fake.Runs(); len(runs) != 1 || runs[0].Info.Status != "FAILED" || runs[0].Tags[TagExitCode] != "7" {
		t.Errorf("runs %+v, want one, FAILED with the exit code 7", runs)
	}
}
