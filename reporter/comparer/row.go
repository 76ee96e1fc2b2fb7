package comparer

import "slices"

// Rows returns the metrics in two lists, each in the order of the metrics' groups. changed has time, CPU time and peak
// memory, the changed metrics of the job, and the metrics that gates use. rest has the other metrics. Rows omits
// metrics that neither side has.
func (c *Comparison) Rows() (changed, rest []Row) {
	for _, m := range c.listedMetrics(true) {
		if rows := c.rows([]Metric{m}); c.leads(&m) {
			changed = append(changed, rows...)
		} else {
			rest = append(rest, rows...)
		}
	}

	return changed, rest
}

// Remarks returns the remarks on all metrics: a warning about noise, the legend of the signs, and the notes.
func (c *Comparison) Remarks() []string {
	remarks := slices.Concat([]string{c.Noise()}, c.legend(c.listedMetrics(true)), c.notes())
	return printable(slices.DeleteFunc(remarks, func(s string) bool { return s == "" }))
}

// MissingLines returns the metrics that a side lacks, with one line for each reason.
func (c *Comparison) MissingLines() []string { return printable(c.missingLines()) }
