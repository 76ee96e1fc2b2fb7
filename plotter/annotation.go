package plotter

import (
	"cmp"
	"slices"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// Mark is a mark of the job on a time axis.
type Mark struct {
	At   float64 // seconds since the start
	Text string  // printable
}

// PhaseSpan is a period in which the job was in a phase.
type PhaseSpan struct {
	From, To float64 // seconds since the start
	Name     string  // printable
	Color    int     // index into the palette, the same for all spans of a phase
}

// timeError is the maximum error of sample times in seconds: they are truncated to milliseconds.
const timeError = 0.001

// addAnnotations adds the job's marks and phases within the time axis.
func (t *Timeline) addAnnotations(n *reporter.Node) {
	length := t.Length()
	for _, m := range n.Marks {
		if at := m.Timestamp - t.Start; at > -timeError && at < length+timeError {
			t.Marks = append(t.Marks, Mark{min(max(at, 0), length), text.Printable(m.Text)})
		}
	}

	for i, p := range n.Phases {
		name := text.Printable(p.Name)
		for _, span := range p.Spans {
			from := span[0] - t.Start
			to := min(from+span[1], length)
			if from = max(0, from); from <= to {
				t.Phases = append(t.Phases, PhaseSpan{from, to, name, i})
			}
		}
	}
	slices.SortStableFunc(t.Marks, func(a, b Mark) int { return cmp.Compare(a.At, b.At) })
	slices.SortStableFunc(t.Phases, func(a, b PhaseSpan) int { return cmp.Compare(a.From, b.From) })
}
