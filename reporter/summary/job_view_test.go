package summary

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// If perfagent samples only some of the GPUs, the job may have used others.
func TestGPURows_MentionUnsampledGPUs(t *testing.T) {
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

// cardOf returns the card of a job with the given label, or the zero Highlight.
func cardOf(r *reporter.Report, label string) Highlight {
	for _, h := range JobCards(r) {
		if h.Label == label {
			return h
		}
	}
	return Highlight{}
}

// The cards show the usage of the job and the unused part, with small amounts in small units.
func TestJobCards(t *testing.T) {
	r := reportertest.Container(0, 200, 0)
	n := r.Nodes["0"]
	n.Verdict = nil
	for _, want := range []Highlight{
		{"CPU time", "10 min 23 s", "user 10 min 10 s, system 12.5 s"},
		{"Peak memory", "2.0 GiB", "peak of the whole job (cgroup), largest process 1.5 GiB"},
		{"Memory not used", "0.333 GiB·h", "75 % of what was allowed"},
		{"Processes", "at most 4", "seen at once, with 36 threads"},
		{"throttled", "31.0 %", "of the quota's periods, 12.1 s in all"},
	} {
		check.Equal(t, cardOf(r, want.Label), want, "card")
	}
	n.Metrics[reporter.MetricJobProcesses], n.Metrics[reporter.MetricJobThreads] = 1, 1
	check.Equal(t, cardOf(r, "Processes").Note, "seen at once, with 1 thread", "note for a single thread")
	n.Metrics[reporter.MetricJobCPU], n.Limits.CPUs = 100, 1
	check.Equal(t, cardOf(r, "CPU not used").Value, "100.0 CPU·s", "unused CPU time")
	n.Verdict = &reporter.Verdict{Cause: diagnosis.CauseOOMCgroup, Evidence: map[string]any{"limit_mb": 8192.0}}
	check.Equal(t, cardOf(r, "Memory not used"), Highlight{"Memory not used", "0 MiB", "at the peak"},
		"unused memory of a job killed at its limit")
	check.Equal(t, cardOf(r, "Peak memory").Value, "", "peak memory of a job killed at its limit")
	check.Equal(t, len(JobCards(&reporter.Report{Nodes: map[string]*reporter.Node{"0": {}}})), 0,
		"number of cards of a node without a job")
}

// Changed limits, and a binding to fewer CPUs than the job was given, have separate lines. Idle CPUs are counted out of
// the given CPUs.
func TestLimitRows_ChangedLimitsHaveSeparateLines(t *testing.T) {
	n := reportertest.Container(0, 20, 0).Nodes["0"]
	n.Limits = &reporter.Limits{CPUs: 1, AffinityCPUs: 1, GivenCPUs: 2, MemoryMB: 2048,
		MemoryRange: &reporter.LimitRange{Min: 1024, Max: 2048, Changes: 1, ChangedAt: time.Date(2026, 7, 1, 12, 0, 18, 0, time.UTC)}}
	n.Metrics[reporter.MetricJobCores] = 0.96
	var notes []string
	for _, r := range limitRows(n) {
		notes = append(notes, r.note)
	}
	check.Contains(t, "notes", "\n"+strings.Join(notes, "\n")+"\n", "\nthe job bound itself to 1 of the 2 CPUs it was given\n",
		"\n1.0 GiB to 2.0 GiB, changed at 12:00:18 UTC\n")
	if rows := jobIdleRows(n, &reporter.Run{WallSeconds: 20}); len(rows) != 1 || rows[0].note != "1.04 of 2 CPUs (52 %)" {
		t.Errorf("idle rows %+v, want one: 1.04 of 2 CPUs (52 %%)", rows)
	}

	n.Limits.MemoryMB, n.Limits.MemoryRange.Max, n.Limits.GivenCPUs = 0, 0, 0
	if rows := limitRows(n); len(rows) < 2 || rows[len(rows)-2].value.String() != "none" || !strings.HasPrefix(rows[len(rows)-1].note, "1.0 GiB to no limit, ") {
		t.Errorf("rows of a removed limit %+v, want the value none, and then 1.0 GiB to no limit", rows)
	}
}

// The summary of a thousand nodes with findings is short, and takes about as many allocations per node as the summary
// of a hundred nodes.
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
	if strings.Count(words, "Set the limit to 12 GiB or more") != 1 || !strings.Contains(words, "0 of 1000 nodes succeeded.") {
		t.Errorf("summary of 1,000 nodes: want the advice once, and the number of nodes that succeeded:\n%.3000s",
			words)
	}
	few := testing.AllocsPerRun(1, func() { summaryOf(t, hundred, Options{}) })
	many := testing.AllocsPerRun(1, func() { summaryOf(t, thousand, Options{}) })
	if many > 12*few {
		t.Errorf("%.0f allocations for 1,000 nodes, %.0f for 100: want at most 12 times as many", many, few)
	}
}

// The rows cover the GPUs of jobs, or all GPUs of a node without a job. The mean is over the measured GPUs.
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
		"no GPUs":           {map[string]*reporter.Node{"0": node(job, nil), "1": nil}, nil},
		"no GPU of the job": {map[string]*reporter.Node{"0": node(job, reporter.Values{"gpu_0_avg_utilization_pct": 50}, false), "1": node(job, nil)}, nil},
		"unmeasured GPU": {map[string]*reporter.Node{"0": node(job, nil, true), "1": node(job, nil)},
			[]numberRow{{label: "GPUs", value: text.Percentage(math.NaN()), note: "busy, mean of 1 on 1 node"}}},
		"job, sidecar, GPU of another job, unmeasured GPU": {
			map[string]*reporter.Node{
				"0":  node(job, reporter.Values{"gpu_0_avg_utilization_pct": 90, "gpu_1_avg_utilization_pct": 1, "max_t_gpu_0_memory_used_mb": 512, "max_t_gpu_1_memory_used_mb": 1000}, true, false, true),
				"10": node(nil, reporter.Values{"gpu_0_avg_utilization_pct": 30, "max_t_gpu_0_memory_used_mb": 100}, false),
			},
			[]numberRow{{label: "GPUs", value: text.Quantity{Number: "60.0", Unit: "%"}, note: "busy, mean of 2 of the 3 on 2 nodes"}, {value: text.Quantity{Number: "30.0", Unit: "%"}, note: "the least,", of: "node 10, GPU 0"},
				{value: text.Quantity{Number: "512", Unit: "MiB"}, note: "the most memory used on one, of 1.0 GiB"}}},
	} {
		gpus := newGPUTotals(&reporter.Report{Nodes: c.nodes})
		check.Equal(t, fmt.Sprintf("%+v", gpus.rows()), fmt.Sprintf("%+v", c.want), "%s: GPU rows", name)
	}
}

// Swapped memory and memory without a known owner are shown next to the job's memory.
func TestJobRows_ShowSwappedAndUnownedMemorySeparately(t *testing.T) {
	n := &reporter.Node{
		Job:       &reporter.Job{PeakMemoryMB: 151, MemoryKind: host.MemoryGroup, UnownedMB: 300},
		Limits:    &reporter.Limits{MemoryMB: 100},
		Summaries: map[string]reporter.Summary{collector.JobMemorySwap.Key(): {Max: 51}},
	}
	rows := jobRows(n, &reporter.Run{})[1:] // the first row has the CPU time
	if len(rows) != 2 || rows[0].note != "peak of the whole job (cgroup), 51 MiB swapped out" ||
		rows[1].note != "more in /dev/shm or a tmpfs, owner not known" || rows[1].value != text.Size(300) {
		t.Errorf("memory rows %+v, want the job's memory with 51 MiB swapped out, and 300 MiB more without a known owner", rows)
	}
	more := Highlight{"Shared memory", "300 MiB", "in /dev/shm or a tmpfs, owner not known"}
	check.Equal(t, cardOf(&reporter.Report{Nodes: map[string]*reporter.Node{"0": n}}, more.Label), more, "card")
	early := &reporter.Node{Job: &reporter.Job{MaxRSSMB: 14, MaxRSSAtMost: true, UnownedMB: 300}}
	if rows := jobRows(early, &reporter.Run{})[1:]; len(rows) != 1 || rows[0].label != "memory" ||
		rows[0].note != "in /dev/shm or a tmpfs, owner not known" || rows[0].value != text.Size(300) {
		t.Errorf("job that ended before its memory was sampled: rows %+v, want only 300 MiB without a known owner", rows)
	}
	used, of := memoryBar(n, &reporter.Run{Command: []string{"x"}})
	wantValues(t, "used and allowed MiB of the memory bar", "100 100", used, of)
	n.Job.UnownedMB = 5
	check.Equal(t, len(jobRows(n, &reporter.Run{})), 2, "number of rows if the shared memory is insignificant")
}
