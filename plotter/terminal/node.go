package terminal

import (
	"cmp"
	"fmt"

	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// nodeLines returns all lines except the lines of other nodes and the footer.
func nodeLines(r *reporter.Report, o Options) []line {
	n, live := cmp.Or(r.Nodes[o.Node], &reporter.Node{}), o.Live[o.Node]
	title := line{0, table.Strong, titleText(r, o.Node, live)}
	if live.Alarm {
		title.style = table.Alarm
	}

	lines := []line{title}
	if live.Problem != "" {
		lines = append(lines, line{1, table.Alarm, text.Printable(live.Problem)})
	}
	add := func(priority int, style table.Style, label, words string) {
		if words != "" {
			lines = append(lines, line{priority, style, text.PadRight(label, labelWidth) + words})
		}
	}
	add(4, "", "command", commandWords(r.Run.Command, o.Width))
	if n.Host != nil {
		add(8, "", "host", summary.HostLine(n.HostName(), n.Host))
	}
	add(3, "", "phase", phaseWords(n, live))

	lines = append(lines, line{priority: 20})
	lines = append(lines, rowLines(n, live, o)...)
	lines = append(lines, line{priority: 21})
	lines = append(lines, operationLines(n, live)...)
	add(3, table.Faint, "perfagent", costWords(n, r.Run.WallSeconds))
	return append(lines, line{priority: 22})
}

// phaseWords returns the current phase of the job and its length so far; "" if there is none.
func phaseWords(n *reporter.Node, live LiveNode) string {
	p := n.Phase(n.CurrentPhase())
	if p == nil || live.Ended || len(p.Spans) == 0 {
		return ""
	}
	now := p.Spans[len(p.Spans)-1]

	return text.Clip(text.Printable(p.Name), 40) + ", for " + text.Seconds(now[1])
}

// titleText returns the state of the node and its name.
func titleText(r *reporter.Report, node string, live LiveNode) string {
	words := text.Printable(cmp.Or(live.State, text.Absent)) + "   run " + text.Clip(text.Printable(r.Run.ID), 40) +
		", node " + text.Clip(text.Printable(node), 10)
	if !r.Run.Start.IsZero() {
		words += ", " + r.Run.Start.UTC().Format("2006-01-02 15:04 MST")
	}
	return words
}

// commandWords returns the beginning of command. It does not read the rest of a very long command.
func commandWords(command []string, width int) string {
	short, left := make([]string, 0, min(len(command), width+1)), 4*max(0, width)
	for _, word := range command {
		if left < 0 {
			break
		}
		if len(word) > left {
			word = word[:left] // half a character at the end is off the screen
		}
		short, left = append(short, word), left-len(word)-1
	}
	return summary.CommandLine(short)
}

// costWords returns perfagent's cost so far, and the state of its sampling.
func costWords(n *reporter.Node, wall float64) string {
	var words text.Parts
	if a := n.Agent; a != nil && a.CPUSeconds > 0 {
		cost := "own cost " + text.Seconds(a.CPUSeconds) + " of CPU"
		if share := 100 * a.CPUSeconds / wall; share > 0 && share < 1e6 {
			cost += fmt.Sprintf(" (%.2g %%)", share)
		}
		words = append(words, cost)
	}
	if s := n.Sampling; s != nil {
		words.Add(s.IntervalSeconds > 0 && s.IntervalSeconds < 1e9, "%d × %v s sampled, %d missed",
			s.Samples, s.IntervalSeconds, s.MissedTicks)
	}
	return words.String()
}
