package terminal

import (
	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// Options configures the screen of a run.
type Options struct {
	// Width and Height are the numbers of cells and lines.
	Width, Height int
	ASCII, Color  bool // draw only ASCII; use colors
	// Node is the node that is shown in full. Each other node has one line.
	Node string
	// Live holds facts about nodes that the report lacks, by node.
	Live map[string]LiveNode
	// More is the number of running nodes that are not in the report. Ended is the number of nodes that have ended.
	More, Ended int
	// Footer is the last line, which explains how to leave.
	Footer string
}

// LiveNode holds facts about a node of a run in progress that its report lacks.
type LiveNode struct {
	// State is the node's state: "running for 3 min 20 s" or, if it has Ended, "exit 0 after 12.3 s".
	State string
	Alarm bool // whether the state is bad
	// Problem is the reason why newer data is unavailable; "" = no problem.
	Problem string
	Ended   bool
	// Newest is the newest sample by collector.Column, NaN = not measured; nil = unknown.
	Newest []float64
}

// labelWidth is the width of the labels at the left of a screen.
const labelWidth = 11

// Screen draws a run in progress, as at most Height lines of at most Width cells. It shows the state of the run; the
// resources of the job and its GPUs on one node, each with its newest value and its peak; the phases and busiest
// operations of the job; the node; perfagent's own cost; and a line for each other node. Except for the requested
// colors, the lines have no control characters, whatever the report contains.
func Screen(r *reporter.Report, o Options) []string {
	var footer []line
	if o.Footer != "" && o.Height >= 3 {
		footer = []line{{style: table.Faint, text: o.Footer}}
	}
	others := otherLines(r, o)
	room := o.Height - len(footer)
	lines := fitLines(nodeLines(r, o), room-min(len(others), max(1, room/3)))
	lines = append(lines, limitNodeLines(others, o, room-len(lines))...)
	lines = append(lines, footer...)
	out := make([]string, 0, len(lines))
	for _, l := range lines[:max(0, min(len(lines), o.Height))] {
		out = append(out, l.render(o))
	}
	return out
}

// fitLines omits the least important lines until the rest fit.
func fitLines(lines []line, room int) []line {
	for len(lines) > max(0, room) {
		last := 0
		for i, l := range lines {
			if l.priority >= lines[last].priority {
				last = i
			}
		}
		lines = append(lines[:last:last], lines[last+1:]...)
	}
	return lines
}

// limitNodeLines keeps as many lines of other nodes as fit, and counts the rest in a last line. If More or Ended is
// positive, the last line in others is already such a count.
func limitNodeLines(others []line, o Options, room int) []line {
	if len(others) <= room || room < 1 {
		return others[:min(len(others), max(0, room))]
	}
	if o.More+o.Ended > 0 {
		others = others[:len(others)-1]
	}
	kept := others[: room-1 : room-1]
	o.More += len(others) - len(kept)
	return append(kept, omittedNodesLine(o))
}

// omittedNodesLine returns a line that counts the nodes without a line.
func omittedNodesLine(o Options) line {
	var words text.Parts
	words.Add(o.More > 0, "%d more", o.More)
	words.Add(o.Ended > 0, "%d ended before", o.Ended)
	return line{style: table.Faint, text: text.PadRight("nodes", labelWidth) + words.String()}
}
