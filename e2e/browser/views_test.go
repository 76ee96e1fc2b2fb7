//go:build e2e

package browser

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// scripts switches JavaScript on or off for subsequent visits.
func (b *tab) scripts(on bool) {
	b.t.Helper()
	b.still = !on
	b.do(emulation.SetScriptExecutionDisabled(!on))
}

// Without JavaScript, the page shows everything as text, tables and pictures.
func TestBrowser_ShowsEverythingWithoutJavaScript(t *testing.T) {
	for _, c := range []struct {
		name   string
		report *reporter.Report
		charts int
	}{{"one node", plottertest.Week(t), 4}, {"twelve nodes", plottertest.Few(), 16}, {"nothing measured", plottertest.Absent(), 0}} {
		t.Run(c.name, func(t *testing.T) {
			b := newTab(t)
			b.scripts(false)
			b.visit(fileOf(t, pageOf(t, c.report)))
			b.is(`!document.documentElement.classList.contains("js")`) // JavaScript is off
			if got := b.count("[data-chart]"); got != c.charts {
				t.Errorf("%d charts, want %d", got, c.charts)
			}
			b.is(`[...document.querySelectorAll("[data-chart] .p:not(.whole) svg, [data-heatmap] img")].every(e => ` + shown("e") + `)`)
			b.is(`[...document.querySelectorAll(".copy button, .hint")].every(e => !(` + shown("e") + `))`)
			text := eval[string](b, `document.body.textContent`) // includes the collapsed details
			for _, h := range summary.Details(c.report.Nodes["0"]) {
				if !strings.Contains(text, h.Value) {
					t.Errorf("page lacks %s %q", h.Label, h.Value)
				}
			}
			if len(c.report.Nodes) == 1 {
				b.metrics(c.report.Nodes["0"])
				b.do(chromedp.Click("[data-details] summary", chromedp.ByQuery))
				b.is(shown(`document.querySelector("[data-details] dl")`))
			}
		})
	}
}

// A printed page is in light mode and without controls. One node takes one sheet. Collapsed parts are not printed.
func TestBrowser_PrintsOnFewPages(t *testing.T) {
	r := plottertest.Limited(0, 60, 0)
	for name, c := range map[string]struct {
		report *reporter.Report
		most   int
	}{
		"a job with twelve charts": {r, 2}, "a minute": {plottertest.Minute(0), 1}, "twelve nodes": {plottertest.Few(), 2},
		"a killed job": {killedOnBusyNode(), 1},
	} {
		b := openReport(t, c.report, "")
		b.media("print", "dark")
		b.is(`[...document.querySelectorAll("[data-chart] .p:not(.whole)")].every(e => ` + shown("e") + `)`)
		b.is(`[...document.querySelectorAll("button, .btn, .hint, details")].every(e => !(` + shown("e") + `))`)
		b.is(`getComputedStyle(document.body).backgroundColor === "rgb(255, 255, 255)" || getComputedStyle(document.body).backgroundColor === "rgba(0, 0, 0, 0)"`)
		b.contrast()
		if got := b.pdf(); got > c.most {
			t.Errorf("%s: prints on %d pages, want at most %d", name, got, c.most)
		}
	}
}

// killedOnBusyNode returns the report of a killed job, with a command of three lines and the charts of a node with
// other work.
func killedOnBusyNode() *reporter.Report {
	r := plottertest.Killed()
	r.Run.Command = append(r.Run.Command, strings.Fields(strings.Repeat("--option=value ", 20))...)
	envelope := r.Nodes["0"].Envelope
	for _, c := range []collector.Column{collector.NetExtRecvRate, collector.NetExtSentRate, collector.NetLoRecvRate,
		collector.NetLoSentRate, collector.PSICPUSome, collector.PSIMemorySome, collector.PSIIOSome, collector.JobWriteRate} {
		envelope[c.Key()] = envelope[collector.CPUAvg.Key()]
	}
	return r
}

// pdf prints the page on A4 and returns the number of pages.
func (b *tab) pdf() (pages int) {
	b.t.Helper()
	b.do(chromedp.ActionFunc(func(ctx context.Context) error {
		data, _, err := page.PrintToPDF().WithPrintBackground(true).WithPreferCSSPageSize(true).WithPaperWidth(8.27).WithPaperHeight(11.69).Do(ctx)
		if err != nil {
			return err
		}
		pages = len(regexp.MustCompile(`/Type\s*/Page\b`).FindAll(data, -1))
		if !bytes.HasPrefix(data, []byte("%PDF-")) || len(data) < 10_000 || pages < 1 {
			return fmt.Errorf("a PDF of %d bytes with %d pages", len(data), pages)
		}
		return nil
	}))
	return pages
}

// contrast checks that all text has the contrast that WCAG 2.1 requires: at least 4.5 to 1.
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
			b.point(b.plot("cpu"), 0.5, 0.5)
			b.contrast()
			bright := eval[bool](b, `getComputedStyle(document.body).backgroundColor.match(/\d+/g).every(v => v > 200)`)
			if bright != (scheme == "light") {
				t.Errorf("%s: background is bright: %v, want %v", scheme, bright, scheme == "light")
			}
		}
		stroke := `getComputedStyle(document.querySelector("[data-chart=cpu] path.j")).stroke`
		dark := eval[string](b, stroke)
		b.media("screen", "light")
		if light := eval[string](b, stroke); light == dark {
			t.Errorf("the job's line is %s in both light and dark mode, want different colors", light)
		}
	}
}

// Nothing is wider than the screen of a phone, and a tap shows a value.
func TestBrowser_FitsPhone(t *testing.T) {
	for _, r := range []*reporter.Report{plottertest.Few(), plottertest.Limited(0, 60, 8), plottertest.Job()} {
		for _, width := range []int64{320, 390} {
			b := newTab(t)
			b.do(emulation.SetDeviceMetricsOverride(width, 844, 3, true), emulation.SetTouchEmulationEnabled(true))
			b.visit(fileOf(t, pageOf(t, r)))
			b.do(chromedp.Evaluate(`document.querySelectorAll("details").forEach(e => e.open = true)`, nil))
			b.narrow()
			if wide := eval[[]string](b, `[...document.querySelectorAll("[data-phases]")].filter(e => e.scrollWidth > e.parentNode.clientWidth).map(e => e.scrollWidth + " of " + e.parentNode.clientWidth)`); len(wide) > 0 {
				t.Errorf("%d px: tables of phases wider than their boxes: %q", width, wide)
			}
			at := b.plot("memory")
			x, y := at.X+at.Width*0.6, at.Y+at.Height/2
			b.do(chromedp.ActionFunc(func(ctx context.Context) error {
				if err := input.DispatchTouchEvent(input.TouchStart, []*input.TouchPoint{{X: x, Y: y}}).Do(ctx); err != nil {
					return err
				}
				return input.DispatchTouchEvent(input.TouchEnd, []*input.TouchPoint{}).Do(ctx)
			}))
			b.until(`/^at .*/.test(document.querySelector("[data-chart=memory] .r").textContent) && /GiB/.test(document.querySelector("[data-chart=memory]").textContent)`)
			b.narrow()
		}
	}
}

// narrow checks that no element is wider than the window.
func (b *tab) narrow() {
	b.t.Helper()
	wide := eval[[]string](b, `(() => { const w = document.documentElement.clientWidth; return document.documentElement.scrollWidth <= Math.min(w, innerWidth) ? [] :
		[document.documentElement.scrollWidth + " of " + innerWidth].concat([...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > w + 1).map(e => e.tagName + "." + e.className).slice(0, 8)); })()`)
	if len(wide) > 0 {
		b.t.Errorf("elements wider than the window: %q", wide)
	}
}
