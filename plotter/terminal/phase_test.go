package terminal

import (
	"testing"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/reporter"
)

// The screen of a run shows the current phase of the job, and how long it has lasted.
func TestScreen_ShowsCurrentPhase(t *testing.T) {
	r := screenReport(1)
	o := screenOptions(1, 100, 40)
	n := r.Nodes[o.Node]
	times := n.Envelope[collector.Timestamp.Key()].Max
	now := times[len(times)-1]
	n.Phases = []reporter.Phase{
		{Name: "load", Spans: []reporter.PhaseSpan{{now - 100, 25}}},
		{Name: "train\x1b[2J", Spans: []reporter.PhaseSpan{{now - 200, 25}, {now - 75, 75}}},
	}

	check.Contains(t, "title", Screen(r, o)[0], `, in phase train\x1b[2J for 1 min 15 s`)
	check.Contains(t, "line", Line(r, o), `phase train\x1b[2J for 1 min 15 s, `)

	n.Phases = n.Phases[:1] // this phase has ended
	wantNone(t, "screen after the phase", screenText(r, o), "in phase", "so far")
	n.Phases = []reporter.Phase{{Name: "none"}} // a phase from a damaged report
	_ = Screen(r, o)
}
