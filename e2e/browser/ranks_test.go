//go:build e2e

package browser

import (
	"fmt"
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

// Of many nodes, ranks are rows in their node, unfolded only in the one that failed first, with JavaScript and without;
// of one node they are shown immediately.
func TestBrowser_RanksUnfoldOnlyWhereOneFailed(t *testing.T) {
	html := pageOf(t, plottertest.WithVerdict(t, reportertest.KilledRank()))
	wantSelfContained(t, html)
	address := fileOf(t, html)
	for _, scripts := range []bool{true, false} {
		b := newTab(t)
		b.scripts(scripts)
		b.visit(address)
		for selector, want := range map[string]int{
			"[data-ranks] tr[data-rank]": 8, ".ranks details[open] tr[data-rank]": 4, "tr.first[data-rank='3']": 1,
			"tr[data-rank].first": 1, ".map .ring": 3, ".strip": 16, ".strip b": 2,
		} {
			if got := b.count(selector); got != want {
				t.Errorf("scripts %v: %d × %s, want %d", scripts, got, selector, want)
			}
		}
		visible := func(rank int) (yes bool) {
			b.do(chromedp.Evaluate(fmt.Sprintf(`document.querySelector("[data-rank='%d']").checkVisibility()`, rank), &yes))
			return yes
		}
		if !visible(3) || visible(4) {
			t.Errorf("scripts %v: rank 3 visible %v, rank 4 visible %v; want true, false",
				scripts, visible(3), visible(4))
		}
		b.do(chromedp.Click("tr:has([data-ranks='1']) summary", chromedp.ByQuery))
		if !visible(4) {
			t.Error("rank 4 is hidden after a click on node 1, want it shown")
		}
	}

	b := newTab(t)
	b.visit(fileOf(t, pageOf(t, plottertest.WithVerdict(t, reportertest.Ranks(1, 4, 60)))))
	if n := b.count("[data-ranks='0'] tr[data-rank]"); n != 4 || b.count(".ranks") != 0 {
		t.Errorf("%d ranks of one node and %d folded parts, want 4 and 0", n, b.count(".ranks"))
	}
}

// No view of a page with ranks is wider than its window, and the rows have their pictures.
func TestBrowser_RanksFitEveryWindow(t *testing.T) {
	for name, r := range map[string]*reporter.Report{
		"ranks": plottertest.WithVerdict(t, reportertest.KilledRank()), "ranks-one": plottertest.WithVerdict(t, reportertest.Ranks(1, 4, 60)),
	} {
		address := fileOf(t, pageOf(t, r))
		for _, v := range views(1080, 1500) {
			b := newTab(t)
			b.look(v)
			b.visit(address)
			b.narrow()
			var image string
			b.do(chromedp.Evaluate(`getComputedStyle(document.querySelector(".strip")).backgroundImage`, &image))
			if !strings.HasPrefix(image, `url("data:image/png;base64,`) {
				t.Errorf("%s, %s: the picture of a rank is %.40q, want a PNG", name, v.name, image)
			}
		}
	}
}
