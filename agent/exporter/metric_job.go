package exporter

import (
	"math"
	"strconv"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/series"
)

// ofAccount returns the metric of a value from the job's account, multiplied by scale.
func ofAccount(name, kind, help string, scale float64, value func(*collector.Account) series.Optional) Metric {
	return singleMetric(name, kind, help, func(f *metricInput) float64 { return float64(value(&f.account)) * scale })
}

// byResource returns a metric of stalls from the job's account, with a line for each resource.
func byResource(name, help string, stalls func(*collector.Account) [3]series.Optional) Metric {
	return Metric{
		Name: name, Type: counter, Label: "resource", Help: help + sinceThen,
		write: func(x *exposition, m *Metric, f *metricInput) {
			for k, v := range stalls(&f.account) {
				x.series(m, [...]string{"cpu", "memory", "io"}[k], float64(v))
			}
		},
	}
}

// byGPU returns a metric with a line for each GPU.
func byGPU(name, kind, help string, value func(f *metricInput, i int, g *collector.GPU) float64) Metric {
	return Metric{
		Name: name, Type: kind, Label: "gpu, uuid, name", Help: help,
		write: func(x *exposition, m *Metric, f *metricInput) {
			for i := range f.gpus {
				g := &f.gpus[i]
				x.labelled(m, gpuLabels(i, g), value(f, i, g))
			}
		},
	}
}

// jobMetrics returns the metrics of the job, its limits, and its contention for resources that are not columns.
// "Waiting" is the kernel's "some" (PSI), the time in which at least one task waited. "Stalled" is "full", the time in
// which all tasks waited.
func jobMetrics() []Metric {
	type account = collector.Account
	type optional = series.Optional
	const counters = " of the control group that sets the CPU quota" + sinceThen
	return []Metric{
		{
			Name: "perfagent_job_info", Type: gauge, Label: "source, memory_kind", write: jobInfo,
			Help: "always 1; the labels are the source of the job's numbers and how its memory is counted",
		},
		ofAccount("perfagent_job_cpu_seconds_total", counter, "CPU time of the job"+sinceThen, 1,
			func(a *account) optional { return a.CPUSeconds }),
		singleMetric("perfagent_job_cpu_limit_cpus", gauge,
			"CPUs that the job may use: the minimum of quota, cpuset and affinity", cpuLimit),
		ofAccount("perfagent_job_cpu_periods_total", counter, "periods"+counters, 1,
			func(a *account) optional { return a.Periods }),
		ofAccount("perfagent_job_cpu_throttled_periods_total", counter, "throttled periods"+counters, 1,
			func(a *account) optional { return a.ThrottledPeriods }),
		ofAccount("perfagent_job_cpu_throttled_seconds_total", counter, "throttled time, summed over CPUs,"+counters, 1,
			func(a *account) optional { return a.ThrottledSeconds }),
		ofAccount("perfagent_job_memory_limit_bytes", gauge,
			"memory that the job may use: the lowest limit of its control groups", collector.MiB,
			func(a *account) optional { return a.Limits.MemoryMB }),
		ofAccount("perfagent_job_oom_kills_total", counter,
			"out-of-memory kills in the job's control group"+sinceThen, 1,
			func(a *account) optional { return a.OOMKills }),
		byResource("perfagent_job_pressure_waiting_seconds_total",
			"time in which any task in the job's control group waited for a resource",
			func(a *account) [3]optional { return someStalls(a.JobStall) }),
		byResource("perfagent_job_pressure_stalled_seconds_total",
			"time in which all tasks in the job's control group waited for a resource",
			func(a *account) [3]optional { return fullStalls(a.JobStall) }),
		byResource("perfagent_pressure_waiting_seconds_total",
			"time in which any task on the node waited for a resource",
			func(a *account) [3]optional { return someStalls(a.HostStall) }),
		byResource("perfagent_pressure_stalled_seconds_total",
			"time in which all tasks on the node waited for a resource",
			func(a *account) [3]optional { return fullStalls(a.HostStall) }),
		ofAccount("perfagent_oom_kills_total", counter, "out-of-memory kills on the node"+sinceThen, 1,
			func(a *account) optional { return a.HostOOMKills }),
	}
}

func someStalls(s collector.Stalls) [3]series.Optional {
	return [3]series.Optional{s.CPUSome, s.MemorySome, s.IOSome}
}

func fullStalls(s collector.Stalls) [3]series.Optional {
	return [3]series.Optional{s.CPUFull, s.MemoryFull, s.IOFull}
}

func cpuLimit(f *metricInput) float64 { return zeroToNaN(f.account.Limits.CPUs) }

// jobInfo writes the sources of the job's numbers.
func jobInfo(x *exposition, m *Metric, f *metricInput) {
	if a := &f.account; a.Source != "" {
		x.labelled(m, `,source="`+escaped(a.Source)+`",memory_kind="`+escaped(a.MemoryKind)+`"`, 1)
	}
}

// gpuMetrics returns the metrics of each GPU of the node.
func gpuMetrics() []Metric {
	of := func(k collector.GPUKey) Metric {
		m := ofColumn(collector.GPUColumn(0, k))
		return byGPU(m.Name, m.Type, m.Help, func(f *metricInput, i int, _ *collector.GPU) float64 {
			c := collector.GPUColumn(i, k)
			return columnToBaseUnit(c, f.values[c])
		})
	}

	return []Metric{
		byGPU("perfagent_gpu_of_job", gauge, "1 if the job can see the GPU, else 0",
			func(_ *metricInput, _ int, g *collector.GPU) float64 {
				if g.OfJob {
					return 1
				}
				return 0
			}),
		of(collector.GPUUtilization),
		of(collector.GPUMemoryUsed),
		byGPU("perfagent_gpu_memory_total_bytes", gauge, "memory of the GPU",
			func(_ *metricInput, _ int, g *collector.GPU) float64 {
				return math.Round(float64(g.MemoryMB) * collector.MiB)
			}),
		of(collector.GPUPower),
		byGPU("perfagent_gpu_power_limit_watts", gauge, "power limit of the GPU",
			func(_ *metricInput, _ int, g *collector.GPU) float64 { return float64(g.PowerLimitWatts) }),
		byGPU("perfagent_gpu_energy_joules_total", counter,
			"energy used by the GPU, from its own counter"+sinceThen,
			func(_ *metricInput, _ int, g *collector.GPU) float64 { return float64(g.EnergyJoules) }),
		of(collector.GPUTemperature),
	}
}

// gpuLabels returns the labels of the GPU g. Its number i is that in the keys of the report.
func gpuLabels(i int, g *collector.GPU) string {
	return `,gpu="` + strconv.Itoa(i) + `",uuid="` + escaped(g.UUID) + `",name="` + escaped(g.Name) + `"`
}
