package terminal

import (
	"cmp"
	"fmt"
	"math"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// otherLines returns a line for each other node, and a last one with the number of nodes that have none.
func otherLines(r *reporter.Report, o Options) []line {
	var lines []line
	words := 0 // the same for all nodes, so that the sparklines share a time axis
	for name, live := range o.Live {
		if name != o.Node && (live.Ended || live.Alarm) {
			words = min(30, max(words, 2+text.Width(live.State)))
		}
	}

	for _, name := range r.NodeNames() {
		if name == o.Node {
			continue
		}
		n, live := cmp.Or(r.Nodes[name], &reporter.Node{}), o.Live[name]
		style := table.Plain
		if live.Alarm {
			style = table.Alarm
		}
		cells := min(40, o.Width-labelWidth-31-words)
		lines = append(lines, line{style: style, text: otherLine(name, n, live, o, cells)})
	}

	if o.More+o.Ended > 0 {
		lines = append(lines, omittedNodesLine(o))
	}
	return lines
}

// otherLine returns the line of another node: CPU with a sparkline of the given number of cells, memory, and the state
// unless the node is running.
func otherLine(name string, n *reporter.Node, live LiveNode, o Options, cells int) string {
	label := "node " + text.Clip(text.Printable(name), 10)
	words := text.PadRight(label, labelWidth)
	if cells >= minSparkCells {
		words += text.PadRight(Spark(valuesOf(n, collector.CPUAvg), cells, 0, 100, o.ASCII), cells) + " "
	}

	value := func(c collector.Column) string {
		v, _ := numbersOf(n, live, c)
		return valueText(c, v, 7)
	}
	cpu, memory := value(collector.CPUAvg), value(collector.MemPercent)
	words += "CPU " + text.PadLeft(cpu, 7) + "  memory " + text.PadLeft(memory, 7)
	if live.Ended || live.Alarm {
		if text.Width(words)+2 >= o.Width { // the state is more important
			return label + " " + text.Printable(live.State)
		}
		return words + "  " + text.Printable(live.State)
	}

	for _, shorter := range []string{words, label + " CPU " + cpu + " memory " + memory, label + " CPU " + cpu} {
		if text.Width(shorter) <= o.Width {
			return shorter
		}
	}
	return label + " …"
}

// Line returns the content of a screen of one node as a single line, for a log or a simple terminal.
func Line(r *reporter.Report, o Options) string {
	n, live := cmp.Or(r.Nodes[o.Node], &reporter.Node{}), o.Live[o.Node]
	value := func(c collector.Column) string {
		now, _ := numbersOf(n, live, c)
		return valueForms(c, now)[0]
	}
	_, peak := numbersOf(n, live, collector.CPUAvg)
	const most = "%s: CPU %s (peak %s), memory %s, disk read %s, written %s, network received %s, sent %s"
	words := text.Parts{fmt.Sprintf(most,
		text.Printable(live.State),
		value(collector.CPUAvg), valueForms(collector.CPUAvg, peak)[0], value(collector.MemPercent),
		value(collector.DiskReadRate), value(collector.DiskWriteRate),
		value(collector.NetExtRecvRate), value(collector.NetExtSentRate))}
	for _, row := range rowsOf(n, live) {
		now, _ := numbersOf(n, live, row.column)
		words.Add(!row.column.Info().Always && !math.IsNaN(now), "%s %s", row.label, valueForms(row.column, now)[0])
	}
	phase, operations := phaseWords(n, live), operationWords(n, live)
	words.Add(phase != "", "phase %s", phase)
	words.Add(operations != "", "operations: %s", operations)
	out := words.String()
	if live.Problem != "" {
		out += "; " + text.Printable(live.Problem)
	}
	if o.ASCII {
		return text.ASCII(out)
	}
	return out
}
