package plotter

import (
	"cmp"
	"slices"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

const (
	maxLines    = 12 // of a chart of operations: more are indistinguishable
	lineLetters = 40 // of a series' name next to a chart
)

// operationPlans returns the charts of operations and other series of the job, with the given lines.
func operationPlans(lines []reporter.OperationTimeline) []chartPlan {
	const rate, duration = reporter.LineRate, reporter.LineTime
	plans := []chartPlan{
		{ID: "operations", Title: "Operations", line: reporter.OperationTimeline{Kind: reporter.OpKind, Number: rate}},
		{ID: "operation_time", Title: "Time of operations",
			line: reporter.OperationTimeline{Kind: reporter.OpKind, Number: duration}},
		{ID: "counters", Title: "Counters", line: reporter.OperationTimeline{Kind: reporter.CounterKind, Number: rate}},
		{ID: "gauges", Title: "Gauges", Level: true, line: reporter.OperationTimeline{Kind: reporter.GaugeKind}},
		{
			ID: "transfers", Title: "Transfers",
			line: reporter.OperationTimeline{Kind: reporter.TransferKind, Number: reporter.LineThroughput},
		},
	}
	for i := range plans {
		plans[i].optional, plans[i].Series = true, lineSeries(lines, plans[i].line)
	}

	return plans
}

// lineSeries returns a series for each line of the given kind, which is the result of kindOf.
func lineSeries(lines []reporter.OperationTimeline, kind reporter.OperationTimeline) []Series {
	var out []Series
	for _, l := range lines {
		if kindOf(l) == kind {
			s := Series{Label: text.Clip(text.Printable(l.Series), lineLetters), line: l}
			out = append(out, s.styled(len(out)))
		}
	}
	return out
}

// kindOf returns what l has in common with the other lines of its chart: all but the series.
func kindOf(l reporter.OperationTimeline) reporter.OperationTimeline {
	l.Series = ""
	return l
}

// chosenLines returns the lines of n that are drawn: of each kind the measured lines that reach highest. more is the
// number of lines that are not drawn.
func chosenLines(n *reporter.Node) (chosen []reporter.OperationTimeline, more int) {
	peaks := make(map[reporter.OperationTimeline]float64)
	lines := slices.DeleteFunc(n.Timelines(), func(l reporter.OperationTimeline) bool {
		band, ok := bandOf(n, l.Key())
		if ok {
			peaks[l] = band.MaxOf(0, len(band.Max))
		}
		return !ok
	})
	byPeak := slices.SortedStableFunc(slices.Values(lines), func(a, b reporter.OperationTimeline) int {
		return cmp.Compare(peaks[b], peaks[a])
	})

	count, drawn := make(map[reporter.OperationTimeline]int), make(map[reporter.OperationTimeline]bool)
	for _, l := range byPeak {
		kind := kindOf(l)
		drawn[l] = count[kind] < maxLines
		count[kind]++
	}
	chosen = slices.DeleteFunc(slices.Clone(lines), func(l reporter.OperationTimeline) bool { return !drawn[l] })

	return chosen, len(lines) - len(chosen)
}
