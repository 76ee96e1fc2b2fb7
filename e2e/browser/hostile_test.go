//go:build e2e

package browser

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// Text from a report is never executed and never becomes an element, and all of it can be read.
func TestBrowser_HostileReportAddsNoElements(t *testing.T) {
	harmless, _ := plottertest.HostileReport("x")
	elements, _ := walk(newTab(t), harmless)
	evil := plottertest.HostileStrings()
	evil["all at once"] = strings.Join(slices.Sorted(maps.Values(evil)), "")
	for _, name := range slices.Sorted(maps.Keys(evil)) {
		t.Run(name, func(t *testing.T) {
			r, marks := plottertest.HostileReport(evil[name])
			delete(marks, "node 1 finding") // findings with the same ID are merged
			delete(marks, "node 1 warning")
			b := newTab(t)
			got, seen := walk(b, r)
			if got != elements {
				t.Errorf("elements of the page\n%s\nwant the elements for a harmless report\n%s", got, elements)
			}
			for where, words := range marks {
				if !strings.Contains(seen, words) {
					t.Errorf("%s is not visible: %q", where, words)
				}
			}
			b.is(`window.pwned === undefined && document.title.length > 0`)
			if got := b.asked(); len(got) != 1 {
				t.Errorf("page requested %q, want only itself", got)
			}
		})
	}
	t.Run("JavaScript off", func(t *testing.T) {
		r, marks := plottertest.HostileReport(evil["all at once"])
		delete(marks, "node 1 finding") // findings with the same ID are merged
		delete(marks, "node 1 warning")
		b := newTab(t)
		b.scripts(false)
		b.visit(fileOf(t, pageOf(t, r)))
		for where, words := range marks {
			if !strings.Contains(b.readable(), words) {
				t.Errorf("%s is not readable: %q", where, words)
			}
		}
	})
	t.Run("from a file", func(t *testing.T) {
		r, _ := plottertest.HostileReport(evil["all at once"])
		openFromFile(t, r)
	})
}

// walk opens the page of a report and explores it with mouse and keyboard, so that the page's script shows all of its
// texts. It returns the elements of the page, and all texts that were shown.
func walk(b *tab, r *reporter.Report) (elements, seen string) {
	b.t.Helper()
	b.visit(fileOf(b.t, pageOf(b.t, r)))
	first := b.readable()
	b.point(b.plot("memory"), 0.4, 0.5)
	b.drag(b.plot("memory"), 0.2, 0.5)
	seen = first + b.readable()
	b.do(chromedp.Focus("[data-chart=memory] .p", chromedp.ByQuery))
	b.keys(kb.Escape)
	elements = b.elements()
	if again := b.readable(); again != first {
		b.t.Error("text of the page changed after it was explored")
	}
	return elements, seen
}

// elements returns all elements of the page with the names of their attributes.
func (b *tab) elements() string {
	b.t.Helper()
	return eval[string](b, `[...document.querySelectorAll("*")].map(e => e.tagName + "(" + e.getAttributeNames().join() + ")").join(" ")`)
}

// readable returns all text that the page shows, and the names of the metrics.
func (b *tab) readable() string {
	b.t.Helper()
	if !b.still {
		b.do(chromedp.Evaluate(`document.querySelectorAll("details").forEach(e => e.open = true)`, nil))
		return eval[string](b, `document.body.innerText.replace(/\n+/g, "\n").replace(/\u00a0/g, " ")`)
	}
	return eval[string](b, `document.body.textContent.replace(/\u00a0/g, " ")`)
}

// openFromFile opens the page of a report that was read from a file.
func openFromFile(t *testing.T, r *reporter.Report) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "node-0.json")
	data, err := reporter.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	read, err := reportfile.Read(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := openReport(t, read, "")
	b.is(`window.pwned === undefined && document.querySelectorAll(".node").length === 2`)
}

// A command line of a megabyte and a host name of 100 kB can be read to their ends, and make the page neither too wide
// nor slow.
func TestBrowser_ShowsLongTextsInFull(t *testing.T) {
	for name, letters := range map[string]string{"letters": "a", "tags": "<b>", "spaces": "x ", "wide": "漢"} {
		t.Run(name, func(t *testing.T) {
			r := plottertest.Minute(0)
			long := strings.Repeat(letters, 1<<20/len(letters))
			r.Run.Command = []string{"sh", "-c", long + "·the end of the command"}
			r.Nodes["0"].Host.Hostname = strings.Repeat(letters, 100_000/len(letters)) + "·the end of the host"
			r.Run.Tags = map[string]string{"k": strings.Repeat(letters, 10_000) + "·the end of the tag"}
			r.Nodes["0"].Missing = []reporter.Missing{{What: "cpu", Why: strings.Repeat(letters, 10_000) + "·the end of the reason"}}
			b := openReport(t, r, "")
			words := b.readable()
			if !strings.Contains(words, long[:1<<19]) {
				t.Error("page lacks the first half of the long command")
			}
			for _, end := range []string{"command", "host", "tag", "reason"} {
				if !strings.Contains(words, "·the end of the "+end) {
					t.Errorf("page lacks the end of the %s", end)
				}
			}
			b.narrow()
			b.size(390, 844, 1)
			b.narrow()
			b.point(b.plot("cpu"), 0.5, 0.5)
			b.is(`window.pwned === undefined`)
		})
	}
}

// The page works whatever numbers the report contains.
func TestBrowser_WorksWithAnyNumbers(t *testing.T) {
	huge, tiny, nan := 1.7e308, 5e-324, math.NaN()
	usual := []float64{1, 2, 3}
	for name, c := range map[string]struct{ values, times []float64 }{
		"huge": {[]float64{huge, huge, huge}, usual}, "huge both ways": {[]float64{-huge, huge, 0}, usual},
		"tiny": {[]float64{tiny, 0, tiny}, usual}, "negative": {[]float64{-1, -2, -3}, usual},
		"above 100": {[]float64{101, 1e9, 3}, usual}, "some": {[]float64{nan, 5, nan}, usual},
		"none": {[]float64{nan, nan, nan}, usual}, "millions": {[]float64{1e6, 2e6, 3e6}, usual},
		"clock backwards": {usual, []float64{3, 2, 1}}, "clock stands still": {usual, []float64{0, 0, 0}},
		"clock huge": {usual, []float64{huge, huge, huge}}, "clock far": {usual, []float64{1e12, 2e12, 9e15}},
		"clock unknown": {usual, []float64{nan, nan, nan}}, "all huge": {[]float64{huge, -huge, huge}, []float64{-huge, huge, huge}},
		"nothing": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := openReport(t, plottertest.HostileNumbers(c.values, c.times), "")
			if b.count("[data-chart=cpu]") > 0 {
				b.point(b.plot("cpu"), 0.5, 0.5)
				b.do(chromedp.Focus("[data-chart=cpu] .p", chromedp.ByQuery))
				b.keys(kb.End + kb.ArrowLeft + kb.ArrowRight + kb.Home)
				b.drag(b.plot("cpu"), 0.3, 0.6)
			}
			b.is(`!/NaN|Infinity|undefined|null/.test(document.body.innerText)`)
		})
	}
}
