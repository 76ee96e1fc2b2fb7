package summary

import (
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// The sparklines of the job come between the numbers of the job and of the node, and the sparklines of the node before
// perfagent's own cost. The path of the page comes last.
func TestWrite_HasSparklinesAndPage(t *testing.T) {
	o := Options{
		Long: true, Whole: true,
		Path: "out/node-0.json", Page: "out/node-0.html",
		JobSparklines: []string{"CPU         ▁█  0 to 2 CPUs"}, NodeSparklines: []string{"CPU         ▁█  0 to 100 %", "time        0 to 2.0 s"},
	}
	const job, node = "\n\nCPU         ▁█  0 to 2 CPUs\n\n", "\n\nCPU         ▁█  0 to 100 %\ntime        0 to 2.0 s\n\n"
	for name, r := range map[string]*reporter.Report{
		"one node": reporter.New(reportertest.Input(0, 2, 0, "")), "several nodes": reportertest.ThreeNodes(),
		"no overhead":         {Nodes: map[string]*reporter.Node{"0": {}}},
		"only missing values": {Nodes: map[string]*reporter.Node{"0": {Missing: []reporter.Missing{{What: "cpu", Why: "why"}}}}},
	} {
		text := summaryOf(t, r, o)
		at, below := strings.Index(text, job[:len(job)-1]), strings.Index(text, node)
		if len(r.Nodes) == 1 && (at < 0 || at > below) || below < 0 || strings.Contains(text, "\n\n\n") {
			t.Errorf("%s: want the sparklines of the job above the sparklines of the node, and no consecutive empty lines:\n%s", name, text)
		}
		if rest := text[max(0, below):]; strings.Contains(rest, "peak of the node") || strings.Contains(text[:max(0, below)], "overhead") {
			t.Errorf("%s: want only the overhead and paths after the sparklines of the node:\n%s", name, text)
		}
		if !strings.HasSuffix(text, "\ndata        out/node-0.json\nreport      out/node-0.html\n") {
			t.Errorf("%s: want the data and then the page at the end:\n%s", name, text)
		}
		if bare := summaryOf(t, r, Options{Path: o.Path, Long: true, Whole: true}); strings.Contains(bare, "data ") || strings.Contains(bare, "▁") {
			t.Errorf("%s: want neither sparklines nor a page, because none were given:\n%s", name, bare)
		}
	}
}

// Sparklines are cut and made printable, like all other lines.
func TestWrite_SparklinesAreCutAndPrintable(t *testing.T) {
	o := Options{Long: true, Width: 40, NodeSparklines: []string{reportertest.Hostile, strings.Repeat("x", 500), "\n\n", "trailing  "}, Page: strings.Repeat("p/", 60)}
	text := summaryOf(t, reportertest.Sidecar(), Options{Long: true, Width: 40, NodeSparklines: o.NodeSparklines})
	if !strings.Contains(text, `a\x1b[31mred`) || !strings.Contains(text, "xxx…\n") {
		t.Errorf("want a printable line and a cut line of sparklines:\n%s", text)
	}
	o.NodeSparklines = nil
	o.Path = o.Page // summaryOf lets only the line of Path exceed the width
	if text := summaryOf(t, reportertest.Sidecar(), o); !strings.HasSuffix(text, "\nreport\n"+o.Page+"\n") {
		t.Errorf("the path of the page was cut:\n%s", text)
	}
}
