package plottertest

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// Limited returns the report of a job in a container with limits. The job takes the given number of seconds. Its node
// has the given number of GPUs, and the first half of them belong to the job.
func Limited(node, seconds, gpus int) *reporter.Report {
	rec := Recording(0, time.Second, nil)
	rec.EnsureColumn(collector.NumColumns - 1)
	rec.EnsureGPUColumns(gpus)
	rec.Account = collector.NoAccount()
	rec.Account.Source, rec.Account.Group, rec.Account.MemoryKind = host.JobFromGroup, "/docker/3f5a", host.MemoryGroup
	rec.Account.Limits = host.Limits{
		CPUs:         2,
		CPUQuota:     2,
		CPUSetCPUs:   8,
		AffinityCPUs: 8,
		MemoryMB:     1024,
		CPUGroup:     "/docker/3f5a",
		MemoryGroup:  "/docker",
	}

	rec.Account.CPUSeconds, rec.Account.Periods, rec.Account.ThrottledPeriods, rec.Account.ThrottledSeconds = 90, 600, 186, 12.1
	for i := range gpus {
		rec.GPUs = append(
			rec.GPUs,
			collector.GPU{
				Device: gpu.Device{
					Index:           i,
					UUID:            "GPU-" + strings.Repeat("0a", 16),
					Name:            "NVIDIA A100-SXM4-40GB",
					MemoryMB:        40960,
					PowerLimitWatts: 400,
				},
				OfJob:        i < (gpus+1)/2,
				ClockMHz:     1410,
				EnergyJoules: 15_000,
				Throttle:     []string{"sw_power_cap"},
			},
		)
	}

	for i := range seconds {
		s := limitedSample(i, node, gpus)
		rec.Add(&s)
		end := time.Duration(i+1) * time.Second
		rec.End.Mono, rec.End.Boot, rec.End.Wall = end, end, Start().Add(end)
	}

	r := Report(node, rec)
	n := r.Nodes[strconv.Itoa(node)]
	n.Verdict = &reporter.Verdict{
		Cause:      diagnosis.CauseOOMCgroup,
		Text:       "out of memory: the group /docker reached its limit of 1.0 GiB",
		Evidence:   map[string]any{"exit_code": 137.0},
		Conditions: []string{"throttled"},
	}

	n.Findings = []reporter.Finding{
		{
			ID:       "memory_tight",
			Severity: diagnosis.SeverityWarning,
			Text:     "The job reached 97 % of its memory limit: ask for 1.5 GiB instead of 1 GiB.",
		},
		{
			ID:       "throttled",
			Severity: diagnosis.SeverityInfo,
			Text:     "The CPU quota stopped the job in 31 % of the periods: ask for 3 CPUs instead of 2.",
		}}

	r.Run.Verdict = n.Verdict
	return r
}

// limitedSample returns the sample of second i of the job.
func limitedSample(i, node, gpus int) collector.Sample {
	var s collector.Sample
	for c := range s.Values {
		s.Values[c], s.Weights[c] = math.NaN(), 1
	}

	s.Values[collector.Timestamp] = float64(Start().Unix() + int64(i) + 1)
	Set(&s, i, float64((i*7+node*13)%40)+10, 20+float64(i%50)/4, float64(i%9)*1.5)
	wave := 0.5 + 0.5*math.Sin(float64(i)/9+float64(node))
	for c, v := range map[collector.Column]float64{
		collector.JobCPU:             0.5 + 1.5*wave,
		collector.JobMemory:          300 + 650*wave,
		collector.JobProcesses:       4,
		collector.JobThreads:         12 + float64(i%3),
		collector.JobRead:            float64(i),
		collector.JobWrite:           float64(2 * i),
		collector.JobReadRate:        1,
		collector.JobReadCalls:       float64(i),
		collector.JobWriteCalls:      0,
		collector.JobReadCallsRate:   1,
		collector.JobWriteCallsRate:  0,
		collector.JobWriteRate:       2 + wave,
		collector.JobPageCache:       120 * wave,
		collector.JobMemorySwap:      40 * wave,
		collector.JobMemoryAnon:      190 + 390*wave,
		collector.JobMemoryFile:      120 * wave,
		collector.JobMemoryShmem:     90 + 230*wave,
		collector.JobMemoryKernel:    20,
		collector.JobThrottled:       31,
		collector.LimitMemory:        320 + 660*wave,
		collector.LimitMemoryPercent: 31 + 64*wave,
		collector.CPUIowait:          wave,
		collector.CPUSteal:           0,
		collector.Load1:              3,
		collector.ProcsRunning:       4,
		collector.PSICPUSome:         40 * wave,
		collector.PSIMemorySome:      3 * wave,
		collector.PSIMemoryFull:      2 * wave,
		collector.PSIIOSome:          22 * wave,
		collector.PSIIOFull:          15 * wave,
		collector.JobPSICPUSome:      60 * wave,
		collector.JobPSICPUFull:      50 * wave,
		collector.JobPSIMemorySome:   6 * wave,
		collector.JobPSIMemoryFull:   5 * wave,
		collector.JobPSIIOSome:       12 * wave,
		collector.JobPSIIOFull:       9 * wave,
		collector.CPUTemperature:     50 + 30*wave,
		collector.CPUThrottleEvents:  float64(i / 20),
		collector.CPUThrottleSeconds: float64(i/20) / 4,
		collector.NodeEnergy:         80 * float64(i+1),
		collector.NodePower:          60 + 40*wave,
	} {
		s.Values[c] = v
	}

	for g := range gpus {
		busy := 0.5 + 0.5*math.Sin(float64(i)/6+float64(g))
		s.Values[collector.GPUColumn(g, collector.GPUUtilization)] = math.Round(100 * busy)
		s.Values[collector.GPUColumn(g, collector.GPUMemoryUsed)] = 1024 * float64(g+2)
		s.Values[collector.GPUColumn(g, collector.GPUPower)] = 60 + 300*busy
		s.Values[collector.GPUColumn(g, collector.GPUTemperature)] = 40 + 20*busy
	}

	return s
}

// OperationCharts returns the operation charts in their order. They follow the GPU charts.
func OperationCharts() []string {
	return []string{"operations", "operation_time", "counters", "gauges", "transfers"}
}

// AllCharts returns all charts that a job without operations can have, in their order.
func AllCharts() []string {
	return slices.Concat([]string{"cpu", "memory", "memory_parts"}, GPUCharts(), []string{"disk_io", "network", "disk_space", "pressure",
		"network_file_systems", "node_power", "cpu_temperature"})
}

// GPUCharts returns the GPU charts.
func GPUCharts() []string {
	return []string{"gpu_utilization", "gpu_memory", "gpu_power", "gpu_temperature"}
}

// LimitedNodes returns a report of four nodes: one without GPUs, one with two, the node of Minute, and one with 16
// GPUs.
func LimitedNodes() *reporter.Report {
	r := Limited(0, 60, 0)
	r.Nodes["1"] = Limited(1, 60, 2).Nodes["1"]
	r.Nodes["2"] = Minute(2).Nodes["2"]
	r.Nodes["3"] = Limited(3, 60, collector.MaxGPUs).Nodes["3"]
	return r
}

// HostCharts returns the charts that every node has.
func HostCharts() []string { return []string{"cpu", "memory", "disk_io", "network", "disk_space"} }
