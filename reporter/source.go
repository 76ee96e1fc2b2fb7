package reporter

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
)

// sourceError stands for a reason and names the source that it is asked of.
type sourceError string

func (e sourceError) Error() string { return string(e) }

// SourceOf names the source that a sample key or a metric is read from, such as "cpu" or "gpu 0".
// What has no single source keeps its name. The table knows it: a metric computed from nothing
// asks for the reason of its source.
func SourceOf(what string) (name string, isSource bool) {
	if slices.Contains(host.Sources(), what) {
		return what, true
	}
	if c, ok := collector.ColumnNamed(what); ok {
		return columnSource(c), true
	}

	m, ok := MetricNamed(what)
	if !ok {
		return what, false
	}

	nothing := &facts{perfpy: true, wall: func() (float64, error) { return 1, nil }}
	nothing.why = func(c collector.Column) error { return sourceError(columnSource(c)) }
	for i := range nothing.boot {
		nothing.boot[i] = math.NaN()
	}

	_, err := m.value(nothing)
	if source, ok := errors.AsType[sourceError](err); ok {
		return string(source), true
	}
	return what, false
}

// columnSource is the source of a column; of a GPU's it tells which one.
func columnSource(c collector.Column) string {
	if device, _, ok := c.GPU(); ok {
		return fmt.Sprintf("%s %d", c.Source(), device)
	}
	return c.Source()
}
