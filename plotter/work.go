package plotter

import (
	"cmp"
	"slices"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

const (
	mostLines   = 12 // of a chart of operations: more cannot be told apart
	lineLetters = 40 // of a series' name that are shown beside a chart
)

// workPlans returns the charts of what the job said of its work, with these lines.
func workPlans(lines []reporter.WorkLine) []chartPlan {
	const rate, duration = reporter.LineRate, reporter.LineTime
	transferTime := reporter.WorkLine{Kind: reporter.TransferKind, Number: duration}
	plans := []chartPlan{
		{ID: "operations", Title: "Operations", line: reporter.WorkLine{Kind: reporter.OpKind, Number: rate}},
		{ID: "operation_time", Title: "Time of operations", line: reporter.WorkLine{Kind: reporter.OpKind, Number: duration}},
		{ID: "counters", Title: "Counters", line: reporter.WorkLine{Kind: reporter.CounterKind, Number: rate}},
		{ID: "gauges", Title: "Gauges", line: reporter.WorkLine{Kind: reporter.GaugeKind}},
		{
			ID: "transfers", Title: "Transfers", Asides: lineSeries(lines, transferTime),
			line: reporter.WorkLine{Kind: reporter.TransferKind, Number: reporter.LineThroughput},
		},
	}
	for i := range plans {
		plans[i].Maybe, plans[i].Series = true, lineSeries(lines, plans[i].line)
	}

	return plans
}

// lineSeries returns the series of those lines that are of a kind. The kind is a line without a series.
func lineSeries(lines []reporter.WorkLine, kind reporter.WorkLine) []Series {
	var out []Series
	for _, l := range lines {
		if kindOf(l) == kind {
			s := Series{Label: text.Clip(text.Printable(l.Series), lineLetters), line: l}
			out = append(out, s.styled(len(out)))
		}
	}
	return out
}

// kindOf returns what the lines of a chart have in common.
func kindOf(l reporter.WorkLine) reporter.WorkLine {
	l.Series = ""
	return l
}

// chosenLines returns the measured lines of a node that are drawn: of each kind those that reach highest. more is how
// many others there are.
func chosenLines(n *reporter.Node) (chosen []reporter.WorkLine, more int) {
	peaks := make(map[reporter.WorkLine]float64)
	lines := slices.DeleteFunc(n.WorkLines(), func(l reporter.WorkLine) bool {
		band, ok := bandOf(n, l.Key())
		if ok {
			peaks[l] = band.MaxOf(0, len(band.Max))
		}
		return !ok
	})
	byPeak := slices.SortedStableFunc(slices.Values(lines), func(a, b reporter.WorkLine) int {
		return cmp.Compare(peaks[b], peaks[a])
	})

	count, drawn := make(map[reporter.WorkLine]int), make(map[reporter.WorkLine]bool)
	for _, l := range byPeak {
		kind := kindOf(l)
		drawn[l] = count[kind] < mostLines
		count[kind]++
	}
	chosen = slices.DeleteFunc(slices.Clone(lines), func(l reporter.WorkLine) bool { return !drawn[l] })

	return chosen, len(lines) - len(chosen)
}
