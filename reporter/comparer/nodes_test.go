package comparer

import (
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/reporter"
)

// wideSide returns a side with one run on two nodes. Both nodes have the given values, and the second has a GPU.
func wideSide(name string, values reporter.Values) Side {
	bare, with := runAt(name, 0, values), runAt(name, 0, values)
	n := *with.Report.Nodes["0"]
	n.GPUs = []reporter.GPU{{Index: 4}}
	with.Report.Nodes["1"] = &n
	with.Report.Nodes["0"] = bare.Report.Nodes["0"]
	return Side{Name: name, Reports: []reporter.SourceReport{with}}
}

// Across the nodes of a run, amounts are added, peaks are not, and shares are averaged.
func TestCompare_CombinesNodesOfARun(t *testing.T) {
	tests := map[string]float64{ // wanted value if both nodes have 3
		"job_cpu_seconds": 6, "job_avg_cpu_cores": 6, "job_throttled_seconds": 6, "job_oom_kills": 6, "host_oom_kills": 6,
		"total_job_io_read_mb": 6, "total_swap_in_mb": 6, "gpu_0_energy_joules": 6,
		"job_peak_memory_mb": 3, "max_t_job_cpu_cores": 3, "max_t_limit_memory_pct": 3, "max_t_gpu_0_power_watts": 3,
		"limit_cpu_utilization_pct": 3, "job_throttled_periods_pct": 3, "psi_io_full_avg_pct": 3, "job_psi_io_full_avg_pct": 3,
		"cpu_avg_iowait_pct": 3, "gpu_0_avg_utilization_pct": 3,
	}
	for name, want := range tests {
		side := wideSide("a", reporter.Values{name: 3})
		wantMedian(t, Compare(side, side), name, want)
	}
}

// The metrics of GPUs are compared if there are GPUs, and a gate may name them.
func TestCompare_OmitsGPUMetricsWithoutGPUs(t *testing.T) {
	g := gateOf(t, "max_t_gpu_0_memory_used_mb > 5")
	side := wideSide("a", reporter.Values{"max_t_gpu_0_memory_used_mb": 6})
	c := Compare(side, side)
	check.Equal(t, len(c.Metrics), len(everywhere())+len(reporter.GPUMetrics()), "number of metrics of a node with GPUs")
	wantGate(t, c, g, "true", "")
	none := sideOf("a", cpuMetric, 1)
	c = Compare(none, none)
	check.Equal(t, len(c.Metrics), len(everywhere()), "number of metrics of a node without GPUs")
	wantGate(t, c, g, "null", "no node of A or B has that GPU")
	wantGates(t, nil, map[string]string{"gpu_16_energy_joules > 1": "", "gpu_{i}_energy_joules > 1": "", "gpu_00_energy_joules > 1": "", "gpu_0_nothing > 1": ""})
}
