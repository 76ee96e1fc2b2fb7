//go:build e2e

package browser

import (
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/reporter"
)

// The page shows every kind of value that a job can have, on one node and on several nodes.
func TestBrowser_JobViewShowsEveryValue(t *testing.T) {
	t.Run("one node", func(t *testing.T) {
		r := plottertest.Limited(0, 60, 3)
		n := r.Nodes["0"]
		b := openReport(t, r, "")
		for _, chart := range []string{"memory", "cpu", "gpu_utilization", "gpu_power"} {
			b.bucket(chart, r, n, 25)
			b.values(n, chart)
		}
		b.is(`[...document.querySelectorAll("[data-chart=gpu_power] .key output")].every(e => / W$/.test(e.textContent))`)
		b.metrics(n)
		b.is(`document.querySelectorAll("[data-chart]").length === ` + strconv.Itoa(len(plottertest.AllCharts())-1)) // the disk's usage did not change
		b.is(`document.querySelector("[data-verdict] .bad").textContent === "Out of memory:"`)
		b.is(`document.body.textContent.includes("31.0 %") && document.body.textContent.includes("A100-SXM4-40GB")`)
		b.contrast()
		b.narrow()
		b.media("print", "light")
		b.is(`[...document.querySelectorAll("[data-chart]")].every(e => ` + shown(`e.querySelector("svg")`) + `) && ` + shown(`document.querySelector("[data-advice]")`))
	})
	t.Run("many GPUs", func(t *testing.T) {
		r := plottertest.Limited(0, 60, 8)
		b := openReport(t, r, "")
		b.point(b.plot("gpu_utilization"), 0.5, 5.5/8)
		if got := b.read("gpu_utilization"); !strings.Contains(got, ": GPU 5 ") || !strings.HasSuffix(got, " %") {
			t.Errorf("readout of the row of GPU 5 = %q, want GPU 5 and a percentage", got)
		}
	})
	t.Run("nodes", func(t *testing.T) {
		for _, scripts := range []bool{true, false} {
			b := newTab(t)
			b.scripts(scripts)
			b.visit(fileOf(t, pageOf(t, plottertest.LimitedNodes())))
			b.is(`document.querySelectorAll(".node").length === 4 && document.querySelectorAll("[data-nodes] tbody tr").length === 4`)
			b.is(`[...document.querySelectorAll("[data-chart]")].filter(e => ` + shown("e") + `).length === 10`)
			b.is(`document.querySelector("[data-advice]").textContent.length > 20`)
			b.contrast()
			b.narrow()
		}
	})
}

// A live page adds a chart for a series that is first measured during the run, such as the utilization of a GPU that
// was slow to respond.
func TestBrowser_LivePageAddsChartForLateSeries(t *testing.T) {
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
	before := b.count("[data-chart]")
	seconds.Store(30)
	b.until(`document.querySelector("[data-chart=gpu_power]") !== null`)
	b.whole()
	if got := b.count("[data-chart]"); got < before+len(plottertest.GPUCharts()) {
		t.Errorf("%d charts, want %d more than %d", got, len(plottertest.GPUCharts()), before)
	}
	b.values(soFar(30).Nodes["0"], "gpu_memory")
}
