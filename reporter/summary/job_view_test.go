package summary

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// If there are more GPUs than are followed, the job may have others.
func TestGPURows_SayThatJobMayHaveUnsampledGPUs(t *testing.T) {
	for want, m := range map[string]reporter.Missing{
		"of 16 followed are the job's; the node has 20": {Code: gpu.NotFollowed, Why: "20 devices", Count: 4, Total: 20},
		"of the node's 16 could be seen by the job":     {Code: gpu.NoValue, Why: "nvidia-smi printed [N/A]"},
	} {
		n := reportertest.UnseenGPUs().Nodes["0"]
		m.What = host.SourceGPU
		n.Missing = append(n.Missing, m)
		if rows := gpuRows(n); len(rows) != 1 || rows[0].value.Number != "0" || rows[0].note != want {
			t.Errorf("missing %+v: GPU rows %+v, want one row of 0 with the note %q", m, rows, want)
		}
	}
}

// A plain job's summary is short: see testdata/good.txt.
func TestWrite_PlainJobIsShort(t *testing.T) {
	words := summaryOf(t, reportertest.Golden()["good"], Options{Path: "x"})
	if lines := strings.Count(words, "\n"); lines > 24 {
		t.Errorf("summary of a plain job has %d lines, want at most 24:\n%s", lines, words)
	}
	for _, not := range []string{"limit", "GPU", "swap", "waiting", "stolen", "verdict", "advice", "throttled", "missing"} {
		if strings.Contains(words, not) {
			t.Errorf("summary of a plain job mentions %q:\n%s", not, words)
		}
	}
}

// The verdict is near the top in the colour of alarms, if it contains more than an exit code.
func TestWrite_VerdictIsNearTheTop(t *testing.T) {
	exited := func(code float64, words string, conditions ...string) *reporter.Verdict {
		return &reporter.Verdict{Cause: diagnosis.CauseExited, Text: words, Evidence: map[string]any{"exit_code": code}, Conditions: conditions}
	}
	for name, c := range map[string]struct {
		verdict *reporter.Verdict
		text    string
		bad     bool
	}{
		"none":         {nil, "", false},
		"exit 0":       {exited(0, "exited with code 0"), "", false},
		"exit 3":       {exited(3, "exited with code 3"), "", true},
		"and survived": {exited(0, "exited with code 0; a child was killed"), "exited with code 0; a child was killed", false},
		"throttled":    {exited(0, "exited with code 0", "throttled", "io_wait"), "exited with code 0; on the way: throttled, waiting for I/O", false},
		"said already": {exited(0, "exited with code 0 while throttled.", "throttled"), "exited with code 0 while throttled.", false},
		"no text":      {&reporter.Verdict{Cause: diagnosis.CauseOOMHost}, "out of memory", true},
		"of later":     {&reporter.Verdict{Cause: "alien\x1b"}, `alien\x1b`, true},
	} {
		if words, bad := VerdictText(c.verdict); words != c.text || bad != c.bad {
			t.Errorf("%s: verdict %q, bad %v; want %q, bad %v", name, words, bad, c.text, c.bad)
		}
	}
	words := summaryOf(t, reportertest.Container(0, 20, 0), Options{Color: true})
	if lines := strings.Split(words, "\n"); !strings.HasPrefix(lines[1], "\x1b[1;31mverdict  killed by the kernel") {
		t.Errorf("second line %q, want the verdict in the colour of alarms", lines[1])
	}
	r := reporter.New(reportertest.JobInput(0, 5, 0, ""))
	r.Run.Incomplete = "cut off"
	r.Nodes["0"].Verdict = &reporter.Verdict{Cause: diagnosis.CauseUnknown, Text: "how the command ended is not known: cut off"}
	if words := summaryOf(t, r, Options{}); strings.Contains(words, "verdict") {
		t.Errorf("the verdict repeats the exit code of the first line:\n%s", words)
	}
}

// Both numbers are shown: the node's capacity and the job's limit.
func TestHighlights_ShowCapacityAndLimit(t *testing.T) {
	n := reportertest.Container(0, 200, 0).Nodes["0"]
	find := func(label string) Highlight {
		for _, h := range Highlights(n, 200) {
			if h.Label == label {
				return h
			}
		}
		return Highlight{}
	}
	for _, want := range []Highlight{
		{"CPU limit", "2 CPUs", "100.0 % used, by quota of /docker/3f5a9c"},
		{"throttled", "31.0 %", "of the quota's periods, 12.1 s in all"},
		{"mem limit", "8.0 GiB", "91.2 % reached, set by /docker"},
		{"job memory", "2.0 GiB", "peak of the whole job (cgroup), largest process 1.5 GiB, 4 processes, 36 threads"},
		{"job CPU", "10 min 23 s", "user 10 min 10 s, system 12.5 s, 3.11 CPUs busy of 2 allowed"},
	} {
		if got := find(want.Label); got != want {
			t.Errorf("highlight %+v, want %+v", got, want)
		}
	}
	for name, c := range map[string]struct {
		limits reporter.Limits
		want   string
	}{
		"as many as the node": {reporter.Limits{CPUs: 8, CPUSetCPUs: 8, AffinityCPUs: 8}, ""},
		"cpuset":              {reporter.Limits{CPUs: 4, CPUSetCPUs: 4, AffinityCPUs: 4}, "100.0 % used, by cpuset"},
		"affinity":            {reporter.Limits{CPUs: 4, CPUSetCPUs: 8, AffinityCPUs: 4}, "100.0 % used, by affinity"},
		"a quota above":       {reporter.Limits{CPUs: 4, CPUQuota: 6, AffinityCPUs: 4, CPUGroup: "/g"}, "100.0 % used, by affinity"},
		"quota of no name":    {reporter.Limits{CPUs: 1.5, CPUQuota: 1.5}, "100.0 % used, by quota"},
	} {
		n.Limits = &c.limits
		delete(n.Metrics, reporter.MetricThrottled)
		if got := find("CPU limit").Note; got != c.want {
			t.Errorf("%s: note on the CPU limit %q, want %q", name, got, c.want)
		}
	}
}

// Limits that changed, and fewer CPUs than the job was given, have separate lines. Idle CPUs count from the given ones.
func TestLimitRows_ChangedLimitsHaveSeparateLines(t *testing.T) {
	n := reportertest.Container(0, 20, 0).Nodes["0"]
	n.Limits = &reporter.Limits{CPUs: 1, AffinityCPUs: 1, GivenCPUs: 2, MemoryMB: 2048,
		MemoryRange: &reporter.LimitRange{Min: 1024, Max: 2048, Changes: 1, ChangedAt: time.Date(2026, 7, 1, 12, 0, 18, 0, time.UTC)}}
	n.Metrics[reporter.MetricJobCores] = 0.96
	var notes []string
	for _, r := range limitRows(n) {
		notes = append(notes, r.note)
	}
	for _, want := range []string{"the job bound itself to 1 of the 2 CPUs it was given", "1.0 GiB to 2.0 GiB, changed at 12:00:18 UTC"} {
		if !slices.Contains(notes, want) {
			t.Errorf("notes %q lack %q", notes, want)
		}
	}
	if rows := jobIdleRows(n, &reporter.Run{WallSeconds: 20}); len(rows) != 1 || rows[0].note != "1.04 of 2 CPUs idle (52 %)" {
		t.Errorf("idle rows %+v, want one: 1.04 of 2 CPUs idle (52 %%)", rows)
	}

	n.Limits.MemoryMB, n.Limits.MemoryRange.Max, n.Limits.GivenCPUs = 0, 0, 0
	if rows := limitRows(n); len(rows) < 2 || rows[len(rows)-2].value.String() != "none" || !strings.HasPrefix(rows[len(rows)-1].note, "1.0 GiB to no limit, ") {
		t.Errorf("rows of a limit that was removed %+v, want none and then 1.0 GiB to no limit", rows)
	}
}

// A single thread is singular.
func TestHighlights_OneThreadIsSingular(t *testing.T) {
	n := reportertest.Container(0, 20, 0).Nodes["0"]
	n.Metrics[reporter.MetricJobProcesses], n.Metrics[reporter.MetricJobThreads] = 1, 1
	for _, h := range Highlights(n, 20) {
		if h.Label == "job memory" && !strings.HasSuffix(h.Note, ", 1 process, 1 thread") {
			t.Errorf("highlight %+v, want a note that ends in 1 process, 1 thread", h)
		}
	}
}

// The summary of a thousand nodes with findings is short, and takes as many allocations per node as for a hundred.
func TestWrite_ThousandNodesAreShortAndCheap(t *testing.T) {
	nodes := func(n int) *reporter.Report {
		r := reportertest.Container(0, 5, 0)
		for i := range n {
			r.Nodes[fmt.Sprint(i)] = r.Nodes["0"]
		}
		return r
	}
	hundred, thousand := nodes(100), nodes(1000)
	words := summaryOf(t, thousand, Options{})
	if !strings.Contains(words, "node 0, 1 and 998 more: killed by the kernel") || strings.Count(words, "for 12 GiB instead") != 1 {
		t.Errorf("summary of 1,000 nodes: want the killed nodes counted in one line, and the advice once:\n%.3000s",
			words)
	}
	few := testing.AllocsPerRun(1, func() { summaryOf(t, hundred, Options{}) })
	many := testing.AllocsPerRun(1, func() { summaryOf(t, thousand, Options{}) })
	if many > 12*few {
		t.Errorf("%.0f allocations for 1,000 nodes, %.0f for 100: want at most 12 times as many", many, few)
	}
}

// The GPUs of several nodes are summed up: only a job's GPUs, or all of a node without a job; the mean is over the
// measured ones.
func TestGPUTotals_Rows(t *testing.T) {
	job := &reporter.Job{}
	node := func(job *reporter.Job, m reporter.Values, of ...bool) *reporter.Node {
		n := &reporter.Node{Job: job, Metrics: m}
		for _, o := range of {
			n.GPUs = append(n.GPUs, reporter.GPU{OfJob: o, MemoryMB: 1024})
		}
		return n
	}
	for name, c := range map[string]struct {
		nodes map[string]*reporter.Node
		want  []numberRow
	}{
		"none":     {map[string]*reporter.Node{"0": node(job, nil), "1": nil}, nil},
		"no job's": {map[string]*reporter.Node{"0": node(job, reporter.Values{"gpu_0_avg_utilization_pct": 50}, false), "1": node(job, nil)}, nil},
		"unmeasured": {map[string]*reporter.Node{"0": node(job, nil, true), "1": node(job, nil)},
			[]numberRow{{label: "GPUs", value: text.Percentage(math.NaN()), note: "busy, mean of 1 on 1 node"}}},
		"job, reportertest.Sidecar, a device of others, one unmeasured": {
			map[string]*reporter.Node{
				"0":  node(job, reporter.Values{"gpu_0_avg_utilization_pct": 90, "gpu_1_avg_utilization_pct": 1, "max_t_gpu_0_memory_used_mb": 512, "max_t_gpu_1_memory_used_mb": 1000}, true, false, true),
				"10": node(nil, reporter.Values{"gpu_0_avg_utilization_pct": 30, "max_t_gpu_0_memory_used_mb": 100}, false),
			},
			[]numberRow{{label: "GPUs", value: text.Quantity{Number: "60.0", Unit: "%"}, note: "busy, mean of 2 of the 3 on 2 nodes"}, {value: text.Quantity{Number: "30.0", Unit: "%"}, note: "the least,", of: "node 10, GPU 0"},
				{value: text.Quantity{Number: "512", Unit: "MiB"}, note: "the most memory used on one, of 1.0 GiB"}}},
	} {
		gpus := newGPUTotals(&reporter.Report{Nodes: c.nodes})
		if got := gpus.rows(); !slices.Equal(got, c.want) {
			t.Errorf("%s: GPU rows\n%+v, want\n%+v", name, got, c.want)
		}
	}
}

// Swapped memory and memory without a known owner are shown next to the job's memory.
func TestJobRows_ShowSwappedAndUnownedMemoryApart(t *testing.T) {
	n := &reporter.Node{
		Job:       &reporter.Job{PeakMemoryMB: 151, MemoryKind: host.MemoryGroup, UnownedMB: 300},
		Limits:    &reporter.Limits{MemoryMB: 100},
		Summaries: map[string]reporter.Summary{collector.JobMemorySwap.Key(): {Max: 51}},
	}
	rows := jobRows(n, &reporter.Run{})[1:] // the first has the CPU time
	if len(rows) != 2 || rows[0].note != "peak of the whole job (cgroup), 51 MiB swapped out" ||
		rows[1].note != "more in /dev/shm or a tmpfs, owner not known" || rows[1].value != text.Size(300) {
		t.Errorf("memory rows %+v, want the job's with 51 MiB swapped out, and 300 MiB more without an owner", rows)
	}
	more := Highlight{"job memory", "300 MiB", "more in /dev/shm or a tmpfs, owner not known"}
	if all := Highlights(n, 20); !slices.Contains(all, more) {
		t.Errorf("highlights %+v lack %+v", all, more)
	}
	early := &reporter.Node{Job: &reporter.Job{MaxRSSMB: 14, MaxRSSAtMost: true, UnownedMB: 300}}
	if rows := jobRows(early, &reporter.Run{})[1:]; len(rows) != 1 || rows[0].label != "job memory" ||
		rows[0].note != "in /dev/shm or a tmpfs, owner not known" || rows[0].value != text.Size(300) {
		t.Errorf("job that ended before its memory was sampled: rows %+v, want only 300 MiB without an owner", rows)
	}
	if used, of := memoryBar(n, &reporter.Run{Command: []string{"x"}}); used != 100 || of != 100 {
		t.Errorf("memory bar %v of %v MiB, want 100 of 100", used, of)
	}
	n.Job.UnownedMB = 5
	if rows := jobRows(n, &reporter.Run{})[1:]; len(rows) != 1 {
		t.Errorf("memory rows %+v, want one: the shared memory is insignificant", rows)
	}
}
