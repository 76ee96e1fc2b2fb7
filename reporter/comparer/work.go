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

// seriesShown is how many series of the job's work the tables show. A comparison as JSON has all.
const seriesShown = 40

// A series is what numbers of the job's work are of.
type series struct {
	kind reporter.WorkKind
	name string
}

// workOf returns what the job said of its operations on some nodes, or nil.
func workOf(nodes []node) *reporter.Work {
	report := &reporter.Report{Nodes: make(map[string]*reporter.Node, len(nodes))}
	for _, n := range nodes {
		report.Nodes[n.name] = n.Node
	}
	return report.Work()
}

// lostWork reports whether datagrams of the job were lost.
func (r *run) lostWork() bool {
	return r.work != nil && r.work.Dropped.Datagrams() > 0
}

// workMetrics returns the numbers of all series, those of a series together: operations by the time that they took in
// all runs, then the other kinds.
func workMetrics(sides ...[]*run) []reporter.Metric {
	runs := slices.Concat(sides...)
	var out []reporter.Metric
	known := make(map[string]bool)
	for _, r := range runs {
		for _, m := range r.work.Metrics() {
			if !known[m.Name] {
				known[m.Name], out = true, append(out, m)
			}
		}
	}

	kinds, times := reporter.WorkKinds(), workTimes(runs)
	slices.SortStableFunc(out, func(a, b reporter.Metric) int {
		timeA, timeB := times[series{a.Kind, a.Series}], times[series{b.Kind, b.Series}]
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), cmp.Compare(timeB, timeA),
			cmp.Compare(a.Series, b.Series))
	})

	return out
}

// workTimes returns how long operations and transfers took in all runs, in milliseconds.
func workTimes(runs []*run) map[series]float64 {
	times := make(map[series]float64)
	for _, r := range runs {
		if r.work == nil {
			continue
		}
		for name, t := range r.work.Times {
			times[series{reporter.OpKind, name}] += t.Total
		}
		for name, t := range r.work.Transfers {
			times[series{reporter.TransferKind, name}] += t.Reduced.Transfers * t.Reduced.AvgXfer
		}
	}
	return times
}

// hideWork hides from the tables all series but those with the most time and, where there is room, the first of those
// that have no time.
func (c *Comparison) hideWork(runs []*run) {
	var all []series
	for _, m := range c.Metrics {
		if s := (series{m.of.Kind, m.of.Series}); s.kind != "" && (len(all) == 0 || all[len(all)-1] != s) {
			all = append(all, s)
		}
	}
	if len(all) <= seriesShown {
		return
	}

	times := workTimes(runs)
	slices.SortStableFunc(all, func(a, b series) int { return cmp.Compare(times[b], times[a]) })
	hidden := make(map[series]bool)
	for _, s := range all[seriesShown:] {
		hidden[s] = true
	}
	for i, m := range c.Metrics {
		c.Metrics[i].hidden = m.hidden || hidden[series{m.of.Kind, m.of.Series}]
	}

	const note = "the table has %d of %d series of operations, counters and so on, those with the most time; " +
		"--format json has all"
	c.Notes = append(c.Notes, fmt.Sprintf(note, seriesShown, len(all)))
}

var errNotRecorded = errors.New("operations were not recorded")

// workValue returns a number of a series over the nodes of the run. The error says why there is none.
func (r *run) workValue(m *reporter.Metric) (float64, error) {
	v, ok := r.work.Value(m)
	switch {
	case r.work == nil:
		return 0, errNotRecorded
	case !r.work.Has(m.Kind, m.Series):
		return 0, fmt.Errorf("the job recorded no such %s", m.Kind.Noun())
	case !ok:
		return 0, fmt.Errorf("it is not known for this %s", m.Kind.Noun())
	case !finite(v):
		return 0, errTooLarge
	}
	return v, nil
}

// workNumbersOf says which numbers a series has whose kind a name begins with; "" if it begins with none.
func workNumbersOf(name string) string {
	kind, _, _ := strings.Cut(name, ".")
	names := ""
	for _, n := range reporter.WorkNumbers(reporter.WorkKind(kind), reporter.Compared) {
		if n.Name != "" { // a counter is one number
			names += ", ." + n.Name
		}
	}
	if names == "" {
		return ""
	}
	return kind + ".NAME" + strings.TrimPrefix(names, ", ")
}

// shownName returns the name of a metric as the tables show it. Of a series the middle is cut: names often differ at
// their ends, by a tag.
func (m *Metric) shownName() string {
	of := m.of
	if of.Kind == "" {
		return text.Clip(m.Name, maxName)
	}

	name := []rune(of.Series)
	if room := maxName - (len(m.Name) - len(of.Series)); len(name) > room {
		name = slices.Concat(name[:room/2], []rune("…"), name[len(name)-(room-room/2-1):])
	}

	return reporter.WorkValue(of.Kind, string(name), of.Number)
}
