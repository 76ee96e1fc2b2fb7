package reporter

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/internal/text"
)

// The units of numbers of operations.
const (
	ms                       = collector.Milliseconds
	noUnit    collector.Unit = ""    // only the job knows it
	bytesUnit collector.Unit = "B"   // of objects
	perSecond collector.Unit = "1/s" // of what is counted per second
)

// An OperationKind is what a series is: the first word of the names of its numbers.
type OperationKind = aggregate.Kind

// The kinds of series.
const (
	OpKind       = aggregate.OpKind
	CounterKind  = aggregate.CounterKind
	GaugeKind    = aggregate.GaugeKind
	ValueKind    = aggregate.ValueKind
	TransferKind = aggregate.TransferKind
)

// Outputs are those that take a number from the table of kinds. All take it that show every number of a series.
type Outputs uint8

// The outputs that take some of the numbers.
const (
	OutputCompare Outputs = 1 << iota // show --json, diff and gates
	OutputPush                        // MLflow, at the end of a run
	OutputPage                        // the tables of the page
	allOutputs    = OutputCompare | OutputPush | OutputPage
)

// An OperationNumber is a number of each series of a kind: a row of the table of kinds.
type OperationNumber struct {
	Name          string // behind the series and in MLflow: "avg_time_ms"; "" for a counter, which is one number
	Heading       string // of a column, without the unit; "" where no table has the number
	Unit          collector.Unit
	Outputs       Outputs
	Meaning       string // of a number that is compared
	SummaryFormat string // the number in a summary, "avg %s"; "" where it has none
	OmitZero      bool   // 0 is as good as nothing
	// Quantile marks a number that is that of the worst node where several are pooled: "0.9". That of all nodes is at
	// most as large.
	Quantile string
	// Metric is the metric of /metrics that has the number, or nil. Its line has the Suffix, and as Label that of the
	// series, "%s", and others.
	Metric        *MetricFamily
	Suffix, Label string
	// VLLMName is the name in vLLM's class, by which an estimated figure is known.
	VLLMName string

	PerNode bool // of several nodes it says nothing of all

	kind kindTable
	row  int
}

// A MetricFamily is a metric of /metrics that is made of numbers of the table. There, times are in seconds, and amounts
// in bytes.
type MetricFamily struct{ Name, Type, Label, Help string }

// Value returns the number of a series; nil if it is not known. estimated says that it was estimated from the buckets
// of a histogram.
func (n *OperationNumber) Value(w *Operations, series string) (v *float64, estimated bool) {
	return n.kind.value(w, series, n.row)
}

// Text returns the number of a series in a table: with a tilde if it was estimated, a dash if it is not known.
func (n *OperationNumber) Text(w *Operations, series string) string {
	v, estimated := n.Value(w, series)
	switch {
	case v == nil || n.OmitZero && *v == 0:
		return text.Absent
	case estimated:
		return "~" + text.Number(*v)
	}
	return text.Number(*v)
}

// operationKinds is the table of kinds, in the order of output.
var operationKinds = []kindTable{&times, &counters, &gauges, &values, &transfers}

// A kindTable is a kind of series, whatever holds its numbers.
type kindTable interface {
	kind() OperationKind
	numbers() []OperationNumber
	series(w *Operations) []string
	value(w *Operations, series string, row int) (v *float64, estimated bool)
	add(w, o *Operations)
}

// A kind is a kind of series. A T has the numbers of one.
type kind[T any] struct {
	name      OperationKind
	all       func(w *Operations) *map[string]T
	total     func(t *T) float64    // by which series are ordered; nil = by name only
	estimated func(t *T) *[]string  // names of numbers that were estimated; nil = none ever is
	rest      func(out *T, a, b *T) // pools in out, a copy of b, what the rows don't
	rows      []kindNumber[T]       // in the order of output; averages are of as many values as the first says
}

// A kindNumber is a row of a kind.
type kindNumber[T any] struct {
	OperationNumber
	field[T]
	pool pooling // nil: by the kind's rest, or the number of the latter node
}

// A field is where a T has a number.
type field[T any] struct {
	get func(t *T) *float64
	set func(t *T, v *float64)
}

// plain is a number that is always known.
func plain[T any](at func(t *T) *float64) field[T] {
	return field[T]{at, func(t *T, v *float64) { *at(t) = *v }}
}

// nilable is a number that may be nil.
func nilable[T any](at func(t *T) **float64) field[T] {
	return field[T]{func(t *T) *float64 { return *at(t) }, func(t *T, v *float64) { *at(t) = v }}
}

func (k *kind[T]) kind() OperationKind { return k.name }

func (k *kind[T]) numbers() []OperationNumber {
	out := make([]OperationNumber, len(k.rows))
	for i := range k.rows {
		out[i] = k.rows[i].OperationNumber
		out[i].kind, out[i].row = k, i
	}
	return out
}

func (k *kind[T]) series(w *Operations) []string {
	all := *k.all(w)
	if k.total == nil {
		return slices.Sorted(maps.Keys(all))
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		x, y := all[a], all[b]
		return cmp.Or(cmp.Compare(k.total(&y), k.total(&x)), cmp.Compare(a, b))
	})
}

func (k *kind[T]) value(w *Operations, series string, row int) (v *float64, estimated bool) {
	t, ok := (*k.all(w))[series]
	if !ok {
		return nil, false
	}
	n := &k.rows[row]
	if k.estimated != nil {
		names := *k.estimated(&t)
		estimated = slices.Contains(names, cmp.Or(n.VLLMName, n.Name))
	}
	return n.get(&t), estimated
}

// add pools the series of another node.
func (k *kind[T]) add(w, o *Operations) { *k.all(w) = pooled(*k.all(w), *k.all(o), k.join) }

// join pools a series of two nodes.
func (k *kind[T]) join(a, b T) T {
	out, n, m := b, *k.rows[0].get(&a), *k.rows[0].get(&b)
	for i := range k.rows {
		if row := &k.rows[i]; row.pool != nil {
			row.set(&out, row.pool(row.get(&a), n, row.get(&b), m))
		}
	}
	if k.rest != nil {
		k.rest(&out, &a, &b)
	}
	if k.estimated != nil {
		*k.estimated(&out) = union(*k.estimated(&a), *k.estimated(&b))
	}
	return out
}

// kindOf returns the row of the table for a kind; nil if it is none.
func kindOf(name OperationKind) kindTable {
	for _, k := range operationKinds {
		if k.kind() == name {
			return k
		}
	}
	return nil
}

// OperationKinds returns the kinds of series in the order of output.
func OperationKinds() []OperationKind {
	var out []OperationKind
	for _, k := range operationKinds {
		out = append(out, k.kind())
	}
	return out
}

// OperationNumbers returns the numbers of a kind of series that one of the outputs takes; 0 stands for all numbers.
func OperationNumbers(kind OperationKind, in Outputs) []OperationNumber {
	k := kindOf(kind)
	if k == nil {
		return nil
	}
	return slices.DeleteFunc(k.numbers(), func(n OperationNumber) bool { return n.Outputs&in != in })
}

// Series returns the names of a kind of series: operations by their total time, the greatest first, others by name.
func (w *Operations) Series(kind OperationKind) []string { return kindOf(kind).series(w) }

// Has reports whether there is a series. The first number of each kind is always known.
func (w *Operations) Has(kind OperationKind, series string) bool {
	v, _ := kindOf(kind).value(w, series, 0)
	return v != nil
}

// Table returns the series of a kind with the numbers that an output takes, and what else is known of each: headings of
// columns, and rows of texts from the report and numbers.
func (w *Operations) Table(kind OperationKind, in Outputs) (heads []string, rows [][]string) {
	numbers, heads := OperationNumbers(kind, in), []string{kind.Noun()}
	for _, n := range numbers {
		if n.Unit == ms || n.Unit == bytesUnit {
			n.Heading += " " + string(n.Unit)
		}
		heads = append(heads, n.Heading)
	}
	var words func(series string) string
	switch {
	case kind == ValueKind:
		heads, words = append(heads, "unit"), func(series string) string { return w.Values[series].Unit }
	case kind == OpKind && w.Nodes > 1:
		heads, words = append(heads, "slowest node"), func(series string) string { return w.SlowestNode[series] }
	}

	for _, series := range w.Series(kind) {
		row := []string{series}
		for _, n := range numbers {
			row = append(row, n.Text(w, series))
		}
		if words != nil {
			row = append(row, words(series))
		}
		rows = append(rows, row)
	}

	return heads, rows
}

// OperationMetricName names a number of a series: op.SERIES.count, counter.SERIES, transfer.NAME.failed.
func OperationMetricName(kind OperationKind, series, number string) string {
	return strings.TrimSuffix(string(kind)+"."+series+"."+number, ".")
}

// OperationMetric returns what is known of a number of a series that is compared: see [OperationMetricName]. It
// reports false if there is no such number. Only a series may have dots.
func OperationMetric(name string) (m Metric, ok bool) {
	kind, rest, _ := strings.Cut(name, ".")
	for _, n := range OperationNumbers(OperationKind(kind), OutputCompare) {
		if series, found := seriesIn(rest, ".", n.Name); found {
			return n.metric(series), true
		}
	}
	return Metric{}, false
}

// seriesIn returns the series of SERIES, a separator and a number, or of SERIES alone if the number has no name. It
// reports false if text is not of this form.
func seriesIn(text, separator, number string) (series string, ok bool) {
	if series, ok = text, true; number != "" {
		series, ok = strings.CutSuffix(text, separator+number)
	}
	return series, ok && series != ""
}

// metric returns the number as a metric of a series.
func (n *OperationNumber) metric(series string) Metric {
	kind := n.kind.kind()
	m := Metric{
		Name: OperationMetricName(kind, series, n.Name), Unit: n.Unit, Group: GroupOperations, Kind: kind, Series: series,
		Number: n.Name,
	}
	m.Meaning, m.Aggregation, m.column, m.row = n.Meaning+" of "+series, collector.Sum, noColumn, n
	return m
}

// Metrics returns the numbers of all series that are compared and known: operations by their total time, the greatest
// first, then the other kinds, each by name.
func (w *Operations) Metrics() []Metric {
	if w == nil {
		return nil
	}
	var out []Metric
	for _, k := range operationKinds {
		numbers := OperationNumbers(k.kind(), OutputCompare)
		for _, series := range k.series(w) {
			for _, n := range numbers {
				if v, _ := n.Value(w, series); v != nil {
					out = append(out, n.metric(series))
				}
			}
		}
	}
	return out
}

// Value returns a number of a series. It reports false if it is not known.
func (w *Operations) Value(m *Metric) (v float64, ok bool) {
	if w == nil || m.row == nil {
		return 0, false
	}
	p, _ := m.row.Value(w, m.Series)
	if p == nil {
		return 0, false
	}
	return *p, true
}

// OperationValues returns all numbers of the node's series that are compared, by their names: see
// [OperationMetricName].
func (n *Node) OperationValues() Values {
	w, out := n.PooledOperations(), make(Values)
	for _, m := range w.Metrics() {
		if v, ok := w.Value(&m); ok {
			out[m.Name] = v
		}
	}
	return out
}
