package summary

import (
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/reportertest"
)

// In any summary, the numbers of jobs come before the numbers of nodes, with the labels of the rows above, and overhead
// and paths come last.
func TestWrite_JobComesBeforeNode(t *testing.T) {
	o := Options{
		Long: true, Whole: true,
		Path: "r.json", Page: "r.html", JobSparklines: []string{"CPU         job"}, NodeSparklines: []string{"CPU         node"},
	}
	for name, r := range reportertest.Golden() {
		if strings.Contains(name, "hostile") {
			continue // a tag may begin a line with anything
		}
		words := summaryOf(t, r, o)
		node, last := "", ""
		for line := range strings.Lines(words) {
			label, _, _ := strings.Cut(line, "  ")
			ofJob := slices.Contains([]string{"CPU time", "processes", "phases", "operations", "CPU limit"}, label)
			switch {
			case strings.HasPrefix(label, "node") && strings.Contains(line, " CPUs, "):
				node = line
			case ofJob && node != "" && r.Run.Command != nil:
				t.Errorf("%s: line %q of the node is before line %q of the job", name, node, line)
			case strings.HasPrefix(label, "job ") || strings.HasPrefix(label, "mem "):
				t.Errorf("%s: the label of line %q differs from the rows above", name, line)
			case label == "overhead" || label == "report" || label == "data":
				last = line
			case last != "":
				t.Errorf("%s: line %q, which belongs at the end, is before %q", name, last, line)
			}
		}
	}
}
