package plotter

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// worked returns a one-minute report with operations.
func worked() *reporter.Report { return reportertest.AddOperations(plottertest.Minute(0)) }

// busy returns a report with a thousand buckets and 32 series of each kind.
func busy() *reporter.Report {
	r := reportertest.AddOperations(reportertest.Large(0, 1, 1000))
	draws(r.Nodes["0"], 32)
	return r
}

// draws adds the timelines of the given number of series of each kind to a node. The peak of series i is i+1.
func draws(n *reporter.Node, series int) {
	for i := range series {
		name := fmt.Sprintf("series-%02d", i)
		for _, key := range []string{
			"op:%s:per_second", "op:%s:time_ms", "counter:%s:per_second", "gauge:%s", "transfer:%s:mb_per_second",
		} {
			b := reporter.Band{}
			for k := range n.Samples.Len() {
				v := float64(i+1) * (1 - math.Abs(math.Sin(float64(k)))/2)
				v = math.Round(v*1e6) / 1e6 // reports have this precision
				b.Min, b.Mean, b.Max = append(b.Min, v/2), append(b.Mean, v*0.75), append(b.Max, v)
			}
			n.Envelope[fmt.Sprintf(key, name)] = b
		}
	}
}

// chartsIn returns the IDs of the charts on a page.
func chartsIn(page string) []string {
	var ids []string
	figures := regexp.MustCompile(`<figure data-chart="([a-z_]+)"`)
	for _, found := range figures.FindAllStringSubmatch(page, -1) {
		ids = append(ids, found[1])
	}
	return ids
}

func TestPicture_OperationsGolden(t *testing.T) {
	for name, o := range map[string]PictureOptions{
		"work":        {Width: 800},
		"work_metric": {Width: 800, Metric: "op:store.get:time_ms"},
	} {
		got := pictureSVG(t, worked(), o)
		reportertest.CompareGolden(t, filepath.Join("testdata", name+".svg"), got, *update)
		pictureWellFormed(t, worked(), o)
		if len(picturePNG(t, worked(), o)) == 0 {
			t.Errorf("%s: the PNG is empty", name)
		}
	}
}

// Each operation series can be drawn alone, with its unit. The error for an unknown key lists the known ones.
func TestPicture_DrawsSingleOperationSeries(t *testing.T) {
	r := worked()
	for key, title := range map[string]string{
		"op:store.get:per_second": ">op:store.get:per_second<", "op:store.get:time_ms": ">op:store.get:time_ms<",
		"counter:rows<b>:per_second": ">counter:rows&lt;b&gt;:per_second<", "gauge:queue": ">gauge:queue<",
		"transfer:nixl:mb_per_second": ">transfer:nixl:mb_per_second<", "transfer:nixl:time_ms": ">transfer:nixl:time_ms<",
	} {
		wantParts(t, "picture of "+key, string(pictureSVG(t, r, PictureOptions{Width: 800, Metric: key})), title)
	}

	err := WriteSVG(io.Discard, r, PictureOptions{Width: 800, Metric: "op:none:time_ms"})
	for _, want := range []string{
		`nothing of "op:none:time_ms" was measured`, "cpu_pct_per_cpu_avg, ", ", op:store.get:per_second, ", ", gauge:queue, ",
	} {
		check.Error(t, err, want)
	}

	draws(r.Nodes["0"], 100)
	r.Nodes["0"].Envelope["gauge:\x1b[31m"+strings.Repeat("x", 1000)] = r.Nodes["0"].Envelope["gauge:queue"]
	err = WriteSVG(io.Discard, r, PictureOptions{Width: 800, Metric: "none"})
	if err == nil || len(err.Error()) > 4000 || !strings.Contains(err.Error(), " more") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("error of a report with many lines: %v, want at most 4000 printable bytes and a count of the rest",
			err)
	}
}

// The operation charts follow the CPU chart. A page without operations has no such charts.
func TestPage_OperationChartsFollowCPU(t *testing.T) {
	got := strings.Join(chartsIn(pageOf(t, worked())), " ")
	if want := "memory cpu " + strings.Join(plottertest.OperationCharts(), " ") + " disk_io"; !strings.HasPrefix(got, want) {
		t.Errorf("charts %s, want %s first", got, want)
	}

	bare := pageOf(t, plottertest.Minute(0))
	for _, id := range plottertest.OperationCharts() {
		wantNone(t, "page without operations", bare, `data-chart="`+id, "<table data-"+id)
	}
}

// A chart shows the lines with the highest peaks, and the page counts the omitted lines.
func TestPage_DrawsHighestLinesAndCountsOthers(t *testing.T) {
	r := worked()
	draws(r.Nodes["0"], 32)
	chosen, more := chosenLines(r.Nodes["0"])
	count := make(map[reporter.OperationTimeline]int)
	for _, l := range chosen {
		count[kindOf(l)]++
	}
	for kind, n := range count {
		if n > maxLines {
			t.Errorf("%d lines of kind %+v, want at most %d", n, kind, maxLines)
		}
	}
	check.Equal(t, len(chosen)+more, len(r.Nodes["0"].Timelines()), "number of lines that are drawn or counted")

	page := pageOf(t, r)
	wantParts(t, "page", page, fmt.Sprintf("the report has %d more.", more), `"n":"series-31"`)
	wantNone(t, "page", page, `"n":"series-03"`) // a low line
}

func TestPage_HasTablesOfOperations(t *testing.T) {
	page := pageOf(t, worked())
	wantParts(t, "page", page,
		`<table data-operations><thead><tr><th>operation</th><th class="n">calls</th><th class="n">failed</th><th class="n">avg ms</th><th class="n">p90 ms</th><th class="n">max ms</th><th class="n">total ms</th>`,
		`<tr data-series="store.get"><th scope="row">store.get</th><td class="n">1,234</td><td class="n">3</td>`+
			`<td class="n">0.62</td><td class="n">1.1</td><td class="n">12</td><td class="n">765.08</td></tr>`,
		`<th scope="row">GET /&lt;script&gt;alert(1)&lt;/script&gt;{code=&#34;200&#34;}</th><td class="n">10</td>`,
		`<th scope="row">vllm:time_to_first_token_seconds</th><td class="n">40</td><td class="n">–</td><td class="n">55</td><td class="n">~80</td><td class="n">–</td>`,
		`<th scope="row">only.failed</th><td class="n">0</td><td class="n">2</td><td class="n">–</td>`,
		`<table data-counters>`, `<th scope="row">rows&lt;b&gt;</th><td class="n">123,456</td>`,
		`<table data-gauges>`, `<th scope="row">queue</th><td class="n">-1</td><td class="n">4.5</td><td class="n">9</td><td class="n">3</td>`,
		`<table data-values>`, `<th scope="row">batch</th><td class="n">12</td><td class="n">31.5</td><td class="n">60</td><td class="n">64</td><td class="n">rows</td>`,
		`<table data-transfers>`, `<th scope="row">nixl</th><td class="n">120</td><td class="n">9.9</td><td class="n">15</td><td class="n">7,070.707</td><td class="n">8,400</td><td class="n">2</td>`,
		"Counts and sums are at least what is shown: 42 datagrams of the job could not be read.")

	r := worked()
	r.Nodes["0"].Operations.Dropped.Kernel = 0
	wantNone(t, "page without loss", pageOf(t, r), "at least what is shown")
	quiet := plottertest.Minute(0)
	quiet.Nodes["0"].Operations = reportertest.AddOperations(plottertest.Minute(0)).Nodes["0"].Operations
	*quiet.Nodes["0"].Operations = reporter.Operations{}.Operations
	wantParts(t, "page without operations", pageOf(t, quiet), "The job has reported no operations.")
	wantNone(t, "page without operations", pageOf(t, quiet), "<table data-operations>")
}

// A page of several nodes has one table with the operations of all nodes.
func TestPage_NodesShareOneTableOfOperations(t *testing.T) {
	r := plottertest.Minute(0)
	r.Nodes["1"] = plottertest.Minute(1).Nodes["1"]
	reportertest.AddOperations(r)
	r.Nodes["1"].Envelope["op:only.here:per_second"] = r.Nodes["1"].Envelope["op:store.get:per_second"]
	r.Nodes["2"] = plottertest.Minute(2).Nodes["2"] // without operations
	page := pageOf(t, r)
	wantParts(t, "page", page,
		"p90 is the worst node&#39;s; over all nodes, it is at most that.", `<th class="n">slowest node</th>`,
		`<th scope="row">store.get</th><td class="n">2,468</td><td class="n">6</td><td class="n">0.93</td><td class="n">2.2</td><td class="n">12</td><td class="n">1,530.16</td><td class="n">1</td>`)
	check.Equal(t, strings.Count(page, "<table data-operations>"), 1, "number of tables of operations")

}

// The page stays small even if no two nodes have a series in common.
func TestPage_StaysSmallWithOperationsOfManyNodes(t *testing.T) {
	p := NewPage(PageOptions{})
	var run *reporter.Run
	for i := range 200 {
		r := plottertest.Minute(i)
		n := r.Nodes[fmt.Sprint(i)]
		for k := range 64 {
			key := fmt.Sprintf("gauge:%d-%d%s", i, k, strings.Repeat("x", 180))
			n.Envelope[key] = n.Envelope["mem_percent"]
		}
		run = &r.Run
		p.Add(run, fmt.Sprint(i), n)
	}
	if n := len(written(t, p, run)); n > 8<<20 {
		t.Errorf("page has %d bytes, want at most 8 MiB", n)
	}
}

// The name of a series is plain text in charts, in tables and in the data of the script.
func TestPage_TreatsHostileSeriesNamesAsText(t *testing.T) {
	testenv.SkipIfShort(t, "a page of each name")
	for name, evil := range plottertest.HostileStrings() {
		t.Run(name, func(t *testing.T) {
			r := worked()
			n := r.Nodes["0"]
			ops := n.Operations
			ops.Times[evil], ops.Counters[evil] = ops.Times["store.get"], 1
			ops.Gauges[evil], ops.Values[evil] = ops.Gauges["queue"], ops.Values["batch"]
			n.Transfers[evil] = n.Transfers["nixl"]
			for _, l := range n.Timelines() {
				l.Series = evil
				n.Envelope[l.Key()] = n.Envelope["gauge:queue"]
			}
			r.Nodes["1"] = n

			page := pageOf(t, r)
			check.Equal(t, strings.Count(page, "<script"), 2, "number of script elements")
			wantNone(t, "page", page, "\x1b", "\x07", "\u202e", "\u200b")
			pictureWellFormed(t, r, PictureOptions{Width: MinWidth})
			pictureWellFormed(t, r, PictureOptions{Width: 800, Metric: "gauge:" + evil})
			picturePNG(t, r, PictureOptions{Width: MinWidth})
		})
	}
}

// A picture can be drawn whatever numbers a damaged report has.
func TestPicture_SurvivesHostileOperationNumbers(t *testing.T) {
	for _, values := range [][]float64{
		{1.7e308, -1.7e308, 0}, {5e-324, 0, 5e-324}, {-1, -2, -3}, {math.Inf(1), math.NaN(), 3}, {},
	} {
		r := plottertest.HostileNumbers(values, []float64{1, 2, 3}[:len(values)])
		n := reportertest.AddOperations(r).Nodes["0"]
		for _, l := range n.Timelines() {
			list := reporter.Numbers(values)
			n.Envelope[l.Key()] = reporter.Band{Min: list, Mean: list, Max: list}
		}
		n.Operations.Counters["x"] = math.NaN()
		pageOf(t, r)
		pictureWellFormed(t, r, PictureOptions{Width: 800})
	}
}

// BenchmarkPageWork makes the page of one node with a thousand buckets and 32 series of each kind.
func BenchmarkPageWork(b *testing.B) {
	r, size := busy(), 0
	for b.Loop() {
		size = len(pageOf(b, r))
	}
	b.ReportMetric(float64(size), "bytes")
}

// Only the axes of gauges and counters reach below 0, and only if their values do.
func TestChart_AxisIsNegativeOnlyForSignedValues(t *testing.T) {
	for _, c := range []struct {
		key      string
		values   reporter.Numbers
		min, max float64
	}{
		{"gauge:g", reporter.Numbers{-7, -2, 0}, -8, 0},
		{"gauge:g", reporter.Numbers{-7, 30}, -10, 33},
		{"gauge:g", reporter.Numbers{3, 4}, 0, 4.4},
		{"gauge:g", reporter.Numbers{-1e308, 1e308}, -1e300, 1e300},
		{"gauge:g", reporter.Numbers{-5e-324, 1}, 0, 1.1},
		{"counter:c:per_second", reporter.Numbers{-1, 1}, -1, 1.1},
		{"op:o:time_ms", reporter.Numbers{-1, 1}, 0, 1.1},
		{"mem_percent", reporter.Numbers{-1, 50}, 0, 100},
	} {
		n := plottertest.HostileNumbers(c.values, []float64{1, 2, 3}[:len(c.values)]).Nodes["0"]
		n.Envelope[c.key] = reporter.Band{Min: c.values, Mean: c.values, Max: c.values}
		chart, err := ChartOf(n, c.key)
		check.Must(t, err)
		top, exact := chart.limits()
		axis := valueAxis(chart.Unit, chart.bottom(), top, exact, 4)
		near := func(v, want float64) bool { return math.Abs(v-want) <= 1e-9*math.Abs(want) }
		if !near(axis.Min, c.min) || !near(axis.Max, c.max) || len(axis.Ticks) > 12 {
			t.Errorf("axis of %s for %v: from %v to %v with ticks %v; want %v to %v with at most 12", c.key, c.values,
				axis.Min, axis.Max, axis.Ticks, c.min, c.max)
		}
	}

	r := worked()
	n := r.Nodes["0"]
	b := n.Envelope["gauge:queue"]
	for i := range b.Max {
		b.Min[i], b.Mean[i], b.Max[i] = -20, -10, 5
	}
	got := pictureSVG(t, r, PictureOptions{Width: 800, Metric: "gauge:queue"})
	reportertest.CompareGolden(t, filepath.Join("testdata", "below_zero.svg"), got, *update)
}
