package comparer

import (
	"strings"
	"testing"

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
		m, ok := Compare(side, side).Metric(name)
		if !ok || m.A == nil || *m.A != want {
			t.Errorf("metric %s: found %v, value %s, want %v", name, ok, written(m.A), want)
		}
	}
}

// The metrics of GPUs are compared if there are GPUs, and a gate may name them.
func TestCompare_OmitsGPUMetricsWithoutGPUs(t *testing.T) {
	g, err := ParseGate("max_t_gpu_0_memory_used_mb > 5")
	if err != nil {
		t.Fatal(err)
	}
	side := wideSide("a", reporter.Values{"max_t_gpu_0_memory_used_mb": 6})
	c := Compare(side, side)
	if len(c.Metrics) != len(everywhere())+len(reporter.GPUMetrics()) {
		t.Errorf("%d metrics are compared, want %d including GPU metrics", len(c.Metrics),
			len(everywhere())+len(reporter.GPUMetrics()))
	}
	if v := c.CheckGate(g); v.Fired == nil || !*v.Fired {
		t.Errorf("gate on a GPU: %+v, want it to fire", v)
	}
	none := sideOf("a", cpuMetric, 1)
	c = Compare(none, none)
	if len(c.Metrics) != len(everywhere()) {
		t.Errorf("%d metrics are compared, want %d without GPU metrics", len(c.Metrics), len(everywhere()))
	}
	if v := c.CheckGate(g); v.Fired != nil || !strings.Contains(v.Reason, "no node of A or B has that GPU") {
		t.Errorf("gate on a GPU that no node has: %+v, want no result, and a reason", v)
	}
	for _, bad := range []string{"gpu_16_energy_joules > 1", "gpu_{i}_energy_joules > 1", "gpu_00_energy_joules > 1", "gpu_0_nothing > 1"} {
		if _, err := ParseGate(bad); err == nil {
			t.Errorf("ParseGate(%s) succeeded, want an error", bad)
		}
	}
}
