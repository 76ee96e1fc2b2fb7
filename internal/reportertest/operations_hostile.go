package reportertest

import (
	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/opstats"
	"github.com/perfagent/perfagent/reporter"
)

// AddHostileOperations adds operations and transfers to each node of a report, with text in every field that can hold
// one.
func AddHostileOperations(r *reporter.Report, text string) *reporter.Report {
	for _, n := range r.Nodes {
		if n == nil {
			continue
		}

		n.Operations = &aggregate.Operations{
			Sources: []aggregate.Source{
				{Kind: text, Address: text, Failures: 1, Why: text},
				{Kind: "scrape", Address: text, Scrapes: new(int64(1)), Failures: 1, Why: text + "b"},
			},
			Times: map[string]aggregate.Timing{
				text: {Count: 2, Avg: new(1.5), Total: 3, P90: new(2.0), Errors: 1, Estimated: []string{text}},
			},
			Counters:   map[string]float64{text: 1e300},
			Gauges:     map[string]aggregate.Gauge{text: {Last: -1, Mean: 1e-300, Max: 2, Count: 1}},
			Values:     map[string]aggregate.Value{text: {Count: 1, Avg: 1, Unit: text}},
			Sets:       map[string]aggregate.Set{text: {Count: 1000, AtLeast: true}},
			Attributes: map[string]any{text: text, "a" + text: nil, "b" + text: []any{text}},
			Keys:       map[string]map[string]opstats.TimeStats{text: {text: {Count: 1, Avg: 1, Min: 1, Max: 1}}},
			Dropped:    aggregate.Dropped{Kernel: 1, Keys: -1},
			Examples:   []aggregate.Example{{Line: text, Why: text}},
		}
		n.Transfers = map[string]aggregate.Transfer{text: {
			Summary: opstats.TransferSummary{Transfers: 1, AvgXfer: 1}, Source: text, Estimated: []string{text},
			Other: map[string]aggregate.TransferList{text: {Count: 1, Sum: 2}},
		}}
	}

	return r
}
