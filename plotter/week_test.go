package plotter

import (
	"slices"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/plottertest"
)

func TestWeek_BurstIsOnlyInEnvelope(t *testing.T) {
	n := plottertest.Week(t).Nodes["0"]
	samples, band := n.Samples.Column("cpu_pct_per_cpu_avg"), n.Envelope["cpu_pct_per_cpu_avg"]
	if got := slices.Max(samples); !(got <= 50) {
		t.Errorf("greatest kept sample is %v %%, want at most 50: only the envelope may show the burst", got)
	}
	if got := slices.Max(band.Mean); !(got <= 50) {
		t.Errorf("greatest mean is %v %%, want at most 50: only the greatest values may show the burst", got)
	}
	check.Equal(t, slices.Max(band.Max), 100, "greatest value in the envelope")
	if n.Sampling.Samples != plottertest.WeekSeconds || n.Sampling.Stride != 1024 {
		t.Errorf("sampling %+v, want %d samples and a stride of 1024", n.Sampling, plottertest.WeekSeconds)
	}
}
