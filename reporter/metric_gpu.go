package reporter

import (
	"strconv"
	"strings"
	"sync"

	"github.com/perfagent/perfagent/collector"
)

// GPUMetrics lists the metrics of each GPU, in the order of output. {i} in
// their names stands for the device's index among the node's GPUs, from 0.
func GPUMetrics() []Metric { return gpuTable(0) }

// gpuMetrics returns the metrics of the GPU with index device, with that index in their names.
func gpuMetrics(device int) []Metric {
	list := gpuTable(device)
	for i := range list {
		list[i].Name, list[i].Label = GPUMetricName(list[i].Name, device), GPUMetricName(list[i].Label, device)
	}
	return list
}

// gpuMetricsByName returns the metrics of all possible GPUs by name.
var gpuMetricsByName = sync.OnceValue(func() map[string]Metric {
	byName := make(map[string]Metric)
	for device := range collector.MaxGPUs {
		for _, m := range gpuMetrics(device) {
			byName[m.Name] = m
		}
	}
	return byName
})

// gpuTable returns the metrics of the GPU with index device, in the order of output, with {i} in their names.
func gpuTable(device int) []Metric {
	of := func(k collector.GPUKey) collector.Column { return collector.GPUColumn(device, k) }
	list := []Metric{
		row(MetricGPUUtilization, "GPU {i} busy", meanOf(of(collector.GPUUtilization)),
			"share of the time in which any kernel ran on the GPU, however little of the GPU it used",
			"mean of the driver's utilization, weighted by time"),
		row(MetricGPUMemoryPeak, "peak GPU {i} memory", maxOf(of(collector.GPUMemoryUsed)),
			"peak GPU memory in use by all processes",
			"maximum over all samples"),
		row(MetricGPUPowerPeak, "peak GPU {i} power", maxOf(of(collector.GPUPower)),
			"highest power drawn by the GPU",
			"maximum over all samples"),
		row("max_t_gpu_{i}_temperature_celsius", "peak GPU {i} temperature", maxOf(of(collector.GPUTemperature)),
			"highest temperature of the GPU",
			"maximum over all samples"),
		row("gpu_{i}_energy_joules", "GPU {i} energy", gpuEnergy(device),
			"energy used by the GPU; estimated if the GPU has no energy counter (NVIDIA)",
			"growth of the device's energy counter; if it has none, an estimate: the power drawn, "+
				"integrated over the samples"),
	}
	for i := range list {
		list[i].Group = GroupGPU
	}
	return list
}

func gpuEnergy(device int) Metric {
	column := collector.GPUColumn(device, collector.GPUPower)
	return computed(func(f *facts) (float64, error) {
		if device >= len(f.gpus) {
			return 0, f.whyMissing(column)
		}
		if v := f.gpus[device].EnergyJoules; v.Known() {
			return float64(v), nil
		}
		s := f.summaryOf(column)
		if mean, ok := s.Mean(); ok && s.Weight() > 0 {
			return mean * s.Weight(), nil // watts integrated over time
		}
		return 0, newMissingError(NoEnergyCounter)
	}, column).withGroup(GroupGPU, collector.Joules, collector.Sum)
}

// GPUMetricName returns pattern, the name of a GPU's metric, with the index device in place of {i}.
func GPUMetricName(pattern string, device int) string {
	return strings.Replace(pattern, "{i}", strconv.Itoa(device), 1)
}

// GPUMetrics lists the metrics that the node's GPUs may have, with their indexes in the names.
func (n *Node) GPUMetrics() []Metric {
	var out []Metric
	for i := range min(len(n.GPUs), collector.MaxGPUs) {
		out = append(out, gpuMetrics(i)...)
	}
	return out
}
