package reporter_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

type plan = reportertest.RankPlan

// partOf returns the report of a rank, as read from its file.
func partOf(t testing.TB, p plan) reporter.SourceReport {
	t.Helper()
	data := encodedReport(t, reporter.New(reportertest.RankInput(p)))
	reportertest.Validate(t, data)
	ext := ".json"
	if p.Unfinished {
		ext = ".jsonl"
	}
	return reporter.SourceReport{Path: fmt.Sprintf("4711/node-0.rank-%d%s", p.Rank, ext), Report: readBack(t, data)}
}

func readBack(t testing.TB, data []byte) *reporter.Report {
	t.Helper()
	r, err := reporter.Decode(data)
	check.Must(t, err)
	return r
}

func partsOf(t testing.TB, plans ...plan) []reporter.SourceReport {
	t.Helper()
	var out []reporter.SourceReport
	for _, p := range plans {
		out = append(out, partOf(t, p))
	}
	return out
}

// combined combines parts, and checks that the report conforms to the schema.
func combined(t testing.TB, parts ...reporter.SourceReport) (*reporter.Report, *reporter.Node) {
	t.Helper()
	r, err := reporter.Combine(parts)
	check.Must(t, err)
	data := encodedReport(t, r)
	reportertest.Validate(t, data)
	r = readBack(t, data)
	return r, r.Nodes["0"]
}

func wantMetrics(t *testing.T, got reporter.Values, want map[string]float64) {
	t.Helper()
	for name, v := range want {
		if have, ok := got[name]; !ok || math.Abs(have-v) > 1e-9*max(1, math.Abs(v)) {
			t.Errorf("%s = %v (present: %v), want %v", name, have, ok, v)
		}
	}
}

func lackOf(all []reporter.Missing, what string) []reporter.Missing {
	return slices.DeleteFunc(slices.Clone(all), func(m reporter.Missing) bool { return m.What != what })
}

// onlyMissing returns the only Missing of what, and checks its code.
func onlyMissing(t testing.TB, n *reporter.Node, what string, code reporter.Code) reporter.Missing {
	t.Helper()
	m := lackOf(n.Missing, what)
	if len(m) != 1 || m[0].Code != code {
		t.Fatalf("missing %+v, want one entry for %s with the code %s", n.Missing, what, code)
	}
	return m[0]
}

func between(from, to float64) [2]float64 { return [2]float64{from, to} }

// A rank that never measured the host has one Missing for the host, and no values of the host.
func TestNew_OmitsHostMeasuredByAnotherRank(t *testing.T) {
	r := reporter.New(reportertest.RankInput(plan{Rank: 3, End: 10, CPUs: 2, Change: func(rec *collector.Recording) {
		rec.GPUError = "nvidia-smi does not answer"
	}}))
	n := r.Nodes["0"]
	onlyMissing(t, n, "host", reporter.HostByAnother)
	for _, m := range n.Missing {
		if name, ok := reporter.SourceOf(m.What); ok && name != "job" && name != "cgroup" {
			t.Errorf("missing has %+v, want a single entry for the whole host", m)
		}
	}
	for name := range n.Metrics {
		if m, _ := reporter.MetricByName(name); !m.OfJob() {
			t.Errorf("metric %s = %v describes the host, want only metrics of the job", name, n.Metrics[name])
		}
	}
	for key := range n.Envelope {
		if c, _ := collector.ColumnByKey(key); c.Info().Scope != collector.ScopeJob && c != collector.Timestamp {
			t.Errorf("Envelope has %s, want only columns of the job", key)
		}
	}
	wantValues(t, "host spans, CPUs and absence of limits", "[] 8 false", n.Sampling.HostSpans, n.Host.CPUs,
		n.Limits == nil)

	rank := n.Ranks["3"]
	if rank == nil || rank.PID != 1003 || *rank.LocalRank != 3 || rank.Command[1] != "3" || rank.Metrics[reporter.MetricJobCPU] != 20 {
		t.Fatalf("rank 3 is %+v, want PID 1003, local rank 3, the command argument 3, and 20 s of CPU", rank)
	}
	if _, ok := rank.Metrics[reporter.MetricCPUHours]; ok || len(n.Ranks) != 1 {
		t.Errorf("ranks %+v, want only rank 3; its metrics %v, want none of the host", n.Ranks, rank.Metrics)
	}
}

// If a rank measured the host for a part of its run, host means cover only that part, and no counter is reported as
// late.
func TestNew_HostMetricsCoverMeasuredTime(t *testing.T) {
	r := reporter.New(reportertest.RankInput(plan{Rank: 1, End: 30, HostSpan: between(10, 30), Change: func(rec *collector.Recording) {
		rec.LateStarts = map[string]time.Duration{host.SourceNetwork: 10 * time.Second}
	}}))
	n := r.Nodes["0"]
	want := []reporter.HostSpan{{Rank: 1, Start: reporter.Time{Time: reportertest.RunStart.Add(10 * time.Second)},
		End: reporter.Time{Time: reportertest.RunStart.Add(30 * time.Second)}}}
	check.Equal(t, n.Sampling.HostSpans, want, "host spans")
	wantMetrics(t, n.Metrics, map[string]float64{"psi_cpu_some_avg_pct": 10})
	for _, m := range n.Missing {
		if m.Code == reporter.CountedLate {
			t.Errorf("missing has %+v, want no late start, because another rank counted before", m)
		}
	}
}

// A rank that ran too briefly for a host sample has the same Missing as a single rank.
func TestNew_ShortRankHasSameMissingAsSingleRank(t *testing.T) {
	in := reportertest.RankInput(plan{Rank: 0, End: 0.001})
	in.Recording = collector.NewRecording(in.Recording.Start, time.Second, 10)
	alone := in
	alone.Rank = ""
	a, b := reporter.New(in).Nodes["0"], reporter.New(alone).Nodes["0"]
	check.Equal(t, a.Missing, b.Missing, "missing")
	wantValues(t, "difference of the numbers of metrics, host spans", "0 []", len(a.Metrics)-len(b.Metrics),
		a.Sampling.HostSpans)
}

// If the ranks start at whole seconds and measure the host in turn, Combine returns the values computed from their
// plans.
func TestCombine_MatchesValuesComputedFromPlans(t *testing.T) {
	testenv.SkipIfShort(t, "a second of CPU for many random plans")
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 25 {
		var plans []plan
		n, last := 1+random.IntN(9), 0.0
		for rank := range n {
			p := plan{Rank: rank * 3, OnNode: n, Start: float64(random.IntN(4)), CPUs: float64(random.IntN(12)) / 4, Group: "/job"}
			p.End = p.Start + 3 + float64(random.IntN(40))
			base, step := float64(100+random.IntN(900)), float64(random.IntN(50))
			p.Memory = func(at float64) float64 { return base + math.Mod(at*step, 97) }
			if rank == 0 {
				p.Start, p.HostSpan, last = 0, between(0, p.End), p.End
			} else if p.Start < last && p.End > last+3 { // the lock is free, and the next tick takes it
				p.HostSpan, last = between(last+1, p.End), p.End
			}
			plans = append(plans, p)
		}
		checkPlans(t, round, plans)
	}
}

// checkPlans compares the combined report of some ranks with values computed directly from their plans.
func checkPlans(t *testing.T, round int, plans []plan) {
	t.Helper()
	parts := partsOf(t, plans...)
	rand.New(rand.NewPCG(uint64(round), 7)).Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	_, node := combined(t, parts...)

	end, cpu, read, memory, cores, tasks := 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
	begin, until := math.NaN(), 0.0
	for _, p := range plans {
		end, cpu, read = max(end, p.End), cpu+p.CPUs*(p.End-p.Start), read+p.End-p.Start
		if p.HostSpan[1] > 0 {
			if math.IsNaN(begin) {
				begin = p.HostSpan[0]
			}
			until = max(until, p.HostSpan[1])
		}
	}
	for at := 1.0; at <= end; at++ {
		m, c, n := 0.0, 0.0, 0.0
		for _, p := range plans {
			if at > p.Start && at <= p.End {
				m, c, n = m+p.Memory(at), c+p.CPUs, n+2
			}
		}
		memory, cores, tasks = max(memory, m), max(cores, c), max(tasks, n)
	}

	want := map[string]float64{
		reporter.MetricWall: end, reporter.MetricJobCPU: cpu, reporter.MetricJobCores: cpu / end,
		reporter.MetricJobRead: read, reporter.MetricJobWritten: 2 * read,
		reporter.MetricJobMemoryPeak: memory, reporter.MetricJobCoresPeak: cores, reporter.MetricJobProcesses: tasks,
		reporter.MetricCPUHours: end * 8 / 3600, reporter.MetricJobMaxRSS: 50 + float64(plans[len(plans)-1].Rank),
		reporter.MetricDiskRead: reportertest.HostRates[0] * (until - begin), reporter.MetricMemoryPeak: 25,
		"boot_total_disk_io_read_mb": reportertest.HostBoot[0] + reportertest.HostRates[0]*until,
		reporter.MetricCPUPeak:       until,
	}
	wantMetrics(t, node.Metrics, want)
	if t.Failed() {
		t.Fatalf("round %d: metrics differ, as reported above, for the plans %+v", round, plans)
	}

	for i, v := range node.Samples.Column(collector.DiskRead.Key()) {
		at := node.Samples.Column(collector.Timestamp.Key())[i] - float64(reportertest.RunStart.Unix())
		if known := !math.IsNaN(v); known && math.Abs(v-reportertest.HostRates[0]*(at-begin)) > 1e-6 {
			t.Fatalf("round %d: disk read = %v MiB at %v s, want %v", round, v, at,
				reportertest.HostRates[0]*(at-begin))
		}
	}
	for _, p := range plans {
		r := node.Ranks[fmt.Sprint(p.Rank)]
		band := r.Envelope[collector.JobMemory.Key()]
		if len(band.Max) != node.Samples.Len() {
			t.Fatalf("round %d: the envelope of rank %d has %d points, want %d", round, p.Rank, len(band.Max),
				node.Samples.Len())
		}
		for i, at := range node.Samples.Column(collector.Timestamp.Key()) {
			at -= float64(reportertest.RunStart.Unix())
			alive := at > p.Start && at <= p.End
			if got := band.Max[i]; alive && got != p.Memory(at) || !alive && !math.IsNaN(got) {
				t.Fatalf("round %d: memory of rank %d (running from %v to %v) = %v MiB at %v s, want %v, or NaN while it is not running", round,
					p.Rank, p.Start, p.End, got, at, p.Memory(at))
			}
		}
	}
}

// The order of the parts makes no difference, and Combine does not modify them.
func TestCombine_IgnoresOrderOfParts(t *testing.T) {
	parts := partsOf(t,
		plan{Rank: 4, OnNode: 5, Start: 0.25, End: 20.5, CPUs: 1, HostSpan: between(0.25, 20.5)},
		plan{Rank: 5, OnNode: 5, End: 40, CPUs: 2, HostSpan: between(22, 40)},
		plan{Rank: 6, OnNode: 5, Start: 0.7, End: 30, CPUs: 0.5, Unfinished: true},
		plan{Rank: 10, OnNode: 5, Start: 0.1, End: 44.3, Exit: 3})
	var before [][]byte
	for _, p := range parts {
		before = append(before, encodedReport(t, p.Report))
	}
	first, _ := combined(t, parts...)
	random := rand.New(rand.NewPCG(1, 2))
	for range 10 {
		random.Shuffle(len(parts), func(i, j int) {
			parts[i], parts[j], before[i], before[j] = parts[j], parts[i], before[j], before[i]
		})
		r, _ := combined(t, parts...)
		if !bytes.Equal(encodedReport(t, r), encodedReport(t, first)) {
			t.Fatal("result depends on the order of the parts")
		}
		for i, p := range parts {
			if !bytes.Equal(encodedReport(t, p.Report), before[i]) {
				t.Fatalf("Combine modified the part %s", p.Path)
			}
		}
	}
}

func TestCombine_Golden(t *testing.T) {
	_, n := combined(t, partsOf(t,
		plan{Rank: 0, OnNode: 4, End: 4.5, CPUs: 1, HostSpan: between(0, 4.5), Group: "/job", OOMKills: 1},
		plan{Rank: 1, OnNode: 4, Start: 0.5, End: 8.5, CPUs: 2, HostSpan: between(5, 8.5), Group: "/job", OOMKills: 1,
			Exit: 137, Signal: "SIGKILL"},
		plan{Rank: 2, OnNode: 4, Start: 0.25, End: 6, CPUs: 0.5, Unfinished: true, Group: "/job"})...)
	r := &reporter.Report{Schema: reporter.Schema, Run: reporter.Run{ID: "golden"}, Nodes: map[string]*reporter.Node{"0": n}}
	reportertest.CompareGolden(t, "testdata/combined.golden.json", encodedReport(t, r), *update)
}

// Combining a single part changes nothing except that the rank gets series.
func TestCombine_SinglePartOnlyGainsRankSeries(t *testing.T) {
	part := partOf(t, plan{Rank: 7, OnNode: 1, Start: 0.5, End: 20, CPUs: 1, HostSpan: between(0.5, 20), Exit: 2})
	r, n := combined(t, part)
	was := part.Report.Nodes["0"]
	if len(n.Ranks["7"].Envelope) == 0 || len(was.Ranks["7"].Envelope) != 0 || n.Identity.Rank != nil || *r.Run.ExitCode != 2 {
		t.Errorf("rank 7 %+v, want an envelope that the part lacks; identity %+v, want no rank; run %+v, want exit "+
			"code 2", n.Ranks["7"], n.Identity, r.Run)
	}
	n.Ranks["7"].Envelope, n.Identity = nil, was.Identity
	check.Equal(t, string(encodedReport(t, r)), string(encodedReport(t, part.Report)), "combined report")
}

// Ranks without an end are counted up to their last sample, and the run lists them as incomplete.
func TestCombine_CountsUnfinishedRanksUpToLastSample(t *testing.T) {
	r, n := combined(t, partsOf(t,
		plan{Rank: 0, OnNode: 4, End: 20, CPUs: 1, Unfinished: true, HostSpan: between(0, 20)},
		plan{Rank: 1, OnNode: 4, End: 21, CPUs: 2, Exit: 1},
		plan{Rank: 2, OnNode: 4, End: 20, CPUs: 4, Unfinished: true, Group: "/job"})...)
	wantMetrics(t, n.Metrics, map[string]float64{reporter.MetricJobCPU: 20 + 42 + 80})
	if want := "ranks 0, 2 have no end: from the journal"; !strings.HasPrefix(r.Run.Incomplete, want) {
		t.Errorf("incomplete %q, want %q…", r.Run.Incomplete, want)
	}
	wantValues(t, "exit code, lower bound of the CPU time, completeness and group of rank 2", "1 true 142 false /job",
		*r.Run.ExitCode, n.Job.CPUAtLeast, n.Job.CPUSeconds, n.Ranks["2"].Incomplete == "", n.Ranks["2"].Cgroup)
	m := onlyMissing(t, n, "ranks", reporter.NoRecording)
	wantValues(t, "counts of missing ranks", "1 4", m.Count, m.Total)
	if r, _ := combined(t, partOf(t, plan{Rank: 0, End: 5, Unfinished: true})); r.Run.ExitCode != nil {
		t.Errorf("exit code of a run without an end = %v, want none", *r.Run.ExitCode)
	}
}

// If a counter has no value since boot, its growth between two host spans is lost, and a Missing reports the loss.
func TestCombine_ReportsCountsLostAtTakeover(t *testing.T) {
	parts := partsOf(t, plan{Rank: 0, End: 10, HostSpan: between(0, 10)}, plan{Rank: 1, End: 30, HostSpan: between(13, 30)})
	_, n := combined(t, parts...)
	wantMetrics(t, n.Metrics, map[string]float64{
		reporter.MetricSwapIn: 0.25 * (10 + 17), reporter.MetricDiskRead: 3 * 30, reporter.MetricCPUMean: (10*5.5 + 17*22) / 27,
		"psi_cpu_some_avg_pct": 10,
	})
	if m := onlyMissing(t, n, "swap", reporter.CountedLate); !strings.Contains(m.Why, "3.0 s") {
		t.Errorf("missing %+v, want 3.0 s in the reason", m)
	}
	onlyMissing(t, n, "summaries", reporter.HostByAnother)
	if p := n.Summaries["cpu_pct_per_cpu_avg"].P50; p != nil {
		t.Errorf("P50 of the CPU = %v, want none", *p)
	}

	parts[1].Report.Nodes["0"].Sampling.Disks = []string{"nvme0n1", "nvme1n1"} // rank 1 counted other devices
	_, n = combined(t, parts...)
	wantMetrics(t, n.Metrics, map[string]float64{reporter.MetricDiskRead: 3 * (10 + 17), reporter.MetricNetworkSent: 30})
	if m := lackOf(n.Missing, host.SourceDiskIO); len(m) != 1 {
		t.Errorf("missing %+v, want one entry for %s, because the devices differ", n.Missing, host.SourceDiskIO)
	}
}

// If a rank measured the host only for a moment at the end of the run, neither percentiles nor counts are lost.
func TestCombine_BriefTakeoverKeepsPercentilesAndCounts(t *testing.T) {
	_, n := combined(t, partsOf(t, plan{Rank: 0, End: 3000, HostSpan: between(0, 3000)}, plan{Rank: 1, End: 3002, HostSpan: between(3001, 3002)})...)
	q := n.Summaries["mem_percent"]
	if q.P50 == nil || *q.P50 != 25 || len(lackOf(n.Missing, "swap"))+len(lackOf(n.Missing, "summaries")) != 0 {
		t.Errorf("memory summary %+v, want a P50 of 25; missing %+v, want no entry for swap or summaries", q, n.Missing)
	}
	wantMetrics(t, n.Metrics, map[string]float64{reporter.MetricDiskRead: 3 * 3002})
}

// If two ranks measured the host at the same time, only the longer span is used.
func TestCombine_CountsOverlappingHostSpansOnce(t *testing.T) {
	_, n := combined(t, partsOf(t, plan{Rank: 0, End: 20, CPUs: 1, HostSpan: between(0, 20)}, plan{Rank: 1, End: 30, CPUs: 1, HostSpan: between(0, 30)})...)
	wantMetrics(t, n.Metrics, map[string]float64{reporter.MetricDiskRead: 90, reporter.MetricCPUPeak: 30, reporter.MetricJobCPU: 50})
	wantValues(t, "number of host spans, first rank, lost summaries", "1 1 []", len(n.Sampling.HostSpans),
		n.Sampling.HostSpans[0].Rank, lackOf(n.Missing, "summaries"))
}

func TestCombine_ReportsThatNoRankMeasuredTheHost(t *testing.T) {
	_, n := combined(t, partsOf(t, plan{Rank: 0, End: 20, CPUs: 1}, plan{Rank: 1, Start: 2, End: 35.5, CPUs: 1})...)
	onlyMissing(t, n, "host", reporter.HostByAnother)
	if _, ok := n.Metrics[reporter.MetricCPUHours]; ok || n.Host.Hostname != "node1" || n.Samples.Column("cpu_pct_per_cpu_avg") != nil {
		t.Errorf("metrics %v, want none of the host; host name %q, want node1; CPU samples %v, want none", n.Metrics,
			n.Host.Hostname, n.Samples.Column("cpu_pct_per_cpu_avg"))
	}
	check.Equal(t, n.Samples.Column("timestamp")[0]-float64(reportertest.RunStart.Unix()), 1, "the first point is at")
	wantMetrics(t, n.Metrics, map[string]float64{reporter.MetricJobCPU: 53.5, reporter.MetricJobCoresPeak: 2})
}

// Counters of a control group that ranks share are counted once; counters of different groups are added up.
func TestCombine_CountsSharedControlGroupsOnce(t *testing.T) {
	inGroup := func(cpu, memory, kills, throttled float64) func(*collector.Recording) {
		return func(rec *collector.Recording) {
			a := &rec.Account
			a.Limits.CPUQuota, a.Limits.MemoryMB, a.Limits.CPUs = series.Optional(cpu), series.Optional(memory), cpu
			a.Limits.CPUGroup, a.Limits.MemoryGroup = a.Group, a.Group
			a.OOMKills, a.Periods, a.ThrottledPeriods, a.ThrottledSeconds = series.Optional(kills), 100, series.Optional(throttled), 3
		}
	}
	_, n := combined(t, partsOf(t,
		plan{Rank: 0, End: 10, CPUs: 1, HostSpan: between(0, 10), Group: "/a", Change: inGroup(2, 1000, 2, 10)},
		plan{Rank: 1, End: 20, CPUs: 1, Group: "/a", Change: inGroup(2, 1000, 3, 20)},
		plan{Rank: 2, End: 10, CPUs: 1, Group: "/b", Change: inGroup(1, 500, 1, 50)})...)
	wantMetrics(t, n.Metrics, map[string]float64{
		reporter.MetricJobOOMKills: 4, reporter.MetricThrottledSeconds: 6, reporter.MetricThrottled: (10 + 50) / 2.,
		reporter.MetricLimitCPU: 100 * 40 / (20 * 3.),
	})
	l := n.Limits
	wantValues(t, "CPUs, quota, memory and its group", "3 3 1500 ", l.CPUs, l.CPUQuota, l.MemoryMB, l.MemoryGroup)

	_, n = combined(t, partsOf(t, // rank 1 has no limit
		plan{Rank: 0, End: 10, Group: "/a", Change: inGroup(2, 1000, 0, 10)}, plan{Rank: 1, End: 10, Group: "/b"})...)
	wantMetrics(t, n.Metrics, map[string]float64{reporter.MetricThrottled: 10})
	if l := n.Limits; l.CPUs != 8 || l.MemoryMB > 0 || l.CPUQuota > 0 {
		t.Errorf("limits %+v, want 8 CPUs, no memory limit and no quota", l)
	}
}

// Launchers bind each rank to different CPUs. Together the ranks have the sum of these CPUs, but at most the CPUs of
// the node.
func TestCombine_LimitsBoundCPUsToNodeCPUs(t *testing.T) {
	bound := func(cpuset, affinity int) func(*collector.Recording) {
		return func(rec *collector.Recording) {
			rec.Account.Limits.CPUSetCPUs, rec.Account.Limits.AffinityCPUs = cpuset, affinity
			rec.Account.Limits.CPUs = float64(min(cpuset, affinity))
		}
	}
	for _, c := range []struct {
		cpuset, affinity int
		want             float64
	}{{8, 2, 6}, {4, 2, 4}, {8, 8, 8}, {4, 4, 4}} {
		var plans []plan
		for rank := range 3 {
			plans = append(plans, plan{Rank: rank, End: 5, Group: "/step", Change: bound(c.cpuset, c.affinity)})
		}
		if _, n := combined(t, partsOf(t, plans...)...); n.Limits.CPUs != c.want {
			t.Errorf("cpuset of %d, each rank bound to %d: limits %+v, want %v CPUs", c.cpuset, c.affinity, n.Limits, c.want)
		}
	}
}

// Groups created for the ranks have the CPUs of their parent group.
func TestCombine_CreatedGroupsHaveCPUsOfParent(t *testing.T) {
	made := func(rec *collector.Recording) {
		rec.Host.CPUs = 64
		rec.Account.Source = host.JobFromCreated
	}
	_, n := combined(t, partsOf(t, plan{Rank: 0, End: 5, Group: "/step/perfagent-0", Change: made},
		plan{Rank: 1, End: 5, Group: "/step/perfagent-1", Change: made})...)
	wantValues(t, "CPUs, source and group", "8 created ", n.Limits.CPUs, n.Job.Source, n.Job.Cgroup)
}

// A rank that is given twice is counted once. Two different recordings of a rank are an error.
func TestCombine_CountsDuplicateRankOnce(t *testing.T) {
	a, b := plan{Rank: 0, End: 10, CPUs: 1}, plan{Rank: 1, End: 12, CPUs: 2}
	parts := partsOf(t, a, b)
	whole, err := reporter.Combine(parts)
	check.Must(t, err)

	journal := b
	journal.Unfinished, journal.End = true, 9
	for name, more := range map[string][]reporter.SourceReport{
		"same report twice": {partOf(t, a)}, "report and journal": {partOf(t, journal)},
		"report and combined node": {{Path: "4711/node-0.json", Report: readBack(t, encodedReport(t, whole))}},
	} {
		r, n := combined(t, append(slices.Clone(parts), more...)...)
		wantValues(t, name+": CPU seconds, ranks, incompleteness", "34 2 ", n.Metrics[reporter.MetricJobCPU],
			len(n.Ranks), r.Run.Incomplete)
	}

	other := b
	other.End = 13
	two := partOf(t, other)
	two.Path = "4711/node-0.rank-1.2.json"
	_, err = reporter.Combine(append(slices.Clone(parts), two))
	for _, want := range []string{"rank 1", "4711/node-0.rank-1.json", two.Path} {
		check.Error(t, err, want)
	}
}

// A part without a rank, from a perfagent that seemed to be the only one on its node, gets a free rank.
func TestCombine_AssignsFreeRankToUnnumberedPart(t *testing.T) {
	in := reportertest.RankInput(plan{End: 5, CPUs: 1})
	in.Rank, in.Identity = "", nil
	alone := reporter.SourceReport{Path: "4711/node-0.jsonl", Report: readBack(t, encodedReport(t, reporter.New(in)))}
	_, n := combined(t, alone, partOf(t, plan{Rank: 0, End: 5, CPUs: 1}))
	if n.Ranks["1"] == nil || n.Ranks["0"].Command[1] != "0" || n.Metrics[reporter.MetricJobCPU] != 10 {
		t.Errorf("ranks %+v, want rank 0 unchanged and the other part as rank 1; %v CPU seconds, want 10", n.Ranks,
			n.Metrics[reporter.MetricJobCPU])
	}

	in.Identity = &reporter.Identity{NodeFrom: "none", Rank: new(6)}
	alone.Report = reporter.New(in)
	if _, n := combined(t, alone); n.Ranks["6"] == nil {
		t.Errorf("ranks %+v, want rank 6 from the identity", n.Ranks)
	}
}

func TestCombine_RejectsPartsThatAreNotOneNode(t *testing.T) {
	for name, in := range map[string][]reporter.SourceReport{
		"no report": nil, "has no report": {{Path: "x"}}, "x has 3 nodes": {{Path: "x", Report: reportertest.ThreeNodes()}},
	} {
		_, err := reporter.Combine(in)
		check.Error(t, err, name)
	}
	if r, err := reporter.Combine([]reporter.SourceReport{{Report: &reporter.Report{Nodes: map[string]*reporter.Node{"3": nil}}},
		{Report: &reporter.Report{Nodes: map[string]*reporter.Node{"3": {}}}}}); err != nil || len(r.Nodes["3"].Ranks) != 2 {
		t.Errorf("two empty parts of node 3: error %v, want a report with 2 ranks", err)
	}
}

// Each GPU is listed once and keeps its values, even if ranks list the GPUs in different orders.
func TestCombine_GPUsKeepTheirValues(t *testing.T) {
	with := func(busy float64, uuids ...string) func(*collector.Recording) {
		return func(rec *collector.Recording) {
			rec.EnsureGPUColumns(len(uuids))
			for i, id := range uuids {
				g := collector.GPU{OfJob: id == "GPU-b", EnergyJoules: 100}
				g.Index, g.UUID = i, id
				rec.GPUs = append(rec.GPUs, g)
			}
			for i := range rec.Ring.Len() {
				s := collector.Sample{}
				for c := range s.Values {
					s.Values[c], s.Weights[c] = math.NaN(), 1
				}
				s.Values[collector.Timestamp] = rec.Ring.Bucket(i).Values[collector.Timestamp] + 0.5
				for g := range uuids {
					s.Values[collector.GPUColumn(g, collector.GPUUtilization)] = busy + float64(g)
				}
				rec.Add(&s)
			}
		}
	}
	first := plan{Rank: 0, End: 10, HostSpan: between(0, 10), Change: with(10, "GPU-a", "GPU-b")}
	then := plan{Rank: 1, End: 30, HostSpan: between(11, 30), Change: with(50, "GPU-b", "GPU-a")}
	_, n := combined(t, partsOf(t, then, first)...)
	if len(n.GPUs) != 2 || n.GPUs[0].UUID != "GPU-b" || !n.GPUs[0].OfJob || n.GPUs[1].OfJob {
		t.Fatalf("GPUs %+v, want 2: GPU-b, which is the job's, and one that is not", n.GPUs)
	}
	a, b := n.Metrics["gpu_1_avg_utilization_pct"], n.Metrics["gpu_0_avg_utilization_pct"]
	if !(a > 10 && a < 51 && b > 11 && b < 50) || math.Abs(a-(10*10+51*18)/28.) > 3 {
		t.Errorf("GPU-a was busy for %v %%, want about %v; GPU-b for %v %%, want 11 to 50", a, (10*10+51*18)/28., b)
	}
	wantMetrics(t, n.Metrics, map[string]float64{"gpu_0_energy_joules": 200, "gpu_1_energy_joules": 200})
}

// Phases of several ranks stay with the ranks; phases of a single rank are moved to the node.
func TestCombine_KeepsPhasesOfSeveralRanksSeparate(t *testing.T) {
	parts := partsOf(t, plan{Rank: 0, End: 10}, plan{Rank: 1, End: 10}, plan{Rank: 2, End: 10})
	phase := reporter.Phase{Name: "load", Start: 1, Seconds: 2, Count: 1, Metrics: reporter.Values{}, Spans: []reporter.PhaseSpan{{1, 2}}}
	say := func(rank int, marks ...string) {
		n := parts[rank].Report.Nodes["0"]
		for i, m := range marks {
			n.Marks = append(n.Marks, reporter.Mark{Timestamp: float64(10*i + rank), Text: m})
		}
		n.Phases = []reporter.Phase{phase}
	}
	say(1, "epoch 1", "epoch 2")
	_, n := combined(t, parts...)
	wantValues(t, "number of marks, first mark, number of phases, phases of rank 1", "2 epoch 1 1 []", len(n.Marks),
		n.Marks[0].Text, len(n.Phases), n.Ranks["1"].Phases)

	say(0, "epoch 1")
	_, n = combined(t, parts...)
	wantValues(t, "number of marks, first two marks, phases, number of phases of rank 1",
		"3 rank 0: epoch 1 rank 1: epoch 1 [] 1", len(n.Marks), n.Marks[0].Text, n.Marks[1].Text, n.Phases,
		len(n.Ranks["1"].Phases))
	if m := lackOf(n.Missing, "phases"); len(m) != 1 || !strings.HasPrefix(m[0].Why, "ranks 0, 1 ") {
		t.Errorf("missing %v, want one entry for ranks 0, 1", m)
	}
}

// The table of processes covers all ranks, and is cut to the size of one job's table.
func TestCombine_LimitsProcessTable(t *testing.T) {
	parts := partsOf(t, plan{Rank: 0, End: 10}, plan{Rank: 1, End: 10})
	for rank, p := range parts {
		for i := range 40 {
			p.Report.Nodes["0"].Processes = append(p.Report.Nodes["0"].Processes, reporter.Process{PID: 100*rank + i,
				Command: "x", CPUSeconds: float64(i), PeakMemoryMB: float64(1000*rank + 100 - i)})
		}
	}
	_, n := combined(t, parts...)
	first := n.Processes[0]
	if len(n.Processes) != 40 || first.CPUSeconds != 39 || !slices.ContainsFunc(n.Processes, func(p reporter.Process) bool { return p.PID == 100 }) {
		t.Errorf("%d processes, want 40, including PID 100; first process %+v, want 39 CPU seconds", len(n.Processes), first)
	}
}

// A Missing that concerns only some ranks lists them.
func TestCombine_MissingListsAffectedRanks(t *testing.T) {
	unread := func(rec *collector.Recording) {
		rec.Failures = []collector.Failure{{Source: host.SourceJob, Why: "no such process", Count: 2}}
		rec.Account.CPUIncomplete = true
	}
	_, n := combined(t, partsOf(t, plan{Rank: 0, End: 10, HostSpan: between(0, 10)}, plan{Rank: 1, End: 10, Change: unread},
		plan{Rank: 2, End: 10, Change: unread})...)
	m := onlyMissing(t, n, host.SourceJob, reporter.Unreadable)
	wantValues(t, "reason and count", "ranks 1, 2: no such process (4 of 20 readings) 4", m.Why, m.Count)
	if m = onlyMissing(t, n, reporter.MetricJobCPU, reporter.JobCPUOpen); !strings.HasPrefix(m.Why, "ranks 1, 2: ") {
		t.Errorf("missing %+v, want an entry for ranks 1, 2", m)
	}
	wantValues(t, "entries for job_oom_kills, and for the job of rank 1", "1 1",
		len(lackOf(n.Missing, "job_oom_kills")), len(lackOf(n.Ranks["1"].Missing, host.SourceJob)))
}

// A node that was combined before can be combined with further ranks.
func TestCombine_AddsRanksToCombinedNode(t *testing.T) {
	plans := []plan{{Rank: 0, End: 20, CPUs: 1, HostSpan: between(0, 20)}, {Rank: 1, End: 20, CPUs: 2}, {Rank: 2, End: 20, CPUs: 4}}
	two, _ := combined(t, partsOf(t, plans[:2]...)...)
	_, n := combined(t, reporter.SourceReport{Path: "node-0.json", Report: two}, partOf(t, plans[2]))
	wantMetrics(t, n.Metrics, map[string]float64{reporter.MetricJobCPU: 140, reporter.MetricDiskRead: 60, reporter.MetricJobCoresPeak: 7})
	wantValues(t, "number of ranks, CPUs at point 5 of ranks 1 and 2", "3 2 4", len(n.Ranks),
		n.Ranks["1"].Envelope["job_cpu_cores"].Max[5], n.Ranks["2"].Envelope["job_cpu_cores"].Max[5])
}

// A combined node has at most as many points as a run of one rank, no matter how often another rank took over the host.
func TestCombine_LimitsNumberOfPoints(t *testing.T) {
	var plans []plan
	for rank := range 5 {
		from := 20 * float64(rank)
		plans = append(plans, plan{Rank: rank, End: from + 19, HostSpan: between(from, from+19), CPUs: 1, Capacity: 100})
	}
	_, n := combined(t, partsOf(t, plans...)...)
	check.Equal(t, n.Samples.Len(), 99, "number of points")
	parts := partsOf(t, plans...)
	for _, p := range parts {
		p.Report.Nodes["0"].Sampling.MaxLength = 60
	}
	_, n = combined(t, parts...)
	wantValues(t, "number of points, stride, number of points of rank 3", "50 2 50", n.Samples.Len(), n.Sampling.Stride,
		len(n.Ranks["3"].Envelope["job_cpu_cores"].Max))
}
