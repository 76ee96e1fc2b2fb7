package pusher

import (
	"testing"

	"github.com/perfagent/perfagent/reporter"
)

// A node keeps its invocation. A node without an invocation gets none.
func TestGroup_EachNodeKeepsItsInvocation(t *testing.T) {
	t.Parallel()
	of := func(invocation string) *reporter.Node {
		return &reporter.Node{Push: &reporter.Push{MLflow: reporter.PushState{Invocation: invocation}}}
	}
	g := Group{report: &reporter.Report{}, state: reporter.PushState{Invocation: "a.0"}}
	g.report.Nodes = map[string]*reporter.Node{"0": of("a.0"), "1": of(""), "2": {}, "3": of("d.3")}
	want := map[string]string{"0": "a.0", "1": "", "2": "", "3": "d.3"}
	for range 20 { // the order of the map varies
		for node, state := range g.each(reporter.PushState{State: reporter.PushDone}) {
			if state.Invocation != want[node] {
				t.Errorf("node %s has the invocation %q, want %q", node, state.Invocation, want[node])
			}
		}
	}
}
