package reportertest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/reporter"
)

// Sidecar returns the report of a sidecar, which has no job.
func Sidecar() *reporter.Report {
	in := JobInput(0, 3600, 0, "")
	in.Recording = NoJobRecording(3600)
	in.Job = nil
	in.Run = reporter.Run{ID: "sidecar-1", Tags: map[string]string{"cluster": "blue", "owner": "me"}}
	return reporter.New(in)
}

// Incomplete returns the report of a run without an end, with failed sources.
func Incomplete() *reporter.Report {
	in := JobInput(0, 125, 0, "")
	in.Job = nil
	in.Run.ExitCode = nil
	in.Run.Incomplete = "from the journal of a run that is still going on or was cut off: known up to 2m5s after " +
		"the start"
	in.Recording.Failures = []collector.Failure{{Source: host.SourceDiskIO,
		Why: "open /proc/diskstats: permission denied", Count: 3}}
	in.Recording.LateStarts = map[string]time.Duration{host.SourceNetwork: 3 * time.Second}
	return reporter.New(in)
}

// ThreeNodes returns a merged report of three nodes. One of the jobs was killed, and one node lacks its memory.
func ThreeNodes() *reporter.Report {
	var sources []reporter.SourceReport
	for node := range 3 {
		in := JobInput(node, 10*(node+1), []int{0, 137, 0}[node], []string{"", "SIGKILL", ""}[node])
		in.Recording.Host.Hostname = fmt.Sprintf("compute-node-%04d.cluster.example.org", node)
		in.Run.Tags = map[string]string{"team": "blue"}
		if node == 2 {
			in.Recording.Failures = []collector.Failure{{Source: host.SourceMemory,
				Why: "read /proc/meminfo: input/output error", Count: 30}}
		}
		sources = append(sources, reporter.SourceReport{Path: fmt.Sprintf("node-%d.json", node), Report: reporter.New(in)})
	}
	r, err := reporter.Merge(sources)
	if err != nil {
		panic(err)
	}
	return r
}

// MixedNodes returns a merged report of a perfagent node, a perf.py node and a null node.
func MixedNodes() *reporter.Report {
	old, err := reporter.ParsePerfPy([]byte(PerfPyJSON()), 0)
	if err != nil {
		panic(err) // the JSON is constant
	}
	r, err := reporter.Merge([]reporter.SourceReport{{Path: "a", Report: reporter.New(JobInput(0, 10, 0, ""))},
		{Path: "b", Report: old}, {Path: "c", Report: &reporter.Report{Nodes: map[string]*reporter.Node{"7": nil}}}})
	if err != nil {
		panic(err) // the reports are constant
	}
	return r
}

// HostileRun returns a report with texts that affect a terminal, and with absurd numbers.
func HostileRun() *reporter.Report {
	in := JobInput(0, 10, 1, Hostile)
	in.Run.ID, in.Run.Command = Hostile, []string{Hostile, strings.Repeat("x y", 5000), ""}
	in.Run.Tags = map[string]string{Hostile: Hostile, strings.Repeat("k", 300): strings.Repeat("v", 300)}
	in.Run.Incomplete = strings.Repeat(Hostile, 30)
	in.Recording.Host.Hostname = Hostile + Hostile
	in.Recording.Host.MemoryMB = 1e300
	in.Job.UserSeconds, in.Job.MaxRSSMB = 1e200, -1e200
	for i := range 9 {
		in.Missing = append(in.Missing, reporter.Missing{What: Hostile,
			Why: fmt.Sprint(i, strings.Repeat(Hostile, 20))})
	}
	r := reporter.New(in)
	for name := range r.Nodes["0"].Metrics {
		r.Nodes["0"].Metrics[name] = -1.2345e300
	}
	return r
}

// ShortJob returns the report of a job of 3 ms.
func ShortJob() *reporter.Report {
	in := JobInput(0, 0, 0, "")
	in.Run.WallSeconds, in.Job.UserSeconds, in.Job.SystemSeconds, in.Job.MaxRSSMB = 0.0031, 0.001, 0.0005, 4.25
	in.Job.MaxRSSAtMost = true
	in.Recording.Account.HostStall = collector.Stalls{}
	in.Recording.Account.CPUSeconds, in.Recording.Samples = 0.0015, 1
	in.Recording.End.Mono = 3100 * time.Microsecond
	return reporter.New(in)
}

// Golden returns the reports for golden files, by file name.
func Golden() map[string]*reporter.Report {
	perfpy, err := reporter.ParsePerfPy([]byte(PerfPyJSON()), 8)
	if err != nil {
		panic(err) // the JSON is constant
	}

	perfpyBare, err := reporter.ParsePerfPy([]byte(`{"0": []}`), 0)
	if err != nil {
		panic(err) // the JSON is constant
	}

	hostileNodes := HostileRun()
	hostileNodes.Nodes[Hostile] = hostileNodes.Nodes["0"]
	plain := map[string]*reporter.Report{
		"good": reporter.New(JobInput(0, 200, 0, "")), "failed": reporter.New(JobInput(3, 7500, 7,
			"")), "signal": reporter.New(JobInput(0, 90, 137, "SIGKILL")),
		"short": ShortJob(), "sidecar": Sidecar(), "incomplete": Incomplete(),
		"perfpy": perfpy, "perfpy-empty": perfpyBare, "nodes": ThreeNodes(), "nodes-mixed": MixedNodes(),
		"hostile": HostileRun(), "hostile-nodes": hostileNodes,
		"nothing": {
			Nodes: map[string]*reporter.Node{"0": {}},
		}, "no-nodes": {}, "nil-nodes": {Nodes: map[string]*reporter.Node{"0": nil, "1": nil}},
	}

	for _, r := range plain { // other tests cover verdicts and findings
		r.Run.Verdict = nil
		for _, n := range r.Nodes {
			if n != nil {
				n.Verdict, n.Findings = nil, nil
			}
		}
	}

	maps.Copy(plain, JobReports())
	return plain
}

// JobReports returns reports of jobs with verdicts, findings, limits and GPUs.
func JobReports() map[string]*reporter.Report {
	nodes := Container(0, 20, 0)
	for node := 1; node < 4; node++ {
		nodes.Nodes[fmt.Sprint(node)] = Container(node, 20, node).Nodes[fmt.Sprint(node)]
	}

	nodes.Nodes["2"].Verdict = &reporter.Verdict{Cause: "signal",
		Text: "killed by SIGTERM from slurmstepd (process 77)", Evidence: map[string]any{"exit_code": 143.0}}
	nodes.Nodes["3"].Verdict, nodes.Nodes["3"].Findings = &reporter.Verdict{Cause: "exited",
		Text: "exited with code 0", Evidence: map[string]any{"exit_code": 0.0}}, nil
	hostileJob := Container(0, 20, collector.MaxGPUs)
	n := hostileJob.Nodes["0"]
	long := strings.Repeat(Hostile, 20)
	n.Job.Cgroup, n.Job.MemoryKind = long, Hostile
	n.Limits.CPUGroup, n.Limits.MemoryGroup = long, "\x1b[2J"
	n.Verdict = &reporter.Verdict{Cause: Hostile, Text: long, Conditions: []string{Hostile, long}}
	n.Findings = slices.Repeat([]reporter.Finding{{Text: long, Severity: Hostile}, {Text: "", Severity: "warning"}}, 5)
	for i := range n.GPUs {
		n.GPUs[i].Name, n.GPUs[i].OfJob = long, true
	}

	return map[string]*reporter.Report{"job": Container(0, 200, 3), "job-nodes": nodes, "job-hostile": hostileJob,
		"job-gpus": UnseenGPUs()}
}

// Container returns the report of a job that was killed after n seconds in a container with limits and GPUs.
func Container(node, n, gpus int) *reporter.Report {
	in := JobInput(node, n, 137, "SIGKILL")
	in.Recording = JobRecording(n, gpus)
	a := &in.Recording.Account
	a.Source, a.Group, a.MemoryKind = host.JobFromGroup, "/docker/3f5a9c", host.MemoryGroup
	a.Limits = host.Limits{CPUs: 2, CPUQuota: 2, CPUSetCPUs: 8, AffinityCPUs: 8, MemoryMB: 8192,
		CPUGroup: "/docker/3f5a9c", MemoryGroup: "/docker"}

	a.CPUSeconds, a.Periods, a.ThrottledPeriods, a.ThrottledSeconds = 622.75, 1000, 310, 12.1
	a.JobStall = collector.Stalls{CPUSome: 20, CPUFull: 10, MemorySome: 15, MemoryFull: 12, IOSome: 1, IOFull: 0}
	r := reporter.New(in)
	name := fmt.Sprint(node)
	r.Nodes[name].Metrics[reporter.MetricLimitMemory] = 91.25
	r.Nodes[name].Metrics[reporter.MetricSwapIn], r.Nodes[name].Metrics[reporter.MetricSwapOut] = 12, 30.5
	r.Nodes[name].Verdict = &reporter.Verdict{Cause: "oom_cgroup",
		Text: "killed by the kernel: python (process 4242) hit the memory limit of 8.0 GiB of its control " +
			"group at 12:00:09 UTC; peak 8.0 GiB",
		Evidence: map[string]any{"exit_code": 137.0, "limit_mb": 8192.0}, Conditions: []string{"throttled",
			"memory_starved"}}

	r.Nodes[name].Findings = []reporter.Finding{
		{ID: "memory_tight", Severity: "warning",
			Text: "The job came to 100 % of its memory limit: ask for 12 GiB instead of 8 GiB."},
		{ID: "throttled", Severity: "warning",
			Text: "The CPU quota stopped the job in 31 % of the periods: ask for 4 CPUs instead of 2."},
		{ID: "gpu_idle", Severity: "info", Text: "GPU 1 was idle."}}

	r.Run.Verdict = r.Nodes[name].Verdict
	return r
}

// UnseenGPUs returns the report of a job without limits on a node with 16 GPUs that are not visible to the job.
func UnseenGPUs() *reporter.Report {
	in := JobInput(0, 90, 0, "")
	in.Recording = JobRecording(90, 16)
	for i := range in.Recording.GPUs {
		in.Recording.GPUs[i].OfJob = false
	}
	r := reporter.New(in)
	r.Nodes["0"].Verdict, r.Nodes["0"].Findings, r.Run.Verdict = nil, nil, nil
	return r
}

// Gaps returns a report of a few samples with unmeasured values.
func Gaps() *reporter.Report {
	rec := collector.NewRecording(host.Instant{Wall: RunStart}, time.Second, 4)
	for i := range 7 {
		var s collector.Sample
		for c := range s.Values {
			s.Values[c], s.Weights[c] = float64(i)*1.5, 1
			if i%3 == 1 && collector.Column(c).Info().Source != "clock" {
				s.Values[c] = math.NaN()
			}
		}
		s.Values[collector.CPUMax] = math.NaN()
		s.Values[collector.Timestamp] = float64(RunStart.Unix()) + float64(i) + 0.25
		rec.Add(&s)
	}
	rec.End = host.Instant{Wall: RunStart, Mono: 7 * time.Second, Boot: 7 * time.Second}
	return reporter.New(reporter.Input{Run: reporter.Run{ID: "gaps"}, Recording: rec})
}

// Nodes returns a report of n nodes. Those with an index in failed exited with code 9.
func Nodes(n int, failed ...int) *reporter.Report {
	node := reporter.New(Input(0, 2, 0, "")).Nodes["0"]
	r := &reporter.Report{Schema: reporter.Schema, Run: reporter.Run{ID: "many", Start: reporter.Time{Time: RunStart},
		End: reporter.Time{Time: RunStart.Add(2 * time.Second)}, WallSeconds: 2},
		Nodes: make(map[string]*reporter.Node)}
	for i := range n {
		one, machine, job := *node, *node.Host, *node.Job
		machine.Hostname = fmt.Sprintf("compute-%04d.cluster.example.org", i)
		for _, f := range failed {
			if f == i {
				job.ExitCode = new(9)
			}
		}
		one.Host, one.Job = &machine, &job
		r.Nodes[fmt.Sprint(i)] = &one
	}
	return r
}

// NodeReport returns the report made from NodeInput.
func NodeReport(node, seconds, code int, tags map[string]string) *reporter.Report {
	return reporter.New(NodeInput(node, seconds, code, tags))
}

// NodeInput returns the input for the report of one node of a run. If code is negative, it is the input of a sidecar.
func NodeInput(node, seconds, code int, tags map[string]string) reporter.Input {
	in := Input(node, seconds, code, "")
	if code > 128 {
		in.Run.Signal, in.Job.Signal = "SIGKILL", "SIGKILL"
	}
	if code < 0 {
		in.Job, in.Run.ExitCode, in.Run.Command = nil, nil, nil
	}
	shift := time.Duration(node) * 3 * time.Second
	in.Run.Start.Time, in.Run.End.Time = in.Run.Start.Add(shift), in.Run.End.Add(shift)
	in.Run.Tags = tags
	return in
}
