package terminal

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// maxOperations is the maximum number of operations on a screen.
const maxOperations = 3

// operation describes an operation in the newest kept sample.
type operation struct {
	name, rate, each string
	perSecond        float64
}

// busiest returns the operations with the most calls per second, the busiest first. It returns none for a run that has
// ended, because the report of that run has the totals.
func busiest(n *reporter.Node, live LiveNode) []operation {
	var ops []operation
	for _, l := range n.Timelines() {
		if live.Ended || l.Kind != reporter.OpKind || l.Number != reporter.LineRate {
			continue
		}
		rate := newest(n.Envelope[l.Key()].Mean)
		l.Number = reporter.LineTime
		if !math.IsNaN(rate) {
			ops = append(ops, operation{
				text.Clip(text.Printable(l.Series), 60), text.Number(rate) + "/s",
				text.Milliseconds(newest(n.Envelope[l.Key()].Mean)) + " each", rate,
			})
		}
	}
	slices.SortStableFunc(ops, func(a, b operation) int { return cmp.Compare(b.perSecond, a.perSecond) })

	return ops[:min(len(ops), maxOperations)]
}

// newest returns the last value of list, or NaN if it is empty.
func newest(list []float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	return list[len(list)-1]
}

// operationLines returns a line for each of the busiest operations. The name comes last, so that a narrow screen
// truncates the name and not the numbers.
func operationLines(n *reporter.Node, live LiveNode) []line {
	var lines []line
	label := "OPERATIONS"
	for i, o := range busiest(n, live) {
		words := text.PadRight(label, labelWidth) + text.PadLeft(o.rate, 10) + text.PadLeft(o.each, 15) + "  " + o.name
		lines = append(lines, line{priority: 3 + i, text: words})
		label = ""
	}
	return lines
}

// operationWords returns the busiest operations as text for the line of a node.
func operationWords(n *reporter.Node, live LiveNode) string {
	var parts []string
	for _, o := range busiest(n, live) {
		parts = append(parts, o.name+" "+o.rate+" "+o.each)
	}
	return strings.Join(parts, ", ")
}
