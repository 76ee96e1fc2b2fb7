package plotter

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/reporter"
)

// An hour in which the machine was suspended is drawn as a gap, and the values before and after it keep their times.
func TestWithSuspendGaps_DrawsSuspendAsGap(t *testing.T) {
	const at, slept = 30, 3600.0
	r := plottertest.Minute(0)
	n := r.Nodes["0"]
	times := n.Envelope[collector.Timestamp.Key()]
	for i := at; i < len(times.Max); i++ {
		times.Max[i] += slept
	}
	woke := reporter.Time{Time: plottertest.Start().Add(time.Duration(at+slept+1) * time.Second)}
	n.Sampling.Suspends = []reporter.ClockEvent{{At: woke, Seconds: slept}}
	axis, charts := withSuspendGaps(&r.Run, n, Charts(n))
	if len(axis.Ends) != 61 || axis.Ends[at-1] != at || axis.Ends[at] != at+slept || axis.Ends[at+1] != at+slept+1 {
		t.Fatalf("%d buckets, ending around the suspend at %v s; want 61, with a bucket of %v s", len(axis.Ends),
			axis.Ends[at-1:at+3], slept)
	}
	eachSeries(charts, func(s *Series) {
		if !math.IsNaN(s.Band.Max[at]) || math.IsNaN(s.Band.Max[at-1]) || math.IsNaN(s.Band.Max[at+1]) || len(s.Band.Max) != 61 {
			t.Errorf("%s: values around the suspend %v, want one NaN in the middle; %d values, want 61", s.Label,
				s.Band.Max[at-1:at+2], len(s.Band.Max))
		}
	})
}

// The page shows the delay of nodes that begin later than the first one.
func TestPage_ShowsStartDelayOfLaterNodes(t *testing.T) {
	r := plottertest.Minute(0)
	late := *r.Nodes["0"]
	sampling := *late.Sampling
	sampling.Start = reporter.Time{Time: plottertest.Start().Add(-time.Hour)}
	late.Sampling = &sampling
	r.Nodes["1"] = &late
	wantParts(t, "page", pageOf(t, r), "<dt>node 0</dt><dd>began 1 h 00 min after the first node</dd>")
}

// Time axes have few ticks, in a suitable unit.
func TestNewTimeAxis(t *testing.T) {
	for length, want := range map[float64]string{
		0: "0 0.2 0.4 0.6 0.8 1 s", 6.9: "0 2 4 6 s", 60: "0 10 20 30 40 50 60 s", 164: "0 30 60 90 120 150 s",
		600: "0 2 4 6 8 10 min", 4000: "0 15 30 45 60 min", 6 * hour: "0 1 2 3 4 5 6 h", 7 * day: "0 2 4 6 d",
	} {
		a := newTimeAxis(length, 6)
		var got []string
		for _, v := range a.Ticks {
			got = append(got, a.label(v))
		}
		check.Equal(t, strings.Join(append(got, a.Unit), " "), want, "axis of %v s", length)
	}
}

// The job's GPUs have the palette's first colors. Others are grey, unless all GPUs are alike, or too many for lines.
func TestCharts_DrawGPUsOfOthersInGrey(t *testing.T) {
	for _, tt := range []struct {
		ofJob []bool
		want  string
	}{
		{[]bool{true, true}, "GPU 0 0 0; GPU 1 1 0; "},
		{[]bool{false, false}, "GPU 0 0 0; GPU 1 1 0; "},
		{[]bool{false, true, false}, "GPU 0, not the job's 4 0; GPU 1 0 0; GPU 2, not the job's 4 1; "},
		{[]bool{true, false, false, false}, "GPU 0 0 0; GPU 1 1 0; GPU 2 2 0; GPU 3 3 0; "},
	} {
		n := plottertest.Limited(0, 20, len(tt.ofJob)).Nodes["0"]
		for i, own := range tt.ofJob {
			n.GPUs[i].OfJob = own
		}
		charts := Charts(n)
		i := slices.IndexFunc(charts, func(c Chart) bool { return c.ID == "gpu_utilization" })
		got := ""
		for _, s := range charts[i].Series {
			got += fmt.Sprintln(s.Label, s.Color, s.Dash)
		}
		if got = strings.ReplaceAll(got, "\n", "; "); got != tt.want {
			t.Errorf("GPUs of the job %v: labels, colors and dashes %q, want %q", tt.ofJob, got, tt.want)
		}
	}
}

// The kinds of the job's memory are drawn on top of each other, without those that were never measured. The page
// has the values of each kind. A kill ends the chart.
func TestCharts_StackKindsOfMemory(t *testing.T) {
	nan := math.NaN()
	values := map[collector.Column][]float64{
		collector.JobMemoryAnon: {1, 2, nan, 4}, collector.JobMemoryShmem: {10, nan, 30, 40}, collector.JobMemoryFile: {100, 200, 300, 400},
	}
	r := plottertest.Report(0, plottertest.Recording(4, time.Second, func(i int, s *collector.Sample) {
		for c, list := range values {
			s.Values[c] = list[i]
		}
	}))
	charts := Charts(r.Nodes["0"])
	c := charts[slices.IndexFunc(charts, func(c Chart) bool { return c.ID == "memory_parts" })]
	var own, stacked []string
	for i, s := range c.stack().Series {
		own = append(own, fmt.Sprint(c.Series[i].Band.Mean))
		stacked = append(stacked, fmt.Sprint(s.Label, s.Band.Min, s.Band.Max))
	}
	check.Equal(t, stacked, []string{
		"anonymous[0 0 0 0] [1 2 NaN 4]",
		"/dev/shm, tmpfs, shared memory[1 2 NaN 4] [11 2 NaN 44]",
		"files and page cache[11 2 NaN 44] [111 202 NaN 444]",
	}, "lower and upper ends of the areas")
	check.Equal(t, own, []string{"[1 2 NaN 4]", "[10 NaN 30 40]", "[100 200 300 400]"}, "values")
	check.Equal(t, c.top(), 444.0, "highest value of the axis")

	k := plottertest.Killed()
	for _, column := range []collector.Column{collector.JobMemoryAnon, collector.JobMemoryShmem} {
		k.Nodes["0"].Envelope[column.Key()] = k.Nodes["0"].Envelope[collector.JobMemory.Key()]
	}
	_, charts = withSuspendGaps(&k.Run, k.Nodes["0"], Charts(k.Nodes["0"]))
	c = charts[slices.IndexFunc(charts, func(c Chart) bool { return c.ID == "memory_parts" })]
	last := c.stack().Series[1].Band.Max
	check.True(t, math.IsNaN(last[len(last)-1]) && !math.IsNaN(last[len(last)-2]) && c.top() < 600,
		"values of the second area = %v, want none after the kill", last)
}
