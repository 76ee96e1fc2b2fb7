//go:build e2e

package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// count returns the number of elements that a selector matches.
func (b *tab) count(selector string) (n int) {
	b.t.Helper()
	b.do(chromedp.Evaluate(`document.querySelectorAll(`+quote(selector)+`).length`, &n))
	return n
}

// Each rank is a bar in its node, a row of the heat maps, and a row of a table. The rank that failed first is marked in
// all of them.
func TestBrowser_ShowsRanks(t *testing.T) {
	for name, c := range map[string]struct {
		report *reporter.Report
		want   map[string]int
	}{
		"two nodes": {plottertest.WithVerdict(t, reportertest.KilledRank()), map[string]int{
			"[data-ranks] tr[data-rank]": 8, "tr.first[data-rank='3']": 1, ".ring": 2, ".rk .b": 8, ".rk .b.odd": 8, "[data-heatmap]": 2}},
		"one node": {plottertest.WithVerdict(t, reportertest.Ranks(1, 4, 60)), map[string]int{"[data-ranks] tr[data-rank]": 4, ".first": 0}},
	} {
		html := pageOf(t, c.report)
		wantSelfContained(t, html)
		address := fileOf(t, html)
		for _, v := range views(1080, 1500) {
			b := newTab(t)
			b.look(v)
			b.visit(address)
			b.narrow()
			b.contrast()
			for selector, want := range c.want {
				if got := b.count(selector); got != want {
					t.Errorf("%s, %s: page has %d elements %s, want %d", name, v.name, got, selector, want)
				}
			}
		}
	}
	b := openReport(t, plottertest.WithVerdict(t, reportertest.KilledRank()), "")
	b.point(b.box("[data-heatmap=rank_cpu] .map"), 0.5, 3.5/8)
	if got := eval[string](b, `document.querySelector("[data-heatmap=rank_cpu] .r").textContent`); !strings.HasPrefix(got, "rank 3 at ") || !strings.HasSuffix(got, "CPUs") {
		t.Errorf("readout of the row of rank 3 = %q, want the rank, a time and a number of CPUs", got)
	}
}
