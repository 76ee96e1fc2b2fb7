package terminal

import (
	"cmp"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// otherLines returns a line for each other node, and a last line with the number of nodes that have no line.
func otherLines(r *reporter.Report, o Options) []line {
	var lines []line
	words := 0 // width of the text, the same for all nodes, so that the sparklines are aligned
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

// otherLine returns the line of another node: its CPU with a sparkline of the given number of cells, its memory and,
// unless the node is running, its state.
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

// Line returns the content of a screen of one node as a single line for a log or a simple terminal. The job comes
// first.
func Line(r *reporter.Report, o Options) string {
	n, live := cmp.Or(r.Nodes[o.Node], &reporter.Node{}), o.Live[o.Node]
	var words text.Parts
	add := func(rows []row, prefix string) {
		for i, row := range rows {
			now, peak := numbersOf(n, live, row.column)
			part := nowText(n, live, row.column, now, o.Width+100)
			if i == 0 {
				part += " (peak " + valueForms(row.column, peak)[0] + ")"
			}
			words.Add(true, "%s%s %s", prefix, row.label, part)
		}
	}

	job := jobRows(n, live)
	add(job, "")
	phase, operations := phaseWords(n, live), operationWords(n, live)
	words.Add(phase != "", "%s", phase)
	words.Add(operations != "", "operations: %s", operations)
	prefix := ""
	if len(job) > 0 {
		prefix = "node "
	}
	add(nodeRows(n, live, len(job) > 0), prefix)

	out := text.Printable(live.State) + ": " + words.String()
	if live.Problem != "" {
		out += "; " + text.Printable(live.Problem)
	}
	if o.ASCII {
		return text.ASCII(out)
	}
	return out
}
