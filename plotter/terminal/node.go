package terminal

import (
	"cmp"
	"slices"

	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// nodeLines returns all lines except the lines of other nodes and the footer.
func nodeLines(r *reporter.Report, o Options) []line {
	n, live := cmp.Or(r.Nodes[o.Node], &reporter.Node{}), o.Live[o.Node]
	title := line{style: table.Strong, text: titleText(r, n, o, live)}
	if live.Alarm {
		title.style = table.Alarm
	}

	lines := []line{title}
	if live.Problem != "" {
		lines = append(lines, line{priority: 1, style: table.Alarm, text: text.Printable(live.Problem)})
	}
	command := slices.Clone(r.Run.Command[:max(0, min(len(r.Run.Command), o.Width))])
	for i, word := range command { // avoid joining all words of a long command at each refresh
		command[i] = word[:min(len(word), 4*o.Width)]
	}
	if words := summary.CommandLine(command); words != "" {
		lines = append(lines, line{priority: 6, text: words})
	}
	lines = append(lines, line{priority: 20})

	about := ""
	if n.Host != nil {
		about = summary.HostLine(n.HostName(), n.Host)
	}
	said := slices.Concat(phaseLines(n, live), operationLines(n, live))
	if said != nil {
		said = append(said, line{priority: 20})
	}
	if job := jobRows(n, live); len(job) > 0 {
		lines = append(lines, rowLines(n, live, o, "JOB", job, jobInk)...)
		lines = append(append(lines, line{priority: 20}), said...)
		lines = append(lines, line{priority: 4, text: text.PadRight("NODE", labelWidth) + about})
		lines = append(lines, rowLines(n, live, o, "", nodeRows(n, live, true), table.Plain)[1:]...)
	} else {
		if about != "" {
			lines = append(lines, line{priority: 8, text: about})
		}
		lines = append(lines, rowLines(n, live, o, "NODE", nodeRows(n, live, false), jobInk)...)
		lines = append(append(lines, line{priority: 20}), said...)
	}

	if last := lines[len(lines)-1]; last.text != "" {
		lines = append(lines, line{priority: 21})
	}
	for _, words := range []string{idleWords(n, live), costWords(n)} {
		if words != "" {
			lines = append(lines, line{priority: 12, style: table.Faint, text: words})
		}
	}
	return append(lines, line{priority: 22})
}

// maxPhases is the maximum number of phases on a screen.
const maxPhases = 5

// phaseLines returns a line for each of the last phases of the job, with the duration of the phase.
func phaseLines(n *reporter.Node, live LiveNode) []line {
	var lines []line
	phases, width := n.Phases[max(0, len(n.Phases)-maxPhases):], 0
	for i := range phases {
		width = max(width, text.Width(phaseName(&phases[i])))
	}
	for i := range phases {
		p := &phases[i]
		words := text.PadRight(phaseName(p), width) + text.PadLeft(text.Seconds(p.Seconds), 13)
		if p.Name == n.CurrentPhase() && !live.Ended {
			words += " so far"
		}
		label := ""
		if i == 0 {
			label = "PHASES"
		}
		lines = append(lines, line{priority: 5, text: text.PadRight(label, labelWidth) + words})
	}
	return lines
}

// phaseName returns the beginning of the name of p as printable text.
func phaseName(p *reporter.Phase) string { return text.Clip(text.Printable(p.Name), 40) }

// phaseWords returns the current phase of the job and its duration so far: "phase train for 5.5 s"; "" if there is
// none.
func phaseWords(n *reporter.Node, live LiveNode) string {
	p := n.Phase(n.CurrentPhase())
	if p == nil || live.Ended || len(p.Spans) == 0 {
		return ""
	}
	return "phase " + phaseName(p) + " for " + text.Seconds(p.Spans[len(p.Spans)-1][1])
}

// titleText returns the title of the screen: the name of the run, the node if there are several, the state of the node,
// the current phase and, if there is room, the start.
func titleText(r *reporter.Report, n *reporter.Node, o Options, live LiveNode) string {
	words := text.Clip(text.Printable(cmp.Or(r.Run.ID, text.Absent)), 40)
	if max(len(r.Nodes), len(o.Live))+o.More+o.Ended > 1 {
		words += ", node " + text.Clip(text.Printable(o.Node), 10)
	}
	words += ", " + text.Printable(cmp.Or(live.State, text.Absent))
	if phase := phaseWords(n, live); phase != "" {
		words += ", in " + phase
	}
	if r.Run.Start.IsZero() {
		return words
	}
	start := r.Run.Start.UTC().Format("started 2 Jan 15:04:05 MST")
	if room := o.Width - text.Width(words); room >= len(start)+2 {
		words += text.PadLeft(start, room)
	}
	return words
}

// costWords returns perfagent's cost so far, and the state of its sampling.
func costWords(n *reporter.Node) string {
	var words text.Parts
	if a := n.Agent; a != nil && a.CPUSeconds > 0 {
		words.Add(true, "%s of CPU time", text.Seconds(a.CPUSeconds))
	}
	if s := n.Sampling; s != nil && s.IntervalSeconds > 0 && s.IntervalSeconds < 1e9 {
		words.Add(true, "%s, %v s apart", text.Count(int(s.Samples), "sample", "samples"), s.IntervalSeconds)
		words.Add(s.MissedTicks > 0, "%d missed", s.MissedTicks)
	}
	if len(words) == 0 {
		return ""
	}
	return text.PadRight("perfagent", labelWidth) + words.String()
}
