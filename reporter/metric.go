package reporter

import (
	"errors"
	"slices"

	"github.com/perfagent/perfagent/collector"
)

// Metric is one row of the table of metrics.
type Metric struct {
	Name    string         `json:"name"`
	Label   string         `json:"-"` // the name in human-readable tables: "peak memory"
	Group   Group          `json:"-"`
	Unit    collector.Unit `json:"unit"`
	Meaning string         `json:"meaning"`
	How     string         `json:"how"` // how it is computed
	// PerfPy reports that perf.py also has the metric, which is true of the first 18.
	PerfPy bool `json:"perf_py"`

	// Aggregation is the function that combines the values of several nodes into the value of a run. 0 means that
	// the metric has no meaning for a run, and is not compared.
	Aggregation collector.Aggregation `json:"-"`

	// Phase is the name of the phase that the metric describes, and Number is the name of the number in the phase: see
	// [PhaseMetric]. Both are "" for a metric of the run.
	Phase  string `json:"-"`
	Number string `json:"-"`

	// Kind and Series identify the series of operations that the metric describes, and Number is the name of the number
	// in the series: see [OperationMetric]. Kind and Series are "" for all other metrics.
	Kind   OperationKind `json:"-"`
	Series string        `json:"-"`
	row    *OperationNumber

	value func(*facts) (float64, error)
	// column is the column that the value is computed from, or a column that is absent for the same reason; noColumn if
	// there is none.
	column  collector.Column
	isTotal bool // the total of a counter
	// inPhases reports whether the value makes sense for a part of the run, and can be computed from the data of
	// a phase.
	inPhases bool
}

// A Group is the heading under which a metric is listed.
type Group string

// The groups of metrics. Metrics without a more specific group are in GroupNode.
const (
	GroupJob        Group = "Job"
	GroupLimits     Group = "Limits"
	GroupPhases     Group = "Phases"
	GroupOperations Group = "Operations"
	GroupGPU        Group = "GPU"
	GroupNode       Group = "Node"
	GroupBoot       Group = "Since boot"
)

// Groups returns the groups in the order of all human-readable lists of metrics.
func Groups() []Group {
	return []Group{GroupJob, GroupLimits, GroupPhases, GroupOperations, GroupGPU, GroupNode, GroupBoot}
}

// ByGroup compares two metrics by the order of their groups.
func ByGroup(a, b Metric) int {
	groups := Groups()
	return slices.Index(groups, a.Group) - slices.Index(groups, b.Group)
}

const noColumn = collector.Column(-1)

// groupOf returns the group of a metric that is computed from column c.
func groupOf(c collector.Column) Group {
	if c != noColumn && c.Info().Scope == collector.ScopeJob {
		return GroupJob
	}
	return GroupNode
}

// withGroup returns the metric with the given group, unit and aggregation.
func (m Metric) withGroup(group Group, unit collector.Unit, across collector.Aggregation) Metric {
	m.Group, m.Unit, m.Aggregation = group, unit, across
	return m
}

// Column returns the column that the metric is computed from, or a column that is absent for the same reasons. It
// returns false if there is none.
func (m *Metric) Column() (c collector.Column, ok bool) { return m.column, m.column != noColumn }

// IsTotal reports whether the metric is the total of a counter since the start.
func (m *Metric) IsTotal() bool { return m.isTotal }

// OfDevice reports whether only nodes with a certain device have the metric.
func (m *Metric) OfDevice() bool {
	return m.column != noColumn && m.column.Info().Scope == collector.ScopeDevice
}

// OfJob reports whether the metric describes the job, and not its host.
func (m *Metric) OfJob() bool { return m.Group == GroupJob || m.Group == GroupLimits }

// TotalMetricName returns the name of the metric that is the total of counter c; "" if there is none.
func TotalMetricName(c collector.Column) string {
	for i := range metricTable {
		if m := &metricTable[i]; m.isTotal && m.column == c {
			return m.Name
		}
	}
	return ""
}

// row returns m with its name, label, meaning and computation.
func row(name, label string, m Metric, meaning, how string) Metric {
	m.Name, m.Label, m.Meaning, m.How = name, label, meaning, how
	return m
}

// sinceBoot returns the row for the given counter since boot.
func sinceBoot(name, meaning string, counter collector.Column) Metric {
	return row(name, counter.Info().Short+" since boot", bootOf(counter), meaning+" since boot",
		"the kernel's counters at the end, same devices as the total")
}

// numPerfPy is the number of perf.py's metrics. They are the first in the table.
const numPerfPy = 18

// withPerfPy marks the first numPerfPy rows as perf.py's.
func withPerfPy(rows ...Metric) []Metric {
	for i := range numPerfPy {
		rows[i].PerfPy = true
	}
	return rows
}

// Metrics returns the table of metrics, in the order of output: perf.py's 18, the exact metrics of the job, the
// counters since boot, and others. The caller must not modify it.
func Metrics() []Metric { return metricTable }

// MetricByName returns the metric with the given name, which may be a metric of one GPU: gpu_0_energy_joules.
func MetricByName(name string) (Metric, bool) {
	for _, m := range metricTable {
		if m.Name == name {
			return m, true
		}
	}
	m, ok := gpuMetricsByName()[name]
	return m, ok
}

// Names of metrics that programs look up in the table.
const (
	MetricCPUPeak         = "max_t_cpu_pct_per_cpu_avg"
	MetricCPUMean         = "cpu_avg_utilization_pct"
	MetricCPUOver80       = "cpu_avg_utilization_over80_pct"
	MetricCPUHours        = "node_cpu_hours"
	MetricUnusedCPUHours  = "node_unused_cpu_hours"
	MetricMemoryPeak      = "max_t_mem_percent"
	MetricDiskPeak        = "max_t_disk_usage_percent"
	MetricDiskRead        = "total_disk_io_read_mb"
	MetricDiskWritten     = "total_disk_io_write_mb"
	MetricNetworkSent     = "total_net_io_ext_sent_mb"
	MetricNetworkReceived = "total_net_io_ext_recv_mb"
	MetricWall            = "wall_seconds"
	MetricJobMaxRSS       = "job_max_rss_mb"

	MetricJobCPU           = "job_cpu_seconds"
	MetricJobCores         = "job_avg_cpu_cores"
	MetricJobCoresPeak     = "max_t_job_cpu_cores"
	MetricJobMemoryPeak    = "job_peak_memory_mb"
	MetricJobProcesses     = "max_t_job_processes"
	MetricJobThreads       = "max_t_job_threads"
	MetricJobRead          = "total_job_io_read_mb"
	MetricJobWritten       = "total_job_io_write_mb"
	MetricThrottled        = "job_throttled_periods_pct"
	MetricThrottledSeconds = "job_throttled_seconds"
	MetricLimitMemory      = "max_t_limit_memory_pct"
	MetricLimitCPU         = "limit_cpu_utilization_pct"
	MetricIOWait           = "cpu_avg_iowait_pct"
	MetricSteal            = "cpu_avg_steal_pct"
	MetricSwapIn           = "total_swap_in_mb"
	MetricSwapOut          = "total_swap_out_mb"
	MetricJobOOMKills      = "job_oom_kills"
	MetricHostOOMKills     = "host_oom_kills"
	MetricPSIMemoryFull    = "psi_memory_full_avg_pct"
	MetricPSIIOFull        = "psi_io_full_avg_pct"
	MetricPSICPUSome       = "psi_cpu_some_avg_pct"
	MetricJobPSICPU        = "job_psi_cpu_some_avg_pct"
	MetricJobPSIMemory     = "job_psi_memory_full_avg_pct"
	MetricJobPSIIO         = "job_psi_io_full_avg_pct"

	MetricCPUTemperature     = "max_t_cpu_temperature_celsius"
	MetricCPUThrottleEvents  = "total_cpu_throttle_events"
	MetricCPUThrottleSeconds = "total_cpu_throttle_seconds"
	MetricNodeEnergy         = "node_energy_joules"

	// Metrics of each GPU: see [GPUMetrics].
	MetricGPUUtilization = "gpu_{i}_avg_utilization_pct"
	MetricGPUMemoryPeak  = "max_t_gpu_{i}_memory_used_mb"
	MetricGPUPowerPeak   = "max_t_gpu_{i}_power_watts"
)

// errNoDevice is the error for a device that the node does not have.
var errNoDevice = errors.New("there is no such device")
