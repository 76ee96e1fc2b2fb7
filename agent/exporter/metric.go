package exporter

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/opstats"
	"github.com/perfagent/perfagent/reporter"
)

// A Metric describes one metric of /metrics. Units are Prometheus' base units: seconds, bytes, and ratios from 0 to 1.
type Metric struct {
	Name, Type, Help string
	// Label is the label of the metric in addition to run_id and node, such as mode, version or resource. Several
	// labels are separated by commas ("gpu, uuid, name"). "" means none.
	Label string
	write lineWriter
}

// A lineWriter writes the lines of m to x.
type lineWriter func(x *exposition, m *Metric, f *metricInput)

// singleMetric returns a metric with a single line.
func singleMetric(name, kind, help string, value float64) Metric {
	return Metric{Name: name, Type: kind, Help: help, write: func(x *exposition, m *Metric, _ *metricInput) {
		x.series(m, "", value)
	}}
}

// metricInput holds the inputs of all metrics. NaN means unknown.
type metricInput struct {
	*snapshot
	version    string
	interval   time.Duration
	agent      reporter.Agent
	operations *reporter.Operations  // nil if operations are not recorded
	store      *opstats.StoreMetrics // nil if there is no store
}

// Metrics returns the metrics of /metrics in order. Names of columns and of operations are defined in the tables of
// packages collector and reporter. All other names are defined in this package.
func Metrics() []Metric {
	f := &metricInput{snapshot: emptySnapshot()}
	return slices.Concat(nodeMetrics(f), columnMetrics(), jobMetrics(f), gpuMetrics(), operationMetrics(), storeMetrics())
}

const (
	counter   = "counter"
	gauge     = "gauge"
	summary   = "summary"
	sinceThen = ", since the start of the run"
)

// ofColumn returns the metric with the values of column c.
func ofColumn(c collector.Column) Metric {
	row, kind := c.Info(), gauge
	if row.Kind == collector.Counter {
		kind, row.Label = counter, row.Label+sinceThen
	}
	switch c {
	case collector.CPUAvg, collector.CPUMin, collector.CPUMax:
		row.Label += ", in the newest sample"
	case collector.JobMemory:
		row.Label += "; perfagent_job_info shows how it is counted"
	case collector.JobMemorySwap:
		row.Label += "; included in perfagent_job_memory_bytes"
	}
	return Metric{Name: "perfagent_" + row.Prometheus, Type: kind, Help: row.Label,
		write: func(x *exposition, m *Metric, f *metricInput) { x.series(m, "", columnToBaseUnit(c, f.values[c])) }}
}

// columnMetrics returns the metrics of all columns with a Prometheus name. The list is created on the first call,
// because a run without a live page does not need it.
var columnMetrics = sync.OnceValue(func() (list []Metric) {
	for c := range collector.NumColumns {
		if c.Info().Prometheus != "" {
			list = append(list, ofColumn(c))
		}
	}
	return list
})

// nodeMetrics returns the metrics of perfagent and of the node that are not columns. Ratios are computed from bytes,
// because the percentages of samples are rounded, as perf.py's are.
func nodeMetrics(f *metricInput) []Metric {
	start := math.NaN()
	if !f.start.IsZero() {
		start = float64(f.start.UnixMilli()) / 1000
	}
	memoryUsed := min(1, f.values[collector.MemUsed]/f.memoryMB)
	if f.memoryMB == 0 {
		memoryUsed = f.values[collector.MemPercent] / 100
	}
	diskUsed := f.values[collector.DiskUsed]
	if diskUsed != 0 {
		diskUsed /= diskUsed + f.values[collector.DiskFree]
	}
	return []Metric{
		{
			Name: "perfagent_build_info", Type: gauge, Label: "version",
			Help:  "always 1; the label is perfagent's version",
			write: func(x *exposition, m *Metric, f *metricInput) { x.series(m, f.version, 1) },
		},
		singleMetric("perfagent_start_time_seconds", gauge, "start of the run, in seconds since 1970", start),
		singleMetric("perfagent_interval_seconds", gauge, "time between samples", f.interval.Seconds()),
		singleMetric("perfagent_samples_total", counter, "samples taken"+sinceThen, float64(f.samples)),
		singleMetric("perfagent_missed_ticks_total", counter, "samples that could not be taken in time"+sinceThen,
			float64(f.missed)),
		singleMetric("perfagent_agent_cpu_seconds_total", counter, "CPU time of perfagent itself",
			zeroToNaN(f.agent.CPUSeconds)),
		singleMetric("perfagent_agent_max_rss_bytes", gauge, "peak resident memory of perfagent itself",
			zeroToNaN(math.Round(f.agent.MaxRSSMB*collector.MiB))),
		singleMetric("perfagent_cpus", gauge, "logical CPUs of the node", zeroToNaN(float64(f.cpus))),
		{
			Name: "perfagent_cpu_seconds_total", Type: counter, Label: "mode", write: cpuModes,
			Help: "CPU time of the node by mode, summed over all CPUs" + sinceThen +
				"; guest time is included in user and nice",
		},
		singleMetric("perfagent_memory_used_ratio", gauge,
			"share of the node's memory in use: (total - available) / total", memoryUsed),
		singleMetric("perfagent_memory_total_bytes", gauge, "memory of the node", zeroToNaN(f.memoryMB*collector.MiB)),
		singleMetric("perfagent_filesystem_used_ratio", gauge,
			"share of the file system in use (the fullest one given with --disk-path): used / (used + available to users)",
			diskUsed),
	}
}

// cpuModes writes the CPU time of each mode. It writes nothing while the source fails.
func cpuModes(x *exposition, m *Metric, f *metricInput) {
	if f.cpuStale {
		return
	}
	for mode, v := range f.cpu {
		x.series(m, host.CPUMode(mode).String(), v)
	}
}

// zeroToNaN returns v, or NaN (unknown) if v is 0. It is for values that cannot be 0.
func zeroToNaN(v float64) float64 {
	if v == 0 {
		return math.NaN()
	}
	return v
}

// columnToBaseUnit converts v, a value of c, to Prometheus' base unit.
func columnToBaseUnit(c collector.Column, v float64) float64 {
	switch {
	case c.IsPercent():
		return v / 100
	case c.Info().Unit == collector.Mebibytes:
		return math.Round(v * collector.MiB) // some columns are rounded to three decimals of a MiB
	}
	return v
}

// An exposition writes the text format, version 0.0.4. Prometheus' client library would add 4.5 MB to the binary and
// time to each start, but a loop over a table is enough to write the page.
type exposition struct {
	out    []byte
	labels string // the labels of every series
	begun  string // the metric of the last line
}

// labelsOf returns the labels of every series.
func labelsOf(runID string, node int) string {
	return `run_id="` + escaped(runID) + `",node="` + strconv.Itoa(node) + `"`
}

// escaped escapes text, the value of a label, as the format requires.
func escaped(text string) string {
	if utf8.ValidString(text) && !strings.ContainsAny(text, "\\\"\n") {
		return text
	}
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(text, "\uFFFD"))
}

// write writes the known values of all metrics.
func (x *exposition) write(f *metricInput) {
	x.table(nodeMetrics(f), f)
	x.table(columnMetrics(), f)
	x.table(jobMetrics(f), f)
	if len(f.gpus) > 0 {
		x.table(gpuMetrics(), f)
	}
	if f.operations != nil {
		x.table(operationMetrics(), f)
	}
	if f.store != nil {
		x.table(storeMetrics(), f)
	}
}

func (x *exposition) table(metrics []Metric, f *metricInput) {
	for i := range metrics {
		metrics[i].write(x, &metrics[i], f)
	}
}

// series writes one line of m. label is the value of the label of m; it is ignored if m has no label.
func (x *exposition) series(m *Metric, label string, v float64) {
	if m.Label != "" {
		label = "," + m.Label + `="` + escaped(label) + `"`
	}
	x.labelled(m, label, v)
}

// labelled writes one line of m. labels is the text of the metric's other labels, each preceded by a comma.
func (x *exposition) labelled(m *Metric, labels string, v float64) { x.line(m, "", labels, tidy(v)) }

// line writes one line of m, preceded by HELP and TYPE if it is the first line of m. It writes nothing for an unknown
// value. suffix is _sum or _count for these parts of a summary, and "" otherwise.
func (x *exposition) line(m *Metric, suffix, labels string, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}

	if x.begun != m.Name {
		x.begun = m.Name
		x.out = append(x.out, "# HELP "+m.Name+" "+m.Help+"\n# TYPE "+m.Name+" "+m.Type+"\n"...)
	}

	x.out = append(append(x.out, m.Name...), suffix...)
	x.out = append(append(append(x.out, '{'), x.labels...), labels...)
	x.out = strconv.AppendFloat(append(x.out, "} "...), v, 'f', -1, 64)
	x.out = append(x.out, '\n')
}

// tidy rounds v to remove digits that come from rounding errors.
func tidy(v float64) float64 {
	if math.Abs(v) < 1e6 {
		return math.Round(v*1e9) / 1e9
	}
	return v
}

// byResource returns a metric for stalls, with a line for each resource.
func byResource(name, help string, cpu, memory, io series.Optional) Metric {
	return Metric{
		Name: name, Type: counter, Label: "resource", Help: help + sinceThen,
		write: func(x *exposition, m *Metric, _ *metricInput) {
			x.series(m, "cpu", float64(cpu))
			x.series(m, "memory", float64(memory))
			x.series(m, "io", float64(io))
		},
	}
}

// byGPU returns a metric with a line for each GPU. The label gpu is the number of the GPU in the report's keys.
func byGPU(name, kind, help string, value func(f *metricInput, i int, g *collector.GPU) float64) Metric {
	return Metric{
		Name: name, Type: kind, Label: "gpu, uuid, name", Help: help,
		write: func(x *exposition, m *Metric, f *metricInput) {
			for i := range f.gpus {
				g := &f.gpus[i]
				labels := `,gpu="` + strconv.Itoa(i) + `",uuid="` + escaped(g.UUID) + `",name="` + escaped(g.Name) + `"`
				x.labelled(m, labels, value(f, i, g))
			}
		},
	}
}

// jobMetrics returns the metrics of the job, its limits, and its contention for resources that are not columns.
// "Waiting" is the kernel's "some" (PSI), the time in which at least one task waited. "Stalled" is "full", the time in
// which all tasks waited.
func jobMetrics(f *metricInput) []Metric {
	const counters = " of the control group that sets the CPU quota" + sinceThen
	a, job, node := &f.account, &f.account.JobStall, &f.account.HostStall
	return []Metric{
		{
			Name: "perfagent_job_info", Type: gauge, Label: "source, memory_kind", write: jobInfo,
			Help: "always 1; the labels are the source of the job's numbers and how its memory is counted",
		},
		singleMetric("perfagent_job_cpu_seconds_total", counter, "CPU time of the job"+sinceThen, float64(a.CPUSeconds)),
		singleMetric("perfagent_job_cpu_limit_cpus", gauge,
			"number of CPUs that the job may use: the lowest of quota, cpuset and affinity", zeroToNaN(a.Limits.CPUs)),
		singleMetric("perfagent_job_cpu_periods_total", counter, "periods"+counters, float64(a.Periods)),
		singleMetric("perfagent_job_cpu_throttled_periods_total", counter, "throttled periods"+counters,
			float64(a.ThrottledPeriods)),
		singleMetric("perfagent_job_cpu_throttled_seconds_total", counter, "throttled time, summed over CPUs,"+counters,
			float64(a.ThrottledSeconds)),
		singleMetric("perfagent_job_memory_limit_bytes", gauge,
			"amount of memory that the job may use: the lowest limit of its control groups",
			float64(a.Limits.MemoryMB)*collector.MiB),
		singleMetric("perfagent_job_oom_kills_total", counter,
			"out-of-memory kills in the job's control group"+sinceThen, float64(a.OOMKills)),
		byResource("perfagent_job_pressure_waiting_seconds_total",
			"time in which any task in the job's control group waited for a resource",
			job.CPUSome, job.MemorySome, job.IOSome),
		byResource("perfagent_job_pressure_stalled_seconds_total",
			"time in which all tasks in the job's control group waited for a resource",
			job.CPUFull, job.MemoryFull, job.IOFull),
		byResource("perfagent_pressure_waiting_seconds_total",
			"time in which any task on the node waited for a resource", node.CPUSome, node.MemorySome, node.IOSome),
		byResource("perfagent_pressure_stalled_seconds_total",
			"time in which all tasks on the node waited for a resource", node.CPUFull, node.MemoryFull, node.IOFull),
		singleMetric("perfagent_oom_kills_total", counter, "out-of-memory kills on the node"+sinceThen,
			float64(a.HostOOMKills)),
	}
}

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

// storeMetrics returns the metrics of perfagent's operations on the store for reports.
func storeMetrics() []Metric {
	return []Metric{
		{
			Name: "perfagent_store_seconds", Type: summary, Label: "operation",
			Help:  "time spent in perfagent's operations on the report store" + sinceThen,
			write: storeSeconds,
		},
		{
			Name: "perfagent_store_errors_total", Type: counter, Label: "operation",
			Help:  "perfagent's operations on the report store that failed" + sinceThen,
			write: storeErrors,
		},
	}
}

// storePrefix is the prefix of the names of ProxyStore's statistics.
const storePrefix = "store."

func storeSeconds(x *exposition, m *Metric, f *metricInput) {
	for _, name := range slices.Sorted(maps.Keys(f.store.Times)) {
		times := f.store.Times[name]
		labels := `,operation="` + escaped(strings.TrimPrefix(name, storePrefix)) + `"`
		x.line(m, "_sum", labels, tidy(times.Total()/1000))
		x.line(m, "_count", labels, times.Count)
	}
}

func storeErrors(x *exposition, m *Metric, f *metricInput) {
	for _, name := range slices.Sorted(maps.Keys(f.store.Counters)) {
		if op, ok := strings.CutSuffix(strings.TrimPrefix(name, storePrefix), ".errors"); ok {
			x.series(m, op, f.store.Counters[name])
		}
	}
}
