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

// Each rank of the node finds the MLflow run that the job of any rank creates. Other launches do not find it.
func TestMLflowTracking_RanksShareTheInvocation(t *testing.T) {
	a, b := rankTracking(t, 0, true), rankTracking(t, 1, false)
	if a.state.Invocation != b.state.Invocation || a.jobEnv("r")[0] != b.jobEnv("r")[0] {
		t.Errorf("states %+v and %+v, environments %q and %q; want the same invocation",
			a.state, b.state, a.jobEnv("r"), b.jobEnv("r"))
	}
	if b.configureRank("launch 8 on this host", false); a.state.Invocation == b.state.Invocation {
		t.Errorf("two launches have the same invocation %s", a.state.Invocation)
	}
	if other := pusher.SharedInvocation("launch 7 on this host", "5"); other == a.state.Invocation {
		t.Errorf("two nodes have the same invocation %s", other)
	}
}

// A rank starts its live push when it begins to measure the host, and only once.
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

// The rank that pushes the node's report at the end uses the MLflow run of the rank that pushed live.
func TestMLflowTracking_AdoptsTheRunOfTheNode(t *testing.T) {
	a := rankTracking(t, 0, true)
	push := func(uri string) delivery {
		n := &reporter.Node{Push: &reporter.Push{MLflow: reporter.PushState{URI: uri, RunID: "abc"}}}
		return delivery{node: "0", report: &reporter.Report{Nodes: map[string]*reporter.Node{"0": n}}}
	}
	if a.adopt(push("http://elsewhere")); a.state.RunID != "" {
		t.Errorf("adopted the run %s of another server, want none", a.state.RunID)
	}
	if a.adopt(push("http://127.0.0.1:1")); a.state.RunID != "abc" || a.state.Given {
		t.Errorf("state %+v, want the live run abc, not given", a.state)
	}
	a.state.RunID = "own"
	if a.adopt(push("http://127.0.0.1:1")); a.state.RunID != "own" {
		t.Errorf("state %+v, want the run own kept", a.state)
	}
}
