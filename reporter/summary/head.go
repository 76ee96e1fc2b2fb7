package summary

import (
	"cmp"
	"path/filepath"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// shortLines is the maximum number of lines of a short summary of one node.
const shortLines = 14

// The colors of outcomes (amber and green), and of bars and curves (blue).
const (
	amber style = "1;33"
	green style = "1;32"
	blue  style = "34"
)

// look returns the style of an outcome.
func (o Outcome) look() style {
	return cmp.Or(map[Outcome]style{Succeeded: green, Odd: amber, Stopped: amber, Failed: alarm}[o], bold)
}

// conclusion writes how the run ended and what to do.
func (p *terminalWriter) conclusion(c *Conclusion, long bool) {
	const name = "perfagent: "
	for _, line := range p.indented(name, c.Cause, 3) {
		p.line(c.Outcome.look(), line)
	}

	lead, _, _ := strings.Cut(c.Action, ": ")
	left, indent := len(lead), strings.Repeat(" ", len(name))
	for _, line := range p.indented(indent, c.Action, 3) {
		line = line[min(len(line), len(name)):]
		strong := min(left, len(line))
		left -= min(left, strong+1) // text.Wrap cut the space at the end of the line
		p.spans(span{plain, indent}, span{bold, line[:strong]}, span{plain, line[strong:]})
	}
	if len(indent)+text.Width(c.Paste) > p.width { // without the indent, it may fit in one line
		indent = ""
	}
	most := 2
	if long {
		most = 8
	}
	p.block(bold, indent, c.Paste, 5)
	p.block(plain, "", c.How, most)
}

// indented wraps words after label, in at most n lines; none for "".
func (p *terminalWriter) indented(label, words string, n int) []string {
	if words == "" {
		return nil
	}
	var out []string
	for _, line := range text.Wrap(words, max(20, p.width-len(label)), n) {
		out = append(out, label+line)
		label = strings.Repeat(" ", len(label))
	}
	return out
}

// short writes the summary of one node in at most shortLines lines, unless the conclusion leaves less room than for one
// row of the job. The rows come first, then the differences from earlier runs, notes, and phases.
func (p *terminalWriter) short(r *reporter.Report, c *Conclusion, o Options) {
	const last = 3 // lines of paths, with the gap before them
	rows, left := jobRowsOf(r, c), shortLines-len(p.lines())-1-last
	rows = rows[:min(len(rows), max(1, left))]
	left -= len(rows)
	deltas, note := Deltas(r)
	if len(deltas) > 0 && left > 0 {
		left--
	} else {
		deltas = nil
	}
	phases := len(phasesOf(r))
	for _, words := range c.Notes {
		lines := text.Wrap(words, p.width, 2)
		if len(lines)+min(phases, 2) > left {
			break
		}
		left -= len(lines)
		for _, line := range lines {
			p.line(plain, line)
		}
	}

	p.jobRows(rows, o)
	if phases > left {
		left-- // for the number of other phases
	}
	if left > 0 {
		p.phases(r, left, o)
	}
	p.deltas(deltas, note)
	p.last(r, o)
}

// deltas writes how the run differs from earlier runs.
func (p *terminalWriter) deltas(list []Delta, note string) {
	if len(list) == 0 {
		return
	}
	words, look := make(text.Parts, len(list)), plain
	for i, d := range list {
		words[i] = d.Label + " " + d.Text
		if d.Outside {
			look = amber
		}
	}
	p.spans(span{dim, text.PadRight("last runs", headWidth)},
		span{look, text.Printable(words.String() + " (" + note + ")")})
}

// last writes the path of the page, or else of the report, and the command that shows more.
func (p *terminalWriter) last(r *reporter.Report, o Options) {
	path := cmp.Or(o.Page, o.Path)
	if path == "" {
		return
	}
	p.gap()
	p.path("report", path)
	p.path("details", showCommand(r, o))
}

// showCommand returns the command that shows the whole run, in a form that can be pasted into a shell.
func showCommand(r *reporter.Report, o Options) string {
	command, dir := "perfagent show ", filepath.Dir(o.Path)
	if len(r.Nodes) > 1 {
		command += "--all "
	}
	switch {
	case o.Show != "":
		return command + text.Printable(o.Show)
	case r.Run.ID != "" && (o.Path == "" || filepath.Dir(dir) == "perfagent-out"):
		dir = r.Run.ID
	}
	return command + text.Printable(text.ShellQuote(dir))
}

// block writes words on at most n lines, each after indent; none for "".
func (p *terminalWriter) block(s style, indent, words string, n int) {
	if words == "" {
		return
	}
	for _, line := range text.Wrap(words, p.width-len(indent), n) {
		p.line(s, indent+line)
	}
}
