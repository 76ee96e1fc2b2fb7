package exporter

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/intake/book"
	"github.com/perfagent/perfagent/reporter"
)

// maxWorkAge is how old a copy of the job's operations may be. No copy is made before, however many clients ask.
const maxWorkAge = 500 * time.Millisecond

// A newestWork caches a copy of the job's operations and transfers.
type newestWork struct {
	mu   sync.Mutex
	made time.Time
	copy *reporter.Work // nil before the first request
}

// get returns a copy that is at most maxWorkAge old. It is nil if operations are not recorded.
func (n *newestWork) get(ask func() *book.Book) *reporter.Work {
	if ask == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()

	if now := time.Now(); n.copy == nil || now.Sub(n.made) >= maxWorkAge {
		b := ask()
		node := &reporter.Node{Operations: new(b.Operations(now)), Transfers: b.Transfers()}
		n.copy, n.made = node.Work(), now
	}

	return n.copy
}

// workMetrics returns the metrics of operations: one for each row of the table of kinds, and the counts of the intake.
func workMetrics() []Metric {
	var out []Metric
	for _, kind := range reporter.WorkKinds() {
		for _, n := range reporter.WorkNumbers(kind, 0) {
			of := n.Metric
			if of == nil || slices.ContainsFunc(out, func(m Metric) bool { return m.Name == of.Name }) {
				continue
			}
			m := Metric{Name: of.Name, Type: of.Type, Label: of.Label, Help: of.Help, write: seriesLines}
			if m.Type != gauge {
				m.Help += sinceThen
			}
			out = append(out, m)
		}
	}

	return append(out,
		Metric{
			Name: "perfagent_intake_events_total", Type: counter, Label: "source",
			Help:  "lines of the job and samples of its endpoints that were taken" + sinceThen,
			write: intakeEvents,
		},
		Metric{
			Name: "perfagent_intake_dropped_total", Type: counter, Label: "reason",
			Help:  "datagrams (kernel, rate) and lines of the job that were not taken" + sinceThen,
			write: intakeDropped,
		},
	)
}

// seriesLines writes a metric of the table of kinds: for each series a line of each number that is known.
func seriesLines(x *exposition, m *Metric, f *metricInput) {
	for _, kind := range reporter.WorkKinds() {
		numbers := slices.DeleteFunc(reporter.WorkNumbers(kind, 0), func(n reporter.WorkNumber) bool {
			return n.Metric == nil || n.Metric.Name != m.Name
		})
		slices.SortStableFunc(numbers, func(a, b reporter.WorkNumber) int { // a summary has quantiles, _sum, _count
			return cmp.Compare(len(a.Suffix), len(b.Suffix))
		})
		if len(numbers) == 0 {
			continue
		}
		for _, series := range slices.Sorted(slices.Values(f.work.Series(kind))) {
			for _, n := range numbers {
				label := strings.Replace(cmp.Or(n.Label, m.Label+`="%s"`), "%s", escaped(series), 1)
				if v, _ := n.Of(f.work, series); v != nil {
					x.line(m, n.Suffix, ","+label, inBase(n.Unit, *v))
				}
			}
		}
	}
}

// inBase returns a number of the job's work in Prometheus' base units.
func inBase(unit collector.Unit, v float64) float64 {
	switch unit {
	case collector.Milliseconds:
		return tidy(v / 1000)
	case collector.Seconds:
		return tidy(v)
	case collector.Mebibytes:
		return v * collector.MiB
	}
	return v
}

// intakeEvents writes how much came from each kind of source: several endpoints are one.
func intakeEvents(x *exposition, m *Metric, f *metricInput) {
	events := make(map[string]int64)
	for _, s := range f.work.Sources {
		events[s.Kind] += s.Events
	}
	for _, kind := range slices.Sorted(maps.Keys(events)) {
		x.series(m, kind, float64(events[kind]))
	}
}

func intakeDropped(x *exposition, m *Metric, f *metricInput) {
	for _, r := range f.work.Dropped.Reasons() {
		x.series(m, r.Name, float64(r.Count))
	}
}
