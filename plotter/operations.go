package plotter

import (
	"cmp"
	"slices"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

const (
	maxLines    = 12 // maximum number of lines in an operation chart, because more are indistinguishable
	lineLetters = 40 // maximum length of a series' name next to a chart
)

// operationPlans returns the charts of the given lines: operations and other series that the job reports.
func operationPlans(lines []reporter.OperationTimeline) (plans []chartPlan) {
	for _, row := range []struct {
		id, title string
		kind      reporter.OperationKind
		number    string
	}{
		{"operations", "Operations", reporter.OpKind, reporter.LineRate},
		{"operation_time", "Time of operations", reporter.OpKind, reporter.LineTime},
		{"counters", "Counters", reporter.CounterKind, reporter.LineRate},
		{"gauges", "Gauges", reporter.GaugeKind, ""},
		{"transfers", "Transfers", reporter.TransferKind, reporter.LineThroughput},
	} {
		p := chartPlan{ID: row.id, Title: row.title, Level: row.kind == reporter.GaugeKind, optional: true,
			line: reporter.OperationTimeline{Kind: row.kind, Number: row.number}}
		for _, l := range lines {
			if kindOf(l) == p.line {
				s := Series{Label: text.Clip(text.Printable(l.Series), lineLetters), line: l}
				p.Series = append(p.Series, s.styled(len(p.Series)))
			}
		}
		plans = append(plans, p)
	}
	return plans
}

// kindOf returns l without its series. All lines of one chart have the same kind.
func kindOf(l reporter.OperationTimeline) reporter.OperationTimeline {
	l.Series = ""
	return l
}

// chosenLines returns the lines of n to draw: for each kind, the measured lines with the highest peaks. more is the
// number of other lines.
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
		drawn[l] = count[kindOf(l)] < maxLines
		count[kindOf(l)]++
	}
	for _, l := range lines {
		if drawn[l] {
			chosen = append(chosen, l)
		}
	}
	return chosen, len(lines) - len(chosen)
}
