package reporter

import (
	"fmt"
	"slices"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
)

// SourceOf returns the source that a sample key or a metric is read from, such as "cpu" or "gpu 0". If there is no
// single source, it returns what and false.
func SourceOf(what string) (name string, isSource bool) {
	if slices.Contains(host.Sources(), what) {
		return what, true
	}
	c, ok := columnOf(what)
	if !ok {
		return what, false
	}
	name = c.Info().Source
	if device, _, isGPU := c.GPU(); isGPU {
		name = fmt.Sprintf("%s %d", name, device)
	}
	return name, true
}

// columnOf returns the column of a sample key or a metric. It returns false if there is none.
func columnOf(what string) (collector.Column, bool) {
	if m, isMetric := MetricByName(what); isMetric {
		return m.Column()
	}
	return collector.ColumnByKey(what)
}
