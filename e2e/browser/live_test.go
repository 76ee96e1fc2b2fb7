//go:build e2e

package browser

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// growing serves the live page of a run of some seconds.
func growing(t *testing.T, seconds *atomic.Int64) *httptest.Server {
	return serving(t, func() *reporter.Report { return soFar(int(seconds.Load())) })
}

// serving serves the live page of a report. Clients may be gone before the response: tests close connections and
// browsers at any time.
func serving(t *testing.T, report func() *reporter.Report) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var page bytes.Buffer
		if err := plotter.WritePage(&page, report(), plotter.PageOptions{Live: 200 * time.Millisecond}); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page.Bytes())
	}))
	t.Cleanup(server.Close) // after the tab, which is made later: a live page keeps requesting
	return server
}

// tells points at a bucket of a live page and checks the tooltip. An update of the page hides the mouse's tooltip; if
// that happened, as a new element shows, tells points again.
func (b *tab) tells(chart string, r *reporter.Report, n *reporter.Node, i int) {
	b.t.Helper()
	for begin := time.Now(); ; {
		eval[bool](b, `!!(window.planBefore = document.getElementById("plan"))`)
		b.bucket(chart, r, n, i)
		got := b.tip()
		taken := eval[bool](b, `window.planBefore !== document.getElementById("plan")`)
		if got != "" || !taken || time.Since(begin) > patience {
			b.said(got, reading(b.t, n, chart, i)...)
			return
		}
	}
}

// soFar returns the report of a running run.
func soFar(seconds int) *reporter.Report {
	rec := plottertest.Recording(seconds, time.Second, func(i int, s *collector.Sample) { plottertest.Set(s, i, float64(i%90)+0.5, 30+float64(i)/10, 2) })
	return diagnosis.New(diagnosis.Input{Input: reporter.Input{Run: reporter.Run{ID: "live", Command: []string{"sleep", "600"}, Start: reporter.Time{Time: plottertest.Start()},
		End: reporter.Time{Time: plottertest.Start().Add(rec.End.Mono)}, WallSeconds: float64(seconds), Incomplete: "the job is still running"}, Recording: rec}})
}

func TestBrowser_LivePageGrows(t *testing.T) {
	var seconds atomic.Int64
	seconds.Store(1)
	server := growing(t, &seconds)
	b := newTab(t)
	b.visit(server.URL + "/")
	b.whole()
	b.is(`document.body.innerText.includes("running for") && !document.body.innerText.includes("still running")`)
	eval[int](b, `window.same = 1`) // lost if the page is loaded again
	if _, to := b.span(); to != 1 {
		t.Errorf("at first the charts end at %v s, want 1", to)
	}
	for _, s := range []int64{2, 30, 100} {
		seconds.Store(s)
		b.until(`Number(document.querySelector("[data-chart]").dataset.to) === ` + strconv.FormatInt(s, 10))
		r := soFar(int(s))
		b.metrics(r.Nodes["0"])
		b.tells("memory", r, r.Nodes["0"], int(s)-1)
	}

	// Updates do not change the zoom, the keyboard position and the scroll position.
	b.tabTo("network")
	b.keys(kb.Home + kb.ArrowRight + kb.ArrowRight + "++")
	from, to := b.span()
	b.do(chromedp.Evaluate(`scrollTo(0, document.body.scrollHeight)`, nil))
	b.frames()
	bottom := eval[float64](b, `scrollY`)
	seconds.Store(160)
	b.until(`document.getElementById("about").innerText.includes("2 min 40 s")`)
	if f, l := b.span(); f != from || l != to || to > 30 {
		t.Errorf("after an update %v to %v s shown, want still %v to %v, at most 30", f, l, from, to)
	}
	if got := eval[float64](b, `scrollY`); got != bottom {
		t.Errorf("scroll position %v after an update, want %v", got, bottom)
	}
	if got := b.focus(); got != "network" {
		t.Errorf("focus on %q after an update, want network", got)
	}
	b.keys(kb.ArrowRight)
	b.says(reading(t, soFar(160).Nodes["0"], "network", 3)...)
	b.keys(kb.Escape)
	if f, l := b.span(); f != 0 || l != 160 {
		t.Errorf("Esc shows %v to %v s, want 0 to 160", f, l)
	}
	b.is(`window.same === 1`)
	b.is(`[...document.querySelectorAll("#stale")].every(e => e.hidden)`)
	for _, address := range b.asked() {
		if !strings.HasPrefix(address, server.URL+"/") {
			t.Errorf("the page requested %s, want only %s", address, server.URL)
		}
	}
	b.noTrouble()

	// When the run has ended the page shows that and keeps its values.
	server.CloseClientConnections()
	server.Close()
	b.until(shown(`document.getElementById("stale")`))
	b.contrast()
	b.metrics(soFar(160).Nodes["0"])
	if _, to := b.span(); to != 160 {
		t.Errorf("the charts end at %v s, want 160", to)
	}
	b.visit("about:blank") // ends the page's requests
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, trouble := range b.troubles {
		if !strings.Contains(trouble, "net::ERR_") { // of the stopped server, perhaps during a response
			t.Error(trouble)
		}
	}
	b.troubles = nil
}

// One missing response causes no alarm; repeated ones do until the server recovers.
func TestBrowser_LivePageForgivesOneFailure(t *testing.T) {
	var seconds, failing atomic.Int64
	seconds.Store(5)
	good := growing(t, &seconds)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if left := failing.Load(); left > 0 {
			failing.CompareAndSwap(left, left-1)
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		good.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	b := newTab(t)
	b.visit(server.URL + "/")
	for _, failures := range []int64{1, 1 << 30} {
		failing.Store(failures)
		if failures > 1 {
			b.until(shown(`document.getElementById("stale")`))
			failing.Store(0)
		}
		seconds.Add(5)
		b.until(`document.getElementById("stale").hidden && Number(document.querySelector("[data-chart]").dataset.to) === ` + strconv.FormatInt(seconds.Load(), 10))
	}
	b.visit("about:blank") // ends the page's requests
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, trouble := range b.troubles {
		if !strings.Contains(trouble, "503") {
			t.Error(trouble)
		}
	}
	b.troubles = nil
}

// Responses of another run or server at the same address do not get into the page, and end its requests.
func TestBrowser_LiveUpdateIgnoresOtherRuns(t *testing.T) {
	for name, other := range map[string]func(w http.ResponseWriter){
		"another run": func(w http.ResponseWriter) {
			r := soFar(9)
			r.Run.ID = "OTHER"
			_ = plotter.WritePage(w, r, plotter.PageOptions{Live: 200 * time.Millisecond})
		},
		"another server": func(w http.ResponseWriter) { _, _ = w.Write([]byte(`<header id="about">OTHER</header>`)) },
	} {
		var changed, asked atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			if changed.Load() > 0 {
				asked.Add(1)
				other(w)
				return
			}
			_ = plotter.WritePage(w, soFar(5), plotter.PageOptions{Live: 200 * time.Millisecond})
		}))
		b := newTab(t)
		b.visit(server.URL + "/")
		changed.Store(1)
		b.until(shown(`document.getElementById("stale")`))
		b.is(`!document.body.innerText.includes("OTHER") && document.body.innerText.includes("last seen running for 5.0 s")`)
		if _, to := b.span(); to != 5 || asked.Load() != 1 {
			t.Errorf("%s: the charts end at %v s after %d requests, want 5 after 1", name, to, asked.Load())
		}
		server.Close()
	}
}
