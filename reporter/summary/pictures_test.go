package summary

import (
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// The pictures stand between the numbers and what perfagent itself cost, apart from
// both; the page comes after the report.
func TestWriteSummary_HasPicturesAndPage(t *testing.T) {
	o := Options{Path: "out/node-0.json", Page: "out/node-0.html", Pictures: []string{"CPU        ▁█  0 to 100 %", "time       0 to 2.0 s"}}
	const block = "\n\nCPU        ▁█  0 to 100 %\ntime       0 to 2.0 s\n\n"
	for name, c := range map[string]struct {
		report        *reporter.Report
		before, after string
	}{
		"one node":      {reporter.New(reportertest.Input(0, 2, 0, "")), "\njob disk ", "perfagent  own cost "},
		"several nodes": {reportertest.ThreeNodes(), "\nunits ", "perfagent  own cost "},
		"no own cost":   {&reporter.Report{Nodes: map[string]*reporter.Node{"0": {}}}, "\ndisk fill", "report "},
		"missing only":  {&reporter.Report{Nodes: map[string]*reporter.Node{"0": {Missing: []reporter.Missing{{What: "cpu", Why: "why"}}}}}, "\ndisk fill", "missing "},
	} {
		text := summaryOf(t, c.report, o)
		before, after, found := strings.Cut(text, block)
		if !found || !strings.Contains(before[strings.LastIndexByte(before, '\n'):], c.before) || !strings.HasPrefix(after, c.after) || strings.Contains(text, "\n\n\n") {
			t.Errorf("%s:\n%s", name, text)
		}
		if !strings.HasSuffix(text, "\nreport     out/node-0.json\npage       out/node-0.html\n") {
			t.Errorf("%s: report and page:\n%s", name, text)
		}
		if bare := summaryOf(t, c.report, Options{Path: o.Path}); strings.Contains(bare, "page ") || strings.Contains(bare, "▁") {
			t.Errorf("%s: without pictures and page:\n%s", name, bare)
		}
	}
}

// Pictures are lines of text like all others: cut, and never acted on.
func TestWriteSummary_PicturesAreText(t *testing.T) {
	o := Options{Width: 40, Pictures: []string{reportertest.Hostile, strings.Repeat("x", 500), "\n\n", "trailing  "}, Page: strings.Repeat("p/", 60)}
	text := summaryOf(t, reportertest.Sidecar(), Options{Width: 40, Pictures: o.Pictures})
	if !strings.Contains(text, `a\x1b[31mred`) || !strings.Contains(text, "xxx…\n") {
		t.Errorf("%s", text)
	}
	o.Pictures = nil
	o.Path = o.Page // summaryOf takes the path alone for uncut
	if text := summaryOf(t, reportertest.Sidecar(), o); !strings.HasSuffix(text, "\npage\n"+o.Page+"\n") {
		t.Errorf("the page's path is cut:\n%s", text)
	}
}
