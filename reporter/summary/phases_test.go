package summary

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// told returns the lines on phases in a summary.
func told(t *testing.T, r *reporter.Report, o Options) string {
	t.Helper()
	var out []string
	in := false
	for line := range strings.Lines(summaryOf(t, r, o)) {
		if in = strings.HasPrefix(line, "phases ") || in && strings.HasPrefix(line, "          "); in {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

func TestWrite_HasLineForEachPhase(t *testing.T) {
	const want = `phases     load                1 ×  10.0 s   0.25 CPUs  100 MiB
           train <b>&\x1b[31m  2 ×  40.0 s   7.50 CPUs  2.9 GiB
           save                1 ×   5.0 s  node 3.0 %        –
`
	check.Equal(t, told(t, reportertest.AddMarks(reportertest.ShortJob()), Options{}), want, "phases")
}

// Over several nodes, the length is the greatest, CPUs are added up, and the peak is the highest.
func TestWrite_CombinesPhasesOfNodes(t *testing.T) {
	r := reportertest.AddMarks(reportertest.ThreeNodes())
	second := r.Nodes["1"].Phase("load")
	second.Seconds, second.Metrics[reporter.MetricJobMemoryPeak] = 12, 200
	r.Nodes["2"].Phases = r.Nodes["2"].Phases[1:]
	if got := told(t, r, Options{}); !strings.HasPrefix(got, "phases     load                1 ×  12.0 s   0.50 CPUs  200 MiB\n") {
		t.Errorf("phases\n%s\nwant load first: 1 ×  12.0 s   0.50 CPUs  200 MiB", got)
	}
}

// A short summary lists as many of the longest phases as there is room for, in their order, and the command that shows
// the rest. Without room for two lines, it lists none. A long summary lists all phases.
func TestWrite_ShowsLongestPhases(t *testing.T) {
	r := reportertest.ShortJob()
	n := r.Nodes["0"]
	for i := range 30 {
		n.Phases = append(n.Phases, reporter.Phase{Name: fmt.Sprint("p", i), Start: float64(i), Seconds: float64(i % 10), Count: 1})
	}
	got := told(t, r, Options{})
	if strings.Count(got, "\n") != 8 || !strings.Contains(got, "p7 ") || strings.Contains(got, "p0 ") ||
		!strings.Contains(got, "  23 more in perfagent show "+r.Run.ID+"\n") {
		t.Errorf("phases\n%s\nwant 7 lines with p7, without p0, and a count of 23 more", got)
	}
	full := endedReport(1, "", diagnosis.CauseDiskFull, "", map[string]any{"path": strings.Repeat("/dir", 50)})
	full.Nodes["0"].Phases, full.Nodes["0"].Host = n.Phases, &reporter.Host{CPUs: 2, MemoryMB: 4096}
	for _, name := range []string{reporter.MetricJobCores, reporter.MetricJobRead, reporter.MetricJobProcesses, reporter.MetricJobMemoryPeak} {
		full.Nodes["0"].Metrics[name] = 1
	}
	got = summaryOf(t, full, Options{Path: "x/y"})
	if lines := strings.Count(got, "\n"); lines > shortLines || strings.Contains(got, "phases") || !strings.Contains(got, "\ndetails    perfagent show x\n") {
		t.Errorf("summary without room for phases has %d lines, want at most %d, none of phases:\n%s", lines, shortLines, got)
	}
	check.Equal(t, strings.Count(told(t, r, whole), "\n"), 30, "number of lines of phases in the long summary")
}

func TestWriteMarkdown_HasTableOfPhases(t *testing.T) {
	check.Contains(t, "Markdown", showMarkdown(t, reportertest.AddMarks(reportertest.ShortJob())),
		"| phase | began | lasted | CPUs | peak memory | GPU |\n|---|---:|---:|---:|---:|---:|\n"+
			"| `load` | 1 × | 10.0 s | 0.25 CPUs | 100 MiB | – |\n"+
			"| `train <b>&\\x1b[31m` | 2 × | 40.0 s | 7.50 CPUs | 2.9 GiB | – |\n"+
			"| `save` | 1 × | 5.0 s | node 3.0 % | – | – |\n")
}
