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
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func mustMerge(t *testing.T, inputs ...reporter.SourceReport) *reporter.Report {
	t.Helper()
	r, err := Merge(inputs)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func encodedReport(t *testing.T, r *reporter.Report) []byte {
	t.Helper()
	data, err := reporter.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
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

type findingCase struct {
	id, name string
	fires    func(*reporter.Node) // changes the node so that only this rule fires
	not      func(*reporter.Node) // the same, just short of the threshold
}

func findingSet(metrics ...any) func(*reporter.Node) {
	return func(n *reporter.Node) {
		for i := 0; i < len(metrics); i += 2 {
			n.Metrics[metrics[i].(string)] = metrics[i+1].(float64)
		}
	}
}

func findingAll(of ...func(*reporter.Node)) func(*reporter.Node) {
	return func(n *reporter.Node) {
		for _, f := range of {
			f(n)
		}
	}
}

func findingLimits(l reporter.Limits) func(*reporter.Node) {
	return func(n *reporter.Node) { n.Limits = &l }
}

func findingKills(n float64) func(*reporter.Node) {
	return func(node *reporter.Node) {
		node.Verdict = &reporter.Verdict{Cause: CauseOOMCgroup, Evidence: map[string]any{"oom_kills": 2.0, "limit_kills": n}}
	}
}

// findingIdle makes the first GPU idle for some seconds, and sets what was busy in that time: CPUs, waiting for
// storage, and disks.
func findingIdle(seconds, cpus, waiting, disk float64) func(*reporter.Node) {
	return func(n *reporter.Node) {
		n.GPUs[0].Idle = &reporter.GPUIdle{Seconds: seconds, Gaps: 7, LongestGapSeconds: 3.5, JobCPUs: series.Optional(cpus),
			WaitingForStorePct: series.Optional(waiting), DiskMBPerSecond: series.Optional(disk)}
	}
}

func findingSource(source string) func(*reporter.Node) {
	return func(n *reporter.Node) { n.Job = &reporter.Job{Source: source} }
}

// findingCrowd sets, in percent, how busy the 64 CPUs are and how often tasks wait for a CPU. Steal and the job take 8
// CPUs.
func findingCrowd(busy, waiting float64) func(*reporter.Node) {
	return findingSet(reporter.MetricCPUMean, busy, reporter.MetricJobCores, 4.8, reporter.MetricSteal, 5.0, reporter.MetricPSICPUSome, waiting)
}

// findingMemory sets, in percent, how much memory is used and how often tasks wait for memory. The job uses 4 GiB.
func findingMemory(used, waiting float64) func(*reporter.Node) {
	return func(n *reporter.Node) {
		n.Summaries = map[string]reporter.Summary{collector.MemPercent.Key(): {Mean: used}, collector.JobMemory.Key(): {Mean: 4096}}
		n.Metrics[reporter.MetricPSIMemoryFull] = waiting
	}
}

func findingFree(mb float64) func(*reporter.Node) {
	return func(n *reporter.Node) {
		n.Summaries = map[string]reporter.Summary{collector.DiskFree.Key(): {Min: mb}}
	}
}

// findingMount adds an NFS mount with calls that took the given seconds, reading of them in READ. storage is the
// percentage of the time in which tasks waited for storage.
func findingMount(seconds, reading, storage float64) func(*reporter.Node) {
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
func findingLustre(seconds float64) func(*reporter.Node) {
	return func(n *reporter.Node) {
		n.Mounts = append(n.Mounts, reporter.Mount{Type: "lustre", Source: "scratch", MountCalls: reporter.MountCalls{Calls: 40, ExecuteSeconds: seconds},
			Operations: []reporter.MountOperation{{Name: "read", MountCalls: reporter.MountCalls{Calls: 40, ExecuteSeconds: seconds}}}})
	}
}

func findingSampling(s reporter.Sampling) func(*reporter.Node) {
	return func(n *reporter.Node) { n.Sampling = &s }
}

var findingCases = []findingCase{
	{MemoryTight, "limit", findingSet(reporter.MetricLimitMemory, 90.0), findingSet(reporter.MetricLimitMemory, 89.999)},
	{MemoryTight, "killed", findingAll(findingSet(reporter.MetricLimitMemory, 99.97, reporter.MetricJobOOMKills, 2.0), findingKills(2)), findingAll(findingSet(reporter.MetricLimitMemory, math.NaN(), reporter.MetricJobOOMKills, 2.0), findingKills(2))},
	{MemoryTight, "killed for another limit", findingAll(findingSet(reporter.MetricLimitMemory, 91.0, reporter.MetricJobOOMKills, 2.0), findingKills(0)), findingAll(findingSet(reporter.MetricLimitMemory, 50.0, reporter.MetricJobOOMKills, 2.0), findingKills(0))},
	{MemoryTight, "filled by others", findingSet(reporter.MetricLimitMemory, 95.0, reporter.MetricJobMemoryPeak, 819.0), findingSet(reporter.MetricLimitMemory, 89.0, reporter.MetricJobMemoryPeak, 819.0)},
	{MemoryTight, "killed, then the limit was raised", findingAll(findingSet(reporter.MetricLimitMemory, 100.0, reporter.MetricJobOOMKills, 1.0), func(n *reporter.Node) {
		n.Verdict = &reporter.Verdict{Cause: CauseOOMCgroup, Evidence: map[string]any{"limit_kills": 1.0, "limit_mb": 2048.0}}
	}), findingSet(reporter.MetricLimitMemory, 80.0, reporter.MetricJobOOMKills, 1.0)},
	{MemoryTight, "limit no longer set", findingAll(findingLimits(reporter.Limits{CPUs: 8}), findingSet(reporter.MetricLimitMemory, 95.0)), findingLimits(reporter.Limits{CPUs: 8})},
	{ruleDiskFull, "share", findingAll(findingSet(reporter.MetricDiskPeak, 95.0), findingFree(812.5)), findingAll(findingSet(reporter.MetricDiskPeak, 94.999), findingFree(812.5))},
	{ruleDiskFull, "large file system", findingAll(findingSet(reporter.MetricDiskPeak, 97.0), findingFree(102399)), findingAll(findingSet(reporter.MetricDiskPeak, 97.0), findingFree(102400))},
	{ruleDiskFull, "named file system", findingAll(findingSet(reporter.MetricDiskPeak, 96.0), findingFree(10), func(n *reporter.Node) { n.Sampling.DiskPaths = []string{"/scratch"} }), findingFree(10)},
	{ruleDiskFull, "two file systems", findingAll(findingSet(reporter.MetricDiskPeak, 96.0), findingFree(10), func(n *reporter.Node) { n.Sampling.DiskPaths = []string{"/", "/scratch"} }), findingFree(10)},
	{ruleDiskFull, "free space unknown", findingAll(findingSet(reporter.MetricDiskPeak, 97.0), func(n *reporter.Node) { n.Summaries = nil }), func(n *reporter.Node) { n.Summaries = nil }},
	{ruleGPUIdle, "one of two", findingSet("gpu_1_avg_utilization_pct", 9.999), findingSet("gpu_1_avg_utilization_pct", 10.0)},
	{ruleGPUIdle, "both", findingSet("gpu_0_avg_utilization_pct", 0.0, "gpu_1_avg_utilization_pct", 3.25), func(n *reporter.Node) {
		n.Metrics["gpu_0_avg_utilization_pct"], n.Metrics["gpu_1_avg_utilization_pct"] = 0, 0
		n.GPUs[0].OfJob, n.GPUs[1].OfJob = false, false
	}},
	{ruleGPUIdle, "the only GPU", func(n *reporter.Node) { n.GPUs = n.GPUs[:1]; n.Metrics["gpu_0_avg_utilization_pct"] = 0.4 },
		func(n *reporter.Node) { n.GPUs = n.GPUs[:1]; delete(n.Metrics, "gpu_0_avg_utilization_pct") }},
	{ruleGPUStarved, "one CPU", findingIdle(12.1, 0.8, 0, 0), findingIdle(12, 0.8, 0, 0)},
	{ruleGPUStarved, "less than a CPU", findingIdle(30, 0.8, 0, 0), findingIdle(30, 0.799, 0, 0)},
	{ruleGPUStarved, "storage", findingIdle(30, 0.1, 50, 0), findingIdle(30, 0.1, 49.9, 0)},
	{ruleGPUStarved, "disk", findingIdle(30, math.NaN(), math.NaN(), 50), findingIdle(30, math.NaN(), math.NaN(), 49.9)},
	{ruleGPUStarved, "GPU of another job", findingIdle(30, 1, 0, 0), findingAll(findingIdle(30, 1, 0, 0), func(n *reporter.Node) { n.GPUs[0].OfJob = false })},
	{ruleGPUIdle, "empty", findingSet("gpu_1_avg_utilization_pct", 0.5, "max_t_gpu_1_memory_used_mb", 7999.0),
		findingSet("gpu_1_avg_utilization_pct", 10.0, "max_t_gpu_1_memory_used_mb", 0.0)},
	{ruleGPUIdle, "filled", findingSet("gpu_1_avg_utilization_pct", 0.5, "max_t_gpu_1_memory_used_mb", 8000.0),
		findingSet("gpu_1_avg_utilization_pct", 10.0, "max_t_gpu_1_memory_used_mb", 8000.0)},
	{ruleGPUIdle, "one of two filled", findingSet("gpu_0_avg_utilization_pct", 0.0, "gpu_1_avg_utilization_pct", 0.0,
		"max_t_gpu_0_memory_used_mb", 20000.0, "max_t_gpu_1_memory_used_mb", 3.0), func(n *reporter.Node) { n.GPUs = nil }},
	{ruleGPUIdle, "both empty", findingSet("gpu_0_avg_utilization_pct", 0.0, "gpu_1_avg_utilization_pct", 3.25,
		"max_t_gpu_0_memory_used_mb", 0.0, "max_t_gpu_1_memory_used_mb", math.NaN()), func(n *reporter.Node) { n.GPUs = nil }},
	{ruleGPUIdle, "measured for half of the run", findingAll(findingSet("gpu_0_avg_utilization_pct", 0.0), func(n *reporter.Node) { n.Samples = findingSamples(30, 30) }),
		findingAll(findingSet("gpu_0_avg_utilization_pct", 0.0), func(n *reporter.Node) { n.Samples = findingSamples(29, 60) })},
	{ruleOneThread, "least usage", findingSet(reporter.MetricJobCores, 0.85, reporter.MetricJobCoresPeak, 1.01), findingSet(reporter.MetricJobCores, 0.849, reporter.MetricJobCoresPeak, 7.1)},
	{ruleOneThread, "most usage", findingSet(reporter.MetricJobCores, 1.15, reporter.MetricJobCoresPeak, 1.2), findingSet(reporter.MetricJobCores, 1.1501, reporter.MetricJobCoresPeak, 7.1)},
	{ruleOneThread, "two CPUs", findingAll(findingLimits(reporter.Limits{CPUs: 2, CPUSetCPUs: 2}), findingSet(reporter.MetricJobCores, 1.0, reporter.MetricJobCoresPeak, 1.0)),
		findingAll(findingLimits(reporter.Limits{CPUs: 1.99, CPUQuota: 1.99}), findingSet(reporter.MetricJobCores, 1.0, reporter.MetricJobCoresPeak, 1.0))},
	{ruleOneThread, "whole node", findingAll(findingLimits(reporter.Limits{CPUs: 64, CPUSetCPUs: 64, AffinityCPUs: 64}), findingSet(reporter.MetricJobCores, 1.0, reporter.MetricJobCoresPeak, 1.0)),
		findingAll(findingLimits(reporter.Limits{CPUs: 64, CPUSetCPUs: 64, AffinityCPUs: 64}), findingSet(reporter.MetricJobCores, 2.0, reporter.MetricJobCoresPeak, 2.0))},
	{ruleOneThread, "phases", findingSet(reporter.MetricJobCores, 1.1, reporter.MetricJobCoresPeak, 7.9), func(n *reporter.Node) { n.Limits = nil; n.Metrics[reporter.MetricJobCores] = 1.1 }},
	{ruleCPUsUnused, "mean", findingSet(reporter.MetricJobCores, 3.999, reporter.MetricJobCoresPeak, 5.4), findingSet(reporter.MetricJobCores, 4.0, reporter.MetricJobCoresPeak, 5.4)},
	{ruleCPUsUnused, "peak", findingSet(reporter.MetricJobCores, 2.0, reporter.MetricJobCoresPeak, 5.45), findingSet(reporter.MetricJobCores, 2.0, reporter.MetricJobCoresPeak, 5.46)},
	{ruleCPUsUnused, "one CPU left over", findingAll(findingLimits(reporter.Limits{CPUs: 2, CPUQuota: 2}), findingSet(reporter.MetricJobCores, 0.5, reporter.MetricJobCoresPeak, 0.9)),
		findingAll(findingLimits(reporter.Limits{CPUs: 1.9, CPUQuota: 1.9}), findingSet(reporter.MetricJobCores, 0.5, reporter.MetricJobCoresPeak, 0.9))},
	{ruleCPUsUnused, "a quarter of the CPUs left over", findingAll(findingLimits(reporter.Limits{CPUs: 10, CPUQuota: 10}), findingSet(reporter.MetricJobCores, 2.0, reporter.MetricJobCoresPeak, 6.3)),
		findingAll(findingLimits(reporter.Limits{CPUs: 10, CPUQuota: 10}), findingSet(reporter.MetricJobCores, 2.0, reporter.MetricJobCoresPeak, 7.2))},
	{ruleCPUsUnused, "affinity", findingAll(findingLimits(reporter.Limits{CPUs: 63, AffinityCPUs: 63}), findingSet(reporter.MetricJobCores, 0.0, reporter.MetricJobCoresPeak, 0.01)),
		findingAll(findingLimits(reporter.Limits{CPUs: 64, AffinityCPUs: 64}), findingSet(reporter.MetricJobCores, 0.0, reporter.MetricJobCoresPeak, 0.01))},
	{ruleOneThread, "crowded node, one thread", findingSet(reporter.MetricJobCores, 1.0, reporter.MetricJobCoresPeak, 1.0, reporter.MetricPSICPUSome, 90.0, reporter.MetricJobThreads, 1.0),
		findingSet(reporter.MetricJobCores, 1.0, reporter.MetricJobCoresPeak, 1.0, reporter.MetricPSICPUSome, 20.0, reporter.MetricJobThreads, 2.0)},
	{ruleOneThread, "only other tasks wait", findingSet(reporter.MetricJobCores, 1.0, reporter.MetricJobCoresPeak, 1.0, reporter.MetricPSICPUSome, 90.0, reporter.MetricJobPSICPU, 19.999, reporter.MetricJobThreads, 2.0),
		findingSet(reporter.MetricJobCores, 1.0, reporter.MetricJobCoresPeak, 1.0, reporter.MetricPSICPUSome, 90.0, reporter.MetricJobPSICPU, 20.0, reporter.MetricJobThreads, 2.0)},
	{ruleCPUsUnused, "crowded node", findingSet(reporter.MetricJobCores, 2.0, reporter.MetricJobCoresPeak, 3.0, reporter.MetricPSICPUSome, 19.999), findingSet(reporter.MetricJobCores, 2.0, reporter.MetricJobCoresPeak, 3.0, reporter.MetricPSICPUSome, 20.0)},
	{ruleCPUsUnused, "quota of the whole node", findingAll(findingLimits(reporter.Limits{CPUs: 64, CPUQuota: 64}), findingSet(reporter.MetricJobCores, 20.0, reporter.MetricJobCoresPeak, 30.0)),
		findingAll(findingLimits(reporter.Limits{CPUs: 64, CPUQuota: 64}), findingSet(reporter.MetricJobCores, 20.0, reporter.MetricJobCoresPeak, 30.0, reporter.MetricThrottled, math.NaN()), func(n *reporter.Node) { n.Limits.CPUQuota = 0 })},
	{ruleThrottled, "periods", findingSet(reporter.MetricThrottled, 10.0, reporter.MetricThrottledSeconds, 12.34), findingSet(reporter.MetricThrottled, 9.999, reporter.MetricThrottledSeconds, 12.34)},
	{ruleThrottled, "quota shared with others", findingAll(findingSource(host.JobFromTree), findingSet(reporter.MetricThrottled, 90.0, reporter.MetricJobCores, 0.8, reporter.MetricJobCoresPeak, 7.8)),
		findingAll(findingSource(host.JobFromTree), findingSet(reporter.MetricThrottled, 90.0, reporter.MetricJobCores, 0.79, reporter.MetricJobCoresPeak, 7.8))},
	{ruleThrottled, "throttled and unused CPUs", findingAll(findingLimits(reporter.Limits{CPUs: 4.5, CPUQuota: 4.5}), findingSet(reporter.MetricThrottled, 40.0, reporter.MetricJobCores, 1.3, reporter.MetricJobCoresPeak, 2.0, reporter.MetricThrottledSeconds, math.NaN())),
		findingAll(findingLimits(reporter.Limits{CPUs: 4.5, CPUQuota: 4.5}), findingSet(reporter.MetricThrottled, 0.0, reporter.MetricJobCores, 2.3, reporter.MetricJobCoresPeak, 4.0))},
	{ruleNeighbour, "on CPUs", findingCrowd(50, 20), findingCrowd(50, 19.999)},
	{ruleNeighbour, "a quarter of the CPUs", findingCrowd(37.5, 20), findingCrowd(37.4, 20)},
	{ruleNeighbour, "tasks of the job wait", findingAll(findingCrowd(50, 0), findingSet(reporter.MetricJobPSICPU, 20.0)),
		findingAll(findingCrowd(50, 90), findingSet(reporter.MetricJobPSICPU, 19.0))},
	{ruleNeighbour, "job did not get its CPUs", findingAll(findingCrowd(50, 90), findingSet(reporter.MetricJobCores, 7.19)),
		findingAll(findingCrowd(50, 90), findingSet(reporter.MetricJobCores, 7.2))},
	{ruleNeighbour, "as many threads as allowed CPUs", findingAll(findingCrowd(50, 90), findingSet(reporter.MetricJobThreads, 8.0)),
		findingAll(findingCrowd(50, 90), findingSet(reporter.MetricJobThreads, 9.0))},
	{ruleNeighbour, "more threads than CPUs of the node", findingAll(findingCrowd(100, 90), findingLimits(reporter.Limits{CPUs: 8, AffinityCPUs: 8}), func(n *reporter.Node) { n.Host.CPUs = 8 }, findingSet(reporter.MetricJobThreads, 64.0, reporter.MetricJobCores, 5.0)),
		findingAll(findingCrowd(92, 90), findingLimits(reporter.Limits{CPUs: 8, AffinityCPUs: 8}), func(n *reporter.Node) { n.Host.CPUs = 8 }, findingSet(reporter.MetricJobThreads, 64.0, reporter.MetricJobCores, 5.0))},
	{ruleNeighbour, "another virtual machine", findingSet(reporter.MetricSteal, 10.0), findingSet(reporter.MetricSteal, 9.999)},
	{ruleNeighbour, "memory", findingMemory(40, 5), findingMemory(26, 5)},
	{ruleNeighbour, "waiting for memory", findingMemory(60, 5), findingMemory(60, 4.999)},
	{ruleNeighbour, "memory limit of the job", findingAll(findingMemory(60, 50), findingSet(reporter.MetricLimitMemory, 89.9)),
		findingAll(findingMemory(60, 50), findingSet(reporter.MetricLimitMemory, math.NaN()), func(n *reporter.Node) { delete(n.Summaries, collector.JobMemory.Key()) })},
	{ruleClockedDown, "long throttling", findingSet(reporter.MetricCPUThrottleSeconds, 3.0, reporter.MetricCPUThrottleEvents, 17.0, reporter.MetricCPUTemperature, 97.0),
		findingSet(reporter.MetricCPUThrottleSeconds, 0.59, reporter.MetricCPUThrottleEvents, 17.0, reporter.MetricCPUTemperature, 97.0)},
	{ruleClockedDown, "short throttling", findingSet(reporter.MetricCPUThrottleSeconds, 0.6), findingSet(reporter.MetricCPUThrottleSeconds, 0.0)},
	{ruleClockedDown, "events without times", findingSet(reporter.MetricCPUThrottleEvents, 10.0), findingSet(reporter.MetricCPUThrottleEvents, 9.0)},
	{ruleNetworkFileSystem, "metadata", findingMount(12, 0, 0), findingMount(11.9, 0, 0)},
	{ruleNetworkFileSystem, "reading", findingMount(30, 24, 5), findingMount(30, 24, 4.9)},
	{ruleNetworkFileSystem, "read-ahead not counted", findingMount(36, 24, 0), findingMount(35.9, 24, 0)},
	{ruleNetworkFileSystem, "Lustre", findingLustre(12), findingLustre(11.9)},
	{ruleNetworkFileSystem, "two mounts", findingAll(findingMount(15, 1, 0), findingLustre(45.5)), findingAll(findingMount(2, 1, 0), findingLustre(10.9))},
	{ruleNetworkFileSystem, "job did not use its CPUs", findingAll(findingMount(60, 0, 0), findingSet(reporter.MetricJobCores, 7.19)),
		findingAll(findingMount(60, 0, 0), findingSet(reporter.MetricJobCores, 7.2))},
	{ruleNetworkFileSystem, "threads", findingAll(findingMount(60, 0, 0), findingSet(reporter.MetricJobCores, 4.4, reporter.MetricJobThreads, 5.0)),
		findingAll(findingMount(60, 0, 0), findingSet(reporter.MetricJobCores, 4.5, reporter.MetricJobThreads, 5.0))},
	{ruleSwapping, "amount", func(n *reporter.Node) {
		findingSet(reporter.MetricWall, 10.0, reporter.MetricSwapIn, 24.0, reporter.MetricSwapOut, 40.0)(n)
	},
		findingSet(reporter.MetricWall, 10.0, reporter.MetricSwapIn, 23.9, reporter.MetricSwapOut, 40.0)},
	{ruleSwapping, "rate", findingSet(reporter.MetricWall, 100.0, reporter.MetricSwapIn, 100.0), findingSet(reporter.MetricWall, 100.0, reporter.MetricSwapIn, 99.9)},
	{ruleSwapping, "swap-in unknown", findingSet(reporter.MetricSwapIn, math.NaN(), reporter.MetricSwapOut, 4096.0), findingSet(reporter.MetricSwapIn, math.NaN(), reporter.MetricSwapOut, math.NaN())},
	{ruleMemoryUnused, "job", findingSet(reporter.MetricJobMemoryPeak, 2047.9, reporter.MetricLimitMemory, 10.0), findingSet(reporter.MetricJobMemoryPeak, 2048.0, reporter.MetricLimitMemory, 10.0)},
	{ruleMemoryUnused, "group", findingSet(reporter.MetricJobMemoryPeak, 100.0, reporter.MetricLimitMemory, 24.999), findingSet(reporter.MetricJobMemoryPeak, 100.0, reporter.MetricLimitMemory, 25.0)},
	{ruleMemoryUnused, "6 GiB instead of 64", findingAll(findingLimits(reporter.Limits{CPUs: 8, CPUQuota: 8, MemoryMB: 65536}), findingSet(reporter.MetricJobMemoryPeak, 2800.0, reporter.MetricLimitMemory, math.NaN())),
		findingAll(findingLimits(reporter.Limits{CPUs: 8, CPUQuota: 8}), findingSet(reporter.MetricJobMemoryPeak, 2800.0, reporter.MetricLimitMemory, math.NaN()))},
	{ruleMemoryUnused, "less than the node", func(n *reporter.Node) { n.Limits.MemoryMB = 262143; n.Metrics[reporter.MetricLimitMemory] = 2 },
		func(n *reporter.Node) { n.Limits.MemoryMB = 262144; n.Metrics[reporter.MetricLimitMemory] = 2 }},
	{ruleGPUMemoryFull, "share", findingSet("max_t_gpu_0_memory_used_mb", 76000.0), findingSet("max_t_gpu_0_memory_used_mb", 75999.0)},
	{ruleGPUMemoryFull, "both", findingSet("max_t_gpu_0_memory_used_mb", 78000.0, "max_t_gpu_1_memory_used_mb", 79900.0), func(n *reporter.Node) { n.GPUs = nil }},
	{ruleGPUMemoryFull, "first of two", findingSet("max_t_gpu_0_memory_used_mb", 79000.0, "max_t_gpu_1_memory_used_mb", 78000.0),
		func(n *reporter.Node) { n.GPUs[0].MemoryMB = 0; n.Metrics["max_t_gpu_0_memory_used_mb"] = 79000 }},
	{ruleSamplingGaps, "share", findingSampling(reporter.Sampling{Samples: 27, MissedTicks: 3, LongestGapSeconds: 2}), findingSampling(reporter.Sampling{Samples: 28, MissedTicks: 3, LongestGapSeconds: 2})},
	{ruleSamplingGaps, "count", findingSampling(reporter.Sampling{Samples: 6, MissedTicks: 3}), findingSampling(reporter.Sampling{Samples: 6, MissedTicks: 2})},
	{ruleSamplingGaps, "one gap", findingSampling(reporter.Sampling{Samples: 600, MissedTicks: 60, LongestGapSeconds: 6}), findingSampling(reporter.Sampling{Samples: 600, MissedTicks: 60, LongestGapSeconds: 5.99})},
	{ruleSamplingGaps, "suspended", findingSampling(reporter.Sampling{Samples: 27, MissedTicks: 3, LongestGapSeconds: 7200, Suspends: []reporter.ClockEvent{{Seconds: 7198}}}),
		findingSampling(reporter.Sampling{Samples: 600, MissedTicks: 3, LongestGapSeconds: 7200, Suspends: []reporter.ClockEvent{{Seconds: 7198}}})},
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
	want := []string{"clocked_down", "cpus_unused", "disk_nearly_full", "gpu_idle", "gpu_memory_full", "gpu_starved", "imbalance", "memory_tight", "memory_unused", "neighbour",
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
			numbers, err := json.Marshal(f.Evidence)
			if err != nil {
				t.Fatal(err)
			}
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

// Runs shorter than 5 s have no findings, whatever their numbers.
func TestFindings_NoneForRunsShorterThan5s(t *testing.T) {
	for _, wall := range []float64{5, 4.999, 0, -1, math.NaN(), math.Inf(1)} {
		for _, c := range findingCases {
			n := findingNode()
			c.fires(n)
			n.Metrics[reporter.MetricSwapIn] = 0 // a rate, which depends on the time
			n.Metrics[reporter.MetricWall] = wall
			if got := findings(n, &reporter.Run{WallSeconds: wall}); got == nil || (len(got) > 0) != (wall == 5 && c.id != ruleSwapping) && c.name != "swap-in unknown" {
				t.Errorf("case %s, run of %v s: findings %#v, want a list that is empty unless the run lasts 5 s",
					c.name, wall, got)
			}
		}
	}
}

// Missing values fire no rule, and the list is never nil.
func TestFindings_MissingValuesFireNoRule(t *testing.T) {
	for name, n := range map[string]*reporter.Node{
		"nil": nil, "empty": {}, "within limits": findingNode(), "no metrics": {Host: &reporter.Host{CPUs: 64, MemoryMB: 1}, Limits: &reporter.Limits{CPUs: 8, CPUQuota: 8, MemoryMB: 8192},
			GPUs: []reporter.GPU{{OfJob: true, MemoryMB: 1}}, Sampling: &reporter.Sampling{}},
	} {
		for _, run := range []*reporter.Run{nil, {}, findingRun} {
			if got := findings(n, run); got == nil || len(got) > 0 {
				t.Errorf("node %q, run %+v: findings %#v, want an empty list", name, run, got)
			}
		}
	}
	n := findingNode() // all metrics are NaN
	for name := range n.Metrics {
		n.Metrics[name] = math.NaN()
	}
	if got := findings(n, findingRun); len(got) > 0 {
		t.Errorf("all metrics are NaN: findings %+v, want none", got)
	}
	n = findingNode()
	n.Origin = reporter.OriginPerfPy
	n.Metrics[reporter.MetricDiskPeak] = 99
	if got := findings(n, findingRun); got == nil || len(got) > 0 {
		t.Errorf("node from perf.py: findings %#v, want an empty list", got)
	}
}

// Warnings come first, in the order of the table; the finding on one busy thread replaces the finding on unused CPUs.
func TestFindings_WarningsComeFirst(t *testing.T) {
	n := findingNode()
	for _, c := range findingCases {
		if c.name == "whole node" || c.name == "share" || c.name == "one of two" || c.name == "6 GiB instead of 64" || c.id == ruleSwapping || c.name == "periods" {
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
func findingNodes(change ...func(*reporter.Node)) *reporter.Report {
	r := &reporter.Report{Schema: reporter.Schema, Run: *findingRun, Nodes: make(map[string]*reporter.Node)}
	for i, f := range change {
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

func findingCores(v float64) func(*reporter.Node) {
	return findingAll(findingSet(reporter.MetricJobCores, v, reporter.MetricJobCoresPeak, 7.75))
}

func findingGPUs(v float64) func(*reporter.Node) {
	return findingSet("gpu_0_avg_utilization_pct", v, "gpu_1_avg_utilization_pct", v)
}

var findingNodesCases = []struct {
	name       string
	node       string // the node with the finding
	fires, not []func(*reporter.Node)
}{
	{"CPU", "1", []func(*reporter.Node){findingCores(6), findingCores(1.99), nil}, []func(*reporter.Node){findingCores(6), findingCores(2), findingCores(4)}},
	{"two nodes", "1", []func(*reporter.Node){findingCores(6), findingCores(1.99)}, []func(*reporter.Node){findingCores(6), findingCores(2)}},
	{"little CPU", "0", []func(*reporter.Node){findingCores(0), findingCores(1.2)}, []func(*reporter.Node){findingCores(0), findingCores(0.99)}},
	{"memory", "0", []func(*reporter.Node){findingSet(reporter.MetricJobMemoryPeak, 1600.0), nil}, []func(*reporter.Node){findingSet(reporter.MetricJobMemoryPeak, 1667.0), nil}},
	{"little memory", "0", []func(*reporter.Node){findingSet(reporter.MetricJobMemoryPeak, 100.0), findingSet(reporter.MetricJobMemoryPeak, 1950.0)},
		[]func(*reporter.Node){findingSet(reporter.MetricJobMemoryPeak, 100.0), findingSet(reporter.MetricJobMemoryPeak, 1940.0)}},
	{"GPU", "2", []func(*reporter.Node){nil, nil, findingSet("gpu_0_avg_utilization_pct", 12.0, "gpu_1_avg_utilization_pct", 30.0)},
		[]func(*reporter.Node){nil, nil, findingSet("gpu_0_avg_utilization_pct", 60.0, "gpu_1_avg_utilization_pct", 30.0)}},
	{"little GPU", "0", []func(*reporter.Node){findingGPUs(1), findingGPUs(19.1)}, []func(*reporter.Node){findingGPUs(1), findingGPUs(18.9)}},
	{"all measures", "0", []func(*reporter.Node){findingAll(findingCores(0.25), findingSet(reporter.MetricJobMemoryPeak, 50.0, "gpu_0_avg_utilization_pct", 12.0, "gpu_1_avg_utilization_pct", 12.0)), nil, nil},
		[]func(*reporter.Node){nil, nil, nil}},
	{"equal values, first node", "0", []func(*reporter.Node){findingCores(2), findingCores(2), findingCores(7), findingCores(7)}, []func(*reporter.Node){nil}},
	{"more than the others", "2", []func(*reporter.Node){findingCores(2), findingCores(2), findingCores(3.1)}, []func(*reporter.Node){findingCores(2), findingCores(2), findingCores(3)}},
	{"a little more than the others", "0", []func(*reporter.Node){findingCores(1), findingCores(0.5), findingCores(0.5)}, []func(*reporter.Node){findingCores(0.9), findingCores(0.5), findingCores(0.5)}},
	{"ended early", "1", []func(*reporter.Node){nil, findingAll(findingCores(1.2), findingSet(reporter.MetricWall, 54.0)), nil},
		[]func(*reporter.Node){nil, findingAll(findingCores(1.2), findingSet(reporter.MetricWall, 53.9)), nil}},
	{"run too short", "0", []func(*reporter.Node){findingCores(1.2), nil}, []func(*reporter.Node){findingAll(findingCores(1.2), findingSet(reporter.MetricWall, 4.9)), nil}},
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
	r := findingNodes(findingCores(7), findingAll(findingCores(1.99), findingSet(reporter.MetricThrottled, 50.0)), findingSet(reporter.MetricDiskPeak, 99.0))
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
	addPeerFindings((&reporter.Report{}))
}

// findingReport returns the report of one node, as a run writes it.
func findingReport(node int, cores float64) *reporter.Report {
	in := Input{Input: reportertest.Input(node, 60, 0, "")}
	u := series.Unknown()
	in.Recording.Account.Source = host.JobFromTree
	in.Recording.Account.Limits = host.Limits{CPUs: 8, CPUQuota: 8, MemoryMB: u}
	in.Job.UserSeconds, in.Job.SystemSeconds = cores*60, 0
	return New(in)
}

// The findings of merged reports do not depend on the order and the steps of merging.
func TestMerge_FindingsDoNotDependOnOrder(t *testing.T) {
	node := func(i int) reporter.SourceReport {
		return reporter.SourceReport{Path: fmt.Sprint(i), Report: findingReport(i, []float64{6, 1.9, 7}[i])}
	}
	at := mustMerge(t, node(0), node(1), node(2))
	if got := findingIDs(at.Nodes["1"].Findings); !strings.Contains(got, ruleImbalance) {
		t.Fatalf("node 1 has the findings %s, want imbalance among them", got)
	}
	want := encodedReport(t, at)
	for name, inputs := range map[string][]reporter.SourceReport{
		"in steps":            {{Path: "a", Report: mustMerge(t, node(0), node(1))}, node(2)},
		"in another order":    {node(2), {Path: "a", Report: mustMerge(t, node(1), node(0))}},
		"again, with overlap": {{Path: "a", Report: mustMerge(t, node(2), node(1))}, {Path: "b", Report: mustMerge(t, node(0), node(2))}, node(1)},
	} {
		if diff := cmp.Diff(string(want), string(encodedReport(t, mustMerge(t, inputs...)))); diff != "" {
			t.Errorf("merged %s: reports differ (-want +got):\n%s", name, diff)
		}
	}
}

// The report of a run contains the list of findings, even if it is empty.
func TestNew_ListsFindingsEvenIfEmpty(t *testing.T) {
	short := New(Input{Input: reportertest.Input(0, 3, 0, "")})
	if data := encodedReport(t, short); !bytes.Contains(data, []byte(`"findings": []`)) && !bytes.Contains(data, []byte(`"findings":[]`)) {
		t.Errorf("the report lacks the empty list of findings:\n%s", data)
	}
}

func TestMergedFindings_ReturnsOneForEachID(t *testing.T) {
	thread := findingSet(reporter.MetricJobCores, 1.0, reporter.MetricJobCoresPeak, 1.0)
	whole := findingAll(thread, findingLimits(reporter.Limits{CPUs: 64}))
	full := findingSet(reporter.MetricDiskPeak, 99.0)
	r := findingNodes(whole, findingAll(thread, full), findingCores(1.9), findingAll(thread, full))
	r.Nodes["9"], r.Nodes["8"] = nil, &reporter.Node{Findings: []reporter.Finding{{ID: "later", Severity: SeverityWarning}, {ID: "later", Severity: SeverityInfo}}}
	var got []string
	for _, a := range MergedFindings(r) {
		got = append(got, fmt.Sprint(a.ID, " ", a.Severity, " ", a.Nodes))
	}
	want := []string{"disk_nearly_full warning [1 3]", "one_busy_thread warning [0 1 3]", "imbalance warning [2]", "later warning [8]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("merged findings (-want +got):\n%s", diff)
	}
	if got := MergedFindings((&reporter.Report{})); len(got) > 0 {
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
			n.Job = &reporter.Job{End: reporter.Time{Time: time.Unix(int64(random.IntN(100)), whole())}}
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
				t.Fatalf("text of %s is %q: want 1 to 400 printable bytes without NaN, Inf and formatting errors", a.ID,
					a.Text)
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
	data, err := json.Marshal(findingNodes(findingCores(1), nil))
	if err != nil {
		f.Fatal(err)
	}
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
func judged(id string, change func(*reporter.Node)) (words string, evidence map[string]any) {
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
	for name, c := range map[string]struct {
		id     string
		change func(*reporter.Node)
		want   string
		number string
		value  any
	}{
		"throttled": {ruleThrottled, findingAll(findingSet(reporter.MetricThrottled, 40.0, reporter.MetricThrottledSeconds, 100.0),
			func(n *reporter.Node) { n.Limits.QuotaRange, n.Limits.CPUsRange = limitRange(6, 8), limitRange(6, 8) }),
			"warning: Ask for more CPUs, or run fewer threads: the CPU quota of 6 to 8 CPUs (changed at 12:00:18 UTC) stopped the job in 40 %", "cpu_quota", 6.0},
		"tight": {MemoryTight, findingAll(findingSet(reporter.MetricLimitMemory, 95.0), func(n *reporter.Node) {
			n.Limits.MemoryRange = limitRange(4096, 8192)
			n.Summaries[collector.LimitMemory.Key()] = reporter.Summary{Max: 6000}
		}), "warning: Set the limit to 8 GiB: memory came to 95 % of the limit of 4 GiB to 8 GiB (changed at 12:00:18 UTC) (this is the peak + 25 %, rounded).",
			"peak_mb", 6000.0},
		"memory used at the lowest limit": {ruleMemoryUnused, findingAll(
			findingSet(reporter.MetricJobMemoryPeak, 1500.0, reporter.MetricLimitMemory, 18.0),
			func(n *reporter.Node) { n.Limits.MemoryRange = limitRange(4096, 8192) }), "", "", nil},
		"CPUs used at the lowest limit": {ruleCPUsUnused, findingAll(
			findingSet(reporter.MetricJobCores, 1.3, reporter.MetricJobCoresPeak, 2.0),
			func(n *reporter.Node) { n.Limits.CPUsRange = limitRange(2, 8) }), "", "", nil},
		"CPUs unused": {ruleCPUsUnused, findingAll(
			findingSet(reporter.MetricJobCores, 1.3, reporter.MetricJobCoresPeak, 2.0),
			func(n *reporter.Node) { n.Limits.CPUsRange = limitRange(6, 8) }),
			"warning: Ask for 3 CPUs instead of 6: on average it used 1.3 of its 6 to 8 CPUs, and 2 at most.", "limit_cpus", 6.0},
		"offline CPUs were not chosen": {ruleCPUsUnused, findingAll(
			findingSet(reporter.MetricJobCores, 1.3, reporter.MetricJobCoresPeak, 2.0),
			findingLimits(reporter.Limits{CPUs: 32, AffinityCPUs: 32, CPUsRange: limitRange(32, 64)})), "", "", nil},
	} {
		got, evidence := judged(c.id, c.change)
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) || c.number != "" && evidence[c.number] != c.value {
			t.Errorf("%s: finding %q with evidence %v; want %q and %s = %v", name, got, evidence, c.want, c.number,
				c.value)
		}
	}
}

// A job that bound itself to fewer CPUs than it was given is advised about the given CPUs.
func TestFindings_AdviseBoundJobsOnGivenCPUs(t *testing.T) {
	one := findingSet(reporter.MetricJobCores, 0.97, reporter.MetricJobCoresPeak, 1.0)
	for name, c := range map[string]struct {
		id     string
		change func(*reporter.Node)
		want   string
	}{
		"bound to one of the requested CPUs": {ruleOneThread,
			findingAll(one, findingLimits(reporter.Limits{CPUs: 1, CPUQuota: 8, AffinityCPUs: 1, GivenCPUs: 8})),
			"warning: Use the other CPUs, or ask for 1 CPU: it used 0.97 of the 8 CPUs it was given, of which it bound itself to 1."},
		"bound to one CPU of the node": {ruleOneThread,
			findingAll(one, findingLimits(reporter.Limits{CPUs: 1, AffinityCPUs: 1, GivenCPUs: 64})), ""},
		"bound to four of eight CPUs": {ruleCPUsUnused, findingAll(
			findingSet(reporter.MetricJobCores, 3.8, reporter.MetricJobCoresPeak, 4.0),
			findingLimits(reporter.Limits{CPUs: 4, CPUQuota: 8, AffinityCPUs: 4, GivenCPUs: 8})),
			"warning: Ask for 4 CPUs instead of 8: on average it used 3.8 of the 8 CPUs it was given, of which it bound itself " +
				"to 4, and 4 at most."},
		"quota set by the job": {ruleThrottled, findingAll(
			findingSet(reporter.MetricThrottled, 40.0, reporter.MetricThrottledSeconds, 100.0, reporter.MetricJobCores, 1.9),
			findingLimits(reporter.Limits{CPUs: 2, CPUQuota: 2, GivenCPUs: 64})),
			"warning: Raise the quota, or run fewer threads: the job was given 64 CPUs, and the CPU quota of 2 CPUs stopped the " +
				"job in 40 % of its periods, for 1 min 40 s summed over CPUs."},
	} {
		if got, _ := judged(c.id, c.change); got != c.want {
			t.Errorf("%s: finding %q, want %q", name, got, c.want)
		}
	}
}
