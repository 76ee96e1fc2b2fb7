package summary

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// barNode returns a node with a job that used 1.44 of 4 CPUs, 2.7 of 8 GiB, and 4 GPUs.
func barNode() *reporter.Node {
	n := &reporter.Node{
		Host: &reporter.Host{CPUs: 64, MemoryMB: 262144}, Job: &reporter.Job{},
		Limits: &reporter.Limits{CPUs: 4, MemoryMB: 8192},
		Metrics: reporter.Values{
			reporter.MetricJobCores: 1.44, reporter.MetricJobMemoryPeak: 2785, reporter.MetricCPUMean: 99,
			reporter.MetricMemoryPeak: 98, reporter.MetricLimitMemory: 97,
		},
	}
	for i, busy := range []float64{100, 100, 32, 0} {
		n.GPUs = append(n.GPUs, reporter.GPU{Index: i, MemoryMB: 81920, OfJob: true})
		n.Metrics[reporter.GPUMetricName(reporter.MetricGPUUtilization, i)] = busy
		n.Metrics[reporter.GPUMetricName(reporter.MetricGPUMemoryPeak, i)] = 76186
	}
	n.GPUs = append(n.GPUs, reporter.GPU{Index: 4, MemoryMB: 81920}) // of another job
	n.Metrics[reporter.GPUMetricName(reporter.MetricGPUUtilization, 4)] = 100
	return n
}

func barReport(nodes ...*reporter.Node) *reporter.Report {
	r := &reporter.Report{Run: reporter.Run{Command: []string{"train"}}, Nodes: make(map[string]*reporter.Node)}
	for i, n := range nodes {
		r.Nodes[fmt.Sprint(i)] = n
	}
	return r
}

func barText(r *reporter.Report) string {
	var out []string
	for _, b := range Bars(r) {
		out = append(out, fmt.Sprintf("%s %s %s %s", b.Key, b.Picture(), b.Share(), b.CapacityText()))
	}
	return strings.Join(out, "\n")
}

func TestBars(t *testing.T) {
	t.Parallel()
	const gpus = "\ngpu █████▊···· 58 % of 4 GPUs\ngpu_memory █████████▎ 93 % of 320 GiB"
	with := func(change func(*reporter.Node)) *reporter.Report {
		n := barNode()
		change(n)
		return barReport(n)
	}
	for name, c := range map[string]struct {
		report *reporter.Report
		want   string
	}{
		"job on a larger node": {barReport(barNode()),
			"cpu ███▌······ 36 % of 4 CPUs\nmemory ███▍······ 34 % of 8.0 GiB" + gpus},
		"no memory limit": {with(func(n *reporter.Node) { n.Limits.MemoryMB, n.GPUs = series.Unknown(), nil }),
			"cpu ███▌······ 36 % of 4 CPUs\nmemory ▏········· 1 % of 256 GiB"},
		"memory limit above the node's memory": {with(func(n *reporter.Node) { n.Limits.MemoryMB, n.GPUs = 1<<30, nil }),
			"cpu ███▌······ 36 % of 4 CPUs\nmemory ▏········· 1 % of 256 GiB"},
		"killed at the limit between two samples": {with(func(n *reporter.Node) {
			n.GPUs = nil
			n.Verdict = &reporter.Verdict{Cause: "oom_cgroup", Evidence: map[string]any{"limit_mb": 8192.0, "peak_mb": 8192.0}}
		}), "cpu ███▌······ 36 % of 4 CPUs\nmemory ██████████ 100 % of 8.0 GiB"},
		"unmeasured memory and one GPU": {with(func(n *reporter.Node) {
			delete(n.Metrics, reporter.MetricJobMemoryPeak)
			n.GPUs = n.GPUs[3:]
			n.Metrics[reporter.GPUMetricName(reporter.MetricGPUUtilization, 0)] = 0.2
			n.GPUs[0].MemoryMB = series.Unknown()
		}), "cpu ███▌······ 36 % of 4 CPUs\ngpu ▏········· <1 % of 1 GPU"},
		"sidecar": {&reporter.Report{Nodes: map[string]*reporter.Node{"0": {
			Host: &reporter.Host{CPUs: 1, MemoryMB: 1024}, Metrics: reporter.Values{
				reporter.MetricCPUMean: 50, reporter.MetricMemoryPeak: 25},
		}}}, "cpu █████····· 50 % of 1 CPU\nmemory ██▌······· 25 % of 1.0 GiB"},
		"changed limits": {with(func(n *reporter.Node) {
			n.GPUs, n.Limits.CPUs, n.Limits.MemoryMB = nil, .5, 2048
			n.Limits.CPUsRange = &reporter.LimitRange{Min: .5, Max: 4, Mean: 3.6, Changes: 1}
			n.Limits.MemoryRange = &reporter.LimitRange{Min: 2048, Max: 4096, Changes: 1}
			n.Metrics[reporter.MetricLimitMemory] = 68
		}), "cpu ████······ 40 % of 0.5 to 4 CPUs\nmemory ██████▊··· 68 % of 2.0 GiB to 4.0 GiB"},
		"removed memory limit": {with(func(n *reporter.Node) {
			n.GPUs, n.Limits.MemoryMB = nil, series.Unknown()
			n.Limits.MemoryRange = &reporter.LimitRange{Min: 2785, Max: series.Unknown(), Changes: 1}
			n.Metrics[reporter.MetricLimitMemory] = 100
		}), "cpu ███▌······ 36 % of 4 CPUs\nmemory ██████████ 100 % of 2.7 GiB to no limit"},
		"more than the capacity": {with(func(n *reporter.Node) {
			n.Limits.CPUs, n.GPUs, n.Metrics[reporter.MetricJobMemoryPeak] = 1, nil, 0
		}), "cpu ██████████ 144 % of 1 CPU"},
		"two nodes": {barReport(barNode(), with(func(n *reporter.Node) {
			n.Metrics[reporter.MetricJobMemoryPeak], n.GPUs = 8192, nil
		}).Nodes["0"]),
			"cpu ███▌······ 36 % of 8 CPUs\nmemory ██████████ 100 % of 8.0 GiB on node 1\n" +
				"gpu █████▊···· 58 % of 4 GPUs on 1 of 2 nodes\n" +
				"gpu_memory █████████▎ 93 % of 320 GiB on 1 of 2 nodes"},
		"nothing measured": {barReport(nil, &reporter.Node{}), ""},
	} {
		check.Equal(t, barText(c.report), c.want, "%s: bars", name)
	}
}

// The bars have the numbers that the overview shows.
func TestBars_HaveNumbersForOverview(t *testing.T) {
	t.Parallel()
	bars := Bars(barReport(barNode(), barNode()))
	cpu, memory, gpu := bars[0], bars[1], bars[2]
	wantValues(t, "used and capacity of CPUs, memory and GPUs, percentage of CPUs", "2.88 8 2785 8192 NaN 8 36",
		cpu.Used, cpu.Of, memory.Used, memory.Of, gpu.Used, gpu.Of, text.Round(cpu.Percent, 9))
	for name, r := range reportertest.Golden() {
		for _, b := range Bars(r) {
			if math.IsNaN(b.Percent) || math.IsInf(b.Percent, 0) || b.Of <= 0 {
				t.Errorf("%s: bar %+v, want a finite percentage of a capacity above 0", name, b)
			}
		}
	}
}

// The bar of full memory has the color of alarms, even if it is drawn in ASCII.
func TestWrite_ColorMarksFullMemory(t *testing.T) {
	t.Parallel()
	n := barNode()
	n.Metrics[reporter.MetricJobMemoryPeak], n.Metrics[reporter.MetricJobCores] = 8100, 0.5
	words := summaryOf(t, barReport(n), Options{Color: true, ASCII: true})
	check.Contains(t, "summary", words,
		"\x1b[34m#.........\x1b[0m  12 %  of 4 CPUs (mean)\n",
		"\x1b[1;31m##########\x1b[0m  99 %  of 8.0 GiB, peak 7.9 GiB\n",
		"\x1b[34m######....\x1b[0m  58 %  of 4 GPUs (mean)\n")
}
