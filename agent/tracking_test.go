package agent

import (
	"testing"

	"github.com/perfagent/perfagent/agent/pusher"
	"github.com/perfagent/perfagent/internal/scheduler"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/journal"
)

// rankTracking returns the tracking of a rank of a launch without a node index.
func rankTracking(t *testing.T, rank int, measuresHost bool) *mlflowTracking {
	t.Helper()
	o := Options{MLflow: "http://127.0.0.1:1", RunID: "r"}.withDefaults()
	o.identity = scheduler.Identity{NodeFrom: scheduler.NodeFromNone, Rank: &rank, WorldSize: 2}
	tr := newTracking(o)
	tr.configureRank("launch 7 on this host", measuresHost)
	tr.head = &journal.Head{}
	t.Cleanup(func() { tr.end() })
	return tr
}

// The MLflow run made by the job of any rank is found by each rank of the node, and by no other launch.
func TestTracking_RanksShareTheInvocation(t *testing.T) {
	a, b := rankTracking(t, 0, true), rankTracking(t, 1, false)
	if a.dest.Invocation != b.dest.Invocation || a.jobEnv("r")[0] != b.jobEnv("r")[0] {
		t.Errorf("%+v and %+v", a.dest, b.dest)
	}
	if a.state.Invocation != a.dest.Invocation {
		t.Errorf("the report says %s", a.state.Invocation)
	}
	if b.configureRank("launch 8 on this host", false); a.dest.Invocation == b.dest.Invocation {
		t.Error("two launches have the same")
	}
	if other := pusher.SharedInvocation("launch 7 on this host", "5"); other == a.dest.Invocation {
		t.Error("two nodes have the same")
	}
}

// A rank pushes live once it measures the host, and starts only once.
func TestTracking_OnlyOneRankPushesLive(t *testing.T) {
	a, b := rankTracking(t, 0, true), rankTracking(t, 1, false)
	a.begin(nil)
	b.begin(nil)
	if a.live == nil || b.live != nil {
		t.Fatalf("live: %v and %v", a.live != nil, b.live != nil)
	}
	b.startLive()
	live := b.live
	if b.startLive(); live == nil || b.live != live {
		t.Error("the second one does not take over once")
	}
}

// The rank that pushes the node at the end gets the MLflow run from the rank that pushed live.
func TestTracking_AdoptsTheRunOfTheNode(t *testing.T) {
	a := rankTracking(t, 0, true)
	push := func(uri string) delivery {
		n := &reporter.Node{Push: &reporter.Push{MLflow: reporter.PushState{URI: uri, RunID: "abc"}}}
		return delivery{node: "0", report: &reporter.Report{Nodes: map[string]*reporter.Node{"0": n}}}
	}
	if a.adopt(push("http://elsewhere")); a.dest.RunID != "" {
		t.Errorf("a run of another server: %s", a.dest.RunID)
	}
	if a.adopt(push("http://127.0.0.1:1")); a.dest.RunID != "abc" || a.state.RunID != "abc" || a.dest.Given {
		t.Errorf("%+v", a.dest)
	}
	a.dest.RunID = "own"
	if a.adopt(push("http://127.0.0.1:1")); a.dest.RunID != "own" {
		t.Errorf("%+v", a.dest)
	}
}
