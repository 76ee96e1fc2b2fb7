//go:build e2e

package browser

import (
	"testing"

	"github.com/perfagent/perfagent/internal/reportertest"
)

// processes is a script that returns the process IDs in the table, in the displayed order.
const processes = `[...document.querySelectorAll("[data-processes] tbody tr")].map(tr => tr.dataset.pid).join()`

// A click on a heading, or a key press, sorts the table, and a second one reverses the order. In descending order,
// unknown values come last.
func TestBrowser_SortsProcesses(t *testing.T) {
	b := openReport(t, reportertest.AddProcesses(reportertest.NodeReport(0, 60, 0, nil)), "")
	head := func(words string) string {
		return `[...document.querySelectorAll("[data-processes] th")].find(th => th.textContent === "` + words + `")`
	}
	b.is(processes + ` === "1201,99,1200,41234"`)
	for _, step := range []struct{ click, want string }{
		{"peak memory", "41234,1201,99,1200"},
		{"peak memory", "1200,99,1201,41234"},
		{"process", "41234,1201,1200,99"},
		{"command", "99,41234,1201,1200"},
		{"CPU time", "1201,99,1200,41234"},
	} {
		eval[bool](b, head(step.click)+`.click(), true`)
		b.is(processes + ` === "` + step.want + `"`)
	}
	eval[bool](b, `document.querySelector("details:has([data-processes])").open = true`)
	eval[bool](b, head("threads")+`.focus(), true`)
	b.keys("\r")
	b.is(processes + ` === "1201,41234,99,1200"`)
	b.is(head("threads") + `.getAttribute("aria-sort") === "descending"`)
}

// Without JavaScript, the table is sorted by CPU time.
func TestBrowser_ProcessesAreSortedWithoutJavaScript(t *testing.T) {
	b := newTab(t)
	b.scripts(false)
	b.visit(fileOf(t, pageOf(t, reportertest.AddProcesses(reportertest.NodeReport(0, 60, 0, nil)))))
	b.is(processes + ` === "1201,99,1200,41234"`)
}
