package exporter

import (
	"math"
	"strconv"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/series"
)

// resources returns the values of the label resource.
func resources() [3]string { return [3]string{"cpu", "memory", "io"} }

// ofAccount returns the lineWriter of a counter or limit from the job's account, multiplied by
// scale, which converts it to the base unit.
func ofAccount(value func(*collector.Account) series.Optional, scale float64) lineWriter {
	return one(func(f *metricInput) float64 { return float64(value(&f.account)) * scale })
}

// byResource returns the lineWriter of the account's stalls, with a line for each resource.
func byResource(stalls func(*collector.Account) [3]series.Optional) lineWriter {
	return func(x *exposition, m *Metric, f *metricInput) {
		for k, v := range stalls(&f.account) {
			x.series(m, resources()[k], float64(v))
		}
	}
}

// byGPU returns the lineWriter of a value that each device has.
func byGPU(value func(f *metricInput, i int, g *collector.GPU) float64) lineWriter {
	return func(x *exposition, m *Metric, f *metricInput) {
		for i := range f.gpus {
			g := &f.gpus[i]
			x.labelled(m, gpuLabels(i, g), value(f, i, g))
		}
	}
}

// jobMetrics returns the metrics of the job, its limits, and its contention with others. "Waiting"
// is the kernel's "some" (PSI), in which at least one task waited; "stalled" is "full", in which
// all did.
func jobMetrics() []Metric {
	type account = collector.Account
	type optional = series.Optional
	const counters = " of the control group that sets the CPU quota" + sinceThen
	return []Metric{
		{
			Name: "perfagent_job_info", Type: gauge, Label: "source, memory_kind",
			Help:  "1; the labels say where the numbers of the job come from and how its memory is counted",
			write: jobInfo,
		},
		{
			Name: "perfagent_job_cpu_seconds_total", Type: counter,
			Help:  "CPU time of the job" + sinceThen,
			write: ofAccount(func(a *account) optional { return a.CPUSeconds }, 1),
		},
		ofColumn(collector.JobMemory, "counted as perfagent_job_info says"),
		ofColumn(collector.JobMemorySwap, "it is in perfagent_job_memory_bytes"),
		ofColumn(collector.JobPageCache),
		ofColumn(collector.JobProcesses),
		ofColumn(collector.JobThreads),
		ofColumn(collector.JobRead),
		ofColumn(collector.JobWrite),
		{
			Name: "perfagent_job_cpu_limit_cpus", Type: gauge,
			Help:  "CPUs that the job may use: the minimum of quota, cpuset and affinity",
			write: one(cpuLimit),
		},
		{
			Name: "perfagent_job_cpu_periods_total", Type: counter,
			Help:  "periods" + counters,
			write: ofAccount(func(a *account) optional { return a.Periods }, 1),
		},
		{
			Name: "perfagent_job_cpu_throttled_periods_total", Type: counter,
			Help:  "throttled periods" + counters,
			write: ofAccount(func(a *account) optional { return a.Throttled }, 1),
		},
		{
			Name: "perfagent_job_cpu_throttled_seconds_total", Type: counter,
			Help:  "throttled time, summed over CPUs," + counters,
			write: ofAccount(func(a *account) optional { return a.ThrottledSeconds }, 1),
		},
		{
			Name: "perfagent_job_memory_limit_bytes", Type: gauge,
			Help:  "memory that the job may use: the lowest limit of its control groups",
			write: ofAccount(func(a *account) optional { return a.Limits.MemoryMB }, collector.MiB),
		},
		ofColumn(collector.LimitMemory),
		{
			Name: "perfagent_job_oom_kills_total", Type: counter,
			Help:  "out-of-memory kills in the job's control group" + sinceThen,
			write: ofAccount(func(a *account) optional { return a.OOMKills }, 1),
		},
		{
			Name: "perfagent_job_pressure_waiting_seconds_total", Type: counter, Label: "resource",
			Help:  "time in which a task of the job's control group waited for a resource" + sinceThen,
			write: byResource(func(a *account) [3]optional { return waiting(a.JobStall) }),
		},
		{
			Name: "perfagent_job_pressure_stalled_seconds_total", Type: counter, Label: "resource",
			Help:  "time in which all tasks of it waited for a resource" + sinceThen,
			write: byResource(func(a *account) [3]optional { return stalled(a.JobStall) }),
		},
		{
			Name: "perfagent_pressure_waiting_seconds_total", Type: counter, Label: "resource",
			Help:  "time in which a task of the node waited for a resource" + sinceThen,
			write: byResource(func(a *account) [3]optional { return waiting(a.HostStall) }),
		},
		{
			Name: "perfagent_pressure_stalled_seconds_total", Type: counter, Label: "resource",
			Help:  "time in which all tasks of the node waited for a resource" + sinceThen,
			write: byResource(func(a *account) [3]optional { return stalled(a.HostStall) }),
		},
		{
			Name: "perfagent_oom_kills_total", Type: counter,
			Help:  "out-of-memory kills on the node" + sinceThen,
			write: ofAccount(func(a *account) optional { return a.HostOOMKills }, 1),
		},
		ofColumn(collector.SwapIn),
		ofColumn(collector.SwapOut),
		ofColumn(collector.Load1),
		ofColumn(collector.ProcsRunning),
	}
}

func waiting(s collector.Stalls) [3]series.Optional {
	return [3]series.Optional{s.CPUSome, s.MemorySome, s.IOSome}
}

func stalled(s collector.Stalls) [3]series.Optional {
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
	const labels = "gpu, uuid, name"
	of := func(k collector.GPUKey) Metric {
		m := ofColumn(collector.GPUColumn(0, k))
		m.Label = labels
		m.write = byGPU(func(f *metricInput, i int, _ *collector.GPU) float64 {
			c := collector.GPUColumn(i, k)
			return inBaseUnit(c, f.values[c])
		})
		return m
	}

	return []Metric{
		{
			Name: "perfagent_gpu_of_job", Type: gauge, Label: labels,
			Help:  "1 if the job can see the GPU, else 0",
			write: byGPU(gpuOfJob),
		},
		of(collector.GPUUtilization),
		of(collector.GPUMemoryUsed),
		{
			Name: "perfagent_gpu_memory_total_bytes", Type: gauge, Label: labels,
			Help:  "memory of the GPU",
			write: byGPU(gpuMemory),
		},
		of(collector.GPUPower),
		{
			Name: "perfagent_gpu_power_limit_watts", Type: gauge, Label: labels,
			Help:  "power limit of the GPU",
			write: byGPU(gpuPowerLimit),
		},
		{
			Name: "perfagent_gpu_energy_joules_total", Type: counter, Label: labels,
			Help:  "energy used by the GPU, from its own counter" + sinceThen,
			write: byGPU(gpuEnergy),
		},
		of(collector.GPUTemperature),
	}
}

func gpuOfJob(_ *metricInput, _ int, g *collector.GPU) float64 {
	if g.OfJob {
		return 1
	}
	return 0
}

func gpuMemory(_ *metricInput, _ int, g *collector.GPU) float64 {
	return math.Round(float64(g.MemoryMB) * collector.MiB)
}

func gpuPowerLimit(_ *metricInput, _ int, g *collector.GPU) float64 {
	return float64(g.PowerLimitWatts)
}

func gpuEnergy(_ *metricInput, _ int, g *collector.GPU) float64 { return float64(g.EnergyJoules) }

// gpuLabels returns the labels of a device. It has the same number as in the keys of the report.
func gpuLabels(i int, g *collector.GPU) string {
	return `,gpu="` + strconv.Itoa(i) + `",uuid="` + escaped(g.UUID) + `",name="` + escaped(g.Name) + `"`
}
