package reporter

import (
	"strconv"
	"strings"
	"sync"

	"github.com/perfagent/perfagent/collector"
)

// GPUMetrics lists the metrics that each GPU has one of, in the order of output. {i} in
// their names stands for the device's place among the node's GPUs, from 0 on.
func GPUMetrics() []Metric {
	var out []Metric
	for _, m := range gpuMetrics() {
		out = append(out, m.Metric)
	}
	return out
}

// gpuMetricsByName holds the metrics of all GPUs that there can be.
var gpuMetricsByName = sync.OnceValue(func() map[string]Metric {
	byName := make(map[string]Metric)
	for device := range collector.MaxGPUs {
		for _, m := range gpuMetrics() {
			m.Name, m.formula = GPUMetricName(m.Name, device), m.of(device)
			byName[m.Name] = m.Metric
		}
	}
	return byName
})

// gpuMetric is a metric that each GPU has one of; {i} stands for the device's place among
// the node's GPUs.
type gpuMetric struct {
	Metric
	of func(device int) formula
}

// gpuMetrics lists them. Like the table, it is in the order of output.
func gpuMetrics() []gpuMetric {
	row := func(name string, of func(device int) formula, meaning, how string) gpuMetric {
		row := metricRow{name, of(0), meaning, how}
		row.group = GroupGPU
		return gpuMetric{row.metric(), of}
	}

	return []gpuMetric{
		row(MetricGPUUtilization, gpuMean(collector.GPUUtilization),
			"share of the time in which any kernel ran on the GPU; how much of it the kernels used is not known",
			"mean of the driver's utilization, weighted by time"),
		row(MetricGPUMemoryPeak, gpuMax(collector.GPUMemoryUsed),
			"highest memory in use on the GPU, by all processes",
			"greatest over all samples"),
		row(MetricGPUPowerPeak, gpuMax(collector.GPUPower),
			"highest power that the GPU drew",
			"greatest over all samples"),
		row("max_t_gpu_{i}_temperature_celsius", gpuMax(collector.GPUTemperature),
			"highest temperature of the GPU",
			"greatest over all samples"),
		row("gpu_{i}_energy_joules", gpuEnergy,
			"energy that the GPU took; an estimate where it has no counter of its own (NVIDIA's)",
			"growth of the device's own counter; where it has none, an estimate: the power that it drew, "+
				"added up over the time of the samples"),
	}
}

func gpuMax(k collector.GPUKey) func(int) formula {
	return func(device int) formula { return maxOf(collector.GPUColumn(device, k)) }
}

func gpuMean(k collector.GPUKey) func(int) formula {
	return func(device int) formula { return meanOf(collector.GPUColumn(device, k)) }
}

func gpuEnergy(device int) formula {
	column := collector.GPUColumn(device, collector.GPUPower)
	return computed(func(f *facts) (float64, error) {
		if device >= len(f.gpus) {
			return 0, f.why(column)
		}
		if v := f.gpus[device].EnergyJoules; v.Known() {
			return float64(v), nil
		}
		return integral(f, column)
	}, column).in(GroupGPU, collector.Joules, collector.Sum)
}

// integral returns the sum of a column's values over the time that they stand for: of watts, joules.
func integral(f *facts, c collector.Column) (float64, error) {
	s := f.summaryOf(c)
	if mean, ok := s.Mean(); ok && s.Weight() > 0 {
		return mean * s.Weight(), nil
	}
	return 0, errNoEnergy
}

// GPUMetricName returns the name of a device's metric. The pattern has {i} for the device's place.
func GPUMetricName(pattern string, device int) string {
	return strings.Replace(pattern, "{i}", strconv.Itoa(device), 1)
}

// GPUMetrics lists the metrics that the node's GPUs may have, by their own names.
func (n *Node) GPUMetrics() []Metric {
	var out []Metric
	for i := range min(len(n.GPUs), collector.MaxGPUs) {
		for _, m := range gpuMetrics() {
			out = append(out, gpuMetricsByName()[GPUMetricName(m.Name, i)])
		}
	}
	return out
}
