package reporter

import (
	"strconv"
	"strings"

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

// gpuMetricNamed finds the metric of a GPU.
func gpuMetricNamed(name string) (Metric, bool) {
	if !strings.Contains(name, "gpu_") {
		return Metric{}, false
	}
	for _, m := range gpuMetrics() {
		before, after, _ := strings.Cut(m.Name, "{i}")
		number, ok := strings.CutPrefix(name, before)
		if ok {
			number, ok = strings.CutSuffix(number, after)
		}
		device, err := strconv.Atoi(number)
		if ok && err == nil && device >= 0 && device < collector.MaxGPUs && gpuMetricName(m.Name, device) == name {
			m.Name = name
			m.Metric.value = func(f *facts) (float64, error) { return m.value(f, device) }
			return m.Metric, true
		}
	}
	return Metric{}, false
}

// gpuMetric is a metric that each GPU has one of; {i} stands for the device's place among
// the node's GPUs.
type gpuMetric struct {
	Metric
	value func(f *facts, device int) (float64, error)
}

// gpuMetrics lists them. Like the table, it is in the order of output.
func gpuMetrics() []gpuMetric {
	return []gpuMetric{
		{
			Metric: Metric{
				Name: MetricGPUUtilization, Unit: "percent",
				Meaning: "share of the time in which any kernel ran on the GPU; " +
					"how much of it the kernels used is not known",
				How: "mean of the driver's utilization, weighted by time",
			},
			value: gpuMean(collector.GPUUtilization),
		},
		{
			Metric: Metric{
				Name: MetricGPUMemoryPeak, Unit: "MiB (2^20 bytes)",
				Meaning: "highest memory in use on the GPU, by whomever",
				How:     "greatest over all samples",
			},
			value: gpuMax(collector.GPUMemoryUsed),
		},
		{
			Metric: Metric{
				Name: MetricGPUPowerPeak, Unit: "W",
				Meaning: "highest power that the GPU drew",
				How:     "greatest over all samples",
			},
			value: gpuMax(collector.GPUPower),
		},
		{
			Metric: Metric{
				Name: "max_t_gpu_{i}_temperature_celsius", Unit: "°C",
				Meaning: "highest temperature of the GPU",
				How:     "greatest over all samples",
			},
			value: gpuMax(collector.GPUTemperature),
		},
		{
			Metric: Metric{
				Name: "gpu_{i}_energy_joules", Unit: "J",
				Meaning: "energy that the GPU took",
				How:     "growth of the device's own counter; exact",
			},
			value: gpuEnergy,
		},
	}
}

func gpuMax(k collector.GPUKey) func(*facts, int) (float64, error) {
	return func(f *facts, device int) (float64, error) { return maxOf(collector.GPUColumn(device, k))(f) }
}

func gpuMean(k collector.GPUKey) func(*facts, int) (float64, error) {
	return func(f *facts, device int) (float64, error) { return meanOf(collector.GPUColumn(device, k))(f) }
}

func gpuEnergy(f *facts, device int) (float64, error) {
	if device >= len(f.gpus) {
		return 0, f.why(collector.GPUColumn(device, collector.GPUPower))
	}
	if v := f.gpus[device].EnergyJoules; v.Known() {
		return float64(v), nil
	}
	return 0, errNoEnergy
}

// gpuMetricName is the name of a device's metric.
func gpuMetricName(pattern string, device int) string {
	return strings.Replace(pattern, "{i}", strconv.Itoa(device), 1)
}

// GPUMetrics lists the metrics that the node's GPUs may have, by their own names.
func (n *Node) GPUMetrics() []Metric {
	var out []Metric
	for i := range min(len(n.GPUs), collector.MaxGPUs) {
		for _, m := range gpuMetrics() {
			named, _ := gpuMetricNamed(gpuMetricName(m.Name, i))
			out = append(out, named)
		}
	}
	return out
}
