package reporter

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/intake/book"
)

// noUnit is the unit of what only the job knows the unit of.
const noUnit collector.Unit = ""

// A WorkKind is what a series is: the first word of the names of its numbers.
type WorkKind = book.Kind

// The kinds of series.
const (
	OpKind       = book.OpKind
	CounterKind  = book.CounterKind
	GaugeKind    = book.GaugeKind
	ValueKind    = book.ValueKind
	TransferKind = book.TransferKind
)

// WorkKinds returns the kinds of series in the order of output.
func WorkKinds() []WorkKind {
	return []WorkKind{OpKind, CounterKind, GaugeKind, ValueKind, TransferKind}
}

// A workNumber is a row of the table of numbers that programs can pick out, as in "op.store.get.p90_time_ms".
type workNumber struct {
	kind    WorkKind
	name    string // "" for a counter, which is one number
	unit    collector.Unit
	meaning string
	value   func(w *Work, series string) *float64
}

var workNumbers = []workNumber{
	{OpKind, "count", collector.Times, "calls that succeeded",
		func(w *Work, s string) *float64 { return new(w.Times[s].Count) }},
	{OpKind, "avg_time_ms", collector.Milliseconds, "average time",
		func(w *Work, s string) *float64 { return w.Times[s].Avg }},
	{OpKind, book.P90TimeName, collector.Milliseconds, "time that 90 % of the calls were within",
		func(w *Work, s string) *float64 { return w.Times[s].P90 }},
	{OpKind, "max_time_ms", collector.Milliseconds, "longest time",
		func(w *Work, s string) *float64 { return w.Times[s].Max }},
	{CounterKind, "", noUnit, "sum",
		func(w *Work, s string) *float64 { return new(w.Counters[s]) }},
	{GaugeKind, "mean", noUnit, "mean over time",
		func(w *Work, s string) *float64 { return new(w.Gauges[s].Mean) }},
	{GaugeKind, "max", noUnit, "greatest value",
		func(w *Work, s string) *float64 { return new(w.Gauges[s].Max) }},
	{ValueKind, "count", collector.Times, "number of values",
		func(w *Work, s string) *float64 { return new(w.Values[s].Count) }},
	{ValueKind, "avg", noUnit, "average",
		func(w *Work, s string) *float64 { return new(w.Values[s].Avg) }},
	{ValueKind, book.P90Name, noUnit, "what 90 % of the values were within",
		func(w *Work, s string) *float64 { return w.Values[s].P90 }},
	{ValueKind, "max", noUnit, "greatest value",
		func(w *Work, s string) *float64 { return w.Values[s].Max }},
	{TransferKind, "num_successful_transfers", collector.Times, "transfers that succeeded",
		func(w *Work, s string) *float64 { return new(w.Transfers[s].Reduced.Transfers) }},
	{TransferKind, "avg_xfer_time_ms", collector.Milliseconds, "average time of a transfer",
		func(w *Work, s string) *float64 { return new(w.Transfers[s].Reduced.AvgXfer) }},
	{TransferKind, "p90_xfer_time_ms", collector.Milliseconds, "time that 90 % of the transfers were within",
		func(w *Work, s string) *float64 { return new(w.Transfers[s].Reduced.P90Xfer) }},
	{TransferKind, "throughput_mb_per_second", collector.MebibytesPerSecond, "amount per second of transfer time",
		func(w *Work, s string) *float64 { return finiteOrNil(w.Transfers[s].Reduced.Throughput) }},
	{TransferKind, "failed", collector.Times, "transfers that failed",
		func(w *Work, s string) *float64 { return new(w.Transfers[s].FailedTransfers) }},
}

// WorkValue names a number of a series: op.SERIES.count, counter.SERIES, transfer.NAME.failed.
func WorkValue(kind WorkKind, series, number string) string {
	name := string(kind) + "." + series
	if number != "" {
		name += "." + number
	}
	return name
}

// WorkMetric returns what there is to know of a number of a series: see [WorkValue]. It reports false if there is no
// such number. Only a series may have dots.
func WorkMetric(name string) (m Metric, ok bool) {
	kind, rest, _ := strings.Cut(name, ".")
	for _, row := range workNumbers {
		series, found := rest, row.name == ""
		if !found {
			series, found = strings.CutSuffix(rest, "."+row.name)
		}
		if found && series != "" && string(row.kind) == kind {
			return row.metric(series), true
		}
	}
	return Metric{}, false
}

// WorkNumbers returns the names of the numbers of a kind of series: "count", "avg_time_ms". It is empty for a counter,
// which is one number, and for what is no kind.
func WorkNumbers(kind WorkKind) []string {
	var names []string
	for _, row := range workNumbers {
		if row.kind == kind && row.name != "" {
			names = append(names, row.name)
		}
	}
	return names
}

// metric returns the row as a metric of a series.
func (row *workNumber) metric(series string) Metric {
	m := Metric{
		Name: WorkValue(row.kind, series, row.name), Unit: row.unit,
		Group: GroupOperations, Kind: row.kind, Series: series, Number: row.name,
	}
	m.Meaning, m.Across, m.column = row.meaning+" of "+series, collector.Sum, noColumn
	return m
}

// Metrics returns the numbers of all series that are known: operations by their total time, the greatest first, then
// the other kinds, each by name.
func (w *Work) Metrics() []Metric {
	var out []Metric
	if w == nil {
		return nil
	}
	for _, kind := range WorkKinds() {
		for _, series := range w.Series(kind) {
			for i := range workNumbers {
				if row := &workNumbers[i]; row.kind == kind && row.value(w, series) != nil {
					out = append(out, row.metric(series))
				}
			}
		}
	}
	return out
}

// Series returns the names of a kind of series: operations by their total time, the greatest first, others by name.
func (w *Work) Series(kind WorkKind) []string {
	switch kind {
	case OpKind:
		return slices.SortedFunc(maps.Keys(w.Times), func(a, b string) int {
			return cmp.Or(cmp.Compare(w.Times[b].Total, w.Times[a].Total), cmp.Compare(a, b))
		})
	case CounterKind:
		return slices.Sorted(maps.Keys(w.Counters))
	case GaugeKind:
		return slices.Sorted(maps.Keys(w.Gauges))
	case ValueKind:
		return slices.Sorted(maps.Keys(w.Values))
	}
	return slices.Sorted(maps.Keys(w.Transfers))
}

// Value returns a number of a series. It reports false if it is not known.
func (w *Work) Value(m *Metric) (v float64, ok bool) {
	if w == nil || !w.Has(m.Kind, m.Series) {
		return 0, false
	}
	for _, row := range workNumbers {
		if row.kind == m.Kind && row.name == m.Number {
			if p := row.value(w, m.Series); p != nil {
				return *p, true
			}
		}
	}
	return 0, false
}

// Has reports whether there is a series.
func (w *Work) Has(kind WorkKind, series string) (ok bool) {
	switch kind {
	case OpKind:
		_, ok = w.Times[series]
	case CounterKind:
		_, ok = w.Counters[series]
	case GaugeKind:
		_, ok = w.Gauges[series]
	case ValueKind:
		_, ok = w.Values[series]
	case TransferKind:
		_, ok = w.Transfers[series]
	}
	return ok
}

// Work returns what the job said of its operations on this node. It is nil if they were not recorded.
func (n *Node) Work() *Work { return (&Report{Nodes: map[string]*Node{"0": n}}).Work() }

// WorkValues returns all numbers of the node's series by their names: see [WorkValue].
func (n *Node) WorkValues() Values {
	w, out := n.Work(), make(Values)
	for _, m := range w.Metrics() {
		if v, ok := w.Value(&m); ok {
			out[m.Name] = v
		}
	}
	return out
}

// finiteOrNil returns a figure, or nil if it is not a number, as of transfers that took no time.
func finiteOrNil(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
