//go:build e2e

package browser

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/comparer"
)

// trained returns ten runs of a job. longer multiplies their duration, and longer runs use less memory.
func trained(name, rate string, longer float64) comparer.Side {
	side := comparer.Side{Name: name}
	for i := range 10 {
		noise := 1 + 0.004*float64(i)
		side.Reports = append(side.Reports, reporter.SourceReport{Path: name, Report: &reporter.Report{
			Run: reporter.Run{ID: fmt.Sprint(name, i), Command: []string{"python", "train.py", "--lr", rate}},
			Nodes: map[string]*reporter.Node{"0": {
				GPUs: []reporter.GPU{{}}, Missing: []reporter.Missing{},
				Metrics: reporter.Values{
					"wall_seconds": 612 * noise * longer, "job_cpu_seconds": 1840 * noise, "job_peak_memory_mb": 7800 * noise / longer / longer,
					"job_avg_cpu_cores": 3 * noise / longer, "gpu_0_avg_utilization_pct": 74 * noise / longer, "max_t_mem_percent": 41 * noise,
					"total_disk_io_read_mb": 51200 * noise, "cpu_avg_utilization_pct": 22 * noise / longer,
				},
			}},
		}})
	}
	return side
}

// The page of a comparison has no script, requests nothing, and fits the window: in light and dark mode, on a phone and
// in print.
func TestBrowser_DiffPage(t *testing.T) {
	c := comparer.Compare(trained("before", "0.1", 1), trained("after", "0.01", 1.12))
	var html bytes.Buffer
	if err := plotter.WriteDiffPage(&html, c, "1.0.0"); err != nil {
		t.Fatal(err)
	}
	wantSelfContained(t, html.Bytes())
	address := fileOf(t, html.Bytes())

	for _, v := range views(1080, 760) {
		b := newTab(t)
		b.scripts(false)
		b.look(v)
		b.visit(address)
		b.is(`document.querySelector("[data-verdict]").textContent === "B took 12 % longer than A (p < 0.001): peak memory -20 %, GPU -11 %."`)
		b.is(shown(`document.querySelector("[data-commands]")`))
		b.is(`document.querySelector("tr[data-metric]").dataset.metric === "wall_seconds"`)
		b.contrast()
		b.narrow()
		if got := b.asked(); len(got) != 1 {
			t.Errorf("%s: page requested %q, want only itself", v.name, got)
		}
		if *pictures != "" {
			savePicture(t, "diff-"+v.name+".png", b.picture(), marginOf(v.media))
		}
	}
}
