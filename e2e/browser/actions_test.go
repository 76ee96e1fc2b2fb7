//go:build e2e

package browser

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
)

// metrics checks that the page has the metrics of a node: the same numbers, with the units of the table, and a dash for
// each missing metric.
func (b *tab) metrics(n *reporter.Node) {
	b.t.Helper()
	type row struct {
		Name, Text, Title string
		Value             *string
		Unit              *string
	}
	rows := eval[[]row](b, `[...document.querySelectorAll("[data-metric]")].map(e =>
		({Name: e.dataset.metric, Value: e.dataset.value, Unit: e.dataset.unit, Text: e.cells[1].textContent.trim(), Title: e.cells[1].title}))`)
	seen := 0
	for _, r := range rows {
		v, has := n.Metrics[r.Name]
		if !has {
			if r.Value != nil || r.Unit != nil || r.Text != "–" {
				b.t.Errorf("%s on the page: %+v, want \"–\" without a value: it was not measured", r.Name, r)
			}
			continue
		}
		seen++
		m, _ := reporter.MetricByName(r.Name)
		want := strconv.FormatFloat(v, 'f', -1, 64)
		number := strings.TrimSpace(strings.TrimSuffix(r.Text, string(m.Unit)))
		if r.Value == nil || r.Unit == nil || *r.Value != want || *r.Unit != string(m.Unit) || r.Title != want || !four(number, v) {
			b.t.Errorf("%s on the page: %+v, want the value %s and the unit %s", r.Name, r, want, m.Unit)
		}
	}
	all := 0
	for name := range n.Metrics {
		if m, _ := reporter.MetricByName(name); m.Group != reporter.GroupBoot {
			all++
		}
	}
	if seen != all {
		b.t.Errorf("page has %d metrics, want %d", seen, all)
	}
}

// four reports whether text is v with four digits.
func four(text string, v float64) bool {
	got, err := strconv.ParseFloat(text, 64)
	short, _ := strconv.ParseFloat(strconv.FormatFloat(got, 'g', 4, 64), 64)
	return err == nil && math.Abs(got-v) <= 0.50001e-3*math.Abs(v) && text == strconv.FormatFloat(got, 'f', -1, 64) && got == short
}

// edges returns the beginning and the end of a bucket on the time axis, from 0 to 1.
func edges(r *reporter.Report, n *reporter.Node, i int) (begin, end float64) {
	t := plotter.NewTimeline(&r.Run, n)
	if i > 0 {
		begin = t.Ends[i-1] / t.Length()
	}
	return begin, t.Ends[i] / t.Length()
}

// drawn holds the values of a series in the page's data.
type drawn struct {
	Name  string     `json:"n"`
	Means []*float64 `json:"v"`
	Most  []*float64 `json:"hi"`
	Unit  string     `json:"-"`
}

// values returns the values of a chart's first series in the page's data. It checks that they match the report to four
// digits.
func (b *tab) values(n *reporter.Node, chart string) drawn {
	b.t.Helper()
	type data struct {
		Unit  string  `json:"u"`
		Lines []drawn `json:"s"`
	}
	got := eval[data](b, `JSON.parse(document.getElementById("data").textContent).charts[document.querySelector("[data-chart=`+chart+`]").dataset.values]`)
	line := got.Lines[0]
	line.Unit = got.Unit
	for _, c := range plotter.Charts(n) {
		if c.ID != chart || len(c.Series[0].Band.Mean) != len(line.Means) {
			continue
		}
		scale := scaleOf(got.Unit) / scaleOf(c.Unit)
		for i, v := range c.Series[0].Band.Mean {
			if chart == "memory" && n.Verdict != nil && i == len(line.Means)-1 { // sampled after the kill
				break
			}
			if p := line.Means[i]; p == nil != math.IsNaN(v) || p != nil && math.Abs(*p*scale-v) > 1e-3*math.Abs(v) {
				b.t.Errorf("%s: value %d is %v %s on the page, want %v %s", chart, i, p, got.Unit, v, c.Unit)
				break
			}
		}
	}
	return line
}

// scaleOf returns the size of a byte unit in MiB, or 1 for any other unit.
func scaleOf(unit string) float64 {
	for name, mib := range map[string]float64{"B": 1.0 / (1 << 20), "KiB": 1.0 / (1 << 10), "MiB": 1, "GiB": 1 << 10, "TiB": 1 << 20} {
		if strings.TrimSuffix(unit, "/s") == name {
			return mib
		}
	}
	return 1
}

// three formats a number in the same way as the page's script.
func three(v float64) string {
	if math.Abs(v) >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// says checks the readout of a chart: it must show the value of the first series in bucket i.
func (b *tab) says(n *reporter.Node, chart string, i int) {
	b.t.Helper()
	line, want := b.values(n, chart), "not measured"
	if v := line.Means[i]; v != nil {
		want = strings.TrimRight(three(*v)+" "+line.Unit, " ")
	}
	got := b.read(chart)
	if b.count("[data-chart="+chart+"] .key output") > 0 {
		got += eval[string](b, `document.querySelector("[data-chart=`+chart+`] .key output").textContent`)
	}
	if !strings.HasPrefix(got, "at ") || !strings.Contains(got, want) {
		b.t.Errorf("readout of %s = %q, want one containing %q", chart, got, want)
	}
}

// bucket moves the mouse to a bucket in a chart.
func (b *tab) bucket(chart string, r *reporter.Report, n *reporter.Node, i int) {
	b.t.Helper()
	begin, end := edges(r, n, i)
	b.point(b.plot(chart), (begin+end)/2, 0.4)
}

// Hovering over a chart shows the values of all charts at that time, and does not change the layout.
func TestBrowser_HoverReadsValues(t *testing.T) {
	for _, c := range []struct {
		name    string
		report  *reporter.Report
		buckets []int
	}{
		{"one sample", plottertest.Short(), []int{0}},
		{"a minute", plottertest.Minute(0), []int{0, 13, 59}},
		{"a gap", plottertest.Gaps(), []int{5, 30, 45}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, n := openReport(t, c.report, ""), c.report.Nodes["0"]
			height := eval[float64](b, `document.body.scrollHeight`)
			for _, chart := range []string{"cpu", "memory", "disk_io"} {
				for _, i := range c.buckets {
					b.bucket(chart, c.report, n, i)
					b.says(n, "cpu", i)
					b.says(n, "memory", i)
				}
			}
			if got := eval[float64](b, `document.body.scrollHeight`); got != height {
				t.Errorf("height of the page while hovering = %v pixels, want %v as before", got, height)
			}
			b.do(chromedp.MouseEvent(input.MouseMoved, 1, 1))
			if got := b.read("cpu"); got != "" {
				t.Errorf("readout after the mouse left = %q, want none", got)
			}
		})
	}
}

// A burst of two seconds in a week is drawn, and mouse and keyboard can read its values.
func TestBrowser_ShowsShortBurstInAWeek(t *testing.T) {
	r := plottertest.Week(t)
	n := r.Nodes["0"]
	begin, end := edges(r, n, plottertest.Burst(t, n))
	b := openReport(t, r, "")
	b.point(b.plot("cpu"), (begin+end)/2, 0.4)
	if got := b.read("cpu"); !strings.HasPrefix(got, "at 4 d") && !strings.Contains(got, " h ") || !strings.HasSuffix(got, " to 4 CPUs") {
		t.Errorf("readout = %q, want one that reaches 4 CPUs", got)
	}
	plottertest.WantBurst(t, eval[string](b, `document.querySelector("[data-chart=cpu] svg").outerHTML`), begin)
	line := b.values(n, "cpu")
	i := 0
	for *line.Most[i] < 4 {
		i++
	}
	b.do(chromedp.Focus("[data-chart=cpu] .p", chromedp.ByQuery))
	b.keys(kb.Home)
	for range i {
		b.keys(kb.ArrowRight)
	}
	if got := b.read("cpu"); !strings.HasSuffix(got, " to 4 CPUs") {
		t.Errorf("readout by keyboard = %q, want one that reaches 4 CPUs", got)
	}
}

// focus returns the chart or heat map that has the focus; "" = none.
func (b *tab) focus() string {
	b.t.Helper()
	return eval[string](b, `(f => f ? f.dataset.chart || "map " + f.dataset.heatmap : "")(document.activeElement.closest("figure"))`)
}

// All charts can be reached and read with the keyboard, and ranges can be selected. To assistive technology, a chart is
// a slider with its value in words.
func TestBrowser_KeyboardReachesEveryFunction(t *testing.T) {
	r := plottertest.Minute(0)
	n := r.Nodes["0"]
	b := openReport(t, r, "")
	for range 40 {
		if b.focus() == "cpu" {
			break
		}
		b.keys(kb.Tab)
	}
	b.is(`document.activeElement.getAttribute("role") === "slider" && getComputedStyle(document.activeElement).outlineStyle === "solid"`)
	for _, step := range []struct {
		keys string
		want int
	}{{kb.Home, 0}, {kb.ArrowRight + kb.ArrowRight, 2}, {kb.ArrowLeft, 1}, {kb.End, 59}, {kb.ArrowRight, 59}} {
		b.keys(step.keys)
		b.says(n, "cpu", step.want)
		b.says(n, "memory", step.want)
		b.is(`document.activeElement.getAttribute("aria-valuenow") === "` + strconv.Itoa(step.want) + `" && document.activeElement.getAttribute("aria-valuetext").startsWith("at ")`)
	}
	b.keys(kb.ArrowLeft+kb.ArrowLeft, chromedp.KeyModifiers(input.ModifierShift))
	b.picked(n, "cpu", 57, 59)
	b.keys(kb.Escape)
	b.is(`!document.getElementById("sel").classList.contains("on")`)
	if got := b.read("cpu"); got != "" {
		t.Errorf("readout after Esc = %q, want none", got)
	}
}

// picked checks that the readout of a chart shows the mean, the peak and the total of the buckets from first to last.
// Each bucket is one second.
func (b *tab) picked(n *reporter.Node, chart string, first, last int) {
	b.t.Helper()
	line := b.values(n, chart)
	sum, most := 0.0, 0.0
	for _, v := range line.Means[first : last+1] {
		sum, most = sum+*v, max(most, *v)
	}
	want := fmt.Sprintf("mean %s, peak %s %s, total %s CPU·s", three(sum/float64(last+1-first)), three(most), line.Unit, three(sum))
	if got := b.read(chart); got != want {
		b.t.Errorf("readout of %s = %q, want %q", chart, got, want)
	}
}

// Dragging over a range shows its mean, peak and total in all charts, until Clear is clicked.
func TestBrowser_DragShowsMeanPeakAndTotal(t *testing.T) {
	r := plottertest.Minute(0)
	n := r.Nodes["0"]
	b := openReport(t, r, "")
	for _, ends := range [][2]float64{{0.25, 0.5}, {0.5, 0.25}} { // in both directions
		b.drag(b.plot("cpu"), ends[0], ends[1])
		b.is(shown(`document.querySelector("[data-chart=memory] .sel")`) + ` && ` + shown(`document.querySelector("#sel button")`))
		mean, line := 0.0, b.values(n, "cpu")
		for _, v := range line.Means[15:30] {
			mean += *v / 15
		}
		var got float64
		_, err := fmt.Sscanf(b.read("cpu"), "mean %g, peak", &got)
		if err != nil || math.Abs(got-mean) > 0.05*mean {
			t.Errorf("range %v: readout of cpu = %q, want a mean of %v", ends, b.read("cpu"), mean)
		}
		if got := b.read("memory"); !strings.HasPrefix(got, "mean ") || strings.Contains(got, "total") {
			t.Errorf("readout of memory = %q, want its mean and peak, and no total", got)
		}
		b.click(b.box("#sel button"), 0.5, 0.5)
		b.is(`!` + shown(`document.querySelector("[data-chart=memory] .sel")`))
	}
}

// Selecting and clearing a range does not change the layout, on a screen and on a phone. Times below a second are in
// ms.
func TestBrowser_SelectingARangeKeepsLayout(t *testing.T) {
	for name, r := range map[string]*reporter.Report{"a killed job": killedOnBusyNode(), "GPUs": plottertest.Limited(0, 60, 3),
		"phases": plottertest.Job(), "nodes": plottertest.LimitedNodes()} {
		for _, width := range []int64{1280, 900, 390, 320} {
			b := newTab(t)
			b.size(width, 900, 1)
			b.visit(fileOf(t, pageOf(t, r)))
			places := func() string {
				return eval[string](b, `[...document.querySelectorAll(".key, .p, h2")].filter(e => e.offsetParent).map(e => Math.round(e.getBoundingClientRect().top + scrollY)).join(" ")`)
			}
			before := places()
			b.point(b.plot("cpu"), 0.04, 0.5)
			if got := b.read("cpu"); name == "a killed job" && !strings.HasPrefix(got, "at 500 ms: ") {
				t.Errorf("readout of cpu = %q, want a value at 500 ms", got)
			}
			b.drag(b.plot("cpu"), 0.25, 0.5)
			b.is(shown(`document.querySelector("#sel button")`) + ` && document.querySelector("#sel b").textContent.includes(" to ")`)
			if got := places(); got != before {
				t.Errorf("%s, %d px: positions with a range selected = %s, want %s", name, width, got, before)
			}
			cut := eval[[]string](b, `[...document.querySelectorAll("[data-chart] .r, [data-chart] .key output")].filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth).map(e => e.textContent)`)
			if len(cut) > 0 && width >= 390 && name != "nodes" {
				t.Errorf("%s, %d px: truncated readouts: %q", name, width, cut)
			}
			b.click(b.box("#sel button"), 0.5, 0.5)
			if got := places(); got != before || eval[bool](b, shown(`document.querySelector("#sel button")`)) {
				t.Errorf("%s, %d px: positions after Clear = %s, want %s and no button", name, width, got, before)
			}
		}
	}
}

// The memory chart has two scales, with and without scripts.
func TestBrowser_MemoryChartHasScaleOfNode(t *testing.T) {
	for _, scripts := range []bool{true, false} {
		b := newTab(t)
		b.scripts(scripts)
		b.visit(fileOf(t, pageOf(t, plottertest.Job())))
		top := func() string {
			return eval[string](b, `[...document.querySelectorAll("[data-chart=memory] .p")].find(e => e.checkVisibility()).querySelector("svg").getAttribute("aria-label")`)
		}
		if strings.HasSuffix(top(), "at the scale of the node") {
			t.Error("the chart has the scale of the node before a click")
		}
		b.click(b.box("[data-chart=memory] .btn"), 0.5, 0.5)
		if !strings.HasSuffix(top(), "at the scale of the node") {
			t.Errorf("scripts %v: caption after a click = %q, want the scale of the node", scripts, top())
		}
	}
}

// All charts have a line at the time of the kill, where the job's curve ends.
func TestBrowser_DrawsTimeOfKill(t *testing.T) {
	r := plottertest.Limited(0, 60, 2)
	n := r.Nodes["0"]
	n.Verdict.Evidence = map[string]any{"limit_mb": 1024.0, "time": plottertest.Start().Add(59500 * time.Millisecond).Format(time.RFC3339Nano)}
	b := openReport(t, r, "")
	b.is(`[...document.querySelectorAll("[data-chart]")].every(e => e.querySelector("path.k") && e.querySelector(".kx").textContent.startsWith("killed"))`)
	b.is(`document.querySelector("[data-chart]").dataset.chart === "memory" && document.querySelector(".big[data-chart=memory] path.un") !== null`)
	b.is(`document.querySelector("[data-bar]").dataset.bar === "memory"`)
	b.is(`(e => e.querySelector("path.un").getBoundingClientRect().right - e.querySelector("path.k").getBoundingClientRect().left < 2)(document.querySelector("[data-chart=memory]"))`)
}

// If there are more than eight nodes, they are rows of a heat map, which mouse and keyboard can read. The heat map
// shows a burst of two seconds on one of twelve nodes.
func TestBrowser_HeatMapShowsBurst(t *testing.T) {
	r := plottertest.Few()
	b := openReport(t, r, "")
	b.is(`document.querySelectorAll(".node").length === 8 && document.querySelectorAll("[data-nodes] tbody tr").length === 12`)
	node := reportertest.BurstNode(12)
	n := r.Nodes[strconv.Itoa(node)]
	begin, end := edges(r, n, plottertest.Burst(t, n))
	out := func() string { return eval[string](b, `document.querySelector("[data-heatmap=cpu] .r").textContent`) }
	b.point(b.box("[data-heatmap=cpu] .map"), (begin+end)/2, (float64(node)+0.5)/12)
	if got := out(); !strings.HasPrefix(got, fmt.Sprintf("node-%04d at ", node)) || !strings.HasSuffix(got, ": 100 %") {
		t.Errorf("readout of the heat map = %q, want node %d with 100 %%", got, node)
	}
	b.point(b.box("[data-heatmap=cpu] .map"), (begin+end)/2, (float64(node)-0.5)/12)
	if got := out(); strings.Contains(got, "100 %") {
		t.Errorf("readout of the previous node = %q, want less than 100 %%", got)
	}
	b.do(chromedp.Focus("[data-heatmap=cpu] .map", chromedp.ByQuery))
	b.keys(kb.ArrowUp + kb.ArrowRight)
	if got := out(); !strings.HasPrefix(got, fmt.Sprintf("node-%04d at ", node-2)) {
		t.Errorf("readout of the heat map = %q, want node %d", got, node-2)
	}
}
