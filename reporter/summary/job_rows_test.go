package summary

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// grownReport returns the report of a job that grew until the kernel killed it 3.5 s after its start.
func grownReport() *reporter.Report {
	r := endedReport(137, "SIGKILL", diagnosis.CauseOOMCgroup, "", map[string]any{
		"limit_mb": 256.0, "time": "1970-01-01T00:00:03.5Z"})
	n := r.Nodes["0"]
	n.Host = &reporter.Host{CPUs: 2, MemoryMB: 4096}
	n.Metrics[reporter.MetricJobCores], n.Metrics[reporter.MetricJobProcesses] = 0.1, 1
	n.Samples = reporter.Samples{
		Keys:    []string{collector.Timestamp.Key(), collector.JobMemory.Key(), collector.JobCPU.Key()},
		Columns: [][]float64{{1, 2, 3, 4}, {64, 128, 192, 3}, {.1, .1, .1, 0}},
	}
	return r
}

// digits draws each value as a digit from 0 to 9.
func digits(values []float64, width int, lo, hi float64, _ bool) string {
	out := ""
	for _, v := range values[:min(len(values), width)] {
		switch d := 9 * (v - lo) / (hi - lo); {
		case d >= 0 && d <= 9:
			out += fmt.Sprintf("%.0f", d)
		default:
			out += " "
		}
	}
	return out
}

// The curve of a killed job rises to the limit and ends with the sign for a kill. Samples after the kill are not drawn.
func TestWrite_CurveEndsAtKill(t *testing.T) {
	t.Parallel()
	words := summaryOf(t, grownReport(), Options{Curve: digits})
	check.Contains(t, "summary", words,
		"\n"+strings.Repeat(" ", 54)+"each curve to its own peak\n",
		"\nmemory     ██████████ 100 %  of 256 MiB (peak)"+strings.Repeat(" ", 28)+"2479✗\n",
		"\nCPU        ▌·········   5 %  of 2 CPUs (mean)"+strings.Repeat(" ", 29)+"999\n",
		"\nprocesses  at most 1 seen\n")
	ascii := summaryOf(t, grownReport(), Options{Curve: digits, ASCII: true})
	if !strings.Contains(ascii, "of 256 MiB (peak)"+strings.Repeat(" ", 33)+"x\n") || strings.ContainsAny(ascii, "✗·█") ||
		strings.Contains(ascii, "curve") {
		t.Errorf("ASCII summary: want x for the kill and no curve:\n%s", ascii)
	}
}

// The row of a full disk comes first, and names the file system.
func TestWrite_FullDiskComesFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path string
		free float64
		want string
	}{
		"no space":     {"/scratch", 0, "of /scratch (peak)"},
		"no inodes":    {"/scratch", 9000, "of the files of /scratch (peak)"},
		"long path":    {"/a" + strings.Repeat("/long", 20), 0, "of …" + strings.Repeat("/long", 20)[61:] + " (peak)"},
		"hostile path": {"/\x1b[31m", 0, `of /\x1b[31m (peak)`},
	} {
		r := endedReport(1, "", diagnosis.CauseDiskFull, "", map[string]any{"path": c.path, "available_mb": c.free})
		n := r.Nodes["0"]
		n.Host = &reporter.Host{CPUs: 2, MemoryMB: 4096}
		n.Metrics[reporter.MetricJobCores], n.Metrics[reporter.MetricJobWritten] = 0.1, 40
		words := summaryOf(t, r, Options{})
		_, rows, _ := strings.Cut(words, "\n\n")
		if !strings.HasPrefix(rows, "disk used  ██████████ 100 %  "+c.want+"\nCPU ") || !strings.Contains(rows, "\ndisk       40 MiB written\n") {
			t.Errorf("%s: want the row of the disk first, with %q:\n%s", name, c.want, words)
		}
		if o := NewOverview(r, "", ""); o.Memory != nil || o.CPU == nil {
			t.Errorf("%s: overview with memory %v and CPU %v, want only CPU", name, o.Memory, o.CPU)
		}
		r.Nodes["1"] = &reporter.Node{Verdict: n.Verdict}
		for _, b := range Bars(r) {
			if b.Key == BarDisk && b.CapacityText() != strings.TrimSuffix(c.want, " (peak)")+" on node 0" {
				t.Errorf("%s, two nodes: capacity %q, want the path and node 0", name, b.CapacityText())
			}
		}
	}
}

// If a rule of --stop-if stopped the job, the bar shows the share of the memory that the rule allowed.
func TestBars_ShowShareOfStopRule(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		"job_memory_mb > 200": "memory ██████████ 119 %", "job_memory_mb >= 400 for 5s": "memory █████▉···· 60 %",
		"job_memory_mb > x": "memory ▌········· 6 %", "job_memory_mb < 200": "memory ▌········· 6 %",
	} {
		r := endedReport(143, "SIGTERM", diagnosis.CauseStopped, "", map[string]any{"rule": rule, "key": "job_memory_mb"})
		n := r.Nodes["0"]
		n.Limits, n.Host = nil, &reporter.Host{MemoryMB: 4096}
		n.Metrics[reporter.MetricJobMemoryPeak] = 238
		if got := barText(r); !strings.HasPrefix(got, want+" ") {
			t.Errorf("rule %s: bar %q, want %q", rule, got, want)
		}
	}
}

// A short summary stays short no matter how many findings there are, and begins in the color of the outcome.
func TestWrite_ShortSummaryStaysShort(t *testing.T) {
	t.Parallel()
	r := grownReport()
	n := r.Nodes["0"]
	n.Verdict.Evidence["mb_per_second"] = 64.0
	for i := range 20 {
		n.Phases = append(n.Phases, reporter.Phase{Name: fmt.Sprint("p", i), Seconds: 1, Count: 1})
		n.Findings = append(n.Findings, reporter.Finding{ID: "disk_nearly_full", Text: strings.Repeat("Make room. ", 9)})
	}
	words := summaryOf(t, r, Options{Curve: digits, Path: "perfagent-out/r/node-0.json", Page: "perfagent-out/r/node-0.html"})
	if lines := strings.Count(words, "\n"); lines > shortLines || !strings.HasSuffix(words,
		"\n\nreport     perfagent-out/r/node-0.html\ndetails    perfagent show r\n") {
		t.Errorf("summary has %d lines, want at most %d, with the page and the command at the end:\n%s", lines, shortLines, words)
	}
	for code, start := range map[int]string{0: "\x1b[1;32mperfagent: Succeeded", 3: "\x1b[1;31mperfagent: Failed"} {
		r := endedReport(code, "", diagnosis.CauseExited, "", nil)
		if words := summaryOf(t, r, Options{Color: true}); !strings.HasPrefix(words, start) {
			t.Errorf("exit code %d: summary %q, want it to begin with %q", code, words, start)
		}
	}
}

// The command contains the directory of the run, unless it is the default directory, or the arguments that named the
// run.
func TestShowCommand(t *testing.T) {
	t.Parallel()
	one := endedReport(0, "", "", "", nil)
	two := endedReport(0, "", "", "", nil)
	two.Nodes["1"] = two.Nodes["0"]
	for _, c := range []struct {
		r    *reporter.Report
		o    Options
		want string
	}{
		{one, Options{Path: "perfagent-out/r/node-0.json"}, "r"}, {one, Options{}, "r"},
		{one, Options{Path: "/scratch/r/node-0.json"}, "/scratch/r"}, {one, Options{Path: "my runs/r/node-0.json"}, "'my runs/r'"},
		{two, Options{Path: "perfagent-out/r", Show: "--out o r@1"}, "--all --out o r@1"},
	} {
		check.Equal(t, showCommand(c.r, c.o), "perfagent show "+c.want, "command for %+v", c.o)
	}
}

// The limit of a single rank's group is not the peak of a node with several ranks.
func TestJobPeak_IgnoresLimitOfSingleRank(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ranks  int
		limits *reporter.Limits
		want   float64
	}{
		"no ranks":                  {0, nil, 256},
		"ranks in their own groups": {2, nil, 2048},
		"ranks in one group":        {2, &reporter.Limits{MemoryMB: 256}, 256},
		"ranks below another limit": {2, &reporter.Limits{MemoryMB: 4096}, 2048},
	} {
		n := grownReport().Nodes["0"]
		n.Job.PeakMemoryMB, n.Limits = 2048, c.limits
		for range c.ranks {
			n.Ranks = map[string]*reporter.Rank{"0": {}, "1": {}}
		}
		check.Equal(t, jobPeak(n), c.want, "%s: peak memory", name)
	}
}
