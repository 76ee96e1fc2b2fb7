//go:build e2e

package browser

import (
	"math"
	"slices"
	"testing"

	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/plotter"
)

// A said is a band or a line of the page, in fractions of its chart's width.
type said struct {
	Name     string
	From, To float64
}

// story returns the bands of the phases, or the lines of the marks, in a chart.
func (b *tab) story(chart, kind string) []said {
	return eval[[]said](b, `[...document.querySelectorAll('[data-chart="`+chart+`"] .u-over [data-`+kind+`]')].map(e => {
		var r = e.getBoundingClientRect(), p = e.closest(".u-over").getBoundingClientRect();
		return {Name: e.dataset.`+kind+`, From: (r.left - p.left) / p.width, To: (r.right - p.left) / p.width};
	})`)
}

// Phases and marks are at their places on every chart, even in a part of it.
func TestBrowser_PhasesAndMarksAreAtTheirPlaces(t *testing.T) {
	r := plottertest.Job()
	n := r.Nodes["0"]
	b := newTab(t)
	b.size(1000, 1200, 1)
	b.visit(fileOf(t, pageOf(t, r)))
	time := plotter.NewTimeline(&r.Run, n)

	for _, part := range [][2]float64{{0, 1}, {0.25, 0.5}} {
		if part[0] > 0 {
			b.drag(b.plot("cpu"), part[0], part[1])
			b.frames()
		}
		from, to := b.span()
		at := func(t float64) float64 { return min(max((t-from)/(to-from), 0), 1) }
		for _, chart := range []string{"cpu", "memory", "network"} {
			var want []said
			for _, p := range time.Phases {
				if p.To > from && p.From < to {
					want = append(want, said{p.Name, at(p.From), at(p.To)})
				}
			}
			got := b.story(chart, "phase")
			same := slices.EqualFunc(got, want, func(a, b said) bool {
				return a.Name == b.Name && math.Abs(a.From-b.From) < 0.01 && math.Abs(a.To-b.To) < 0.01
			})
			if !same {
				t.Errorf("%s from %v to %v: phases %v, want %v", chart, from, to, got, want)
			}

			marks := 0
			for _, m := range time.Marks {
				if m.At < from || m.At > to {
					continue
				}
				marks++
				if !slices.ContainsFunc(b.story(chart, "mark"), func(s said) bool {
					return s.Name == m.Text && math.Abs(s.From-at(m.At)) < 0.01
				}) {
					t.Errorf("%s: marks %v lack %q at %v", chart, b.story(chart, "mark"), m.Text, at(m.At))
				}
			}
			if got := len(b.story(chart, "mark")); got != marks || marks == 0 {
				t.Errorf("%s: %d marks, want %d", chart, got, marks)
			}
		}
	}

	rows := eval[[][]string](b, `[...document.querySelectorAll("[data-phases] tbody tr")].map(r => [...r.cells].map(c => c.innerText))`)
	if len(rows) != len(n.Phases) || rows[2][0] != "train" || rows[2][1] != "5 ×" {
		t.Errorf("table of phases %q, want %d rows with train 5 × third", rows, len(n.Phases))
	}
	b.noTrouble()
}
