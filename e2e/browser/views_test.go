//go:build e2e

package browser

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// scripts switches JavaScript on or off for later visits.
func (b *tab) scripts(on bool) {
	b.t.Helper()
	b.still = !on
	b.do(emulation.SetScriptExecutionDisabled(!on))
}

// Without JavaScript everything is there as words, tables and pictures.
func TestBrowser_WithoutJavaScript_ShowsEverything(t *testing.T) {
	for _, c := range []struct {
		name   string
		report *reporter.Report
	}{{"one node", plottertest.Week(t)}, {"twelve nodes", plottertest.Few()}, {"nothing measured", plottertest.Absent()}} {
		t.Run(c.name, func(t *testing.T) {
			b := newTab(t)
			b.scripts(false)
			b.visit(fileOf(t, pageOf(t, c.report)))
			b.is(`!document.documentElement.classList.contains("js") && !document.querySelector("canvas")`) // it is off
			b.is(`document.querySelectorAll("[data-chart]").length === 5`)
			b.is(`[...document.querySelectorAll("[data-chart]")].every(e => { const p = e.querySelector("svg, img"); return p && ` + shown("p") + ` && p.getBoundingClientRect().width > 600; })`)
			b.is(`[...document.querySelectorAll("[data-heatmap]")].every(e => { const p = e.querySelector("img"); return ` + shown("p") + ` && p.complete && p.naturalWidth > 0; })`)
			b.is(`[...document.querySelectorAll("[data-metric]")].every(e => ` + shown("e") + `)`)
			b.is(`[...document.querySelectorAll("select")].every(e => !(` + shown("e") + `))`)
			b.metrics(c.report.Nodes["0"])
			text := eval[string](b, `document.body.textContent`) // the details are folded
			for _, h := range append(summary.Highlights(c.report.Nodes["0"], 0)[:2], summary.Details(c.report.Nodes["0"])...) {
				if !strings.Contains(text, h.Value) {
					t.Errorf("the page lacks %s %q", h.Label, h.Value)
				}
			}
			if len(c.report.Nodes) > 1 {
				b.is(`[...document.querySelectorAll("#table tbody tr")].filter(e => ` + shown("e") + `).length === 12`)
				b.click(b.box("[data-heatmap=cpu] .peak input"), 0.5, 0.5) // the map of the peaks needs no script
				b.is(shown(`document.querySelector("[data-heatmap=cpu] img.peak")`))
			}
		})
	}
}

// Even with JavaScript off, the two seconds of a week reach the top of the picture. The level of 100 % is taken from
// the picture itself: the end of the vertical axis.
func TestBrowser_StaticPictureHasTheBurst(t *testing.T) {
	r := plottertest.Week(t)
	b := newTab(t)
	b.scripts(false)
	b.visit(fileOf(t, pageOf(t, r)))
	picture := eval[string](b, `document.querySelector("[data-chart=cpu] svg").outerHTML`)
	begin, _ := edges(r, r.Nodes["0"], plottertest.Burst(t, r.Nodes["0"]))
	plottertest.WantBurst(t, picture, begin)
}

// A print has the pictures, not the canvases, and no controls of a screen.
func TestBrowser_PrintHasPicturesInsteadOfCanvases(t *testing.T) {
	b := openReport(t, plottertest.Few(), "")
	b.media("print", "light")
	b.is(`[...document.querySelectorAll("[data-chart]")].every(e => ` + shown(`e.querySelector("svg")`) + ` && !(` + shown(`e.querySelector("canvas")`) + `))`)
	b.is(`[...document.querySelectorAll("select, .noprint, [role=tooltip]")].every(e => !(` + shown("e") + `))`)
	b.is(`[...document.querySelectorAll("[data-metric]")].every(e => ` + shown("e") + `)`)
	b.pdf()

	// For another node there is only the browser's drawing.
	b.media("screen", "dark")
	b.do(chromedp.Evaluate(`location.hash = "#node=7"`, nil))
	b.shows(plottertest.Few(), "7")
	b.media("print", "dark")
	b.is(`[...document.querySelectorAll("[data-chart]")].every(e => ` + shown(`e.querySelector("canvas")`) + ` && !(` + shown(`e.querySelector("svg")`) + `))`)
	b.is(`getComputedStyle(document.body).backgroundColor === "rgb(255, 255, 255)"`)
	b.contrast()
	b.pdf()
}

// pdf prints the page and checks that it has several pages.
func (b *tab) pdf() {
	b.t.Helper()
	b.do(chromedp.ActionFunc(func(ctx context.Context) error {
		data, _, err := page.PrintToPDF().WithPrintBackground(true).WithPaperWidth(8.27).WithPaperHeight(11.69).Do(ctx)
		if err != nil {
			return err
		}
		if pages := len(regexp.MustCompile(`/Type\s*/Page\b`).FindAll(data, -1)); !bytes.HasPrefix(data, []byte("%PDF-")) || len(data) < 20_000 || pages < 2 || pages > 8 {
			return fmt.Errorf("a PDF of %d bytes with %d pages", len(data), pages)
		}
		return nil
	}))
}

// contrast checks that all text has the contrast of WCAG 2.1: at least 4.5 to 1.
func (b *tab) contrast() {
	b.t.Helper()
	poor := eval[[]string](b, `(() => {
		const parse = c => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
		const light = c => { const [r, g, b] = c.slice(0, 3).map(v => { v /= 255; return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; };
		const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c; } return [255, 255, 255, 1]; };
		const out = [];
		for (const e of document.querySelectorAll("body *")) {
			if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !(`+shown("e")+`) || ["SCRIPT", "STYLE", "OPTION"].includes(e.tagName)) continue;
			const s = getComputedStyle(e), front = parse(e instanceof SVGElement ? s.fill : s.color), a = light(front), z = light(behind(e));
			const ratio = (Math.max(a, z) + .05) / (Math.min(a, z) + .05);
			if (!(ratio >= 4.5)) out.push(e.tagName + " " + e.getAttribute("class") + " " + ratio.toFixed(2) + " " + e.textContent.slice(0, 40));
		}
		return out;
	})()`)
	for _, p := range poor {
		b.t.Errorf("poor contrast: %s", p)
	}
}

func TestBrowser_FollowsColorScheme(t *testing.T) {
	failed := plottertest.Minute(0)
	exit := 1
	failed.Run.ExitCode, failed.Run.Incomplete = &exit, "the end is missing"
	for _, r := range []*reporter.Report{failed, plottertest.Few()} {
		b := newTab(t)
		for _, scheme := range []string{"light", "dark"} {
			b.media("screen", scheme)
			b.visit(fileOf(t, pageOf(t, r)))
			b.contrast()
			b.bucket("cpu", r, r.Nodes["0"], 30)
			b.is(shown(`document.querySelector("[role=tooltip]")`))
			b.contrast()
			bright := eval[bool](b, `getComputedStyle(document.body).backgroundColor.match(/\d+/g).every(v => v > 200)`)
			if bright != (scheme == "light") {
				t.Errorf("%s: bright background %v, want %v", scheme, bright, scheme == "light")
			}
		}
		// The canvases follow a change of the scheme.
		ink := `(() => { const c = document.querySelector("[data-chart=memory] canvas"), copy = document.createElement("canvas");
			copy.width = c.width; copy.height = c.height;
			const g = copy.getContext("2d", {willReadFrequently: true}); g.drawImage(c, 0, 0); const d = g.getImageData(0, 0, c.width, c.height).data;
			let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i] === 0x56 && d[i + 1] === 0xb4 && d[i + 2] === 0xe9) n++; return n; })()`
		b.until(ink + " > 100") // --s0 of the dark scheme
		b.media("screen", "light")
		b.until(ink + " === 0")
	}
}

// Nothing is wider than the screen of a phone, and a tap shows the same as a mouse.
func TestBrowser_FitsPhone(t *testing.T) {
	r := plottertest.Few()
	b := newTab(t)
	b.do(emulation.SetDeviceMetricsOverride(390, 844, 3, true), emulation.SetTouchEmulationEnabled(true))
	b.visit(fileOf(t, pageOf(t, r)))
	b.narrow()
	b.is(`innerWidth === 390`)
	n := r.Nodes["0"]
	at := b.plot("memory")
	x, y := at.X+at.Width*0.6, at.Y+at.Height/2
	for quick := false; !quick; { // a touch of half a second is not a tap
		begin := time.Now()
		b.do(chromedp.ActionFunc(func(ctx context.Context) error {
			if err := input.DispatchTouchEvent(input.TouchStart, []*input.TouchPoint{{X: x, Y: y}}).Do(ctx); err != nil {
				return err
			}
			return input.DispatchTouchEvent(input.TouchEnd, []*input.TouchPoint{}).Do(ctx)
		}))
		quick = time.Since(begin) < 300*time.Millisecond || b.tip() != ""
	}
	b.until(shown(`document.querySelector("[role=tooltip]")`))
	if got, unit := b.tip(), "MiB"; !strings.Contains(got, unit) || !strings.Contains(got, "used: ") {
		t.Errorf("a tap tells %q, want the memory of %v", got, n.Host.Hostname)
	}
	b.narrow()
	b.is(`(r => r.left >= 0 && r.right <= 390)(document.querySelector("[role=tooltip]").getBoundingClientRect())`)
}

// narrow checks that the document is not wider than the window.
func (b *tab) narrow() {
	b.t.Helper()
	wide := eval[[]string](b, `(() => { const w = document.documentElement.clientWidth; return document.documentElement.scrollWidth <= Math.min(w, innerWidth) ? [] :
		[document.documentElement.scrollWidth + " of " + innerWidth].concat([...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > w + 1).map(e => e.tagName + "." + e.className).slice(0, 8)); })()`)
	if len(wide) > 0 {
		b.t.Errorf("elements wider than the window: %q", wide)
	}
}

func TestBrowser_ResizeKeepsZoom(t *testing.T) {
	r := plottertest.Minute(0)
	b := openReport(t, r, "")
	b.tabTo("disk_io")
	b.keys("+")
	from, to := b.span()
	for _, width := range []int64{700, 390, 1400} {
		b.size(width, 800, 1)
		b.until(`[...document.querySelectorAll("[data-chart]")].every(e => Math.abs(e.querySelector("canvas").getBoundingClientRect().width - e.clientWidth) < 2)`)
		b.narrow()
		if f, l := b.span(); f != from || l != to || from == 0 && to == 60 {
			t.Errorf("width %d: %v to %v s shown, want %v to %v as before", width, f, l, from, to)
		}
	}
	b.keys("0")
	b.bucket("cpu", r, r.Nodes["0"], 40)
	b.says(reading(t, r.Nodes["0"], "cpu", 40)...)
}
