package terminal

import (
	"math"
	"testing"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/check"
)

func TestCombineRanks_AddsJobsAndKeepsHost(t *testing.T) {
	t.Parallel()
	rank := func(values map[collector.Column]float64) []float64 {
		out := make([]float64, collector.NumColumns)
		for c := range out {
			out[c] = math.NaN()
		}
		for c, v := range values {
			out[c] = v
		}
		return out
	}
	got := CombineRanks([][]float64{
		nil, // a rank without a sample
		rank(map[collector.Column]float64{collector.JobCPU: 1, collector.JobMemory: 100}),
		rank(map[collector.Column]float64{collector.JobCPU: 2.5, collector.CPUAvg: 40}),
	})
	for c, want := range map[collector.Column]float64{collector.JobCPU: 3.5, collector.JobMemory: 100, collector.CPUAvg: 40} {
		check.Equal(t, got[c], want, "%s", c.Key())
	}
	if !math.IsNaN(got[collector.MemPercent]) {
		t.Errorf("mem_percent, which no rank measured, is %v, want NaN", got[collector.MemPercent])
	}
	if got := CombineRanks(nil); got != nil {
		t.Errorf("CombineRanks without ranks = %v, want nil", got)
	}

	for c := range collector.NumColumns {
		if c.IsPercent() && c.Info().Requires.Has(collector.RequiresJob) {
			one := map[collector.Column]float64{c: 60}
			if v := CombineRanks([][]float64{rank(one), rank(one)})[c]; !math.IsNaN(v) {
				t.Errorf("%s of two ranks is %v, want NaN: percentages do not add up", c.Key(), v)
			}
			check.Equal(t, CombineRanks([][]float64{rank(one), rank(nil)})[c], 60, "%s of the only rank that has it",
				c.Key())
		}
	}
}
