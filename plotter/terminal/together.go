package terminal

import (
	"math"

	"github.com/perfagent/perfagent/collector"
)

// Together returns the newest values of a node from those of its ranks: of the host, from whoever measured it; of the
// jobs, the sum. Percentages of jobs do not add up, and are only there if one rank has them.
func Together(ranks [][]float64) []float64 {
	width := 0
	for _, values := range ranks {
		width = max(width, len(values))
	}

	var out []float64 // nil if no rank has a sample yet
	for c := range collector.Column(width) {
		out = append(out, columnTogether(c, ranks))
	}
	return out
}

// columnTogether returns the value of one column; NaN if no rank has it, or several have what does not add up.
func columnTogether(c collector.Column, ranks [][]float64) float64 {
	ofJob := c.Info().Needs.Has(collector.NeedJob)
	out := math.NaN()
	for _, values := range ranks {
		if int(c) >= len(values) || math.IsNaN(values[c]) {
			continue
		}
		switch v := values[c]; {
		case math.IsNaN(out):
			out = v
		case !ofJob: // the host was measured
		case c.Percent():
			return math.NaN()
		default:
			out += v
		}
	}
	return out
}
