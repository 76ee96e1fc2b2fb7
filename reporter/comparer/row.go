package comparer

import (
	"math"
	"slices"
)

// A Row is a metric as a page shows it, in printable text.
type Row struct {
	Name, Unit string
	Meaning    string
	A, ASpread string // the median and its noise: "3.204", "±2%"
	B, BSpread string
	Change, P  string
	Runs       string  // the runs that have it, "3+10"; "" if all have
	Changed    bool    // significantly
	Pct        float64 // the change in percent; 0 if it is not known, or may be noise
}

// Rows returns the metrics in the order wall time, job, GPU, node: those that have changed and those
// that a gate is on, and the rest. Metrics that neither side has are in neither.
func (c *Comparison) Rows() (changed, rest []Row) {
	for _, m := range c.listed(true) {
		rows := c.rows([]Metric{m})
		if len(rows) == 0 {
			continue
		}

		cells := rows[0].cells
		r := Row{
			Name: cells[nameColumn], Unit: cells[unitColumn], Meaning: m.of.Meaning,
			A: cells[aColumn], ASpread: cells[aSpreadColumn], B: cells[bColumn], BSpread: cells[bSpreadColumn],
			Change: cells[changeColumn], P: cells[pColumn], Runs: cells[runsColumn], Changed: rows[0].changed,
		}
		if m.ChangePct != nil && m.moved() && !math.IsNaN(*m.ChangePct) {
			r.Pct = *m.ChangePct
		}
		if m.gated || m.moved() {
			changed = append(changed, r)
		} else {
			rest = append(rest, r)
		}
	}

	return changed, rest
}

// Remarks returns what a reader of all metrics must know: what the signs mean, what is absent and why,
// and the notes.
func (c *Comparison) Remarks() []string {
	return printable(slices.Concat(c.legend(c.listed(true)), c.notes()))
}

// Absences returns the metrics that a side lacks, a line for each reason.
func (c *Comparison) Absences() []string { return printable(c.absences()) }

// Sides describes A and B in a line each.
func (c *Comparison) Sides() []string { return c.sides() }
