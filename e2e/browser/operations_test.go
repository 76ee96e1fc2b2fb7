//go:build e2e

package browser

import (
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// working returns a run with operations that takes the given number of seconds.
func working(seconds int) *reporter.Report {
	r := soFar(seconds)
	reportertest.AddOperations(r)
	get := r.Nodes["0"].Operations.Times["store.get"]
	get.Count = float64(1000 * seconds)
	r.Nodes["0"].Operations.Times["store.get"] = get
	return r
}

// calls is a script that returns the number of calls in the table of operations.
const calls = `document.querySelector("[data-operations] [data-series='store.get']").cells[1].innerText`

// Operation charts can be read like other charts, and a live page updates the table of operations.
func TestBrowser_ReadsOperationCharts(t *testing.T) {
	var seconds atomic.Int64
	seconds.Store(10)
	server := serving(t, func() *reporter.Report { return working(int(seconds.Load())) })
	b := newTab(t)
	b.visit(server.URL + "/")
	b.whole()
	b.is(calls + ` === "10,000"`)
	seconds.Store(30)
	b.until(calls + ` === "30,000"`)
	r := working(30)
	b.values(r.Nodes["0"], "operation_time")
	b.values(r.Nodes["0"], "transfers")
	b.drag(b.plot("operations"), 0.5, 0.75)
	b.is(`document.querySelector("[data-chart=cpu] .r").textContent.startsWith("mean ")`)
}

// An operation that occurs in only one bucket is drawn with the width of the bucket.
func TestBrowser_DrawsOperationInSingleBucket(t *testing.T) {
	r := working(20)
	n := r.Nodes["0"]
	lone := reporter.Band{}
	for i := range n.Samples.Len() {
		v := math.NaN()
		if i == n.Samples.Len()/2 {
			v = 4
		}
		lone.Min, lone.Mean, lone.Max = append(lone.Min, v/4), append(lone.Mean, v), append(lone.Max, v*2) // 8 is the top
	}
	for _, l := range n.Timelines() {
		if l.Kind == reporter.OpKind {
			n.Envelope[l.Key()] = lone
		}
	}

	b := openReport(t, r, "")
	width := eval[float64](b, `(r => r.width / document.querySelector("[data-chart=operation_time] .p").clientWidth)(document.querySelector("[data-chart=operation_time] path.j").getBoundingClientRect())`)
	if width < 0.04 || width > 0.06 {
		t.Errorf("width of a bucket with 1/20 of the time = %v of the chart, want about 0.05", width)
	}
}

// The tables show the full names of series, whatever they contain, and names never become elements.
func TestBrowser_ShowsHostileOperationNamesAsText(t *testing.T) {
	evil := strings.Join(slices.Sorted(maps.Values(plottertest.HostileStrings())), "")
	r := working(10)
	n := r.Nodes["0"]
	n.Operations.Times[evil], n.Operations.Counters[evil] = n.Operations.Times["store.get"], 1
	n.Transfers[evil] = n.Transfers["nixl"]
	for _, l := range n.Timelines() {
		l.Series = evil
		n.Envelope[l.Key()] = n.Envelope["gauge:queue"]
	}
	b := openReport(t, r, "")
	b.is(`window.pwned === undefined && !document.querySelector(".key img, .key script, table img, table script")`)
	for _, table := range []string{"operations", "counters", "transfers"} {
		names := eval[[]string](b, `[...document.querySelectorAll("[data-`+table+`] tr[data-series]")].map(r => r.dataset.series)`)
		if !slices.Contains(names, text.Printable(evil)) {
			t.Errorf("table %s has %q, want %q", table, names, text.Printable(evil))
		}
	}
}
