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

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// growing serves the live page of a run. seconds is the duration of the run so far.
func growing(t *testing.T, seconds *atomic.Int64) *httptest.Server {
	return serving(t, func() *reporter.Report { return soFar(int(seconds.Load())) })
}

// serving serves the live page of a report. It ignores write errors, because tests close connections and browsers at
// any time.
func serving(t *testing.T, report func() *reporter.Report) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var page bytes.Buffer
		if err := plotter.WritePage(&page, report(), plotter.PageOptions{Live: 200 * time.Millisecond}); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page.Bytes())
	}))
	t.Cleanup(server.Close) // runs after the cleanup of the tab, because a live page keeps sending requests
	return server
}

// length waits until the page shows the given number of seconds of the run.
func (b *tab) length(seconds int64) {
	b.t.Helper()
	b.until(`Math.round(Object.values(JSON.parse(document.getElementById("data").textContent).times)[0].len) === ` + strconv.FormatInt(seconds, 10))
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
	b.is(`document.querySelector("[data-live]").textContent.startsWith("Running for ") && document.getElementById("updated").textContent.length === 8`)
	eval[int](b, `window.same = 1`) // lost if the page is reloaded
	b.length(1)
	for _, s := range []int64{2, 30, 100} {
		seconds.Store(s)
		b.length(s)
		r := soFar(int(s))
		b.metrics(r.Nodes["0"])
		b.values(r.Nodes["0"], "memory")
	}

	// Updates keep opened details, the readout, the selection and the scroll position.
	b.do(chromedp.Evaluate(`document.querySelector("[data-details]").open = true`, nil), chromedp.Focus("[data-chart=disk_io] .p", chromedp.ByQuery))
	b.keys(kb.Home + kb.ArrowRight + kb.ArrowRight)
	b.do(chromedp.Evaluate(`scrollTo(0, 200)`, nil))
	before := b.read("memory")
	seconds.Store(160)
	b.length(160)
	b.is(`document.querySelector("[data-details]").open && scrollY === 200`)
	if got := b.focus(); got != "disk_io" || b.read("memory") != before || before == "" {
		t.Errorf("after an update: focus on %q, readout of memory %q, want disk_io and %q", got, b.read("memory"), before)
	}
	b.keys(kb.ArrowRight)
	b.says(soFar(160).Nodes["0"], "memory", 3)
	b.keys(kb.ArrowRight+kb.ArrowRight, chromedp.KeyModifiers(input.ModifierShift))
	before = b.read("cpu")
	seconds.Store(170)
	b.length(170)
	if got := b.read("cpu"); got != before || !strings.HasPrefix(got, "mean ") {
		t.Errorf("readout of the range after an update = %q, want %q", got, before)
	}
	b.is(`window.same === 1`)
	b.is(`[...document.querySelectorAll("#stale")].every(e => e.hidden)`)
	for _, address := range b.asked() {
		if !strings.HasPrefix(address, server.URL+"/") {
			t.Errorf("page requested %s, want only %s", address, server.URL)
		}
	}
	b.noTrouble()

	// When the run has ended, the page shows that and keeps its values.
	server.CloseClientConnections()
	server.Close()
	b.until(shown(`document.getElementById("stale")`))
	b.contrast()
	b.metrics(soFar(170).Nodes["0"])
	b.length(170)
	b.visit("about:blank") // stops the page's requests
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, trouble := range b.troubles {
		if !strings.Contains(trouble, "net::ERR_") { // errors because the server was stopped, perhaps during a response
			t.Error(trouble)
		}
	}
	b.troubles = nil
}

// One missing response does not cause an alarm. Several do, until the server recovers.
func TestBrowser_LivePageToleratesOneFailure(t *testing.T) {
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
		b.length(seconds.Load())
		b.until(`document.getElementById("stale").hidden`)
	}
	b.visit("about:blank") // stops the page's requests
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, trouble := range b.troubles {
		if !strings.Contains(trouble, "503") {
			t.Error(trouble)
		}
	}
	b.troubles = nil
}

// A response with another run, or from another server at the same address, does not change the page, and makes it stop
// its requests.
func TestBrowser_LiveUpdateIgnoresOtherRuns(t *testing.T) {
	for name, other := range map[string]func(w http.ResponseWriter){
		"another run": func(w http.ResponseWriter) {
			r := soFar(9)
			r.Run.ID = "OTHER"
			_ = plotter.WritePage(w, r, plotter.PageOptions{Live: 200 * time.Millisecond})
		},
		"another server": func(w http.ResponseWriter) { _, _ = w.Write([]byte(`<div id="page">OTHER</div>`)) },
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
		b.is(`!document.body.innerText.includes("OTHER")`)
		b.length(5)
		if asked.Load() == 0 {
			t.Errorf("%s: no request, want one", name)
		}
		server.Close()
	}
}
