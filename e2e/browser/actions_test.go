//go:build e2e

package browser

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// metrics checks that the page has the metrics of a node: the same numbers, in the units of the table, and a dash for
// missing ones.
func (b *tab) metrics(n *reporter.Node) {
	b.t.Helper()
	type row struct {
		Name, Text, Title string
		Value             *string
		Unit              *string
	}
	rows := eval[[]row](b, `[...document.querySelectorAll("[data-metric]")].map(e =>
		({Name: e.dataset.metric, Value: e.dataset.value, Unit: e.dataset.unit, Text: e.cells[1].innerText, Title: e.cells[1].title}))`)
	seen := 0
	for _, r := range rows {
		v, has := n.Metrics[r.Name]
		if !has {
			if r.Value != nil || r.Unit != nil || r.Text != "–" {
				b.t.Errorf("%s was not measured, but the page has %+v, want no value and \"–\"", r.Name, r)
			}
			continue
		}
		seen++
		m, _ := reporter.MetricByName(r.Name)
		want := strconv.FormatFloat(v, 'f', -1, 64)
		if r.Value == nil || r.Unit == nil || *r.Value != want || *r.Unit != string(m.Unit) || r.Title != want || !four(r.Text, v) {
			b.t.Errorf("%s on the page: %+v, want the value %s and the unit %s", r.Name, r, want, m.Unit)
		}
	}
	if seen != len(n.Metrics) {
		b.t.Errorf("the page has %d metrics, want %d", seen, len(n.Metrics))
	}
}

// four reports whether a text is v in four digits.
func four(text string, v float64) bool {
	got, err := strconv.ParseFloat(text, 64)
	short, _ := strconv.ParseFloat(strconv.FormatFloat(got, 'g', 4, 64), 64)
	return err == nil && math.Abs(got-v) <= 0.50001e-3*math.Abs(v) && text == strconv.FormatFloat(got, 'f', -1, 64) && got == short
}

// brief formats a number as tooltips do, in four digits; of two equally near numbers the one farther from 0.
func brief(v float64) string {
	exact := strconv.FormatFloat(v, 'e', 30, 64)
	if exact[5:len(exact)-4] == "5"+strings.Repeat("0", 26) && exact[0] != '-' {
		v = math.Nextafter(v, math.Inf(1))
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// reading returns the expected tooltip of a bucket of a chart, a line for each series: the report's numbers in four
// digits.
func reading(t testing.TB, n *reporter.Node, chart string, i int) []string {
	t.Helper()
	number := func(list reporter.Numbers) string {
		if math.IsNaN(list[i]) {
			return "–"
		}
		return brief(list[i])
	}
	var out []string
	for _, c := range plotter.Charts(n) {
		if c.ID != chart {
			continue
		}
		line := func(s plotter.Series, unit string) string {
			low, high := number(s.Band.Min), number(s.Band.Max)
			switch {
			case high == "–":
				return s.Label + ": not measured"
			case s.Spread:
				return fmt.Sprintf("%s: %s to %s %s", s.Label, low, high, unit)
			case constant(s.Band):
				return fmt.Sprintf("%s: %s %s", s.Label, high, unit)
			}
			return fmt.Sprintf("%s: mean %s %s, %s to %s %s", s.Label, number(s.Band.Mean), unit, low, high, unit)
		}
		for _, s := range c.Series {
			if c.Lanes == nil {
				out = append(out, line(s, c.Unit))
			}
		}
		for _, l := range c.Lanes {
			heat := n.Envelope["gpu_"+l.Label[4:]+"_temperature_celsius"]
			out = append(out, fmt.Sprintf("%s: %s %%, %s MiB, %s W, %s °C", l.Label, number(l.Busy.Band.Mean), number(l.Memory.Band.Mean), number(l.Power.Band.Mean), number(heat.Mean)))
		}
		for _, s := range c.TooltipSeries {
			if c.Lanes != nil {
				break
			}
			out = append(out, strings.TrimRight(line(s, s.Unit), " "))
		}
	}
	if len(out) == 0 {
		t.Fatalf("the report has no value of %s to read", chart)
	}
	return out
}

// constant reports whether nothing changed in any bucket: the page then shows one value, not three.
func constant(b reporter.Band) bool {
	if len(b.Mean) != len(b.Min) || len(b.Mean) != len(b.Max) {
		return false
	}
	for i, v := range b.Mean {
		if (b.Min[i] != b.Max[i] || math.Abs(v-b.Max[i]) > 5.1e-7) && !math.IsNaN(v) {
			return false
		}
	}
	return true
}

// edges returns the begin and the end of a bucket on the time axis, from 0 to 1.
func edges(r *reporter.Report, n *reporter.Node, i int) (begin, end float64) {
	t := plotter.NewTimeline(&r.Run, n)
	if i > 0 {
		begin = t.Ends[i-1] / t.Length()
	}
	return begin, t.Ends[i] / t.Length()
}

// pixel returns a position of the mouse over a bucket in a chart's plot, in whole pixels. −1 = there is none.
func pixel(at rect, r *reporter.Report, n *reporter.Node, i int) float64 {
	begin, end := edges(r, n, i)
	x := math.Floor(at.X + (begin+end)/2*at.Width)
	if x <= at.X+begin*at.Width {
		x++
	}
	if x >= at.X+end*at.Width {
		return -1
	}
	return x
}

// bucket moves the mouse to a bucket in a chart.
func (b *tab) bucket(chart string, r *reporter.Report, n *reporter.Node, i int) {
	b.t.Helper()
	at := b.plot(chart)
	x := pixel(at, r, n, i)
	if x < 0 {
		b.t.Fatalf("no pixel of %s belongs to bucket %d alone", chart, i)
	}
	b.do(chromedp.MouseEvent(input.MouseMoved, x, at.Y+0.4*at.Height))
}

func TestBrowser_HoverShowsExactValues(t *testing.T) {
	for _, c := range []struct {
		name    string
		report  *reporter.Report
		buckets []int
	}{
		{"one sample", plottertest.Short(), []int{0}},
		{"a minute", plottertest.Minute(0), []int{0, 13, 59}},
		{"merged buckets", plottertest.Job(), []int{3, 410}},
		{"a gap", plottertest.Gaps(), []int{5, 30, 45}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, n := openReport(t, c.report, ""), c.report.Nodes["0"]
			if got := b.tip(); got != "" {
				t.Errorf("tooltip %q before the mouse moved, want none", got)
			}
			for _, chart := range plottertest.HostCharts() {
				for _, i := range c.buckets {
					b.bucket(chart, c.report, n, i)
					b.says(reading(t, n, chart, i)...)
				}
			}
			b.do(chromedp.MouseEvent(input.MouseMoved, 1, 1))
			if got := b.tip(); got != "" {
				t.Errorf("tooltip %q after the mouse left, want none", got)
			}
		})
	}
}

// Mouse and keyboard find a burst of two seconds in a week, with its values.
func TestBrowser_FindsTheBurstOfAWeek(t *testing.T) {
	r := plottertest.Week(t)
	n := r.Nodes["0"]
	i := plottertest.Burst(t, n)
	b := openReport(t, r, "")
	want := map[string]string{"cpu": " to 100 %", "disk_io": fmt.Sprintf(" to %d MiB/s", plottertest.BurstRate)}
	for chart, burst := range want {
		reading := reading(t, n, chart, i)
		if !slices.ContainsFunc(reading, func(line string) bool { return strings.Contains(line, "mean") && strings.HasSuffix(line, burst) }) {
			t.Errorf("%s: reading %q, want a mean with the burst, %s", chart, reading, burst)
		}
		b.bucket(chart, r, n, i)
		b.says(reading...)
	}
	// Only there the band of the mean reaches the top.
	begin, end := edges(r, n, i)
	for chart := range want {
		color := b.colorAtTheTop(chart)
		if len(color) == 0 || slices.Min(color) < begin-0.004 || slices.Max(color) > end+0.004 {
			t.Errorf("%s: colour at the top of the chart at %.200s, want it between %v and %v of the time axis",
				chart, fmt.Sprint(color), begin, end)
		}
	}
	// With the keyboard: to the end, and back.
	b.tabTo("cpu")
	b.keys(kb.End)
	for range len(plotter.NewTimeline(&r.Run, n).Ends) - 1 - i {
		b.keys(kb.ArrowLeft)
	}
	b.says(reading(t, n, "cpu", i)...)
	b.keys("++++++++")
	if from, to := b.span(); to-from > 7*24*3600/200 {
		t.Errorf("after zooming eight times: %v to %v s shown, want a 200th of the week at most", from, to)
	}
	b.point(b.plot("cpu"), 0.5, 0.2)
	b.says(reading(t, n, "cpu", i)...)
}

// colorAtTheTop returns the positions on the time axis, from 0 to 1, at which a chart has pixels of the colour of a
// line or its band in the upper tenth of its scale.
func (b *tab) colorAtTheTop(chart string) []float64 {
	b.t.Helper()
	return eval[[]float64](b, `(() => {
		const canvas = document.querySelector("[data-chart=`+chart+`] canvas"), over = document.querySelector("[data-chart=`+chart+`] .u-over");
		const outer = canvas.getBoundingClientRect(), inner = over.getBoundingClientRect(), scale = canvas.width / outer.width;
		const copy = document.createElement("canvas");
		copy.width = Math.floor(inner.width * scale); copy.height = Math.floor(inner.height * scale / 10);
		const g = copy.getContext("2d", {willReadFrequently: true});
		g.fillStyle = "#fff";
		g.fillRect(0, 0, copy.width, copy.height);
		g.drawImage(canvas, (outer.left - inner.left) * scale, (outer.top - inner.top) * scale);
		const d = g.getImageData(0, 3, copy.width, copy.height - 3).data, found = new Set(); // below the line at the top
		for (let i = 0; i < d.length; i += 4) if (Math.abs(d[i + 2] - d[i]) > 20) found.add(i / 4 % copy.width / copy.width);
		return [...found];
	})()`)
}

// tabTo presses Tab until a chart has the focus.
func (b *tab) tabTo(chart string) {
	b.t.Helper()
	for range 200 {
		if b.focus() == chart {
			return
		}
		b.keys(kb.Tab)
		b.frames()
	}
	b.t.Fatalf("Tab never reaches the chart %s", chart)
}

// focus returns the chart or map that has the focus, "" = none.
func (b *tab) focus() string {
	b.t.Helper()
	return eval[string](b, `document.activeElement.dataset.chart || (document.activeElement.dataset.heatmap ? "map " + document.activeElement.dataset.heatmap : "")`)
}

func TestBrowser_KeysReachEveryFunction(t *testing.T) {
	r := plottertest.Minute(0)
	n := r.Nodes["0"]
	b := openReport(t, r, "")
	b.do(chromedp.Focus("[data-details] summary", chromedp.ByQuery)) // it precedes the charts
	for _, chart := range plottertest.HostCharts() {
		b.keys(kb.Tab)
		b.frames()
		if got := b.focus(); got != chart {
			t.Fatalf("the focus is on %q, want %s", got, chart)
		}
		if outline := eval[string](b, `getComputedStyle(document.activeElement).outlineStyle`); outline != "solid" {
			t.Errorf("chart %s has the focus with the outline %q, want solid", chart, outline)
		}
		b.keys(kb.Home)
		b.says(reading(t, n, chart, 0)...)
		b.keys(kb.ArrowRight + kb.ArrowRight + kb.ArrowRight + kb.ArrowLeft)
		b.says(reading(t, n, chart, 2)...)
		b.keys(kb.ArrowRight, chromedp.KeyModifiers(input.ModifierShift))
		b.says(reading(t, n, chart, 12)...)
		b.keys(kb.End)
		b.says(reading(t, n, chart, 59)...)
		b.keys(kb.ArrowRight)
		b.says(reading(t, n, chart, 59)...)

		b.keys("+")
		if from, to := b.span(); from < 30 || to != 60 {
			t.Errorf("%s: + shows %v to %v s, want 30 or later to 60", chart, from, to)
		}
		b.keys(kb.Home) // the bucket at the cursor is always shown
		if from, to := b.span(); from != 0 || to > 30 {
			t.Errorf("%s: reading at the start: %v to %v s shown, want 0 to 30 at most", chart, from, to)
		}
		b.says(reading(t, n, chart, 0)...)
		b.keys("-")
		b.keys(kb.Escape)
		if from, to := b.span(); from != 0 || to != 60 {
			t.Errorf("%s: Esc shows %v to %v s, want 0 to 60", chart, from, to)
		}
		if got := b.tip(); got != "" {
			t.Errorf("%s: tooltip after Esc %q, want none", chart, got)
		}
	}
}

func TestBrowser_DragZoomsAllCharts(t *testing.T) {
	r := plottertest.Minute(0)
	n := r.Nodes["0"]
	b := openReport(t, r, "")
	if from, to := b.span(); from != 0 || to != 60 {
		t.Errorf("at first %v to %v s shown, want 0 to 60", from, to)
	}
	for _, chart := range plottertest.HostCharts() {
		at := b.plot(chart)
		b.drag(at, 0.25, 0.5)
		from, to := b.span()
		if second := 60 / at.Width; math.Abs(from-15) > second || math.Abs(to-30) > second { // a pixel
			t.Errorf("%s: after dragging from 15 to 30 s, %v to %v s shown, want 15 to 30", chart, from, to)
		}
		b.point(at, 0.5, 0.3)
		b.says(reading(t, n, chart, 22)...)
		b.drag(at, 0.8, 0.2) // from right to left, within the present range
		if from, to := b.span(); math.Abs(from-18) > 0.2 || math.Abs(to-27) > 0.2 {
			t.Errorf("%s: after dragging from 27 to 18 s, %v to %v s shown, want 18 to 27", chart, from, to)
		}
		b.click(at, 0.5, 0.5)
		b.click(at, 0.5, 0.5, chromedp.ClickCount(2))
		if from, to := b.span(); from != 0 || to != 60 {
			t.Errorf("%s: after a double click %v to %v s shown, want 0 to 60", chart, from, to)
		}
	}
}

// shows checks that a node is the shown one: its cards, facts, metrics, and charts.
func (b *tab) shows(r *reporter.Report, name string) {
	b.t.Helper()
	b.until(`document.getElementById("node").dataset.node === ` + quote(name))
	n := r.Nodes[name]
	b.metrics(n)
	text := eval[string](b, `document.getElementById("node").textContent`)
	for _, h := range append(summary.Highlights(n, 0)[:3], summary.Details(n)...) {
		if !strings.Contains(text, h.Value) {
			b.t.Errorf("node %s: the page lacks %s %q", name, h.Label, h.Value)
		}
	}
	if got := eval[string](b, `document.getElementById("choose").value`); got != name {
		b.t.Errorf("list of nodes has %s chosen, want %s", got, name)
	}
	// With more buckets than pixels the mouse finds the highest one nearby.
	i, top, at := len(plotter.NewTimeline(&r.Run, n).Ends)/3, n.Envelope[collector.CPUMax.Key()].Max, b.plot("cpu")
	for ; top[i] < slices.Max(top[i-6:i+7]) || pixel(at, r, n, i) < 0; i++ {
	}
	b.bucket("cpu", r, n, i)
	b.says(reading(b.t, n, "cpu", i)...)
}

func TestBrowser_ShowsTheNodeThatIsChosen(t *testing.T) {
	r := plottertest.Few()
	b := openReport(t, r, "#node=9")
	b.shows(r, "9")

	b.click(b.box("[data-heatmap=cpu] .map"), 0.5, 7.5/12)
	b.shows(r, "7")
	b.is(`location.hash === "#node=7"`)
	b.click(b.box("[data-heatmap=memory] .map"), 0.1, 2.5/12)
	b.shows(r, "2")

	b.click(b.box(`a[href="#node=5"]`), 0.5, 0.5)
	b.shows(r, "5")
	b.do(chromedp.Focus("#choose", chromedp.ByQuery))
	b.keys(kb.ArrowDown)
	b.shows(r, "6")
	b.is(`location.hash === "#node=6"`)

	b.do(chromedp.Evaluate(`location.hash = "#node=10"`, nil))
	b.shows(r, "10")
	b.do(chromedp.Evaluate(`history.back()`, nil))
	b.shows(r, "6")
	for _, address := range []string{"#node=99", "#node=-1", "#node=6x", "#node=__proto__", "#node=%3Cimg%20src=x%3E", "#nodes"} {
		b.do(chromedp.Evaluate(`location.hash = `+quote(address), nil))
	}
	b.do(chromedp.Evaluate(`location.hash = ""`, nil))
	b.shows(r, "0")

	b.do(chromedp.Focus("[data-heatmap=cpu]", chromedp.ByQuery))
	b.frames() // scrolling hides the tooltip
	b.keys(kb.ArrowDown + kb.ArrowDown + kb.ArrowDown + kb.ArrowUp + kb.ArrowRight)
	b.says("node 2 (node-0002)")
	b.keys(kb.Enter)
	b.shows(r, "2")
}

// With an unknown node in the address the page opens with the first node.
func TestBrowser_UnknownNodeInAddressOpensFirstNode(t *testing.T) {
	r := plottertest.Few()
	for _, address := range []string{"#node=12", "#node=x", "#"} {
		openReport(t, r, address).shows(r, "0")
	}
}

// A burst of two seconds on one of twelve nodes is in the picture of the peaks, but not in the one of the means, and
// the mouse reads it.
func TestBrowser_MapFindsTheBurst(t *testing.T) {
	r := plottertest.Few()
	b := openReport(t, r, "")
	node := reportertest.BurstNode(12)
	n := r.Nodes[strconv.Itoa(node)]
	i := plottertest.Burst(t, n)
	begin, end := edges(r, n, i)
	x, y := (begin+end)/2, (float64(node)+0.5)/12
	b.point(b.box("[data-heatmap=cpu] .map"), x, y)
	b.says(append(reading(t, n, "cpu", i), fmt.Sprintf("node %d (node-%04d)", node, node))...)

	b.is(shown(`document.querySelector("[data-heatmap=cpu] img.peak")`))
	b.click(b.box("[data-heatmap=cpu] .mean input"), 0.5, 0.5)
	b.is(shown(`document.querySelector("[data-heatmap=cpu] img.mean")`))
	b.is(`!(` + shown(`document.querySelector("[data-heatmap=cpu] img.peak")`) + `)`)
	const darkest = 0x2a // red component of 100 %
	at := func(kind string) int {
		return eval[int](b, fmt.Sprintf(`(() => { const i = document.querySelector("[data-heatmap=cpu] img.%s"), c = document.createElement("canvas");
			c.width = i.naturalWidth; c.height = i.naturalHeight; const g = c.getContext("2d"); g.drawImage(i, 0, 0);
			return g.getImageData(Math.floor(%v * c.width), Math.floor(%v * c.height), 1, 1).data[0]; })()`, kind, x, y))
	}
	if got := at("peak"); got != darkest {
		t.Errorf("red in the map of the peaks is %d, want %d at the burst", got, darkest)
	}
	if got := at("mean"); got == darkest {
		t.Error("the map of the means has the burst, so the test does not show that the envelope is used")
	}
}

// One bucket of a thousand is drawn and found by the mouse at every position and width of the window.
func TestBrowser_ShowsEveryPeakAtEveryWidth(t *testing.T) {
	spikes := make(map[int]bool)
	for i := 3; i < 1000; i += 41 { // odd and even ones
		spikes[i] = true
	}
	r := plottertest.Report(0, plottertest.Recording(1000, time.Second, func(i int, s *collector.Sample) {
		plottertest.Set(s, i, 10, 20, 1)
		if spikes[i] {
			plottertest.Set(s, i, 100, 100, 100)
		}
	}))
	n := r.Nodes["0"]
	for _, width := range []int64{360, 600, 768, 1024, 1366} {
		b := newTab(t)
		b.size(width, 900, 1)
		b.open(fileOf(t, pageOf(t, r)), "")
		for _, chart := range plottertest.HostCharts()[:4] {
			stripes, last := 0, -1.0
			colors := b.colorAtTheTop(chart)
			slices.Sort(colors)
			for _, x := range colors {
				if last < 0 || x-last > 0.02 {
					stripes++
				}
				last = x
			}
			if stripes != len(spikes) {
				t.Errorf("%d pixels wide: %d peaks drawn in %s, want %d", width, stripes, chart, len(spikes))
			}
		}
		at := b.plot("memory")
		for i := range spikes {
			begin, end := edges(r, n, i)
			b.point(at, (begin+end)/2, 0.4)
			if got := b.tip(); !strings.Contains(got, "used: 100 %") {
				t.Errorf("%d pixels wide: tooltip at the peak in second %d is %q, want \"used: 100 %%\"", width, i, got)
			}
		}
	}
}
