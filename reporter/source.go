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
	if c, ok := collector.ColumnByKey(what); ok {
		return columnSource(c), true
	}
	if m, ok := MetricByName(what); ok {
		if c, ok := m.Column(); ok {
			return columnSource(c), true
		}
	}
	return what, false
}

// columnSource returns the source of a column, with the index of the device for a GPU's column.
func columnSource(c collector.Column) string {
	if device, _, ok := c.GPU(); ok {
		return fmt.Sprintf("%s %d", c.Info().Source, device)
	}
	return c.Info().Source
}
