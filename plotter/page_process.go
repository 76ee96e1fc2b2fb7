package plotter

import (
	"cmp"
	"html/template"
	"slices"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// pageProcesses is how many processes of many nodes the page has by each order: as many as the report
// has of one.
const pageProcesses = 20

// A nodeProcess is a process and its node.
type nodeProcess struct {
	node string
	reporter.Process
}

// processTable renders the processes of all nodes as a table, by CPU time; nothing if there are none.
// Its script sorts it by other columns.
func (p *Page) processTable(run *reporter.Run) template.HTML {
	var rows []nodeProcess
	for _, n := range p.nodes {
		for _, row := range n.processes {
			rows = append(rows, nodeProcess{n.name, row})
		}
	}
	if len(rows) == 0 {
		return ""
	}
	many := len(p.nodes) > 1
	if many {
		rows = heaviest(rows)
	}

	out := tables(`<h2>Processes</h2>
<p class="note">The processes that used the most CPU time or memory, of those that a scan saw. Ended children without a row
are counted in the row of the parent that waited for them.</p>
<div class="wide"><table data-processes><thead><tr>`)
	heads := []string{"process", "command", "CPU", "ended children", "peak memory", "threads", "began", "lasted"}
	if many {
		heads = append([]string{"node"}, heads...)
	}
	for i, head := range heads {
		if head == "CPU" {
			out.words(`<th aria-sort="descending">`, heads[i], "</th>")
			continue
		}
		out.words("<th>", head, "</th>")
	}
	out.words("</tr></thead>\n<tbody>\n")

	for _, row := range rows {
		out.process(run, row, many)
	}
	out.words("</tbody></table></div>\n")
	return template.HTML(out)
}

// process appends the row of a process. Each number has its exact value for sorting; what is not known
// has none.
func (t *tables) process(run *reporter.Run, p nodeProcess, many bool) {
	t.words(`<tr data-pid="`, strconv.Itoa(p.PID), `">`)
	if many {
		t.words("<td>", text.Printable(p.node), "</td>")
	}
	cell := func(value float64, words string) {
		t.words(`<td class="number" data-value="`, strconv.FormatFloat(value, 'f', -1, 64), `">`, words, "</td>")
	}
	unknown := func() { t.words(`<td class="number">`, text.Absent, "</td>") }

	cell(float64(p.PID), strconv.Itoa(p.PID))
	command := text.Printable(p.Command)
	t.words(`<td title="`, command, `"><code>`, command, "</code></td>")
	cell(p.CPUSeconds, text.Seconds(p.CPUSeconds))
	cell(p.EndedChildrenCPUSeconds, text.Seconds(p.EndedChildrenCPUSeconds))
	if p.PeakMemoryMB > 0 {
		cell(p.PeakMemoryMB, text.SizeText(p.PeakMemoryMB))
	} else {
		unknown()
	}
	if p.Threads > 0 {
		cell(float64(p.Threads), strconv.Itoa(p.Threads))
	} else {
		unknown()
	}

	began := max(0, p.Start.Sub(run.Start.Time))
	cell(began.Seconds(), text.Seconds(began.Seconds()))
	end := cmp.Or(p.End.Time, run.End.Time)
	cell(max(0, end.Sub(p.Start.Time)).Seconds(), lasted(p, end))
	t.words("</tr>\n")
}

// lasted returns for how long a process ran. One that had not ended ran on.
func lasted(p nodeProcess, end time.Time) string {
	words := text.Seconds(max(0, end.Sub(p.Start.Time)).Seconds())
	if p.End.IsZero() {
		return "> " + words
	}
	return words
}

// heaviest returns the processes with the most CPU time and those with the highest peak memory, by CPU
// time.
func heaviest(rows []nodeProcess) []nodeProcess {
	byMemory := func(a, b nodeProcess) int { return cmp.Compare(b.PeakMemoryMB, a.PeakMemoryMB) }
	byCPU := func(a, b nodeProcess) int { return cmp.Compare(b.CPUSeconds, a.CPUSeconds) }

	slices.SortStableFunc(rows, byMemory)
	few := min(pageProcesses, len(rows))
	rest := slices.Clone(rows[few:])
	slices.SortStableFunc(rest, byCPU)
	out := append(rows[:few:few], rest[:min(pageProcesses, len(rest))]...)
	slices.SortStableFunc(out, byCPU)
	return out
}
