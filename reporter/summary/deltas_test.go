package summary

import (
	"fmt"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/reporter"
)

func TestDeltas(t *testing.T) {
	t.Parallel()
	spread := func(least, median, greatest float64) *reporter.Spread {
		return &reporter.Spread{Min: least, Median: median, Max: greatest}
	}
	four := reporter.Earlier{Runs: 4, WallSeconds: *spread(13, 14.1, 15), CPUSeconds: spread(18, 18.7, 23),
		PeakMemoryMB: spread(240, 243.2, 250)}
	one := reporter.Earlier{Runs: 1, WallSeconds: *spread(21, 21, 21)}
	for _, c := range []struct {
		name    string
		earlier *reporter.Earlier
		code    int
		job     *reporter.Job
		want    string
	}{
		{"within and outside the range", &four, 0, &reporter.Job{CPUSeconds: 22.8, PeakMemoryMB: 290.9},
			"[{time +16 % 14.1 s true} {CPU time +22 % 18.7 s false} {peak memory +20 % 243 MiB true}] " +
				"median of 4 runs"},
		{"equal and unknown numbers", &four, 0, &reporter.Job{CPUSeconds: 18.74, CPUAtLeast: true, PeakMemoryMB: 242.7},
			"[{time +16 % 14.1 s true} {peak memory ±0 % 243 MiB false}] " +
				"median of 4 runs"},
		{"tiny amounts", &reporter.Earlier{Runs: 4, WallSeconds: *spread(0.01, 0.01, 0.01), CPUSeconds: spread(0.01, 0.01, 0.01)}, 0,
			&reporter.Job{CPUSeconds: 0.05}, "[{time >+999 % 10 ms true}] median of 4 runs"},
		{"single earlier run", &one, 0, nil, "[{time -22 % 21.0 s false}] the previous run"},
		{"failed run", &four, 3, nil, "[] "},
		{"no earlier run", nil, 0, nil, "[] "},
		{"invalid earlier runs", &reporter.Earlier{Runs: 1}, 0, nil, "[] "},
	} {
		r := &reporter.Report{Run: reporter.Run{WallSeconds: 16.3, ExitCode: &c.code},
			Nodes: map[string]*reporter.Node{"0": {Job: c.job, Earlier: c.earlier, Metrics: reporter.Values{}}}}
		list, note := Deltas(r)
		check.Equal(t, fmt.Sprint(list, " ", note), c.want, "%s: deltas", c.name)
	}

	list, note := Deltas(&reporter.Report{Nodes: map[string]*reporter.Node{"0": nil}})
	wantValues(t, "deltas and note of an empty node", "[] ", list, note)
}
