//go:build e2e

package browser

import (
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/reporter"
)

// A page with all possible values of a job shows each value and text, and omits charts that a node does not have.
func TestBrowser_JobViewShowsEveryValue(t *testing.T) {
	t.Run("one node", func(t *testing.T) {
		r := plottertest.Limited(0, 60, 3)
		n := r.Nodes["0"]
		b := openReport(t, r, "")
		for _, chart := range plottertest.AllCharts() {
			b.bucket(chart, r, n, 25)
			b.says(reading(t, n, chart, 25)...)
		}
		b.metrics(n)
		b.is(`document.querySelectorAll("[data-chart]").length === 12`)
		b.is(`document.querySelector("[data-verdict] .verdict.bad").innerText.startsWith("out of memory: the group /docker") && document.querySelectorAll("[data-advice] .advice").length === 2`)
		b.is(`document.querySelector("[data-chart=cpu] .bar b").innerText === "CPU, CPUs (may use 2 of 8)"`)
		b.is(`document.querySelector("[data-chart=memory] .bar b").innerText === "Memory, GiB (limit 1.0 GiB of 32.0 GiB)"`)
		b.is(`document.body.innerText.includes("31.0 %") && document.body.innerText.includes("A100-SXM4-40GB")`)
		b.contrast()
		b.narrow()
		b.media("print", "light")
		b.is(`[...document.querySelectorAll("[data-chart]")].every(e => ` + shown(`e.querySelector("svg")`) + `) && ` + shown(`document.querySelector("[data-advice]")`))
	})
	t.Run("nodes", func(t *testing.T) {
		r := plottertest.LimitedNodes()
		b := openReport(t, r, "")
		b.is(`[...document.querySelectorAll("[data-heatmap]")].map(e => e.dataset.heatmap).join() === "cpu,job_cpu,memory"`)
		for node, charts := range map[string]int{"1": 10, "2": 5, "3": 10, "0": 9} {
			b.do(chromedp.Evaluate(`location.hash = "#node=`+node+`"`, nil))
			b.shows(r, node)
			b.is(`[...document.querySelectorAll("[data-chart]")].filter(e => ` + shown("e") + `).length === ` + strconv.Itoa(charts))
			b.is(`document.querySelectorAll("#nodeadvice .advice").length === ` + strconv.Itoa(len(r.Nodes[node].Findings)))
			chart := plottertest.HostCharts()[0]
			if charts > 9 {
				chart = plottertest.GPUCharts()[0]
			}
			b.bucket(chart, r, r.Nodes[node], 25)
			if node != "1" { // it has two GPUs, and lanes on this page
				b.says(reading(t, r.Nodes[node], chart, 25)...)
			}
		}
		b.is(`document.querySelector("[data-verdict] .verdict.bad").innerText.startsWith("node 0, 1 and 1 more: out of memory")`)
		at := b.box("[data-heatmap=job_cpu] .map")
		b.point(at, 0.4, 0.1)
		if tip := b.tip(); !strings.Contains(tip, "job: ") || !strings.Contains(tip, "CPUs") {
			t.Errorf("tooltip of the map %q, want the job's CPUs", tip)
		}
	})
	t.Run("JavaScript off", func(t *testing.T) {
		b := newTab(t)
		b.scripts(false)
		b.visit(fileOf(t, pageOf(t, plottertest.LimitedNodes())))
		b.is(`document.querySelectorAll(".verdict.bad").length === 2 && document.body.innerText.includes("ask for 1.5 GiB")`)
		b.is(`[...document.querySelectorAll("[data-chart]")].filter(e => ` + shown("e") + `).length === 9`)
	})
}

// A series that is first measured during the run, of a GPU that was slow to respond, gets its chart.
func TestBrowser_LivePageGetsChartOfLateSeries(t *testing.T) {
	var seconds atomic.Int64
	seconds.Store(2)
	soFar := func(n int) *reporter.Report {
		gpus := 0
		if n > 5 {
			gpus = 2
		}
		r := plottertest.Limited(0, n, gpus)
		r.Run.ExitCode, r.Run.Incomplete, r.Run.Verdict = nil, "running", nil
		r.Nodes["0"].Verdict = nil
		return r
	}
	server := serving(t, func() *reporter.Report { return soFar(int(seconds.Load())) })
	b := newTab(t)
	b.visit(server.URL + "/")
	b.is(`document.querySelectorAll("[data-chart]").length === 9`)
	seconds.Store(30)
	b.until(`document.querySelectorAll("[data-chart]").length === 12 && Number(document.querySelector("[data-chart=gpu_power]").dataset.to) === 30`)
	b.whole()
	r := soFar(30)
	b.tells("gpu_memory", r, r.Nodes["0"], 20)
}
