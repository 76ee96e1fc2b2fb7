package reporter_test

import (
	"slices"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/reporter"
)

func TestMetric_HasExpectedGroup(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]reporter.Group{
		"wall_seconds": reporter.GroupJob, "max_t_job_cpu_cores": reporter.GroupJob, "total_job_io_read_mb": reporter.GroupJob,
		"job_throttled_periods_pct": reporter.GroupLimits, "max_t_limit_memory_pct": reporter.GroupLimits,
		"gpu_1_energy_joules": reporter.GroupGPU, "max_t_gpu_0_power_watts": reporter.GroupGPU,
		"node_cpu_hours": reporter.GroupNode, "host_oom_kills": reporter.GroupNode,
		"boot_total_disk_io_read_mb": reporter.GroupBoot,
	} {
		if m, ok := reporter.MetricByName(name); !ok || m.Group != want {
			t.Errorf("%s is in %q (found: %v), want %q", name, m.Group, ok, want)
		}
	}
	phase, _ := reporter.PhaseMetric("phase.train.job_cpu_seconds")
	work, _ := reporter.OperationMetric("op.get.count")
	check.Equal(t, []reporter.Group{phase.Group, work.Group},
		[]reporter.Group{reporter.GroupPhases, reporter.GroupOperations},
		"groups of the metrics of a phase and of an operation")
	for _, m := range slices.Concat(reporter.Metrics(), reporter.GPUMetrics()) {
		if !slices.Contains(reporter.Groups(), m.Group) {
			t.Errorf("%s is in %q, want one of %q", m.Name, m.Group, reporter.Groups())
		}
	}
}
