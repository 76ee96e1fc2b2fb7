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

// working returns a run of some seconds with operations.
func working(seconds int) *reporter.Report {
	r := soFar(seconds)
	reportertest.AddOperations(r)
	get := r.Nodes["0"].Operations.Times["store.get"]
	get.Count = float64(1000 * seconds)
	r.Nodes["0"].Operations.Times["store.get"] = get
	return r
}

// calls is the number of calls in the table of operations.
const calls = `document.querySelector("[data-operations] [data-series='store.get']").cells[1].innerText`

// The charts of operations are read like others, and their table follows the run.
func TestBrowser_OperationChartsAreRead(t *testing.T) {
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

// An operation in only one bucket is drawn as wide as the bucket.
func TestBrowser_OperationOfOneBucketIsDrawnAsWide(t *testing.T) {
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
		t.Errorf("a bucket of a twentieth of the time is %v of the chart wide", width)
	}
}

// The tables have the full names of series, whatever they contain, without new elements.
func TestBrowser_HostileOperationNamesAreShown(t *testing.T) {
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
