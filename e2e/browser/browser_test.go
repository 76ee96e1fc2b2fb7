//go:build e2e

// Package browser opens the pages of reports in a real browser, Debian's Chromium, and controls it with mouse and
// keyboard events. All tests of the package share one browser, and open each page in a new tab.
package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
)

// patience is the timeout of an action of the browser.
const patience = 2 * time.Minute

// chromium is the browser, started by the first test that needs it.
var chromium struct {
	once sync.Once
	ctx  context.Context
	stop func()
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if chromium.stop != nil {
		chromium.stop()
	}
	os.Exit(code)
}

// running returns the context of the browser. The first call starts the browser.
func running(t testing.TB) context.Context {
	t.Helper()
	path := testenv.NeedsTool(t, "chromium", "apt-get install chromium fonts-dejavu-core (make e2e does it as root)")
	b := &chromium
	b.once.Do(func() {
		options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path),
			chromedp.Flag("headless", "new"), chromedp.Flag("lang", "en-US"), chromedp.WindowSize(windowWidth, windowHeight),
			chromedp.WSURLReadTimeout(patience))
		alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, cancel := chromedp.NewContext(alloc, chromedp.WithBrowserOption(chromedp.WithDialTimeout(patience)))
		b.ctx, b.stop = ctx, func() { cancel(); stopAlloc() }
		b.err = chromedp.Run(ctx) // starts the browser
	})
	if b.err != nil {
		t.Fatalf("start %s: %v", path, b.err)
	}
	return b.ctx
}

// Size of a tab's window in CSS pixels.
const (
	windowWidth  = 1200
	windowHeight = 900
)

// tab is a page in a separate tab.
type tab struct {
	t   testing.TB
	ctx context.Context

	still bool // whether JavaScript is off

	mu       sync.Mutex
	troubles []string // events that must not happen: errors, warnings, dialogs, downloads
	requests []string // requested addresses
}

// newTab opens an empty tab. When the test ends, newTab's cleanup fails the test if there has been trouble in the tab.
func newTab(t testing.TB) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(running(t))
	b := &tab{t: t, ctx: ctx}
	t.Cleanup(func() {
		b.noTrouble()
		cancel()
	})
	if err := chromedp.Run(ctx); err != nil { // creates the tab, which lives until ctx ends
		t.Fatal(err)
	}
	chromedp.ListenTarget(ctx, b.listen)
	b.do(network.Enable(), runtime.Enable(), log.Enable(), page.Enable(), network.SetCacheDisabled(true))
	b.size(windowWidth, windowHeight, 1)
	return b
}

// listen handles the events of the tab.
func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	add := func(format string, args ...any) { b.troubles = append(b.troubles, fmt.Sprintf(format, args...)) }
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning || e.Type == runtime.APITypeAssert {
			text, _ := json.Marshal(e.Args)
			add("console.%s: %s", e.Type, text)
		}
	case *runtime.EventExceptionThrown:
		add("uncaught: %s", e.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			add("log: %s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
	case *page.EventJavascriptDialogOpening:
		add("dialog: %s", e.Message)
	case *browser.EventDownloadWillBegin:
		add("download: %s", e.URL)
	case *network.EventWebSocketCreated:
		b.requests = append(b.requests, e.URL)
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

// noTrouble checks that no trouble was recorded.
func (b *tab) noTrouble() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, trouble := range b.troubles {
		b.t.Errorf("error in the browser: %.600s", trouble)
	}
	b.troubles = nil
}

// asked returns the requested addresses, except pictures that are part of the page.
func (b *tab) asked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.requests), func(u string) bool { return strings.HasPrefix(u, "data:") })
}

// do runs actions of the browser within patience.
func (b *tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.t.Fatalf("in the browser: %v", err)
	}
}

// eval returns the value of an expression in the page.
func eval[T any](b *tab, js string) T {
	b.t.Helper()
	var v T
	b.do(chromedp.Evaluate(js, &v))
	return v
}

// is checks that an expression is true in the page.
func (b *tab) is(js string) {
	b.t.Helper()
	if !eval[bool](b, "!!("+js+")") {
		b.t.Errorf("expression is false in the page, want true: %s", js)
	}
}

// until waits for an expression to become true in the page.
func (b *tab) until(js string) {
	b.t.Helper()
	for begin := time.Now(); !eval[bool](b, "!!("+js+")"); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > patience {
			b.t.Fatalf("expression is still false in the page after %v: %s", patience, js)
		}
	}
}

// size sets the size of the window in CSS pixels, and the number of screen pixels per CSS pixel.
func (b *tab) size(width, height int64, scale float64) {
	b.t.Helper()
	b.do(emulation.SetDeviceMetricsOverride(width, height, scale, false))
}

// media emulates a medium, "screen" or "print", and a color scheme, "light" or "dark".
func (b *tab) media(kind, scheme string) {
	b.t.Helper()
	b.do(emulation.SetEmulatedMedia().WithMedia(kind).WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}

// visit loads an address and waits until the page's charts are drawn.
func (b *tab) visit(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate(address))
}

// fileOf writes a page into a new directory and returns its address.
func fileOf(t testing.TB, html []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "node-0.html")
	if err := os.WriteFile(path, html, 0o644); err != nil {
		t.Fatal(err)
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}

// pageOf returns the page of a report.
func pageOf(t testing.TB, r *reporter.Report) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := plotter.WritePage(&out, r, plotter.PageOptions{}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// openReport opens the page of a report in a new tab and checks that it is complete.
func openReport(t testing.TB, r *reporter.Report, hash string) *tab {
	t.Helper()
	b := newTab(t)
	b.open(fileOf(t, pageOf(t, r)), hash)
	return b
}

// open opens a page and checks that it is complete: it requests nothing except itself, and has everything that users'
// scripts rely on.
func (b *tab) open(address, hash string) {
	b.t.Helper()
	b.visit(address + hash)
	b.noTrouble()
	if got := b.asked(); len(got) != 1 || strings.TrimSuffix(got[0], hash) != address {
		b.t.Errorf("page requested %q, want only %s", got, address)
	}
	b.whole()
}

// whole checks that the page has all promised elements.
func (b *tab) whole() {
	b.t.Helper()
	b.is(`document.documentElement.classList.contains("js")`)
	b.is(`[...document.querySelectorAll("[data-chart]")].every(e => ` + shown("e") + ` && e.querySelector(".p[role=slider]").tabIndex === 0 && e.querySelector("svg").getAttribute("aria-label"))`)
	names := eval[[]string](b, `[...document.querySelectorAll("[data-metric]")].map(e => e.dataset.metric)`)
	for _, m := range reporter.Metrics() { // metrics of devices may be missing
		if !slices.Contains(names, m.Name) && !m.OfDevice() && m.Group != reporter.GroupBoot {
			b.t.Errorf("page lacks the metric %s", m.Name)
		}
	}
	// The verdict, the usage bars, the advice and the charts come before the collapsed details.
	b.is(`[...document.querySelectorAll("[data-verdict], [data-bar], [data-advice], [data-chart]")].every(e => e.compareDocumentPosition(document.querySelector("details[data-details]")) === Node.DOCUMENT_POSITION_FOLLOWING)`)
	b.is(`document.querySelectorAll("h1").length === 1 && ` + shown(`document.querySelector("[data-verdict]")`))
	b.is(`[...document.querySelectorAll("details")].every(e => !e.open)`)
	b.is(`/node/i.test(document.querySelector("[data-details] summary").textContent)`)
}

// shown returns an expression that is true if the element has a size and is visible.
func shown(element string) string {
	return "((" + element + ").checkVisibility({visibilityProperty: true, opacityProperty: true}) && (" + element + ").getBoundingClientRect().height > 0)"
}

// rect is the position of an element in the window in CSS pixels.
type rect struct{ X, Y, Width, Height float64 }

// box scrolls to an element and returns its position after the page has handled the scrolling.
func (b *tab) box(selector string) rect {
	b.t.Helper()
	var at rect
	frames := "3"
	if b.still {
		frames = "0" // no frame callbacks without JavaScript
	}
	b.do(chromedp.Evaluate(`(async () => { const find = () => document.querySelector(`+quote(selector)+`), e = find();
		if (e !== document.body) e.scrollIntoView({block: innerHeight > 1500 ? "nearest" : "center", behavior: "instant"});
		for (let i = 0; i < `+frames+`; i++) await new Promise(requestAnimationFrame);
		const r = find().getBoundingClientRect(); return {X: r.x, Y: r.y, Width: r.width, Height: r.height}; })()`, &at,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return at
}

// frames waits until the page has been redrawn, and so has handled scrolling.
func (b *tab) frames() {
	b.t.Helper()
	b.box("body")
}

// plot returns the position of the plot area of a chart, at the current scale.
func (b *tab) plot(chart string) rect {
	b.t.Helper()
	return b.box(`[data-chart=` + chart + `] .p`)
}

// point moves the mouse to a point in a box: (0, 0) is the upper left corner, and (1, 1) the lower right corner.
func (b *tab) point(at rect, x, y float64) {
	b.t.Helper()
	b.do(chromedp.MouseEvent(input.MouseMoved, at.X+x*at.Width, at.Y+y*at.Height))
}

// click clicks at a point in a box.
func (b *tab) click(at rect, x, y float64, options ...chromedp.MouseOption) {
	b.t.Helper()
	b.point(at, x, y)
	b.do(chromedp.MouseClickXY(at.X+x*at.Width, at.Y+y*at.Height, options...))
}

// drag drags the mouse horizontally across a box.
func (b *tab) drag(at rect, from, to float64) {
	b.t.Helper()
	y, left := at.Y+at.Height/2, chromedp.ButtonType(input.Left)
	b.point(at, from, 0.5)
	b.do(chromedp.MouseEvent(input.MousePressed, at.X+from*at.Width, y, left, chromedp.ClickCount(1)))
	for _, part := range []float64{0.25, 0.5, 0.75, 1} {
		b.do(chromedp.MouseEvent(input.MouseMoved, at.X+(from+part*(to-from))*at.Width, y, left))
	}
	b.do(chromedp.MouseEvent(input.MouseReleased, at.X+to*at.Width, y, left, chromedp.ClickCount(1)))
}

// keys presses keys in sequence.
func (b *tab) keys(keys string, options ...chromedp.KeyOption) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys, options...))
}

// read returns the readout in the title of a chart; "" = none.
func (b *tab) read(chart string) string {
	b.t.Helper()
	return eval[string](b, `document.querySelector("[data-chart=`+chart+`] .r").textContent`)
}

// quote returns s as a JavaScript string literal.
func quote(s string) string {
	out, _ := json.Marshal(s) // encoding a string never fails
	return string(out)
}
