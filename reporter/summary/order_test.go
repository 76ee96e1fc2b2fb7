package summary

import (
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/reportertest"
)

// In any report, the job comes before the node, and overhead and paths are last.
func TestWrite_JobComesBeforeNode(t *testing.T) {
	o := Options{
		Long: true, Whole: true,
		Path: "r.json", Page: "r.html", JobSparklines: []string{"job CPU     x"}, NodeSparklines: []string{"node CPU    x"},
	}
	for name, r := range reportertest.Golden() {
		if strings.Contains(name, "hostile") {
			continue // a tag may begin a line with anything
		}
		words := summaryOf(t, r, o)
		node, last := "", ""
		for line := range strings.Lines(words) {
			label, _, _ := strings.Cut(line, " ")
			switch {
			case label == "node":
				node = line
			case label == "job" && node != "" && len(r.Nodes) == 1:
				t.Errorf("%s: line %q of the node is before line %q of the job", name, node, line)
			case label == "overhead" || label == "report" || label == "data":
				last = line
			case last != "":
				t.Errorf("%s: line %q, which belongs at the end, is before %q", name, last, line)
			}
		}
	}
}

// The summary of a job of milliseconds has only its CPU time.
func TestWrite_ShortJobHasOnlyItsCPUTime(t *testing.T) {
	words := summaryOf(t, reportertest.Golden()["short"], Options{Path: "r.json", Page: "r.html"})
	if n := strings.Count(words, "\n"); n > 8 || strings.Contains(words, "–") {
		t.Errorf("summary of a short job has %d lines, want at most 8, and no unknown values:\n%s", n, words)
	}
}
