package terminal

import (
	"math"
	"slices"

	"github.com/perfagent/perfagent/collector"
)

// Together returns the newest values of a node from those of its ranks: of the host, from whoever measured it; of the
// jobs, the sum. Percentages of jobs do not add up, and are only there if one rank has them.
func Together(ranks [][]float64) []float64 {
	var out []float64
	for _, values := range ranks {
		for len(out) < len(values) {
			out = append(out, math.NaN())
		}
		for i, v := range values {
			c := collector.Column(i)
			switch {
			case math.IsNaN(v):
			case math.IsNaN(out[i]):
				out[i] = v
			case c.Info().Needs.Has(collector.NeedJob) && !c.Percent():
				out[i] += v
			}
		}
	}

	return withoutShares(out, ranks)
}

// withoutShares leaves out percentages of jobs that several ranks have.
func withoutShares(out []float64, ranks [][]float64) []float64 {
	for i := range out {
		c := collector.Column(i)
		if !c.Percent() || !c.Info().Needs.Has(collector.NeedJob) {
			continue
		}
		has := func(values []float64) bool { return i < len(values) && !math.IsNaN(values[i]) }
		if first := slices.IndexFunc(ranks, has); first >= 0 && slices.ContainsFunc(ranks[first+1:], has) {
			out[i] = math.NaN()
		}
	}

	return out
}
