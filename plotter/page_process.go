package plotter

import (
	"cmp"
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

// processTable writes the processes of all nodes as a table, by CPU time; nothing if there are none. The
// page's script sorts it by other columns.
func (p *Page) processTable(w *htmlWriter, run *reporter.Run) {
	var rows []nodeProcess
	for _, n := range p.nodes {
		for _, row := range n.processes {
			rows = append(rows, nodeProcess{n.name, row})
		}
	}
	if len(rows) == 0 {
		return
	}
	many := len(p.nodes) > 1
	if many {
		rows = heaviest(rows)
	}

	w.ours(`<h2>Processes</h2>
<p class="note">The processes that used the most CPU time or memory, of those that a scan saw. Ended children without
a row are counted in the row of the parent that waited for them.</p>
<div class="wide"><table data-processes><thead><tr>`).when(many, "<th>node</th>")
	w.ours(`<th>process</th><th>command</th><th aria-sort="descending">CPU</th><th>ended children</th>`)
	w.ours("<th>peak memory</th><th>threads</th><th>began</th><th>lasted</th></tr></thead>\n<tbody>\n")
	for _, row := range rows {
		row.write(w, run, many)
	}
	w.ours("</tbody></table></div>\n")
}

// write writes the row of a process.
func (p *nodeProcess) write(w *htmlWriter, run *reporter.Run, many bool) {
	w.ours(`<tr data-pid="`).whole(p.PID).ours(`">`)
	if many {
		w.ours("<td>").text(text.Printable(p.node)).ours("</td>")
	}

	exactCell(w, float64(p.PID), strconv.Itoa(p.PID))
	command := text.Printable(p.Command)
	w.ours(`<td title="`).text(command).ours(`"><code>`).text(command).ours("</code></td>")
	exactCell(w, p.CPUSeconds, text.Seconds(p.CPUSeconds))
	exactCell(w, p.EndedChildrenCPUSeconds, text.Seconds(p.EndedChildrenCPUSeconds))
	if p.PeakMemoryMB > 0 {
		exactCell(w, p.PeakMemoryMB, text.SizeText(p.PeakMemoryMB))
	} else {
		w.ours(absentCell)
	}
	if p.Threads > 0 {
		exactCell(w, float64(p.Threads), strconv.Itoa(p.Threads))
	} else {
		w.ours(absentCell)
	}

	began := max(0, p.Start.Sub(run.Start.Time)).Seconds()
	exactCell(w, began, text.Seconds(began))
	end := cmp.Or(p.End.Time, run.End.Time)
	exactCell(w, max(0, end.Sub(p.Start.Time)).Seconds(), p.lasted(end))
	w.ours("</tr>\n")
}

// exactCell writes a number as people read it, with its exact value for sorting.
func exactCell(w *htmlWriter, value float64, words string) {
	w.ours(`<td class="number" data-value="`).number(value).ours(`">`).text(words).ours("</td>")
}

// absentCell is the cell of a number that is not known.
const absentCell markup = `<td class="number">` + text.Absent + `</td>`

// lasted returns for how long a process ran. One that had not ended ran on.
func (p *nodeProcess) lasted(end time.Time) string {
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
