package terminal

import (
	"math"

	"github.com/perfagent/perfagent/collector"
)

// CombineRanks returns the newest values of a node from its ranks' values: the host's values from any rank that
// measured it, and the sums of the jobs' values. Percentages of jobs do not add up, and are known only if a single rank
// has them.
func CombineRanks(ranks [][]float64) []float64 {
	width := 0
	for _, values := range ranks {
		width = max(width, len(values))
	}

	var out []float64 // nil if no rank has a sample yet
	for c := range collector.Column(width) {
		out = append(out, combineColumn(c, ranks))
	}
	return out
}

// combineColumn returns the value of one column; NaN if no rank has it, or if several have values that do not add up.
func combineColumn(c collector.Column, ranks [][]float64) float64 {
	ofJob := c.Info().Requires.Has(collector.RequiresJob)
	out := math.NaN()
	for _, values := range ranks {
		if int(c) >= len(values) || math.IsNaN(values[c]) {
			continue
		}
		switch v := values[c]; {
		case math.IsNaN(out):
			out = v
		case !ofJob: // the host was measured
		case c.IsPercent():
			return math.NaN()
		default:
			out += v
		}
	}
	return out
}
