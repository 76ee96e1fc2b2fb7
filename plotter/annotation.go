package plotter

import (
	"cmp"
	"math"
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

// addAnnotations adds the job's marks and phases that lie on the time axis.
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

// maxAnnotationBytes is the maximum number of bytes of marks and phases on a page of several nodes. Beyond it the page
// keeps only the first marks and phases of each node.
const maxAnnotationBytes = 2 << 20

// annotationBytes returns the approximate number of bytes of the node's marks and phases.
func (p *pageNode) annotationBytes() int {
	const number = 20
	n := 0
	for _, m := range p.time.Marks {
		n += number + len(m.Text)
	}
	for _, span := range p.time.Phases {
		n += 2*number + len(span.Name)
	}
	for _, r := range p.phases {
		n += 4*number + len(r[0])
	}

	return n
}

// trimAnnotations keeps the first marks, spans and phases, and the beginnings of their names.
func (p *pageNode) trimAnnotations() {
	const marks, spans, phases, letters = 10, 20, 10, 30
	t := &p.time
	t.Marks = slices.Clone(t.Marks[:min(len(t.Marks), marks)])
	t.Phases = slices.Clone(t.Phases[:min(len(t.Phases), spans)])
	p.phases = slices.Clone(p.phases[:min(len(p.phases), phases)])
	for i := range t.Marks {
		t.Marks[i].Text = text.Clip(t.Marks[i].Text, letters)
	}
	for i := range t.Phases {
		t.Phases[i].Name = text.Clip(t.Phases[i].Name, letters)
	}
	for i := range p.phases {
		p.phases[i][0] = text.Clip(p.phases[i][0], letters)
	}
}

const (
	stripHeight = 4  // of the strip at the top of a phase, in pixels
	markGap     = 2  // minimum distance between two drawn marks, in pixels
	phaseLabel  = 3  // in letters: a shorter part of a name is not drawn
	markLabel   = 24 // maximum length of a mark's text, in letters
)

// phases draws the bands of the phases, behind the series.
func (f *figure) phases(c canvas) {
	top, bottom := f.plot.y, f.plot.y+f.plot.height
	drawn := math.Inf(-1)
	for _, p := range f.time.Phases {
		from, to := f.at(p.From, 0).x, f.at(p.To, 0).x
		if to-drawn < 0.5 { // too narrow to be visible
			continue
		}
		drawn = to

		rect := func(y float64) []point { return []point{{from, top}, {to, top}, {to, y}, {from, y}} }
		c.area(rect(bottom), ink{kind: inkPhase, color: p.Color, data: "phase", name: p.Name})
		c.area(rect(top+stripHeight), ink{kind: inkStrip, color: p.Color})
	}
}

// phaseNames writes the names of the phases on top of the drawing, if they fit.
func (f *figure) phaseNames(c canvas) {
	for _, p := range f.time.Phases {
		from, to := f.at(p.From, 0).x, f.at(p.To, 0).x
		words := p.Name
		if textWidth(words) > to-from-6 {
			words = text.Clip(words, int((to-from-6)/letterWidth))
		}
		if text.Width(words) >= min(phaseLabel, text.Width(p.Name)) {
			c.text(point{from + 3, f.plot.y + stripHeight + 10}, words, anchorStart, ink{kind: inkText})
		}
	}
}

// marks draws the marks as lines, with their texts if they fit.
func (f *figure) marks(c canvas) {
	top, bottom, right := f.plot.y, f.plot.y+f.plot.height, f.plot.x+f.plot.width
	drawn, labelled := math.Inf(-1), math.Inf(-1)
	for _, m := range f.time.Marks {
		x := f.at(m.At, 0).x
		if x-drawn < markGap {
			continue
		}
		drawn = x

		c.line([]point{{x, top}, {x, bottom}}, ink{kind: inkMark, dash: 2, data: "mark", name: m.Text})
		words := text.Clip(m.Text, markLabel)
		end := x + 3 + textWidth(words)
		if x >= labelled && end <= right {
			c.text(point{x + 3, bottom - 4}, words, anchorStart, ink{kind: inkText})
			labelled = end
		}
	}
}
