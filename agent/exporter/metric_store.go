package exporter

import (
	"maps"
	"slices"
	"strings"
)

// storeMetrics returns the metrics of perfagent's operations in the store of the reports.
func storeMetrics() []Metric {
	return []Metric{
		{
			Name: "perfagent_store_seconds", Type: summary, Label: "operation",
			Help:  "time spent in perfagent's operations on the store of reports" + sinceThen,
			write: storeSeconds,
		},
		{
			Name: "perfagent_store_errors_total", Type: counter, Label: "operation",
			Help:  "perfagent's failed operations on the store of reports" + sinceThen,
			write: storeErrors,
		},
	}
}

// storePrefix is the prefix of the names of ProxyStore's statistics.
const storePrefix = "store."

func storeSeconds(x *exposition, m *Metric, f *metricInput) {
	for _, name := range slices.Sorted(maps.Keys(f.store.Times)) {
		times := f.store.Times[name]
		labels := `,operation="` + escaped(strings.TrimPrefix(name, storePrefix)) + `"`
		x.line(m, "_sum", labels, tidy(times.Total()/1000))
		x.line(m, "_count", labels, times.Count)
	}
}

func storeErrors(x *exposition, m *Metric, f *metricInput) {
	for _, name := range slices.Sorted(maps.Keys(f.store.Counters)) {
		if op, ok := strings.CutSuffix(strings.TrimPrefix(name, storePrefix), ".errors"); ok {
			x.series(m, op, f.store.Counters[name])
		}
	}
}
