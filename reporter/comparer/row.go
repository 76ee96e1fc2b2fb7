package comparer

import "slices"

// Rows returns the metrics in the order of their groups: those that changed or that a gate uses, and the rest. It omits
// metrics that neither side has.
func (c *Comparison) Rows() (changed, rest []Row) {
	for _, m := range c.listedMetrics(true) {
		if rows := c.rows([]Metric{m}); m.gated || m.hasNotableChange() {
			changed = append(changed, rows...)
		} else {
			rest = append(rest, rows...)
		}
	}

	return changed, rest
}

// Remarks returns the remarks on all metrics: the meaning of the signs, and the notes.
func (c *Comparison) Remarks() []string {
	return printable(slices.Concat(c.legend(c.listedMetrics(true)), c.notes()))
}

// MissingLines returns the metrics that a side lacks, a line for each reason.
func (c *Comparison) MissingLines() []string { return printable(c.missingLines()) }
