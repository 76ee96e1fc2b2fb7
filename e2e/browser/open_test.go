//go:build e2e

package browser

import (
	"regexp"
	"testing"

	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// Every page opens without errors or requests, and has everything that users' scripts rely on.
func TestBrowser_OpensEveryPage(t *testing.T) {
	for _, c := range []struct {
		name string
		of   func(testing.TB) *reporter.Report
	}{
		{"50 ms", func(testing.TB) *reporter.Report { return plottertest.Short() }},
		{"this machine", plottertest.Sampled},
		{"a week", plottertest.Week},
		{"64 CPUs", func(testing.TB) *reporter.Report { return reportertest.Large(0, 1, 1000) }},
		{"12 nodes", func(testing.TB) *reporter.Report { return plottertest.Few() }},
		{"perf.py", plottertest.PerfPy},
		{"nothing measured", func(testing.TB) *reporter.Report { return plottertest.Absent() }},
		{"gaps", func(testing.TB) *reporter.Report { return plottertest.Gaps() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.of(t)
			wantSelfContained(t, pageOf(t, r))
			b := openReport(t, r, "")
			if len(r.Nodes) == 1 {
				b.metrics(r.Nodes[r.NodeNames()[0]])
			}
		})
	}
}

// wantSelfContained checks that a page has no address that a browser would fetch.
func wantSelfContained(t testing.TB, html []byte) {
	t.Helper()
	for _, fetched := range []string{
		`(?i)<[^>]*\s(?:src|srcset|href|action|data|poster|background|formaction|xlink:href)\s*=\s*["']?\s*(?:[a-z]+:)?//`,
		`(?i)url\(\s*["']?\s*(?:[a-z]+:)?//`,
		`(?i)@import`,
		`(?i)<(?:link|script|img|iframe|object|embed|video|audio|source|base|form)\b[^>]*https?:`,
		`(?i)\b(?:importScripts|WebSocket|EventSource|XMLHttpRequest|sendBeacon)\b`,
	} {
		if got := regexp.MustCompile(fetched).Find(html); got != nil {
			t.Errorf("page has an address that a browser would fetch: %.200q", got)
		}
	}
}
