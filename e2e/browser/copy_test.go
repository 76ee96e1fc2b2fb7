//go:build e2e

package browser

import (
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/reporter"
)

// pasted returns the content of the clipboard.
func (b *tab) pasted() (words string) {
	b.t.Helper()
	b.do(chromedp.Evaluate(`clipboard.readText()`, &words, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return words
}

// A click on "copy" copies exactly the line to the clipboard, even on a page without clipboard access, such as one from
// another machine without TLS. It leaves no selection, which would stop the updates of a live page.
func TestBrowser_CopiesAdvice(t *testing.T) {
	const line = "#SBATCH --cpus-per-task=5 --mem=24G"
	report := fileOf(t, pageOf(t, plottertest.Job()))
	live := serving(t, func() *reporter.Report { return plottertest.JobSoFar(100) })
	for _, c := range []struct{ name, address, before string }{
		{"page", report, `0`},
		{"page without permission", report, `navigator.clipboard.writeText = () => Promise.reject(new Error("refused"))`},
		{"live page", live.URL + "/", `0`},
		{"live page from another machine", live.URL + "/", `Object.defineProperty(navigator, "clipboard", {value: undefined})`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newTab(t)
			b.do(browser.GrantPermissions([]browser.PermissionType{browser.PermissionTypeClipboardReadWrite, browser.PermissionTypeClipboardSanitizedWrite}),
				emulation.SetFocusEmulationEnabled(true)) // otherwise only one of several tabs has the focus
			b.visit(c.address)
			b.do(chromedp.Evaluate(`window.clipboard = navigator.clipboard; clipboard.writeText("old")`, nil,
				func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
			b.do(chromedp.Evaluate(c.before+``, nil))

			b.do(chromedp.Evaluate(`new MutationObserver(() => { window.said = window.said || [...document.querySelectorAll(".copy button")].some(e => e.textContent === "Copied"); })
				.observe(document.body, {subtree: true, childList: true, characterData: true})`, nil))
			b.click(b.box(".copy button"), 0.5, 0.5)
			b.until(`window.said`)
			if got := b.pasted(); got != line {
				t.Errorf("clipboard contains %q, want %q", got, line)
			}
			b.is(`getSelection().isCollapsed`)
			b.visit("about:blank") // stops the requests of a live page
		})
	}
}
