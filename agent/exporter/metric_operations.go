package exporter

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/reporter"
)

// A copy of the job's operations that is at least this old is replaced when it is requested. That bounds the rate for
// any number of clients.
const maxOperationsAge = 500 * time.Millisecond

// An operationsCache caches a copy of the job's operations and transfers.
type operationsCache struct {
	mu   sync.Mutex
	made time.Time
	copy *reporter.Operations // nil before the first request
}

// get returns a copy that is at most maxOperationsAge old, or nil if operations are not recorded.
func (c *operationsCache) get(aggregator func() *aggregate.Aggregator) *reporter.Operations {
	if aggregator == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()

	if now := time.Now(); c.copy == nil || now.Sub(c.made) >= maxOperationsAge {
		a := aggregator()
		node := &reporter.Node{Operations: new(a.Operations(now)), Transfers: a.Transfers()}
		c.copy, c.made = node.PooledOperations(), now
	}

	return c.copy
}

// operationMetrics returns the metrics of operations: one for each row of the table of kinds, and the counts of the
// intake.
func operationMetrics() []Metric {
	var out []Metric
	for _, kind := range reporter.OperationKinds() {
		for _, n := range reporter.OperationNumbers(kind, 0) {
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
			Help:  "accepted lines from the job and samples from its endpoints" + sinceThen,
			write: intakeEvents,
		},
		Metric{
			Name: "perfagent_intake_dropped_total", Type: counter, Label: "reason",
			Help:  "dropped datagrams (kernel, rate) and lines from the job" + sinceThen,
			write: intakeDropped,
		},
	)
}

// seriesLines writes the metric m of the table of kinds. Each known number of each series has a line.
func seriesLines(x *exposition, m *Metric, f *metricInput) {
	for _, kind := range reporter.OperationKinds() {
		numbers := slices.DeleteFunc(reporter.OperationNumbers(kind, 0), func(n reporter.OperationNumber) bool {
			return n.Metric == nil || n.Metric.Name != m.Name
		})
		slices.SortStableFunc(numbers, func(a, b reporter.OperationNumber) int { // summary: quantiles, _sum, _count
			return cmp.Compare(len(a.Suffix), len(b.Suffix))
		})
		if len(numbers) == 0 {
			continue
		}
		for _, series := range slices.Sorted(slices.Values(f.operations.Series(kind))) {
			for _, n := range numbers {
				label := strings.Replace(cmp.Or(n.Label, m.Label+`="%s"`), "%s", escaped(series), 1)
				if v, _ := n.Value(f.operations, series); v != nil {
					x.line(m, n.Suffix, ","+label, toBaseUnit(n.Unit, *v))
				}
			}
		}
	}
}

// toBaseUnit converts v, a number of the job's operations in the given unit, to Prometheus' base unit.
func toBaseUnit(unit collector.Unit, v float64) float64 {
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

// intakeEvents writes the number of events for each kind of source. All scraped endpoints together are one kind.
func intakeEvents(x *exposition, m *Metric, f *metricInput) {
	events := make(map[string]int64)
	for _, s := range f.operations.Sources {
		events[s.Kind] += s.Events
	}
	for _, kind := range slices.Sorted(maps.Keys(events)) {
		x.series(m, kind, float64(events[kind]))
	}
}

func intakeDropped(x *exposition, m *Metric, f *metricInput) {
	for _, r := range f.operations.Dropped.Reasons() {
		x.series(m, r.Name, float64(r.Count))
	}
}
