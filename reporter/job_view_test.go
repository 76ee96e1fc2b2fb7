package reporter

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
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/text"
)

// jobViewRecording is recordingOf with a job that behaves as jobs do, read from its
// processes; with GPUs of which the first half are the job's.
func jobViewRecording(n, gpus int) *collector.Recording {
	rec := recordingOf(0)
	rec.Widen(gpus)
	rec.Account.Source, rec.Account.MemoryKind = host.JobFromTree, host.MemoryPSS
	rec.Account.Limits = host.Limits{CPUs: 8, CPUSet: 8, Affinity: 8, Quota: series.Unknown(), MemoryMB: series.Unknown()}
	rec.Account.CPUSeconds = 622.75
	rec.Account.HostOOMKills, rec.Account.HostStall = 0, collector.Stalls{CPUSome: 0.3, MemorySome: 0, MemoryFull: 0, IOSome: 0.2, IOFull: 0.1}
	for g := range gpus {
		rec.GPUs = append(rec.GPUs, collector.GPU{Device: gpu.Device{Index: g, UUID: fmt.Sprint("GPU-", g), Name: "NVIDIA A100-SXM4-40GB", MemoryMB: 40960, PowerLimitWatts: 400},
			OfJob: g < (gpus+1)/2, EnergyJoules: 15_000, ClockMHz: 1410})
	}
	for i := range n {
		s := risingSample(i, n)
		for c := int(collector.JobCPU); c < len(s.Values); c++ {
			s.Values[c] = math.NaN()
		}
		jobViewSample(&s, float64(i+1)/float64(n), gpus)
		rec.Add(&s)
	}
	length := time.Duration(n) * time.Second
	rec.End = host.Instant{Wall: testStart.Add(length), Mono: length, Boot: length}
	return rec
}

// jobViewSample sets what is new in a sample at a share of the run.
func jobViewSample(s *collector.Sample, share float64, gpus int) {
	for c, v := range map[collector.Column]float64{
		collector.JobCPU: 6.2 * share, collector.JobMemory: 2048 * share, collector.JobProcesses: 4, collector.JobThreads: 36,
		collector.JobRead: 120 * share, collector.JobWrite: 200 * share, collector.JobReadRate: 0.6, collector.JobWriteRate: 1,
		collector.CPUIowait: 0.5, collector.CPUSteal: 0, collector.Load1: 3.5, collector.ProcsRunning: 5, collector.SwapIn: 0, collector.SwapOut: 0,
		collector.PSICPUSome: 1, collector.PSIMemorySome: 0, collector.PSIMemoryFull: 0, collector.PSIIOSome: 1, collector.PSIIOFull: 0.5,
	} {
		s.Values[c] = v
	}
	for g := range gpus {
		for k, v := range map[collector.GPUKey]float64{collector.GPUUtilization: 20 * float64(g+1) * share, collector.GPUMemoryUsed: 8192 * float64(g+1) * share,
			collector.GPUPower: 60 + 100*share, collector.GPUTemperature: 50} {
			s.Values[collector.GPUColumn(g, k)] = min(v, 40000)
		}
	}
}

// jobViewNoJob is recordingOf with nothing that is measured of a job.
func jobViewNoJob(n int) *collector.Recording {
	rec, end := recordingOf(0), recordingOf(n).End
	rec.Account.HostOOMKills, rec.Account.HostStall = 0, collector.Stalls{}
	for i := range n {
		s := risingSample(i, n)
		jobViewSample(&s, 1, 0)
		for c := range s.Values {
			if c > int(collector.NumColumns) || slices.Contains([]string{host.SourceJob, host.SourceCgroup}, collector.Column(c).Source()) {
				s.Values[c] = math.NaN()
			}
		}
		rec.Add(&s)
	}
	rec.End = end
	return rec
}

// jobViewInput is inputOf with jobViewRecording.
func jobViewInput(node, n, exit int, signal string) Input {
	in := inputOf(node, n, exit, signal)
	in.Recording = jobViewRecording(n, 0)
	return in
}

// jobViewContainer is a job in a container with limits and GPUs, which was killed.
func jobViewContainer(node, n, gpus int) *Report {
	in := jobViewInput(node, n, 137, "SIGKILL")
	in.Recording = jobViewRecording(n, gpus)
	a := &in.Recording.Account
	a.Source, a.Group, a.MemoryKind = host.JobFromGroup, "/docker/3f5a9c", host.MemoryGroup
	a.Limits = host.Limits{CPUs: 2, Quota: 2, CPUSet: 8, Affinity: 8, MemoryMB: 8192, CPUGroup: "/docker/3f5a9c", MemoryGroup: "/docker"}
	a.CPUSeconds, a.Periods, a.Throttled, a.ThrottledSeconds = 622.75, 1000, 310, 12.1
	a.JobStall = collector.Stalls{CPUSome: 20, CPUFull: 10, MemorySome: 15, MemoryFull: 12, IOSome: 1, IOFull: 0}
	r := New(in)
	name := fmt.Sprint(node)
	r.Nodes[name].Metrics[limitMemoryMetric] = 91.25
	r.Nodes[name].Metrics[swapInMetric], r.Nodes[name].Metrics[swapOutMetric] = 12, 30.5
	r.Nodes[name].Verdict = &Verdict{Cause: CauseOOMCgroup, Text: "killed for want of memory: the group /docker came to its limit of 8.0 GiB and python (process 4242) was killed",
		Evidence: map[string]any{"exit_code": 137.0, "limit_mb": 8192.0}, Conditions: []string{"throttled", "memory_starved"}}
	r.Nodes[name].Findings = []Finding{
		{ID: "memory_tight", Severity: SeverityWarning, Text: "The job came to 100 % of its memory limit: ask for 12 GiB instead of 8 GiB."},
		{ID: "throttled", Severity: SeverityWarning, Text: "The CPU quota stopped the job in 31 % of the periods: ask for 4 CPUs instead of 2."},
		{ID: "gpu_idle", Severity: SeverityInfo, Text: "GPU 1 was idle."}}
	r.Run.Verdict = r.Nodes[name].Verdict
	return r
}

// jobViewReports are the reports of jobs that the summaries' golden files show.
func jobViewReports() map[string]*Report {
	nodes := jobViewContainer(0, 20, 0)
	for node := 1; node < 4; node++ {
		nodes.Nodes[fmt.Sprint(node)] = jobViewContainer(node, 20, node).Nodes[fmt.Sprint(node)]
	}
	nodes.Nodes["2"].Verdict = &Verdict{Cause: CauseSignal, Text: "killed by SIGTERM from slurmstepd (process 77)", Evidence: map[string]any{"exit_code": 143.0}}
	nodes.Nodes["3"].Verdict, nodes.Nodes["3"].Findings = &Verdict{Cause: CauseExited, Text: "exited with code 0", Evidence: map[string]any{"exit_code": 0.0}}, nil
	hostileJob := jobViewContainer(0, 20, collector.MaxGPUs)
	n := hostileJob.Nodes["0"]
	long := strings.Repeat(hostile, 20)
	n.Job.Cgroup, n.Job.MemoryKind = long, hostile
	n.Limits.CPUGroup, n.Limits.MemoryGroup = long, "\x1b[2J"
	n.Verdict = &Verdict{Cause: hostile, Text: long, Conditions: []string{hostile, long}}
	n.Findings = slices.Repeat([]Finding{{Text: long, Severity: hostile}, {Text: "", Severity: SeverityWarning}}, 5)
	for i := range n.GPUs {
		n.GPUs[i].Name, n.GPUs[i].OfJob = long, true
	}
	return map[string]*Report{"job": jobViewContainer(0, 200, 3), "job-nodes": nodes, "job-hostile": hostileJob, "job-gpus": jobViewGPUs()}
}

// jobViewGPUs is a job without limits on a node of 16 GPUs, none of which it could see.
func jobViewGPUs() *Report {
	in := jobViewInput(0, 90, 0, "")
	in.Recording = jobViewRecording(90, 16)
	for i := range in.Recording.GPUs {
		in.Recording.GPUs[i].OfJob = false
	}
	r := New(in)
	r.Nodes["0"].Verdict, r.Nodes["0"].Findings, r.Run.Verdict = nil, nil, nil
	return r
}

// Where there are more GPUs than are followed, the job may have others.
func TestJobView_SummaryOfGPUsThatAreNotFollowed(t *testing.T) {
	for why, want := range map[string]string{
		"20 devices: only the first 16 are followed": "of 16 followed are the job's; the node has 20",
		"nvidia-smi says [N/A]":                      "of the node's 16 could be seen by the job",
	} {
		n := jobViewGPUs().Nodes["0"]
		n.Missing = append(n.Missing, Missing{host.SourceGPU, why})
		if rows := n.gpuRows(); len(rows) != 1 || rows[0].value != "0" || rows[0].note != want {
			t.Errorf("%q: %+v, want %q", why, rows, want)
		}
	}
}

// A plain job's summary grew by no more than three lines: see testdata/summary-good.txt.
func TestJobView_SummaryOfAPlainJobIsShort(t *testing.T) {
	words := summaryOf(t, goldenSummaries(t)["good"], SummaryOptions{Path: "x"})
	const before = 20 // lines, when there was nothing of the job but its CPU time
	if lines := strings.Count(words, "\n"); lines > before+3 {
		t.Errorf("%d lines:\n%s", lines, words)
	}
	for _, not := range []string{"limit", "GPU", "swap", "waiting", "stolen", "verdict", "advice", "throttled", "missing"} {
		if strings.Contains(words, not) {
			t.Errorf("it says %q:\n%s", not, words)
		}
	}
}

// The verdict stands near the top in the colour of alarms, where it says more than an
// exit code.
func TestJobView_Verdict(t *testing.T) {
	exited := func(code float64, words string, conditions ...string) *Verdict {
		return &Verdict{Cause: CauseExited, Text: words, Evidence: map[string]any{"exit_code": code}, Conditions: conditions}
	}
	for name, c := range map[string]struct {
		verdict *Verdict
		text    string
		bad     bool
	}{
		"none":         {nil, "", false},
		"exit 0":       {exited(0, "exited with code 0"), "", false},
		"exit 3":       {exited(3, "exited with code 3"), "", true},
		"and survived": {exited(0, "exited with code 0; a child was killed"), "exited with code 0; a child was killed", false},
		"throttled":    {exited(0, "exited with code 0", "throttled", "io_wait"), "exited with code 0; on the way: throttled, waiting for I/O", false},
		"said already": {exited(0, "exited with code 0 while throttled.", "throttled"), "exited with code 0 while throttled.", false},
		"no text":      {&Verdict{Cause: CauseOOMHost}, "out of memory", true},
		"of later":     {&Verdict{Cause: "alien\x1b"}, `alien\x1b`, true},
	} {
		if words, bad := VerdictText(c.verdict); words != c.text || bad != c.bad {
			t.Errorf("%s: %q %v, want %q %v", name, words, bad, c.text, c.bad)
		}
	}
	words := summaryOf(t, jobViewContainer(0, 20, 0), SummaryOptions{Color: true})
	if lines := strings.Split(words, "\n"); !strings.HasPrefix(lines[1], "\x1b[1;31mverdict    killed for want of memory") {
		t.Errorf("%q", lines[1])
	}
	r := New(jobViewInput(0, 5, 0, ""))
	r.Run.Incomplete = "cut off"
	r.Nodes["0"].Verdict = &Verdict{Cause: CauseUnknown, Text: "how the command ended is not known: cut off"}
	if words := summaryOf(t, r, SummaryOptions{}); strings.Contains(words, "verdict") {
		t.Errorf("said twice:\n%s", words)
	}
}

// Both numbers stand there: what the node has, and what the job may use.
func TestJobView_Limits(t *testing.T) {
	n := jobViewContainer(0, 200, 0).Nodes["0"]
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
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	for name, c := range map[string]struct {
		limits Limits
		want   string
	}{
		"as many as the node": {Limits{CPUs: 8, CPUSetCPUs: 8, AffinityCPUs: 8}, ""},
		"cpuset":              {Limits{CPUs: 4, CPUSetCPUs: 4, AffinityCPUs: 4}, "100.0 % used, by cpuset"},
		"affinity":            {Limits{CPUs: 4, CPUSetCPUs: 8, AffinityCPUs: 4}, "100.0 % used, by affinity"},
		"a quota above":       {Limits{CPUs: 4, CPUQuota: 6, AffinityCPUs: 4, CPUGroup: "/g"}, "100.0 % used, by affinity"},
		"quota of no name":    {Limits{CPUs: 1.5, CPUQuota: 1.5}, "100.0 % used, by quota"},
	} {
		n.Limits = &c.limits
		delete(n.Metrics, throttledMetric)
		if got := find("CPU limit").Note; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// One of them is no "threads".
func TestJobView_OneThread(t *testing.T) {
	n := jobViewContainer(0, 20, 0).Nodes["0"]
	n.Metrics[jobProcessesMetric], n.Metrics[jobThreadsMetric] = 1, 1
	for _, h := range Highlights(n, 20) {
		if h.Label == "job memory" && !strings.HasSuffix(h.Note, ", 1 process, 1 thread") {
			t.Errorf("%+v", h)
		}
	}
}

// A summary of a thousand nodes with findings is quick and short.
func TestJobView_ManyNodes(t *testing.T) {
	r := jobViewContainer(0, 5, 0)
	for i := range 1000 {
		r.Nodes[fmt.Sprint(i)] = r.Nodes["0"]
	}
	words, best := "", time.Hour
	for i := 0; i < 3 && best > 5*time.Second; i++ { // the machine may have other work
		begin := time.Now()
		words = summaryOf(t, r, SummaryOptions{})
		best = min(best, time.Since(begin))
	}
	if !strings.Contains(words, "node 0, 1 and 998 more: killed for want of memory") || strings.Count(words, "ask for 12 GiB") != 1 || best > 5*time.Second {
		t.Errorf("%v\n%.3000s", best, words)
	}
}

// Of several nodes the GPUs are told together: only those of a job, or of a node that
// wraps none; the mean is over those that were measured.
func TestGPUsOfAllNodes(t *testing.T) {
	job := &Job{}
	node := func(job *Job, m Values, of ...bool) *Node {
		n := &Node{Job: job, Metrics: m}
		for _, o := range of {
			n.GPUs = append(n.GPUs, GPU{OfJob: o, MemoryMB: 1024})
		}
		return n
	}
	for name, c := range map[string]struct {
		nodes map[string]*Node
		want  []row
	}{
		"none":     {map[string]*Node{"0": node(job, nil), "1": nil}, nil},
		"no job's": {map[string]*Node{"0": node(job, Values{"gpu_0_avg_utilization_pct": 50}, false), "1": node(job, nil)}, nil},
		"unmeasured": {map[string]*Node{"0": node(job, nil, true), "1": node(job, nil)},
			[]row{{label: "GPUs", value: text.Percent(math.NaN()), note: "busy, mean of 1 on 1 node"}}},
		"job, sidecar, a device of others, one unmeasured": {
			map[string]*Node{
				"0":  node(job, Values{"gpu_0_avg_utilization_pct": 90, "gpu_1_avg_utilization_pct": 1, "max_t_gpu_0_memory_used_mb": 512, "max_t_gpu_1_memory_used_mb": 1000}, true, false, true),
				"10": node(nil, Values{"gpu_0_avg_utilization_pct": 30, "max_t_gpu_0_memory_used_mb": 100}, false),
			},
			[]row{{label: "GPUs", value: "60.0 %", note: "busy, mean of 2 of the 3 on 2 nodes"}, {value: "30.0 %", note: "the least,", of: "node 10, GPU 0"},
				{value: "512 MiB", note: "the most memory used on one, of 1.0 GiB"}}},
	} {
		gpus := newGPUsOfAll(&Report{Nodes: c.nodes})
		if got := gpus.rows(); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%+v, want\n%+v", name, got, c.want)
		}
	}
}
