package plotter

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/reporter"
)

// stackedOf returns the last values of a stacked chart of a minute, by label.
func stackedOf(chart string, set func(i int, s *collector.Sample)) map[string]float64 {
	r := plottertest.Report(0, plottertest.Recording(60, time.Second, func(i int, s *collector.Sample) {
		plottertest.Set(s, i, 50, 25, 1)
		set(i, s)
	}))
	out := make(map[string]float64)
	for _, c := range Charts(r.Nodes["0"]) {
		for _, s := range c.Series {
			if v := s.Band.Mean[59]; c.ID == chart && !math.IsNaN(v) {
				out[s.Label] = v
			}
		}
	}
	return out
}

// The layers are the job, the others and the rest, and together the capacity. An unmeasured value is neither 0 nor the
// others'.
func TestStacked_Layers(t *testing.T) {
	job := func(v float64) func(int, *collector.Sample) {
		return func(_ int, s *collector.Sample) {
			s.Values[collector.JobCPU], s.Values[collector.JobMemory] = v, v*1024
		}
	}
	for name, c := range map[string]struct {
		chart string
		set   func(int, *collector.Sample)
		want  map[string]float64
	}{
		"no job":       {"cpu", func(int, *collector.Sample) {}, map[string]float64{"busy": 4, "idle": 4}},
		"a job":        {"cpu", job(1), map[string]float64{"job": 1, "others": 3, "idle": 4, "all busy": 4}},
		"all the job":  {"cpu", job(4), map[string]float64{"job": 4, "others": 0, "idle": 4, "all busy": 4}},
		"more than is": {"cpu", job(4.5), map[string]float64{"job": 4.5, "others": 0, "idle": 3.5, "all busy": 4}},
		"not at the end": {"cpu", func(i int, s *collector.Sample) {
			if i < 50 {
				s.Values[collector.JobCPU] = 1
			}
		}, map[string]float64{"job and others, not told apart": 4, "idle": 4, "all busy": 4}},
		"memory, no job": {"memory", func(int, *collector.Sample) {}, map[string]float64{"used": 8192, "free": 24576}},
		"memory": {"memory", func(i int, s *collector.Sample) {
			job(2)(i, s)
			s.Values[collector.JobPageCache] = 1024
		}, map[string]float64{"job": 2048, "others": 6144, "cache": 1024, "free": 23552, "all used": 8192}},
	} {
		if got := stackedOf(c.chart, c.set); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: layers %v, want %v", name, got, c.want)
		}
	}
}

// perf.py's files lack the node's capacity, unless the user gives it: the charts are in percent.
func TestStacked_PerfPyChartsAreInPercent(t *testing.T) {
	n := plottertest.PerfPy(t).Nodes["0"]
	n.Host = nil
	for _, c := range Charts(n)[:2] {
		if c.Unit != "%" || c.Top != 100 || len(c.Series) != 1 {
			t.Errorf("chart %s: %d series in %s up to %v; want 1 in %% up to 100", c.ID, len(c.Series), c.Unit, c.Top)
		}
	}
}

// The axis shows the whole node, or the job's need if that is much less; the limit is always on it.
func TestStacked_AxisShowsNodeOrNeedOfJob(t *testing.T) {
	for limit, want := range map[float64]float64{32768: 32768, 16384: 32768, 1024: 1536} {
		r := plottertest.Limited(0, 60, 0)
		r.Nodes["0"].Limits.MemoryMB = series.Optional(limit)
		charts := Charts(r.Nodes["0"])
		c := charts[slices.IndexFunc(charts, func(c Chart) bool { return c.ID == "memory" })]
		if axis := c.valueAxis(4); axis.Max != want {
			t.Errorf("a limit of %v MiB: the axis ends at %v, want %v", limit, axis.Max, want)
		}
	}
}

// A chart in which nothing happened is a third as high as the others.
func TestQuiet_ChartsAreAThirdAsHigh(t *testing.T) {
	r := plottertest.Report(0, plottertest.Recording(60, time.Second, func(i int, s *collector.Sample) {
		plottertest.Set(s, 0, 50, 25, 0)
		s.Values[collector.DiskReadRate] = 5
	}))
	var quiet []string
	for _, c := range Charts(r.Nodes["0"]) {
		if c.Quiet() {
			quiet = append(quiet, c.ID)
		}
	}
	if !slices.Equal(quiet, []string{"network", "disk_space"}) {
		t.Errorf("quiet charts %q, want network and disk_space", quiet)
	}
	if h := float64(quietHeight) / chartHeight; h > 0.34 || quietHeight < 48 {
		t.Errorf("a quiet chart has %v of the usual height and %d pixels; want at most 0.34, at least 48", h,
			quietHeight)
	}
}

func TestClock(t *testing.T) {
	for seconds, want := range map[float64]string{0: "0:00:00", 59.6: "0:01:00", 65: "0:01:05", 3599: "0:59:59", 604800: "168:00:00"} {
		if got := clock(seconds, 0); got != want {
			t.Errorf("clock(%v s) = %s, want %s", seconds, got, want)
		}
	}
	if got := clock(61.25, 1); got != "0:01:01.2" && got != "0:01:01.3" {
		t.Errorf("clock(61.25 s) with a decimal = %s, want 0:01:01.2 or 0:01:01.3", got)
	}
}

// A live page has the time of its update, and not that the end is unknown.
func TestPage_LivePageHasTimeOfUpdate(t *testing.T) {
	r := plottertest.Minute(0)
	r.Run.ExitCode, r.Run.Incomplete = nil, "the job is still running"
	n := r.Nodes["0"]
	n.Missing = append(n.Missing, reporter.Missing{What: "wall_seconds", Code: reporter.JobGoesOn, Why: "the job's end is not known"})
	for live, want := range map[time.Duration]bool{time.Second: true, 0: false} {
		var out bytes.Buffer
		if err := WritePage(&out, r, PageOptions{Live: live}); err != nil {
			t.Fatal(err)
		}
		page := out.String()
		if got := strings.Contains(page, `data-at="1769860860">12:01:00 UTC</time>`); got != want {
			t.Errorf("live %v: page contains the time of its update: %v, want %v", live, got, want)
		}
		if noise := strings.Contains(page, "<li><b>wall_seconds</b>"); noise == want {
			t.Errorf("live %v: page lists that the end is unknown: %v, want %v", live, noise, !want)
		}
		if running := strings.Contains(page, `<div class="state live"`); running != want {
			t.Errorf("live %v: head shows that the job is running: %v, want %v", live, running, want)
		}
	}
}

// Pages of other nodes are linked by their names.
func TestPage_LinksSiblings(t *testing.T) {
	var out bytes.Buffer
	if err := WritePage(&out, plottertest.Minute(0), PageOptions{Siblings: []string{"node-1.html", "node-12.html"}}); err != nil {
		t.Fatal(err)
	}
	if page := out.String(); !strings.Contains(page, `<a href="node-1.html">node 1</a> <a href="node-12.html">node 12</a>`) {
		t.Error("page lacks the links to node 1 and node 12")
	}
}
