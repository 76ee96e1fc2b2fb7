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
func TestMLflowTracking_RanksShareTheInvocation(t *testing.T) {
	a, b := rankTracking(t, 0, true), rankTracking(t, 1, false)
	if a.dest.Invocation != b.dest.Invocation || a.jobEnv("r")[0] != b.jobEnv("r")[0] {
		t.Errorf("destinations %+v and %+v, environments %q and %q; want the same invocation",
			a.dest, b.dest, a.jobEnv("r"), b.jobEnv("r"))
	}
	if a.state.Invocation != a.dest.Invocation {
		t.Errorf("invocation %s in the report, want %s", a.state.Invocation, a.dest.Invocation)
	}
	if b.configureRank("launch 8 on this host", false); a.dest.Invocation == b.dest.Invocation {
		t.Errorf("two launches have the same invocation %s", a.dest.Invocation)
	}
	if other := pusher.SharedInvocation("launch 7 on this host", "5"); other == a.dest.Invocation {
		t.Errorf("two nodes have the same invocation %s", other)
	}
}

// A rank pushes live once it measures the host, and starts only once.
func TestMLflowTracking_OnlyOneRankPushesLive(t *testing.T) {
	a, b := rankTracking(t, 0, true), rankTracking(t, 1, false)
	a.begin(nil)
	b.begin(nil)
	if a.live == nil || b.live != nil {
		t.Fatalf("live pushes after begin: %v and %v, want true and false", a.live != nil, b.live != nil)
	}
	b.startLive()
	live := b.live
	if b.startLive(); live == nil || b.live != live {
		t.Errorf("startLive twice: live push %v, the same %v; want true, true", live != nil, b.live == live)
	}
}

// The rank that pushes the node at the end gets the MLflow run from the rank that pushed live.
func TestMLflowTracking_AdoptsTheRunOfTheNode(t *testing.T) {
	a := rankTracking(t, 0, true)
	push := func(uri string) delivery {
		n := &reporter.Node{Push: &reporter.Push{MLflow: reporter.PushState{URI: uri, RunID: "abc"}}}
		return delivery{node: "0", report: &reporter.Report{Nodes: map[string]*reporter.Node{"0": n}}}
	}
	if a.adopt(push("http://elsewhere")); a.dest.RunID != "" {
		t.Errorf("adopted the run %s of another server, want none", a.dest.RunID)
	}
	if a.adopt(push("http://127.0.0.1:1")); a.dest.RunID != "abc" || a.state.RunID != "abc" || a.dest.Given {
		t.Errorf("destination %+v, run in the report %q; want the live run abc, not given", a.dest, a.state.RunID)
	}
	a.dest.RunID = "own"
	if a.adopt(push("http://127.0.0.1:1")); a.dest.RunID != "own" {
		t.Errorf("destination %+v, want the run own kept", a.dest)
	}
}
