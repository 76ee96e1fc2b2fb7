package plotter

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
	"github.com/perfagent/perfagent/reporter/summary"
)

// Only charts with measurements are drawn, except the five that every node has.
func TestCharts_OmitUnmeasuredCharts(t *testing.T) {
	for name, c := range map[string]struct {
		report *reporter.Report
		want   []string
	}{
		"nothing":    {plottertest.Absent(), plottertest.HostCharts()},
		"host":       {plottertest.Minute(0), plottertest.HostCharts()},
		"job":        {plottertest.Limited(0, 10, 0), slices.DeleteFunc(plottertest.AllCharts(), func(id string) bool { return strings.HasPrefix(id, "gpu") })},
		"job, GPUs":  {plottertest.Limited(0, 10, 3), plottertest.AllCharts()},
		"no samples": {plottertest.Limited(0, 0, 3), plottertest.HostCharts()},
	} {
		var got []string
		for _, chart := range Charts(c.report.Nodes["0"]) {
			got = append(got, chart.ID)
		}
		check.Equal(t, got, c.want, "%s: charts", name)
	}
}

// The job's usage is drawn in color, with a separate line for the usage of others. If the job's usage is unknown, the
// node's usage is in color. An unmeasured value of the job is neither 0 nor attributed to others.
func TestCharts_SeparateJobFromOthers(t *testing.T) {
	set := func(c collector.Column, v float64, until int) func(int, *collector.Sample) {
		return func(i int, s *collector.Sample) {
			if i < until {
				s.Values[c] = v
			}
		}
	}
	for name, c := range map[string]struct {
		chart string
		set   func(int, *collector.Sample)
		want  map[string]float64
	}{
		"no job":         {"cpu", func(int, *collector.Sample) {}, map[string]float64{"the node": 4}},
		"a job":          {"cpu", set(collector.JobCPU, 1, 60), map[string]float64{"this job": 1, "others on the node": 3}},
		"job uses all":   {"cpu", set(collector.JobCPU, 4.5, 60), map[string]float64{"this job": 4.5, "others on the node": 0}},
		"not at the end": {"cpu", set(collector.JobCPU, 1, 50), map[string]float64{}},
		"no job memory":  {"memory", func(int, *collector.Sample) {}, map[string]float64{"the node": 8192}},
		"memory":         {"memory", set(collector.JobMemory, 2048, 60), map[string]float64{"this job": 2048, "others on the node": 6144}},
	} {
		r := plottertest.Report(0, plottertest.Recording(60, time.Second, func(i int, s *collector.Sample) {
			plottertest.Set(s, i, 50, 25, 1)
			c.set(i, s)
		}))
		got := make(map[string]float64)
		for _, chart := range Charts(r.Nodes["0"]) {
			for _, s := range chart.Series {
				if v := s.Band.Mean[59]; chart.ID == c.chart && !math.IsNaN(v) {
					got[s.Label] = v
				}
			}
		}
		check.Equal(t, got, c.want, "%s: last values", name)
	}

	n := plottertest.PerfPy(t).Nodes["0"]
	n.Host = nil // perf.py's files lack the node's capacity unless the user provides it
	for _, c := range Charts(n)[:2] {
		if c.Unit != "%" || len(c.Series) != 1 {
			t.Errorf("chart %s: %d series with unit %s; want 1 with unit %%", c.ID, len(c.Series), c.Unit)
		}
	}
}

// If there is a job, only its lines are in color. The node's lines are grey and differ by their dashes.
func TestCharts_NodeLinesAreGreyIfThereIsAJob(t *testing.T) {
	r := plottertest.Minute(0)
	n := r.Nodes["0"]
	for _, c := range []collector.Column{collector.PSICPUSome, collector.PSIMemorySome, collector.PSIIOSome, collector.JobCPU} {
		n.Envelope[c.Key()] = n.Envelope[collector.CPUAvg.Key()]
	}
	styles := func() map[string]string {
		out := make(map[string]string)
		for _, c := range Charts(n) {
			for _, s := range c.Series {
				out[c.ID] = strings.TrimSpace(out[c.ID] + ", " + s.ink().look().class)
			}
		}
		return out
	}
	want := map[string]string{"cpu": ", j, o", "memory": ", j", "disk_io": ", j s4, j s4 d1", "disk_space": ", j s4",
		"network": ", j s4, j s4 d1, j s4 d2, j s4 d3", "pressure": ", j s4, j s4 d1, j s4 d2"}
	check.Equal(t, styles(), want, "lines")
	page := pageOf(t, r)
	if _, chart, _ := strings.Cut(page, `<figure data-chart="pressure"`); !strings.Contains(chart, `<path class="j s4`) ||
		strings.Contains(chart[:strings.Index(chart, "</figure>")], `<path class="w"`) {
		t.Error("the page's chart of waiting tasks on the node is not in grey")
	}
	n.Job = nil
	check.Equal(t, styles()["pressure"], ", j, j d1, j s1", "lines without a job, which are in color")
}

// If the job failed because the disk was full, the bar and the chart of the disk come first.
func TestPage_ShowsFullDiskFirst(t *testing.T) {
	r := plottertest.Report(0, plottertest.Recording(60, time.Second, func(i int, s *collector.Sample) {
		plottertest.Set(s, i, 50, 25, 1)
		s.Values[collector.JobCPU], s.Values[collector.JobMemory], s.Values[collector.DiskPercent] = 1, 512, 40+float64(i+1)
		s.Values[collector.JobReadRate], s.Values[collector.JobWriteRate] = 5, 5
	}))
	n, exit := r.Nodes["0"], 1
	n.Job.ExitCode, r.Run.ExitCode = &exit, &exit
	n.Metrics[reporter.MetricJobMemoryPeak], n.Metrics[reporter.MetricJobCores] = 512, 1
	n.Verdict = &reporter.Verdict{Cause: diagnosis.CauseDiskFull, Conditions: []string{},
		Evidence: map[string]any{"path": "/<b>scratch", "available_mb": 0.0}}
	r.Run.Verdict = n.Verdict
	page := pageOf(t, r)
	check.Equal(t, chartsIn(page)[:3], []string{"disk_space", "memory", "cpu"}, "first charts")
	bars := regexp.MustCompile(`data-bar="(\w+)"`).FindAllString(page, -1)
	check.Equal(t, bars, []string{`data-bar="disk_space"`, `data-bar="memory"`, `data-bar="cpu"`}, "bars")
	wantParts(t, "page", page, `data-chart="disk_space" data-values="0/disk_space" class="big"`,
		`<dt>Disk used</dt><dd class="bar full" data-bar="disk_space" data-value="100" aria-hidden="true">`+
			`<i style="width:100.0%"></i></dd><dd class="v"><b>100 %</b> of /&lt;b&gt;scratch, peak</dd>`)
}

// A sentence replaces a chart without usage.
func TestSettle_ReplacesIdleChartsWithSentences(t *testing.T) {
	r := plottertest.Report(0, plottertest.Recording(60, time.Second, func(i int, s *collector.Sample) {
		plottertest.Set(s, 0, 50, 25, 0)
		s.Values[collector.JobReadRate], s.Values[collector.JobWriteRate] = 5, 0
	}))
	page := pageOf(t, r)
	wantParts(t, "page", page,
		"Nothing written to disk.", "No network traffic on the interfaces that are counted.", "Disk used: at most 40 %.", "<b>Disk reads</b>")
	check.Equal(t, chartsIn(page), []string{"memory", "cpu", "disk_io"}, "charts")
}

// The CPU chart reaches up to the allowed CPUs, and the memory chart up to the limit, if the job comes near them.
// Otherwise the caption names the limit.
func TestChart_ShowsNearLimitAndNamesFarLimit(t *testing.T) {
	for limit, want := range map[float64]string{
		1.5: "CPUs busy, of the 1.5 allowed", 8: "CPUs busy, of the 8 allowed", 16: "CPUs busy, of the 16 allowed",
		17: "CPUs busy; the 17 allowed are above this scale", 0: "CPUs busy, of 8", -1: "CPUs busy, of 8",
		math.Inf(1): "CPUs busy, of 8",
	} {
		r := plottertest.Limited(0, 60, 0)
		r.Nodes["0"].Limits.CPUs = limit
		if page := pageOf(t, r); !strings.Contains(page, ">"+want+"<") && !strings.Contains(page, ">"+want+";") {
			t.Errorf("limit of %v: page lacks %q", limit, want)
		}
		pictureWellFormed(t, r, PictureOptions{Width: 800})
	}
	for limit, want := range map[float64]string{
		1024: ">limit 1.0 GiB<", 1900: ">limit 1.9 GiB<", 1901: ">GiB<", 8192: "; the limit, 8.0 GiB, is above this scale<",
	} {
		r := plottertest.Limited(0, 60, 0)
		r.Nodes["0"].Limits.MemoryMB, r.Nodes["0"].Metrics = series.Optional(limit), nil
		wantParts(t, fmt.Sprintf("page with a limit of %v MiB", limit), pageOf(t, r), want)
	}

	l := &reporter.Limits{CPUs: .5, MemoryMB: 100, CPUsRange: &reporter.LimitRange{Min: .5, Max: 2},
		MemoryRange: &reporter.LimitRange{Min: 100, Max: 200}}
	cpus, words := jobBound(collector.BoundCPUs, l)
	memory, size := jobBound(collector.BoundMemory, l)
	check.Equal(t, fmt.Sprint(cpus, " ", words, ", ", memory, " ", size), "2 0.5 to 2, 200 100 MiB to 200 MiB",
		"bounds of changed limits of CPUs and memory")
}

// Up to three GPUs are lines of different colors. If there are more, each GPU is a row of colors.
func TestCharts_GPUsAreDistinguishable(t *testing.T) {
	for _, gpus := range []int{3, 4, collector.MaxGPUs} {
		r := plottertest.Limited(0, 20, gpus)
		charts := 0
		for _, c := range Charts(r.Nodes["0"]) {
			if !strings.HasPrefix(c.ID, "gpu") {
				continue
			}
			charts++
			seen := make(map[[2]int]bool)
			for _, s := range c.Series {
				seen[[2]int{s.Color, s.Dash}] = true
			}
			if len(c.Series) != gpus || c.Rows != (gpus > maxLineGPUs) || !c.Rows && len(seen) != gpus {
				t.Errorf("%s: %d series in %d styles, drawn as rows: %v; want %d series, in as many styles unless drawn as rows",
					c.ID, len(c.Series), len(seen), c.Rows, gpus)
			}
		}
		check.Equal(t, charts, len(plottertest.GPUCharts()), "%d GPUs", gpus)
		svg := string(pictureSVG(t, r, PictureOptions{Width: 800}))
		check.Equal(t, strings.Contains(svg, `class="h10"`), gpus > maxLineGPUs,
			"%d GPUs: the picture has rows of colors", gpus)
		pictureWellFormed(t, r, PictureOptions{Width: 800})
		picturePNG(t, r, PictureOptions{Width: 800})
	}
}

// BenchmarkJobView_Page makes the page of a job with limits on one node with a thousand buckets, without GPUs and with
// four GPUs.
func BenchmarkJobView_Page(b *testing.B) {
	for _, gpus := range []int{0, 4} {
		b.Run(strconv.Itoa(gpus)+"GPUs", func(b *testing.B) {
			r, size := plottertest.Limited(0, 1000, gpus), 0
			for b.Loop() {
				size = len(pageOf(b, r))
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}

// The texts in a report may have any size, but their size on the page is limited.
func TestPage_LimitsTextFromReport(t *testing.T) {
	n := &reporter.Node{}
	for i := range maxPageLines + 100 {
		n.Missing = append(n.Missing, reporter.Missing{What: "w" + strings.Repeat("w", i%7), Why: strings.Repeat("x", 1<<16)})
		n.Findings = append(n.Findings, reporter.Finding{ID: "x", Severity: "warning", Text: strings.Repeat("y", 1<<16)})
	}
	p := newPageNode(&reporter.Run{}, "0", n)
	page := &Page{nodes: []*pageNode{p}}
	r := page.report(&reporter.Run{})
	head := page.head(r, summary.Conclude(r))
	size := 0
	for _, m := range p.missing {
		size += len(m.Why)
	}
	for _, words := range head.Notes {
		size += len(words)
	}
	if len(p.missing) != maxPageLines+1 || len(head.Notes) > maxPageLines || size > 2*maxPageText+maxPageLines*2*(cutPageText+8) {
		t.Errorf("page has %d reasons, %d findings, %d bytes of text; want %d, %d, at most %d", len(p.missing),
			len(head.Notes), size, maxPageLines+1, maxPageLines, 2*maxPageText+maxPageLines*2*(cutPageText+8))
	}
	check.Equal(t, len(p.missing[0].Why), 1<<16, "number of bytes of the first reason")
}
