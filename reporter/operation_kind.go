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

// Units of operation numbers.
const (
	ms                       = collector.Milliseconds
	noUnit    collector.Unit = ""    // only the job knows it
	bytesUnit collector.Unit = "B"   // of object sizes
	perSecond collector.Unit = "1/s" // of rates
)

// An OperationKind is the kind of a series: the first word of the names of its numbers.
type OperationKind = aggregate.Kind

// Kinds of series.
const (
	OpKind       = aggregate.OpKind
	CounterKind  = aggregate.CounterKind
	GaugeKind    = aggregate.GaugeKind
	ValueKind    = aggregate.ValueKind
	TransferKind = aggregate.TransferKind
)

// Outputs is the set of outputs that show a number from the table of kinds. Outputs that show all numbers are not part
// of the set.
type Outputs uint8

// Outputs that show only some of the numbers.
const (
	OutputCompare Outputs = 1 << iota // show --json, diff and gates
	OutputPush                        // MLflow, at the end of a run
	OutputPage                        // the tables of the page
	allOutputs    = OutputCompare | OutputPush | OutputPage
)

// An OperationNumber describes a number that each series of a kind has. It is a row of the table of kinds.
type OperationNumber struct {
	Name          string // the end of names, also in MLflow: "avg_time_ms"; "" for a counter, which has one number
	Heading       string // of a column, without the unit; "" if no table has the number
	Unit          collector.Unit
	Outputs       Outputs
	Meaning       string // of a number in OutputCompare
	SummaryFormat string // "avg %s"; "" if summaries omit it
	OmitZero      bool   // 0 is not shown
	// Quantile is set, for example to "0.9", if the pooled number is taken from the worst node, and so is at least the
	// quantile over all nodes.
	Quantile string
	// Metric is the family of /metrics that contains the number, or nil. The name in its line ends in Suffix, and its
	// labels are Label with the series in place of "%s".
	Metric        *MetricFamily
	Suffix, Label string
	// VLLMName is the name of the number in vLLM's class. Lists of estimated numbers contain this name.
	VLLMName string

	PerNode bool // has no meaning over several nodes

	pool  pooling   // nil if the kind's rest pools the number, or the second node's number is kept
	table kindTable // of the number's kind
	index int       // of the number in table
}

// A MetricFamily is a metric of /metrics made from numbers of the table. In /metrics, times are in seconds, and amounts
// in bytes.
type MetricFamily struct{ Name, Type, Label, Help string }

// Value returns the number of a series; nil if it is unknown. estimated reports that it was estimated from the buckets
// of a histogram.
func (n *OperationNumber) Value(w *Operations, series string) (v *float64, estimated bool) {
	return n.table.value(w, series, n.index)
}

// Text returns the number of a series for a table: with a tilde if it was estimated, or a dash if it is unknown or an
// omitted 0.
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

// A kindTable is the view of a kind[T] that does not depend on T.
type kindTable interface {
	kind() OperationKind
	numbers() []OperationNumber
	series(w *Operations) []string
	value(w *Operations, series string, index int) (v *float64, estimated bool)
	add(w, o *Operations)
}

// A kind describes one kind of series. A T holds the numbers of one series.
type kind[T any] struct {
	name      OperationKind
	all       func(w *Operations) *map[string]T
	total     func(t *T) float64    // orders series; nil = by name only
	estimated func(t *T) *[]string  // names of estimated numbers; nil = never estimated
	rest      func(out *T, a, b *T) // pools the fields that are not in rows into out, a copy of b
	fields    func(t *T) []any      // addresses of the numbers: *float64, *int64, or **float64 if it may be unknown
	rows      []OperationNumber     // in the order of output; the first is the number of values behind the averages
}

// numberAt returns the number at an address in fields, or nil if it is unknown.
func numberAt(field any) *float64 {
	switch v := field.(type) {
	case *int64:
		return new(float64(*v))
	case **float64:
		return *v
	}
	return field.(*float64)
}

// setNumber sets the number at an address in fields.
func setNumber(field any, v *float64) {
	switch field := field.(type) {
	case *int64:
		*field = int64(*v)
	case **float64:
		*field = v
	case *float64:
		*field = *v
	}
}

func (k *kind[T]) kind() OperationKind { return k.name }

func (k *kind[T]) numbers() []OperationNumber {
	out := slices.Clone(k.rows)
	for i := range out {
		out[i].table, out[i].index = k, i
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

func (k *kind[T]) value(w *Operations, series string, index int) (v *float64, estimated bool) {
	t, ok := (*k.all(w))[series]
	if !ok {
		return nil, false
	}
	n := &k.rows[index]
	if k.estimated != nil {
		names := *k.estimated(&t)
		estimated = slices.Contains(names, cmp.Or(n.VLLMName, n.Name))
	}
	return numberAt(k.fields(&t)[index]), estimated
}

// add pools the series of o into w.
func (k *kind[T]) add(w, o *Operations) { *k.all(w) = pooled(*k.all(w), *k.all(o), k.join) }

// join pools a and b, the same series on two nodes.
func (k *kind[T]) join(a, b T) T {
	out := b
	x, y, into := k.fields(&a), k.fields(&b), k.fields(&out)
	n, m := *numberAt(x[0]), *numberAt(y[0])
	for i, row := range k.rows {
		if row.pool != nil {
			setNumber(into[i], row.pool(numberAt(x[i]), n, numberAt(y[i]), m))
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

// kindOf returns the kind with the given name; nil if there is none.
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
	return []OperationKind{OpKind, CounterKind, GaugeKind, ValueKind, TransferKind}
}

// OperationNumbers returns the numbers of a kind that all of the given outputs show. For 0, it returns all numbers.
func OperationNumbers(kind OperationKind, outputs Outputs) []OperationNumber {
	k := kindOf(kind)
	if k == nil {
		return nil
	}
	return slices.DeleteFunc(k.numbers(), func(n OperationNumber) bool { return n.Outputs&outputs != outputs })
}

// Series returns the series of a kind: operations by total time, greatest first, all other kinds by name.
func (w *Operations) Series(kind OperationKind) []string { return kindOf(kind).series(w) }

// Has reports whether the series exists. It looks for the first number of the kind, which is always known.
func (w *Operations) Has(kind OperationKind, series string) bool {
	v, _ := kindOf(kind).value(w, series, 0)
	return v != nil
}

// Table returns a table of the series of a kind: headings, and a row for each series. A row has the series, the numbers
// that all of outputs show, and the unit of values or the slowest node of an operation.
func (w *Operations) Table(kind OperationKind, outputs Outputs) (heads []string, rows [][]string) {
	numbers, heads := OperationNumbers(kind, outputs), []string{kind.Noun()}
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

// OperationMetricName returns the name of a number of a series: op.SERIES.count, counter.SERIES, transfer.NAME.failed.
func OperationMetricName(kind OperationKind, series, number string) string {
	return strings.TrimSuffix(string(kind)+"."+series+"."+number, ".")
}

// OperationMetric returns the metric with a name from [OperationMetricName], for numbers in OutputCompare. It returns
// false if there is no such number. Only the series may contain dots.
func OperationMetric(name string) (m Metric, ok bool) {
	kind, rest, _ := strings.Cut(name, ".")
	for _, n := range OperationNumbers(OperationKind(kind), OutputCompare) {
		if series, found := seriesIn(rest, ".", n.Name); found {
			return n.metric(series), true
		}
	}
	return Metric{}, false
}

// seriesIn returns the series in text, which has the form SERIES + separator + number; if number is "", the series is
// all of text. It returns false if text has another form or the series is empty.
func seriesIn(text, separator, number string) (series string, ok bool) {
	if series, ok = text, true; number != "" {
		series, ok = strings.CutSuffix(text, separator+number)
	}
	return series, ok && series != ""
}

// metric returns n as a metric of the given series.
func (n *OperationNumber) metric(series string) Metric {
	kind := n.table.kind()
	m := Metric{
		Name: OperationMetricName(kind, series, n.Name), Unit: n.Unit, Group: GroupOperations, Kind: kind, Series: series,
		Number: n.Name,
	}
	m.Meaning, m.Aggregation, m.column, m.row = n.Meaning+" of "+series, collector.Sum, noColumn, n
	return m
}

// Metrics returns all known numbers in OutputCompare: operations by total time, greatest first, then
// the other kinds, each by name.
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

// Value returns the number of a series that m describes. It returns false if the number is unknown.
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

// OperationValues returns the known numbers in OutputCompare of all operations of the node, by metric name (see
// [OperationMetricName]).
func (n *Node) OperationValues() Values {
	w, out := n.PooledOperations(), make(Values)
	for _, m := range w.Metrics() {
		if v, ok := w.Value(&m); ok {
			out[m.Name] = v
		}
	}
	return out
}
