package plotter

import (
	"math"
	"testing"

	"github.com/perfagent/perfagent/internal/plottertest"
)

func TestWeekReport_HidesTheBurstFromTheSamples(t *testing.T) {
	n := plottertest.Week(t).Nodes["0"]
	samples, band := n.Samples.Column("cpu_pct_per_cpu_avg"), n.Envelope["cpu_pct_per_cpu_avg"]
	if got := greatestOf(samples); got > 50 {
		t.Errorf("a kept sample has %v %%: the burst could be seen without the envelope", got)
	}
	if got := greatestOf(band.Mean); got > 50 {
		t.Errorf("a mean of %v %%: the burst could be seen without the greatest values", got)
	}
	if got := greatestOf(band.Max); got != 100 {
		t.Errorf("the burst is %v %% in the envelope", got)
	}
	if n.Sampling.Samples != plottertest.WeekSeconds || n.Sampling.Stride != 1024 {
		t.Errorf("%+v", n.Sampling)
	}
}

// greatestOf returns the greatest value.
func greatestOf(values []float64) float64 {
	most := math.Inf(-1)
	for _, v := range values {
		if v > most {
			most = v
		}
	}
	return most
}
