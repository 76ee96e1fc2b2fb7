package exporter

import (
	"math"
	"strconv"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/series"
)

// jobInfoLabel names the labels of perfagent_job_info.
const jobInfoLabel = "source, memory_kind"

// resources returns the values of the label resource.
func resources() [3]string { return [3]string{"cpu", "memory", "io"} }

// ofAccount returns a function that reads a counter or limit from the job's account and multiplies
// it by scale, which converts it to the base unit.
func ofAccount(value func(*collector.Account) series.Optional, scale float64) func(*metricInput) float64 {
	return func(f *metricInput) float64 { return float64(value(&f.account)) * scale }
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
			Name: "perfagent_job_info", Type: gauge, Label: jobInfoLabel,
			Help: "1; the labels say where the numbers of the job come from and how its memory is counted",
		},
		{
			Name: "perfagent_job_cpu_seconds_total", Type: counter,
			Help:  "CPU time of the job" + sinceThen,
			value: ofAccount(func(a *account) optional { return a.CPUSeconds }, 1),
		},
		ofColumn(collector.JobMemory, "counted as perfagent_job_info says"),
		ofColumn(collector.JobPageCache),
		ofColumn(collector.JobProcesses),
		ofColumn(collector.JobThreads),
		ofColumn(collector.JobRead),
		ofColumn(collector.JobWrite),
		{
			Name: "perfagent_job_cpu_limit_cpus", Type: gauge,
			Help:  "CPUs that the job may use: the minimum of quota, cpuset and affinity",
			value: cpuLimit,
		},
		{
			Name: "perfagent_job_cpu_periods_total", Type: counter,
			Help:  "periods" + counters,
			value: ofAccount(func(a *account) optional { return a.Periods }, 1),
		},
		{
			Name: "perfagent_job_cpu_throttled_periods_total", Type: counter,
			Help:  "throttled periods" + counters,
			value: ofAccount(func(a *account) optional { return a.Throttled }, 1),
		},
		{
			Name: "perfagent_job_cpu_throttled_seconds_total", Type: counter,
			Help:  "throttled time, summed over CPUs," + counters,
			value: ofAccount(func(a *account) optional { return a.ThrottledSeconds }, 1),
		},
		{
			Name: "perfagent_job_memory_limit_bytes", Type: gauge,
			Help:  "memory that the job may use: the lowest limit of its control groups",
			value: ofAccount(func(a *account) optional { return a.Limits.MemoryMB }, collector.MiB),
		},
		ofColumn(collector.LimitMemory),
		{
			Name: "perfagent_job_oom_kills_total", Type: counter,
			Help:  "out-of-memory kills in the job's control group" + sinceThen,
			value: ofAccount(func(a *account) optional { return a.OOMKills }, 1),
		},
		{
			Name: "perfagent_job_pressure_waiting_seconds_total", Type: counter, Label: "resource",
			Help:   "time in which a task of the job's control group waited for a resource" + sinceThen,
			stalls: func(f *metricInput) [3]optional { return waiting(f.account.JobStall) },
		},
		{
			Name: "perfagent_job_pressure_stalled_seconds_total", Type: counter, Label: "resource",
			Help:   "time in which all tasks of it waited for a resource" + sinceThen,
			stalls: func(f *metricInput) [3]optional { return stalled(f.account.JobStall) },
		},
		{
			Name: "perfagent_pressure_waiting_seconds_total", Type: counter, Label: "resource",
			Help:   "time in which a task of the node waited for a resource" + sinceThen,
			stalls: func(f *metricInput) [3]optional { return waiting(f.account.HostStall) },
		},
		{
			Name: "perfagent_pressure_stalled_seconds_total", Type: counter, Label: "resource",
			Help:   "time in which all tasks of the node waited for a resource" + sinceThen,
			stalls: func(f *metricInput) [3]optional { return stalled(f.account.HostStall) },
		},
		{
			Name: "perfagent_oom_kills_total", Type: counter,
			Help:  "out-of-memory kills on the node" + sinceThen,
			value: ofAccount(func(a *account) optional { return a.HostOOMKills }, 1),
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
func (x *exposition) jobInfo(m *Metric, a *collector.Account) {
	if a.Source != "" {
		x.labelled(m, `,source="`+escaped(a.Source)+`",memory_kind="`+escaped(a.MemoryKind)+`"`, 1)
	}
}

// gpuMetrics returns the metrics of each GPU of the node.
func gpuMetrics() []Metric {
	const labels = "gpu, uuid, name"
	of := func(k collector.GPUKey) Metric {
		m := ofColumn(collector.GPUColumn(0, k))
		m.Label = labels
		m.gpu = func(f *metricInput, i int, _ *collector.GPU) float64 {
			c := collector.GPUColumn(i, k)
			return inBaseUnit(c, f.values[c])
		}
		return m
	}

	return []Metric{
		{
			Name: "perfagent_gpu_of_job", Type: gauge, Label: labels,
			Help: "1 if the job can see the GPU, else 0",
			gpu: func(_ *metricInput, _ int, g *collector.GPU) float64 {
				if g.OfJob {
					return 1
				}
				return 0
			},
		},
		of(collector.GPUUtilization),
		of(collector.GPUMemoryUsed),
		{
			Name: "perfagent_gpu_memory_total_bytes", Type: gauge, Label: labels,
			Help: "memory of the GPU",
			gpu: func(_ *metricInput, _ int, g *collector.GPU) float64 {
				return math.Round(float64(g.MemoryMB) * collector.MiB)
			},
		},
		of(collector.GPUPower),
		{
			Name: "perfagent_gpu_power_limit_watts", Type: gauge, Label: labels,
			Help: "power limit of the GPU",
			gpu:  func(_ *metricInput, _ int, g *collector.GPU) float64 { return float64(g.PowerLimitWatts) },
		},
		{
			Name: "perfagent_gpu_energy_joules_total", Type: counter, Label: labels,
			Help: "energy used by the GPU, from its own counter" + sinceThen,
			gpu:  func(_ *metricInput, _ int, g *collector.GPU) float64 { return float64(g.EnergyJoules) },
		},
		of(collector.GPUTemperature),
	}
}

// gpuLabels returns the labels of a device. It has the same number as in the keys of the report.
func gpuLabels(i int, g *collector.GPU) string {
	return `,gpu="` + strconv.Itoa(i) + `",uuid="` + escaped(g.UUID) + `",name="` + escaped(g.Name) + `"`
}
