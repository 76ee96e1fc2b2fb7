package diagnosis

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func encoded(t *testing.T, r *reporter.Report) string {
	t.Helper()
	return string(check.Value(reporter.Encode(r))(t))
}

func mustMerge(t *testing.T, inputs ...reporter.SourceReport) *reporter.Report {
	t.Helper()
	return check.Value(Merge(inputs))(t)
}

// findingNode returns a node of a run of 60 s without findings.
func findingNode() *reporter.Node {
	return &reporter.Node{
		Host:     &reporter.Host{CPUs: 64, MemoryMB: 262144},
		Limits:   &reporter.Limits{CPUs: 8, CPUQuota: 8, MemoryMB: 8192},
		Sampling: &reporter.Sampling{IntervalSeconds: 1, Samples: 60, LongestGapSeconds: 1.001},
		GPUs:     []reporter.GPU{{Index: 4, OfJob: true, MemoryMB: 80000}, {Index: 5, OfJob: true, MemoryMB: 80000}, {Index: 6, MemoryMB: 80000}},
		Metrics: reporter.Values{reporter.MetricWall: 60, reporter.MetricJobCores: 6.5, reporter.MetricJobCoresPeak: 7.75, reporter.MetricJobMemoryPeak: 5000, reporter.MetricLimitMemory: 70,
			reporter.MetricThrottled: 2, reporter.MetricThrottledSeconds: 0.5, reporter.MetricSwapIn: 0, reporter.MetricSwapOut: 0, reporter.MetricDiskPeak: 60, reporter.MetricJobOOMKills: 0,
			"gpu_0_avg_utilization_pct": 91, "gpu_1_avg_utilization_pct": 88, "gpu_2_avg_utilization_pct": 0,
			"max_t_gpu_0_memory_used_mb": 60000, "max_t_gpu_1_memory_used_mb": 60000, "max_t_gpu_2_memory_used_mb": 80000},
		Summaries: map[string]reporter.Summary{collector.DiskFree.Key(): {Min: 40000, Mean: 40000, Max: 40000}},
		Samples:   findingSamples(60, 60, 60),
	}
}

// findingSamples returns 60 samples. The first measured[i] of them have the utilization of GPU i.
func findingSamples(measured ...int) reporter.Samples {
	s := reporter.Samples{Keys: []string{collector.Timestamp.Key()}, Columns: [][]float64{make([]float64, 60)}}
	for i, n := range measured {
		column := make([]float64, 60)
		for j := n; j < len(column); j++ {
			column[j] = math.NaN()
		}
		s.Keys, s.Columns = append(s.Keys, collector.GPUColumn(i, collector.GPUUtilization).Key()), append(s.Columns, column)
	}
	return s
}

var findingRun = &reporter.Run{ID: "r", WallSeconds: 60}

type change = func(*reporter.Node)

// shared sets the parts of the job's memory at its peak, and the cause of its end unless it is "".
func shared(anon, shmem float64, cause string) change {
	return func(n *reporter.Node) {
		n.Job = &reporter.Job{MemoryAtPeak: &reporter.MemoryParts{Timestamp: 1, AnonMB: anon, ShmemMB: shmem}}
		if cause != "" {
			n.Verdict = &reporter.Verdict{Cause: cause}
		}
	}
}

type findingCase struct {
	id, name string
	fires    change // so that only this rule fires
	not      change // the same, just short of the threshold
}

// shortNames maps the names in metrics to those in reports.
var shortNames = map[string]string{
	"wall": reporter.MetricWall, "cores": reporter.MetricJobCores, "peak": reporter.MetricJobCoresPeak,
	"memory": reporter.MetricJobMemoryPeak, "limit": reporter.MetricLimitMemory, "kills": reporter.MetricJobOOMKills,
	"throttled": reporter.MetricThrottled, "throttled_s": reporter.MetricThrottledSeconds, "busy": reporter.MetricCPUMean,
	"psi": reporter.MetricPSICPUSome, "job_psi": reporter.MetricJobPSICPU, "threads": reporter.MetricJobThreads,
	"steal": reporter.MetricSteal, "swap_in": reporter.MetricSwapIn, "swap_out": reporter.MetricSwapOut,
	"disk": reporter.MetricDiskPeak, "clock_s": reporter.MetricCPUThrottleSeconds,
	"clock_events": reporter.MetricCPUThrottleEvents, "temperature": reporter.MetricCPUTemperature,
	"gpu0": "gpu_0_avg_utilization_pct", "gpu0_mb": "max_t_gpu_0_memory_used_mb",
	"gpu1": "gpu_1_avg_utilization_pct", "gpu1_mb": "max_t_gpu_1_memory_used_mb",
}

// metrics sets the metrics in a text such as "cores=%v peak=2".
func metrics(format string, values ...any) change {
	return func(n *reporter.Node) {
		for part := range strings.FieldsSeq(fmt.Sprintf(format, values...)) {
			name, text, _ := strings.Cut(part, "=")
			v, err := strconv.ParseFloat(text, 64)
			if err != nil || shortNames[name] == "" {
				panic(part)
			}
			n.Metrics[shortNames[name]] = v
		}
	}
}

// all combines several changes.
func all[T any](changes ...func(T)) func(T) {
	return func(of T) {
		for _, change := range changes {
			change(of)
		}
	}
}

func limits(l reporter.Limits) change { return func(n *reporter.Node) { n.Limits = &l } }

func quota(cpus float64) change {
	return limits(reporter.Limits{CPUs: cpus, CPUQuota: series.Optional(cpus)})
}
func affinity(cpus int) change {
	return limits(reporter.Limits{CPUs: float64(cpus), AffinityCPUs: cpus})
}

func noGPUs(n *reporter.Node)   { n.GPUs = nil }
func fromTree(n *reporter.Node) { n.Job = &reporter.Job{Source: host.JobFromTree} }

func findingKills(n float64) change {
	return func(node *reporter.Node) {
		node.Verdict = &reporter.Verdict{Cause: CauseOOMCgroup, Evidence: map[string]any{"oom_kills": 2.0, "limit_kills": n}}
	}
}

// findingIdle makes the first GPU idle for some seconds, and sets what was busy in that time: CPUs, waiting for
// storage, and disks.
func findingIdle(seconds, cpus, waiting, disk float64) change {
	return func(n *reporter.Node) {
		n.GPUs[0].Idle = &reporter.GPUIdle{Seconds: seconds, Gaps: 7, LongestGapSeconds: 3.5, JobCPUs: series.Optional(cpus),
			WaitingForStorePct: series.Optional(waiting), DiskMBPerSecond: series.Optional(disk)}
	}
}

// findingCrowd sets, in percent, how busy the 64 CPUs are and how often tasks wait for a CPU. Steal and the job take 8
// CPUs.
func findingCrowd(busy, waiting float64) change {
	return metrics("busy=%v cores=4.8 steal=5 psi=%v", busy, waiting)
}

// findingMemory sets, in percent, how much memory is used and how often tasks wait for memory. The job uses 4 GiB.
func findingMemory(used, waiting float64) change {
	return func(n *reporter.Node) {
		n.Summaries = map[string]reporter.Summary{collector.MemPercent.Key(): {Mean: used}, collector.JobMemory.Key(): {Mean: 4096}}
		n.Metrics[reporter.MetricPSIMemoryFull] = waiting
	}
}

func findingFree(mb float64) change {
	return func(n *reporter.Node) { n.Summaries = map[string]reporter.Summary{collector.DiskFree.Key(): {Min: mb}} }
}

// findingMount adds an NFS mount with calls that took the given seconds, reading of them in READ. storage is the
// percentage of the time in which tasks waited for storage.
func findingMount(seconds, reading, storage float64) change {
	return func(n *reporter.Node) {
		ops := []reporter.MountOperation{{Name: "GETATTR", MountCalls: reporter.MountCalls{Calls: 900, ExecuteSeconds: seconds - reading}},
			{Name: "READ", MountCalls: reporter.MountCalls{Calls: 100, ExecuteSeconds: reading}}}
		if reading > seconds-reading {
			slices.Reverse(ops)
		}
		n.Mounts = []reporter.Mount{{Type: "nfs4", Source: "nfs1:/export/home", MountedOn: []string{"/home"}, ReadMB: 512,
			MountCalls: reporter.MountCalls{Calls: 1000, ExecuteSeconds: seconds}, Operations: ops}}
		n.Summaries = map[string]reporter.Summary{collector.JobPSIIOSome.Key(): {Mean: storage}}
	}
}

// findingLustre adds a Lustre mount with calls that took the given seconds.
func findingLustre(seconds float64) change {
	return func(n *reporter.Node) {
		n.Mounts = append(n.Mounts, reporter.Mount{Type: "lustre", Source: "scratch", MountCalls: reporter.MountCalls{Calls: 40, ExecuteSeconds: seconds},
			Operations: []reporter.MountOperation{{Name: "read", MountCalls: reporter.MountCalls{Calls: 40, ExecuteSeconds: seconds}}}})
	}
}

func sampling(s reporter.Sampling) change { return func(n *reporter.Node) { n.Sampling = &s } }

var findingCases = []findingCase{
	{MemoryTight, "limit", metrics("limit=90"), metrics("limit=89.999")},
	{MemoryTight, "killed", all(metrics("limit=99.97 kills=2"), findingKills(2)), all(metrics("limit=NaN kills=2"), findingKills(2))},
	{MemoryTight, "killed for another limit", all(metrics("limit=91 kills=2"), findingKills(0)), all(metrics("limit=50 kills=2"), findingKills(0))},
	{MemoryTight, "filled by others", metrics("limit=95 memory=819"), metrics("limit=89 memory=819")},
	{MemoryTight, "killed, then the limit was raised", all(metrics("limit=100 kills=1"), func(n *reporter.Node) {
		n.Verdict = &reporter.Verdict{Cause: CauseOOMCgroup, Evidence: map[string]any{"limit_kills": 1.0, "limit_mb": 2048.0}}
	}), metrics("limit=80 kills=1")},
	{MemoryTight, "limit no longer set", all(limits(reporter.Limits{CPUs: 8}), metrics("limit=95")), limits(reporter.Limits{CPUs: 8})},
	{ruleDiskFull, "share", all(metrics("disk=95"), findingFree(812.5)), all(metrics("disk=94.999"), findingFree(812.5))},
	{ruleDiskFull, "large file system", all(metrics("disk=97"), findingFree(102399)), all(metrics("disk=97"), findingFree(102400))},
	{ruleDiskFull, "named file system", all(metrics("disk=96"), findingFree(10), func(n *reporter.Node) { n.Sampling.DiskPaths = []string{"/scratch"} }), findingFree(10)},
	{ruleDiskFull, "two file systems", all(metrics("disk=96"), findingFree(10), func(n *reporter.Node) { n.Sampling.DiskPaths = []string{"/", "/scratch"} }), findingFree(10)},
	{ruleDiskFull, "free space unknown", all(metrics("disk=97"), func(n *reporter.Node) { n.Summaries = nil }), func(n *reporter.Node) { n.Summaries = nil }},
	{ruleGPUIdle, "one of two", metrics("gpu1=9.999"), metrics("gpu1=10")},
	{ruleGPUIdle, "both", metrics("gpu0=0 gpu1=3.25"), func(n *reporter.Node) {
		n.Metrics["gpu_0_avg_utilization_pct"], n.Metrics["gpu_1_avg_utilization_pct"] = 0, 0
		n.GPUs[0].OfJob, n.GPUs[1].OfJob = false, false
	}},
	{ruleGPUIdle, "the only GPU", func(n *reporter.Node) { n.GPUs = n.GPUs[:1]; n.Metrics["gpu_0_avg_utilization_pct"] = 0.4 },
		func(n *reporter.Node) { n.GPUs = n.GPUs[:1]; delete(n.Metrics, "gpu_0_avg_utilization_pct") }},
	{ruleGPUStarved, "one CPU", findingIdle(12.1, 0.8, 0, 0), findingIdle(12, 0.8, 0, 0)},
	{ruleGPUStarved, "less than a CPU", findingIdle(30, 0.8, 0, 0), findingIdle(30, 0.799, 0, 0)},
	{ruleGPUStarved, "storage", findingIdle(30, 0.1, 50, 0), findingIdle(30, 0.1, 49.9, 0)},
	{ruleGPUStarved, "disk", findingIdle(30, math.NaN(), math.NaN(), 50), findingIdle(30, math.NaN(), math.NaN(), 49.9)},
	{ruleGPUStarved, "GPU of another job", findingIdle(30, 1, 0, 0), all(findingIdle(30, 1, 0, 0), func(n *reporter.Node) { n.GPUs[0].OfJob = false })},
	{ruleGPUIdle, "empty", metrics("gpu1=0.5 gpu1_mb=7999"), metrics("gpu1=10 gpu1_mb=0")},
	{ruleGPUIdle, "filled", metrics("gpu1=0.5 gpu1_mb=8000"), metrics("gpu1=10 gpu1_mb=8000")},
	{ruleGPUIdle, "one of two filled", metrics("gpu0=0 gpu1=0 gpu0_mb=20000 gpu1_mb=3"), noGPUs},
	{ruleGPUIdle, "both empty", metrics("gpu0=0 gpu1=3.25 gpu0_mb=0 gpu1_mb=NaN"), noGPUs},
	{ruleGPUIdle, "measured for half of the run", all(metrics("gpu0=0"), func(n *reporter.Node) { n.Samples = findingSamples(30, 30) }),
		all(metrics("gpu0=0"), func(n *reporter.Node) { n.Samples = findingSamples(29, 60) })},
	{ruleOneThread, "least usage", metrics("cores=0.85 peak=1.01"), metrics("cores=0.849 peak=7.1")},
	{ruleOneThread, "most usage", metrics("cores=1.15 peak=1.2"), metrics("cores=1.1501 peak=7.1")},
	{ruleOneThread, "two CPUs", all(limits(reporter.Limits{CPUs: 2, CPUSetCPUs: 2}), metrics("cores=1 peak=1")),
		all(quota(1.99), metrics("cores=1 peak=1"))},
	{ruleOneThread, "whole node", all(limits(reporter.Limits{CPUs: 64, CPUSetCPUs: 64, AffinityCPUs: 64}), metrics("cores=1 peak=1")),
		all(limits(reporter.Limits{CPUs: 64, CPUSetCPUs: 64, AffinityCPUs: 64}), metrics("cores=2 peak=2"))},
	{ruleOneThread, "phases", metrics("cores=1.1 peak=7.9"), func(n *reporter.Node) { n.Limits = nil; n.Metrics[reporter.MetricJobCores] = 1.1 }},
	{ruleCPUsUnused, "mean", metrics("cores=3.999 peak=5.4"), metrics("cores=4 peak=5.4")},
	{ruleCPUsUnused, "peak", metrics("cores=2 peak=5.45"), metrics("cores=2 peak=5.46")},
	{ruleCPUsUnused, "one CPU left over", all(quota(2), metrics("cores=0.5 peak=0.9")), all(quota(1.9), metrics("cores=0.5 peak=0.9"))},
	{ruleCPUsUnused, "a quarter of the CPUs left over", all(quota(10), metrics("cores=2 peak=6.3")), all(quota(10), metrics("cores=2 peak=7.2"))},
	{ruleCPUsUnused, "affinity", all(affinity(63), metrics("cores=0 peak=0.01")), all(affinity(64), metrics("cores=0 peak=0.01"))},
	{ruleOneThread, "crowded node, one thread", metrics("cores=1 peak=1 psi=90 threads=1"), metrics("cores=1 peak=1 psi=20 threads=2")},
	{ruleOneThread, "only other tasks wait", metrics("cores=1 peak=1 psi=90 job_psi=19.999 threads=2"), metrics("cores=1 peak=1 psi=90 job_psi=20 threads=2")},
	{ruleCPUsUnused, "crowded node", metrics("cores=2 peak=3 psi=19.999"), metrics("cores=2 peak=3 psi=20")},
	{ruleCPUsUnused, "quota of the whole node", all(quota(64), metrics("cores=20 peak=30")),
		all(quota(64), metrics("cores=20 peak=30 throttled=NaN"), func(n *reporter.Node) { n.Limits.CPUQuota = 0 })},
	{ruleThrottled, "periods", metrics("throttled=10 throttled_s=12.34"), metrics("throttled=9.999 throttled_s=12.34")},
	{ruleThrottled, "quota shared with others", all(fromTree, metrics("throttled=90 cores=0.8 peak=7.8")),
		all(fromTree, metrics("throttled=90 cores=0.79 peak=7.8"))},
	{ruleThrottled, "throttled and unused CPUs", all(quota(4.5), metrics("throttled=40 cores=1.3 peak=2 throttled_s=NaN")),
		all(quota(4.5), metrics("throttled=0 cores=2.3 peak=4"))},
	{ruleNeighbour, "on CPUs", findingCrowd(50, 20), findingCrowd(50, 19.999)},
	{ruleNeighbour, "a quarter of the CPUs", findingCrowd(37.5, 20), findingCrowd(37.4, 20)},
	{ruleNeighbour, "tasks of the job wait", all(findingCrowd(50, 0), metrics("job_psi=20")), all(findingCrowd(50, 90), metrics("job_psi=19"))},
	{ruleNeighbour, "job did not get its CPUs", all(findingCrowd(50, 90), metrics("cores=7.19")), all(findingCrowd(50, 90), metrics("cores=7.2"))},
	{ruleNeighbour, "as many threads as allowed CPUs", all(findingCrowd(50, 90), metrics("threads=8")), all(findingCrowd(50, 90), metrics("threads=9"))},
	{ruleNeighbour, "more threads than CPUs of the node", all(findingCrowd(100, 90), affinity(8), func(n *reporter.Node) { n.Host.CPUs = 8 }, metrics("threads=64 cores=5")),
		all(findingCrowd(92, 90), affinity(8), func(n *reporter.Node) { n.Host.CPUs = 8 }, metrics("threads=64 cores=5"))},
	{ruleNeighbour, "another virtual machine", metrics("steal=10"), metrics("steal=9.999")},
	{ruleNeighbour, "memory", findingMemory(40, 5), findingMemory(26, 5)},
	{ruleNeighbour, "waiting for memory", findingMemory(60, 5), findingMemory(60, 4.999)},
	{ruleNeighbour, "memory limit of the job", all(findingMemory(60, 50), metrics("limit=89.9")),
		all(findingMemory(60, 50), metrics("limit=NaN"), func(n *reporter.Node) { delete(n.Summaries, collector.JobMemory.Key()) })},
	{ruleClockedDown, "long throttling", metrics("clock_s=3 clock_events=17 temperature=97"), metrics("clock_s=0.59 clock_events=17 temperature=97")},
	{ruleClockedDown, "short throttling", metrics("clock_s=0.6"), metrics("clock_s=0")},
	{ruleClockedDown, "events without times", metrics("clock_events=10"), metrics("clock_events=9")},
	{ruleNetworkFileSystem, "metadata", findingMount(12, 0, 0), findingMount(11.9, 0, 0)},
	{ruleNetworkFileSystem, "reading", findingMount(30, 24, 5), findingMount(30, 24, 4.9)},
	{ruleNetworkFileSystem, "read-ahead not counted", findingMount(36, 24, 0), findingMount(35.9, 24, 0)},
	{ruleNetworkFileSystem, "Lustre", findingLustre(12), findingLustre(11.9)},
	{ruleNetworkFileSystem, "two mounts", all(findingMount(15, 1, 0), findingLustre(45.5)), all(findingMount(2, 1, 0), findingLustre(10.9))},
	{ruleNetworkFileSystem, "job did not use its CPUs", all(findingMount(60, 0, 0), metrics("cores=7.19")),
		all(findingMount(60, 0, 0), metrics("cores=7.2"))},
	{ruleNetworkFileSystem, "threads", all(findingMount(60, 0, 0), metrics("cores=4.4 threads=5")),
		all(findingMount(60, 0, 0), metrics("cores=4.5 threads=5"))},
	{ruleMemoryShared, "a third of the peak", shared(3333, 1667, ""), shared(3334, 1666, "")},
	{ruleMemoryShared, "amount", shared(250, 256, ""), shared(250, 255.9, "")},
	{ruleMemoryShared, "in a group, with page cache", func(n *reporter.Node) {
		shared(100, 1700, "")(n)
		n.Job.MemoryAtPeak.FileMB, n.Job.MemoryAtPeak.KernelMB = 9000, 5
	}, shared(3334, 1666, "")},
	{ruleMemoryShared, "from a journal", func(n *reporter.Node) {
		shared(3000, 2000, "")(n)
		n.Job, n.MemoryAtPeak = nil, n.Job.MemoryAtPeak
	}, shared(3000, 0, "")},
	{ruleMemoryShared, "memory ran out", func(n *reporter.Node) {
		shared(3000, 1000, CauseOOMCgroup)(n)
		n.Job.MemoryAtKill = &reporter.MemoryParts{Timestamp: 1, AnonMB: 100, ShmemMB: 50}
	}, shared(250, 100, CauseExited)},
	{ruleSwapping, "amount", metrics("wall=10 swap_in=24 swap_out=40"), metrics("wall=10 swap_in=23.9 swap_out=40")},
	{ruleSwapping, "rate", metrics("wall=100 swap_in=100"), metrics("wall=100 swap_in=99.9")},
	{ruleSwapping, "swap-in unknown", metrics("swap_in=NaN swap_out=4096"), metrics("swap_in=NaN swap_out=NaN")},
	{ruleMemoryUnused, "job", metrics("memory=2047.9 limit=10"), metrics("memory=2048 limit=10")},
	{ruleMemoryUnused, "group", metrics("memory=100 limit=24.999"), metrics("memory=100 limit=25")},
	{ruleMemoryUnused, "6 GiB instead of 64", all(limits(reporter.Limits{CPUs: 8, CPUQuota: 8, MemoryMB: 65536}), metrics("memory=2800 limit=NaN")),
		all(quota(8), metrics("memory=2800 limit=NaN"))},
	{ruleMemoryUnused, "less than the node", func(n *reporter.Node) { n.Limits.MemoryMB = 262143; n.Metrics[reporter.MetricLimitMemory] = 2 },
		func(n *reporter.Node) { n.Limits.MemoryMB = 262144; n.Metrics[reporter.MetricLimitMemory] = 2 }},
	{ruleGPUMemoryFull, "share", metrics("gpu0_mb=76000"), metrics("gpu0_mb=75999")},
	{ruleGPUMemoryFull, "both", metrics("gpu0_mb=78000 gpu1_mb=79900"), noGPUs},
	{ruleGPUMemoryFull, "first of two", metrics("gpu0_mb=79000 gpu1_mb=78000"),
		func(n *reporter.Node) { n.GPUs[0].MemoryMB = 0; n.Metrics["max_t_gpu_0_memory_used_mb"] = 79000 }},
	{ruleSamplingGaps, "share", sampling(reporter.Sampling{Samples: 27, MissedTicks: 3, LongestGapSeconds: 2}), sampling(reporter.Sampling{Samples: 28, MissedTicks: 3, LongestGapSeconds: 2})},
	{ruleSamplingGaps, "count", sampling(reporter.Sampling{Samples: 6, MissedTicks: 3}), sampling(reporter.Sampling{Samples: 6, MissedTicks: 2})},
	{ruleSamplingGaps, "one gap", sampling(reporter.Sampling{Samples: 600, MissedTicks: 60, LongestGapSeconds: 6}), sampling(reporter.Sampling{Samples: 600, MissedTicks: 60, LongestGapSeconds: 5.99})},
	{ruleSamplingGaps, "suspended", sampling(reporter.Sampling{Samples: 27, MissedTicks: 3, LongestGapSeconds: 7200, Suspends: []reporter.ClockEvent{{Seconds: 7198}}}),
		sampling(reporter.Sampling{Samples: 600, MissedTicks: 3, LongestGapSeconds: 7200, Suspends: []reporter.ClockEvent{{Seconds: 7198}}})},
	{ruleChildrenDied, "crash", deathsOf("SIGSEGV"), all(deathsOf("SIGSEGV"), func(n *reporter.Node) { n.Job.ExitCode = new(1) })},
	{ruleChildrenDied, "several, in a short run", all(metrics("wall=0.1"), deathsOf("SIGTERM", "SIGKILL", "SIGBUS")),
		deathsOf("SIGTERM", "SIGINT", "SIGHUP", "")},
}

func findingIDs(list []reporter.Finding) string {
	var ids []string
	for _, f := range list {
		ids = append(ids, f.ID)
	}
	return strings.Join(ids, " ")
}

// Each rule fires alone at its threshold, and not just short of it.
func TestFindings_EachRuleFiresAloneAtItsThreshold(t *testing.T) {
	tested := map[string]bool{ruleImbalance: true, Straggler: true, ruleOddNode: true} // tested elsewhere
	for _, c := range findingCases {
		tested[c.id] = true
		t.Run(c.id+"/"+c.name, func(t *testing.T) {
			n := findingNode()
			c.fires(n)
			if got := findings(n, findingRun); findingIDs(got) != c.id {
				t.Errorf("rules that fire: %q, want only %q", findingIDs(got), c.id)
			}
			n = findingNode()
			c.not(n)
			if got := findings(n, findingRun); len(got) > 0 {
				t.Errorf("just short of the threshold: findings %+v, want none", got)
			}
		})
	}
	for _, rule := range Rules() {
		if !tested[rule.ID] {
			t.Errorf("rule %s has no case in this test", rule.ID)
		}
	}
}

// The table contains every ID once, with advice.
func TestRules_ContainEveryIDOnceWithAdvice(t *testing.T) {
	want := []string{"children_died", "clocked_down", "cpus_unused", "disk_nearly_full", "gpu_idle", "gpu_memory_full", "gpu_starved", "imbalance", "memory_is_shared", "memory_tight", "memory_unused", "neighbour",
		"network_file_system", "odd_node", "one_busy_thread", "sampling_gaps", "straggler", "swapping", "throttled"}
	var got []string
	for _, r := range Rules() {
		got = append(got, r.ID)
		if r.Advice == "" || r.Severity != SeverityInfo && r.Severity != SeverityWarning || (r.judge == nil) != comparesPeers(r.ID) {
			t.Errorf("rule %+v: want advice, a known severity, and judge unless it compares nodes or ranks", r)
		}
		if strings.Contains(r.Advice, "%!") {
			t.Errorf("advice of rule %s has a formatting error: %s", r.ID, r.Advice)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("IDs of the rules (-want +got):\n%s", diff)
	}
}

// The texts and the evidence of all findings match a golden file.
func TestFindings_TextsMatchGoldenFile(t *testing.T) {
	var out bytes.Buffer
	show := func(name string, list []reporter.Finding) {
		for _, f := range list {
			numbers := check.Value(json.Marshal(f.Evidence))(t)
			fmt.Fprintf(&out, "%s, %s (%s)\n  %s\n  %s\n", f.ID, name, f.Severity, f.Text, numbers)
		}
	}
	for _, c := range findingCases {
		n := findingNode()
		c.fires(n)
		show(c.name, findings(n, findingRun))
	}
	for _, c := range findingNodesCases {
		r := findingNodes(c.fires...)
		for _, name := range r.NodeNames() {
			show(c.name+", node "+name, r.Nodes[name].Findings)
		}
	}
	reportertest.CompareGolden(t, filepath.Join("testdata", "findings.txt"), out.Bytes(), *update)
}

// Runs shorter than 5 s have no findings but children_died, whatever their numbers.
func TestFindings_NoneForRunsShorterThan5s(t *testing.T) {
	for _, wall := range []float64{5, 4.999, 0, -1, math.NaN(), math.Inf(1)} {
		for _, c := range findingCases {
			if c.id == ruleChildrenDied {
				continue
			}
			n := findingNode()
			c.fires(n)
			n.Metrics[reporter.MetricSwapIn] = 0 // a rate, which depends on the time
			n.Metrics[reporter.MetricWall] = wall
			if got := findings(n, &reporter.Run{WallSeconds: wall}); got == nil || (len(got) > 0) != (wall == 5 && c.id != ruleSwapping) && c.name != "swap-in unknown" {
				t.Errorf("%s, run of %v s: findings %#v, want a list, empty unless the run lasts 5 s", c.name, wall, got)
			}
		}
	}
}

// Missing values fire no rule, and the list is never nil.
func TestFindings_MissingValuesFireNoRule(t *testing.T) {
	unknown, perfPy := findingNode(), findingNode()
	for name := range unknown.Metrics {
		unknown.Metrics[name] = math.NaN()
	}
	perfPy.Origin, perfPy.Metrics[reporter.MetricDiskPeak] = reporter.OriginPerfPy, 99
	for name, n := range map[string]*reporter.Node{
		"nil": nil, "empty": {}, "within limits": findingNode(), "metrics are NaN": unknown, "from perf.py": perfPy,
		"no metrics": {Host: &reporter.Host{CPUs: 64, MemoryMB: 1}, Limits: &reporter.Limits{CPUs: 8, CPUQuota: 8, MemoryMB: 8192},
			GPUs: []reporter.GPU{{OfJob: true, MemoryMB: 1}}, Sampling: &reporter.Sampling{}},
	} {
		for _, run := range []*reporter.Run{nil, {}, findingRun} {
			if got := findings(n, run); got == nil || len(got) > 0 {
				t.Errorf("node %q, run %+v: findings %#v, want an empty list", name, run, got)
			}
		}
	}
}

// Warnings come first, in the order of the table; the finding on one busy thread replaces the finding on unused CPUs.
func TestFindings_WarningsComeFirst(t *testing.T) {
	n := findingNode()
	for _, c := range findingCases {
		names := []string{"whole node", "share", "one of two", "6 GiB instead of 64", "periods"}
		if slices.Contains(names, c.name) || c.id == ruleSwapping {
			limits := n.Limits
			c.fires(n)
			if c.name != "whole node" {
				n.Limits = limits
			}
		}
	}
	n.Limits.MemoryMB, n.Metrics[reporter.MetricLimitMemory], n.Metrics[reporter.MetricSwapIn] = 200000, math.NaN(), 9999
	want := "disk_nearly_full gpu_idle throttled swapping memory_unused one_busy_thread gpu_memory_full sampling_gaps"
	if got := findings(n, findingRun); findingIDs(got) != want {
		t.Errorf("findings are in the order\n%s\nwant\n%s", findingIDs(got), want)
	}
}

// findingNodes returns a report of nodes that have only the findings caused by the changes.
func findingNodes(changes ...change) *reporter.Report {
	r := &reporter.Report{Schema: reporter.Schema, Run: *findingRun, Nodes: make(map[string]*reporter.Node)}
	for i, f := range changes {
		n := findingNode()
		if f != nil {
			f(n)
		}
		n.Findings = findings(n, &r.Run)
		r.Nodes[fmt.Sprint(i)] = n
	}
	addPeerFindings(r)
	return r
}

func findingCores(v float64) change { return metrics("cores=%v peak=7.75", v) }
func findingGPUs(v float64) change  { return metrics("gpu0=%[1]v gpu1=%[1]v", v) }

var findingNodesCases = []struct {
	name       string
	node       string // the node with the finding
	fires, not []change
}{
	{"CPU", "1", []change{findingCores(6), findingCores(1.99), nil}, []change{findingCores(6), findingCores(2), findingCores(4)}},
	{"two nodes", "1", []change{findingCores(6), findingCores(1.99)}, []change{findingCores(6), findingCores(2)}},
	{"little CPU", "0", []change{findingCores(0), findingCores(1.2)}, []change{findingCores(0), findingCores(0.99)}},
	{"memory", "0", []change{metrics("memory=1600"), nil}, []change{metrics("memory=1667"), nil}},
	{"little memory", "0", []change{metrics("memory=100"), metrics("memory=1950")},
		[]change{metrics("memory=100"), metrics("memory=1940")}},
	{"GPU", "2", []change{nil, nil, metrics("gpu0=12 gpu1=30")}, []change{nil, nil, metrics("gpu0=60 gpu1=30")}},
	{"little GPU", "0", []change{findingGPUs(1), findingGPUs(19.1)}, []change{findingGPUs(1), findingGPUs(18.9)}},
	{"all measures", "0", []change{all(findingCores(0.25), metrics("memory=50 gpu0=12 gpu1=12")), nil, nil},
		[]change{nil, nil, nil}},
	{"equal values, first node", "0", []change{findingCores(2), findingCores(2), findingCores(7), findingCores(7)}, []change{nil}},
	{"more than the others", "2", []change{findingCores(2), findingCores(2), findingCores(3.1)}, []change{findingCores(2), findingCores(2), findingCores(3)}},
	{"a little more than the others", "0", []change{findingCores(1), findingCores(0.5), findingCores(0.5)}, []change{findingCores(0.9), findingCores(0.5), findingCores(0.5)}},
	{"ended early", "1", []change{nil, all(findingCores(1.2), metrics("wall=54")), nil},
		[]change{nil, all(findingCores(1.2), metrics("wall=53.9")), nil}},
	{"run too short", "0", []change{findingCores(1.2), nil}, []change{all(findingCores(1.2), metrics("wall=4.9")), nil}},
}

func TestAddPeerFindings_FiresAtThreshold(t *testing.T) {
	with := func(r *reporter.Report) string {
		var names []string
		for _, name := range r.NodeNames() {
			for _, f := range r.Nodes[name].Findings {
				if f.ID == ruleImbalance {
					names = append(names, name)
				}
			}
		}
		return strings.Join(names, " ")
	}
	for _, c := range findingNodesCases {
		if got := with(findingNodes(c.fires...)); got != c.node {
			t.Errorf("%s: the finding is on node %q, want %q", c.name, got, c.node)
		}
		if got := with(findingNodes(c.not...)); got != "" {
			t.Errorf("%s: just short of the threshold, node %q has the finding, want none", c.name, got)
		}
	}
}

// Findings of comparisons are recomputed for the nodes of the report, without changing a list shared with another
// report.
func TestAddPeerFindings_RecomputesForNodesOfReport(t *testing.T) {
	r := findingNodes(findingCores(7), all(findingCores(1.99), metrics("throttled=50")), metrics("disk=99"))
	r.Nodes["1"].Findings = append(make([]reporter.Finding, 0, 4), r.Nodes["1"].Findings...)
	shared := r.Nodes["1"].Findings
	before := fmt.Sprint(shared[:cap(shared)])
	if findingIDs(r.Nodes["1"].Findings) != "throttled imbalance odd_node" || findingIDs(r.Nodes["2"].Findings) != "disk_nearly_full" {
		t.Fatalf("findings of node 1: %v, want throttled, imbalance, odd_node; of node 2: %v, want disk_nearly_full",
			r.Nodes["1"].Findings, r.Nodes["2"].Findings)
	}
	part := &reporter.Report{Run: r.Run, Nodes: map[string]*reporter.Node{"1": r.Nodes["1"], "7": nil, "8": {}}}
	addPeerFindings(part)
	if findingIDs(part.Nodes["1"].Findings) != "throttled" || part.Nodes["8"].Findings == nil {
		t.Errorf("merged without the other nodes: findings of node 1: %v, want throttled; of node 8: %#v, want a non-nil list",
			part.Nodes["1"].Findings, part.Nodes["8"].Findings)
	}
	if after := fmt.Sprint(shared[:cap(shared)]); after != before {
		t.Errorf("the merge changed a list that another report shares:\n%s\nwas\n%s", after, before)
	}
	addPeerFindings(&reporter.Report{})
}

// The findings of merged reports do not change if a node is merged again. mergedRun checks other orders and steps.
func TestMerge_FindingsTolerateOverlap(t *testing.T) {
	node := func(i int, cores float64) reporter.SourceReport {
		in := Input{Input: reportertest.Input(i, 60, 0, "")}
		in.Recording.Account.Source = host.JobFromTree
		in.Recording.Account.Limits = host.Limits{CPUs: 8, CPUQuota: 8, MemoryMB: series.Unknown()}
		in.Job.UserSeconds, in.Job.SystemSeconds = cores*60, 0
		return reporter.SourceReport{Path: fmt.Sprint(i), Report: New(in)}
	}
	a, b, c := node(0, 6), node(1, 1.9), node(2, 7)
	want := mustMerge(t, a, b, c)
	if got := findingIDs(want.Nodes["1"].Findings); !strings.Contains(got, ruleImbalance) {
		t.Fatalf("node 1 has the findings %s, want imbalance among them", got)
	}
	first, second := mustMerge(t, c, b), mustMerge(t, a, c)
	got := mustMerge(t, reporter.SourceReport{Path: "a", Report: first}, reporter.SourceReport{Path: "b", Report: second}, b)
	if diff := cmp.Diff(encoded(t, want), encoded(t, got)); diff != "" {
		t.Errorf("merged with overlap (-want +got):\n%s", diff)
	}
}

// The report of a run contains the list of findings, even if it is empty.
func TestNew_ListsFindingsEvenIfEmpty(t *testing.T) {
	short := New(Input{Input: reportertest.Input(0, 3, 0, "")})
	if data := check.Value(reporter.Encode(short))(t); !bytes.Contains(data, []byte(`"findings": []`)) && !bytes.Contains(data, []byte(`"findings":[]`)) {
		t.Errorf("the report lacks the empty list of findings:\n%s", data)
	}
}

func TestMergedFindings_ReturnsOneForEachID(t *testing.T) {
	thread := metrics("cores=1 peak=1")
	whole := all(thread, limits(reporter.Limits{CPUs: 64}))
	full := metrics("disk=99")
	r := findingNodes(whole, all(thread, full), findingCores(1.9), all(thread, full))
	r.Nodes["9"], r.Nodes["8"] = nil, &reporter.Node{Findings: []reporter.Finding{{ID: "later", Severity: SeverityWarning}, {ID: "later", Severity: SeverityInfo}}}
	var got []string
	for _, a := range MergedFindings(r) {
		got = append(got, fmt.Sprint(a.ID, " ", a.Severity, " ", a.Nodes))
	}
	want := "disk_nearly_full warning [1 3], one_busy_thread warning [0 1 3], imbalance warning [2], later warning [8]"
	if strings.Join(got, ", ") != want {
		t.Errorf("merged findings %q, want %s", got, want)
	}
	if got := MergedFindings(&reporter.Report{}); len(got) > 0 {
		t.Errorf("MergedFindings of an empty report: %+v, want none", got)
	}
}

// No number makes a rule panic, and no finding contains NaN or infinity.
func TestFindings_HostileNumbersNeverPanic(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 6))
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1e300, 1e300, math.MaxFloat64, -math.MaxFloat64, 5e-324, -1, 0, 1, 1.5, 8, 60, 95, 99.999, 1e7, 1e19, 4096}
	pick := func() float64 { return odd[random.IntN(len(odd))] }
	whole := func() int64 { return []int64{0, -1, 3, 1000, math.MaxInt64, math.MinInt64}[random.IntN(6)] }
	fired := make(map[string]bool)
	for range 2000 {
		r := &reporter.Report{Run: reporter.Run{WallSeconds: pick(), ExitCode: new(random.IntN(2))}, Nodes: map[string]*reporter.Node{"x": nil, "-1": {}}}
		for i := range 3 {
			n := findingNode()
			for _, name := range slices.Sorted(maps.Keys(n.Metrics)) { // in a fixed order, so that each run uses the same numbers
				if random.IntN(2) == 0 {
					n.Metrics[name] = pick()
				}
			}
			for _, name := range []string{reporter.MetricSteal, reporter.MetricCPUMean, reporter.MetricPSICPUSome, reporter.MetricPSIMemoryFull} {
				n.Metrics[name] = pick()
			}
			n.Limits = &reporter.Limits{CPUs: pick(), CPUQuota: series.Optional(pick()), MemoryMB: series.Optional(pick())}
			n.Host = &reporter.Host{CPUs: int(whole()), MemoryMB: pick()}
			n.Mounts = []reporter.Mount{{Type: "nfs", Source: reportertest.Hostile, MountedOn: []string{reportertest.Hostile},
				MountCalls: reporter.MountCalls{Calls: pick(), ExecuteSeconds: pick()},
				Operations: []reporter.MountOperation{{Name: reportertest.Hostile, MountCalls: reporter.MountCalls{ExecuteSeconds: pick()}}}}, {}}
			for _, name := range []string{reporter.MetricCPUThrottleEvents, reporter.MetricCPUThrottleSeconds, reporter.MetricCPUTemperature} {
				n.Metrics[name] = pick()
			}
			n.Sampling = &reporter.Sampling{Samples: whole(), MissedTicks: whole(), LongestGapSeconds: pick(), IntervalSeconds: pick()}
			n.Summaries = map[string]reporter.Summary{collector.DiskFree.Key(): {Min: pick()}, collector.MemPercent.Key(): {Mean: pick()}, collector.JobMemory.Key(): {Mean: pick()}}
			for g := range n.GPUs {
				n.GPUs[g] = reporter.GPU{Index: int(whole()), OfJob: random.IntN(2) == 0, MemoryMB: series.Optional(pick())}
				n.GPUs[g].Idle = &reporter.GPUIdle{Seconds: pick(), Gaps: whole(), LongestGapSeconds: pick(),
					JobCPUs: series.Optional(pick()), WaitingForStorePct: series.Optional(pick()), DiskMBPerSecond: series.Optional(pick())}
			}
			n.Job = &reporter.Job{End: reporter.Time{Time: time.Unix(int64(random.IntN(100)), whole())}, ExitCode: new(random.IntN(2)),
				MemoryAtPeak: &reporter.MemoryParts{AnonMB: pick(), ShmemMB: pick(), KernelMB: series.Optional(pick())}}
			n.Deaths = []reporter.Death{{PID: int(whole()), Signal: reportertest.Hostile, Command: reportertest.Hostile, CPUSeconds: pick()}, {}}
			for rank := range random.IntN(3) {
				job := &reporter.Rank{Rank: int(whole()), Start: reporter.Time{Time: time.Unix(0, 0)}, End: n.Job.End,
					Metrics: reporter.Values{reporter.MetricJobCores: pick(), reporter.MetricJobMemoryPeak: pick()}}
				n.Ranks = map[string]*reporter.Rank{fmt.Sprint(rank): job, "x": nil}
			}
			n.Findings = findings(n, &r.Run)
			r.Nodes[fmt.Sprint(i)] = n
		}
		addPeerFindings(r)
		for _, a := range MergedFindings(r) {
			fired[a.ID] = true
			if _, err := json.Marshal(a.Evidence); err != nil {
				t.Fatalf("evidence of %s is not JSON: %v: %v", a.ID, a.Evidence, err)
			}
			if a.Text == "" || text.Printable(a.Text) != a.Text || len(a.Text) > 400 || strings.Contains(a.Text, "NaN") || strings.Contains(a.Text, "Inf") || strings.Contains(a.Text, "%!") {
				t.Fatalf("text of %s is %q: want 1 to 400 printable bytes without NaN, Inf and %%!", a.ID, a.Text)
			}
		}
	}
	for _, rule := range Rules() {
		if !fired[rule.ID] {
			t.Errorf("rule %s never fired", rule.ID)
		}
	}
}

// A rounded size is at least the given size, and less than a quarter more.
func TestRoundSize_RoundsUpByLessThanAQuarter(t *testing.T) {
	for mb, want := range map[float64]string{0.1: "16 MiB", 16: "16 MiB", 17: "20 MiB", 600: "640 MiB", 1000: "1 GiB", 1025: "1.25 GiB", 5600: "6 GiB", 6144: "6 GiB", 9300: "10 GiB", 150e3: "160 GiB", 3e6: "3 TiB"} {
		if got := text.TrimmedSizeText(roundSize(mb)); got != want {
			t.Errorf("roundSize(%v MiB) is %s, want %s", mb, got, want)
		}
	}
	for mb := 16.5; mb < 1e12; mb *= 1.0137 {
		if r := roundSize(mb); r < mb || r >= 1.25*mb {
			t.Errorf("roundSize(%v) = %v, want at least the argument and less than a quarter more", mb, r)
		}
	}
	for _, mb := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		if r := roundSize(mb); !math.IsNaN(r) {
			t.Errorf("roundSize(%v) = %v, want NaN", mb, r)
		}
	}
}

// The rules accept any report that can be decoded.
func FuzzFinding(f *testing.F) {
	data := check.Value(json.Marshal(findingNodes(findingCores(1), nil)))(f)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		r := new(reporter.Report)
		if json.Unmarshal(data, r) != nil {
			return
		}
		for _, n := range r.Nodes {
			if got := findings(n, &r.Run); got == nil {
				t.Error("findings returned nil, want a list")
			}
		}
		addPeerFindings(r)
		MergedFindings(r)
		for _, n := range r.Nodes {
			if n != nil && len(n.Findings) > 0 {
				if _, err := json.Marshal(n.Findings); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// A job that reached its limit, even if only between samples, is not advised to ask for less.
func TestFindings_LimitReachedBetweenSamplesIsNotUnused(t *testing.T) {
	for _, killed := range []bool{false, true} {
		in := Input{Input: reportertest.JobInput(0, 10, 0, "")}
		a := &in.Recording.Account
		*a = collector.NoAccount()
		a.Source, a.Limits.CPUs, a.Limits.MemoryMB, a.LimitReachedPct = host.JobFromTree, 2, 200, 100
		if killed {
			a.LimitReachedPct, a.OOMKills, a.FullAtKillMB, a.LastOOMKill = 70, 1, 200, &collector.OOMKill{AtLimit: true}
		}
		n := New(in).Nodes["0"]
		if n.Metrics[reporter.MetricLimitMemory] != 100 {
			t.Errorf("MetricLimitMemory is %v %%, want 100", n.Metrics[reporter.MetricLimitMemory])
		}
		for _, f := range n.Findings {
			if f.ID == ruleMemoryUnused {
				t.Errorf("killed %v: finding %q for a job that reached its limit, want none", killed, f.Text)
			}
		}
	}
}

// judged returns the text and the evidence of the finding with the given ID on a changed node. The text is "" if there
// is none.
func judged(id string, change change) (words string, evidence map[string]any) {
	n := findingNode()
	change(n)
	for _, f := range findings(n, findingRun) {
		if f.ID == id {
			return f.Severity + ": " + f.Text, f.Evidence
		}
	}
	return "", nil
}

func limitRange(low, high float64) *reporter.LimitRange {
	return &reporter.LimitRange{Min: series.Optional(low), Max: series.Optional(high), Mean: series.Optional((low + high) / 2), Changes: 1,
		ChangedAt: time.Date(2026, 7, 1, 12, 0, 18, 0, time.UTC)}
}

// Findings contain all values of a limit that changed, and are based on the lowest.
func TestFindings_ListAllValuesOfChangedLimits(t *testing.T) {
	cpusRange := func(low float64) change {
		return func(n *reporter.Node) { n.Limits.CPUsRange = limitRange(low, 8) }
	}
	for name, c := range map[string]struct {
		id     string
		change change
		want   string
		number string
		value  any
	}{
		"throttled": {ruleThrottled, all(metrics("throttled=40 throttled_s=100"), cpusRange(6),
			func(n *reporter.Node) { n.Limits.QuotaRange = limitRange(6, 8) }),
			"warning: Ask for more CPUs, or run fewer threads: the CPU quota of 6 to 8 CPUs (changed at 12:00:18 UTC) stopped the job in 40 %", "cpu_quota", 6.0},
		"tight": {MemoryTight, all(metrics("limit=95"), func(n *reporter.Node) {
			n.Limits.MemoryRange = limitRange(4096, 8192)
			n.Summaries[collector.LimitMemory.Key()] = reporter.Summary{Max: 6000}
		}), "warning: Set the limit to 8 GiB: memory came to 95 % of the limit of 4 GiB to 8 GiB (changed at 12:00:18 UTC) (this is the peak + 25 %, rounded).",
			"peak_mb", 6000.0},
		"memory used at the lowest limit": {ruleMemoryUnused, all(metrics("memory=1500 limit=18"),
			func(n *reporter.Node) { n.Limits.MemoryRange = limitRange(4096, 8192) }), "", "", nil},
		"CPUs used at the lowest limit": {ruleCPUsUnused, all(metrics("cores=1.3 peak=2"), cpusRange(2)), "", "", nil},
		"CPUs unused": {ruleCPUsUnused, all(metrics("cores=1.3 peak=2"), cpusRange(6)),
			"warning: Ask for 3 CPUs instead of 6: on average it used 1.3 of its 6 to 8 CPUs, and 2 at most.", "limit_cpus", 6.0},
		"offline CPUs were not chosen": {ruleCPUsUnused, all(metrics("cores=1.3 peak=2"),
			limits(reporter.Limits{CPUs: 32, AffinityCPUs: 32, CPUsRange: limitRange(32, 64)})), "", "", nil},
	} {
		got, evidence := judged(c.id, c.change)
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) || c.number != "" && evidence[c.number] != c.value {
			t.Errorf("%s: finding %q, evidence %v; want %q, %s = %v", name, got, evidence, c.want, c.number, c.value)
		}
	}
}

// A job that bound itself to fewer CPUs than it was given is advised about the given CPUs.
func TestFindings_AdviseBoundJobsOnGivenCPUs(t *testing.T) {
	one := metrics("cores=0.97 peak=1")
	for name, c := range map[string]struct {
		id     string
		change change
		want   string
	}{
		"bound to one of the requested CPUs": {ruleOneThread,
			all(one, limits(reporter.Limits{CPUs: 1, CPUQuota: 8, AffinityCPUs: 1, GivenCPUs: 8})),
			"warning: Use the other CPUs, or ask for 1 CPU: it used 0.97 of the 8 CPUs it was given, of which it bound itself to 1."},
		"bound to one CPU of the node": {ruleOneThread,
			all(one, limits(reporter.Limits{CPUs: 1, AffinityCPUs: 1, GivenCPUs: 64})), ""},
		"bound to four of eight CPUs": {ruleCPUsUnused, all(metrics("cores=3.8 peak=4"),
			limits(reporter.Limits{CPUs: 4, CPUQuota: 8, AffinityCPUs: 4, GivenCPUs: 8})),
			"warning: Ask for 4 CPUs instead of 8: on average it used 3.8 of the 8 CPUs it was given, of which it bound itself " +
				"to 4, and 4 at most."},
		"quota set by the job": {ruleThrottled, all(metrics("throttled=40 throttled_s=100 cores=1.9"),
			limits(reporter.Limits{CPUs: 2, CPUQuota: 2, GivenCPUs: 64})),
			"warning: Raise the quota, or run fewer threads: the job was given 64 CPUs, and the CPU quota of 2 CPUs stopped the " +
				"job in 40 % of its periods, for 1 min 40 s summed over CPUs."},
	} {
		if got, _ := judged(c.id, c.change); got != c.want {
			t.Errorf("%s: finding %q, want %q", name, got, c.want)
		}
	}
}
