package terminal

import (
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/reporter"
)

// The screen of a run has the current phase of the job, and its length so far.
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

	const want = `, in phase train\x1b[2J for 1 min 15 s`
	if screen := Screen(r, o); !strings.Contains(screen[0], want) {
		t.Errorf("title lacks %q:\n%s", want, screen[0])
	}
	if line := Line(r, o); !strings.Contains(line, `phase train\x1b[2J for 1 min 15 s, `) {
		t.Errorf("line lacks the current phase and its length: %s", line)
	}

	n.Phases = n.Phases[:1] // over
	if screen := strings.Join(Screen(r, o), "\n"); strings.Contains(screen, "in phase") || strings.Contains(screen, "so far") {
		t.Errorf("the phase has ended, but the screen shows it as the current one:\n%s", screen)
	}
	n.Phases = []reporter.Phase{{Name: "none"}} // of a damaged report
	_ = Screen(r, o)
}
