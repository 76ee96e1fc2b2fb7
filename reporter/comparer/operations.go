package comparer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// seriesShown is the maximum number of operation series in the tables. The JSON form of a comparison has all of them.
const seriesShown = 40

// seriesKey identifies a series of operations.
type seriesKey struct {
	kind reporter.OperationKind
	name string
}

// operationsOf returns the pooled operations of nodes, or nil if no node has any.
func operationsOf(nodes []node) *reporter.Operations {
	report := &reporter.Report{Nodes: make(map[string]*reporter.Node, len(nodes))}
	for _, n := range nodes {
		report.Nodes[n.name] = n.Node
	}
	return report.PooledOperations()
}

// hasDroppedOperations reports whether datagrams of the job were lost.
func (r *run) hasDroppedOperations() bool {
	return r.operations != nil && r.operations.Dropped.Datagrams() > 0
}

// operationMetrics returns the numbers of all series, grouped by series. Operations come first, sorted by their total
// time in all runs, then the other kinds.
func operationMetrics(sides ...[]*run) []reporter.Metric {
	runs := slices.Concat(sides...)
	var out []reporter.Metric
	known := make(map[string]bool)
	for _, r := range runs {
		for _, m := range r.operations.Metrics() {
			if !known[m.Name] {
				known[m.Name], out = true, append(out, m)
			}
		}
	}

	kinds, times := reporter.OperationKinds(), operationTimes(runs)
	slices.SortStableFunc(out, func(a, b reporter.Metric) int {
		timeA, timeB := times[seriesKey{a.Kind, a.Series}], times[seriesKey{b.Kind, b.Series}]
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), cmp.Compare(timeB, timeA),
			cmp.Compare(a.Series, b.Series))
	})

	return out
}

// operationTimes returns the total time of operations and transfers in all runs, in milliseconds.
func operationTimes(runs []*run) map[seriesKey]float64 {
	times := make(map[seriesKey]float64)
	for _, r := range runs {
		if r.operations == nil {
			continue
		}
		for name, t := range r.operations.Times {
			times[seriesKey{reporter.OpKind, name}] += t.Total
		}
		for name, t := range r.operations.Transfers {
			times[seriesKey{reporter.TransferKind, name}] += t.Summary.Transfers * t.Summary.AvgXfer
		}
	}
	return times
}

// hideOperations hides series from the tables, except the series with the most time and, if there is room, the first
// series without a time.
func (c *Comparison) hideOperations(runs []*run) {
	var all []seriesKey
	for _, m := range c.Metrics {
		if s := (seriesKey{m.definition.Kind, m.definition.Series}); s.kind != "" && (len(all) == 0 || all[len(all)-1] != s) {
			all = append(all, s)
		}
	}
	if len(all) <= seriesShown {
		return
	}

	times := operationTimes(runs)
	slices.SortStableFunc(all, func(a, b seriesKey) int { return cmp.Compare(times[b], times[a]) })
	hidden := make(map[seriesKey]bool)
	for _, s := range all[seriesShown:] {
		hidden[s] = true
	}
	for i, m := range c.Metrics {
		c.Metrics[i].hidden = m.hidden || hidden[seriesKey{m.definition.Kind, m.definition.Series}]
	}

	const note = "the table has %d of %d series of operations, counters and so on, those with the most time; " +
		"--format json has all"
	c.Notes = append(c.Notes, fmt.Sprintf(note, seriesShown, len(all)))
}

var errNotRecorded = errors.New("operations were not recorded")

// operationValue returns m, a number of a series, across the nodes of the run, or the reason why there is none.
func (r *run) operationValue(m *reporter.Metric) (float64, error) {
	v, ok := r.operations.Value(m)
	switch {
	case r.operations == nil:
		return 0, errNotRecorded
	case !r.operations.Has(m.Kind, m.Series):
		return 0, fmt.Errorf("the job recorded no such %s", m.Kind.Noun())
	case !ok:
		return 0, fmt.Errorf("it is not known for this %s", m.Kind.Noun())
	case !isComputable(v):
		return 0, errTooLarge
	}
	return v, nil
}

// operationNumbersOf lists the numbers of a series. The kind of the series is the beginning of name. If name does not
// begin with a kind, the result is "".
func operationNumbersOf(name string) string {
	kind, _, _ := strings.Cut(name, ".")
	names := ""
	for _, n := range reporter.OperationNumbers(reporter.OperationKind(kind), reporter.OutputCompare) {
		if n.Name != "" { // a counter has only one number, without a name
			names += ", ." + n.Name
		}
	}
	if names == "" {
		return ""
	}
	return kind + ".NAME" + strings.TrimPrefix(names, ", ")
}

// label returns the name of m for the tables. It shortens the name of a series in the middle, because names often
// differ only in a tag at the end.
func (m *Metric) label() string {
	of := m.definition
	if of.Kind == "" {
		return text.Clip(of.Label, maxName)
	}

	name := []rune(of.Series)
	if room := maxName - (len(m.Name) - len(of.Series)); len(name) > room {
		name = slices.Concat(name[:room/2], []rune("…"), name[len(name)-(room-room/2-1):])
	}

	return reporter.OperationMetricName(of.Kind, string(name), of.Number)
}
