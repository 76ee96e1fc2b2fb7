package terminal

import (
	"math"

	"github.com/perfagent/perfagent/collector"
)

// CombineRanks returns the newest values of a node, combined from the values of its ranks. The values of the host are
// from any rank that measured them, and the values of the jobs are added. Percentages of jobs do not add up, so they
// are known only if a single rank has them.
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
		case !ofJob: // any rank's measurement of the host will do
		case c.IsPercent():
			return math.NaN()
		default:
			out += v
		}
	}
	return out
}
