package plotter

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// pageProcesses limits the processes on a page of several nodes, to so many with the most CPU time and so many with the
// most memory. A report has as many for a single node.
const pageProcesses = 20

// processRow is a row of the table of processes.
type processRow struct {
	reporter.Process
	Node, Command string // printable
	Numbers       []exactNumber
}

// exactNumber is a number for people with a label, and its exact value for sorting; "" = unknown.
type exactNumber struct{ Value, Words, Label string }

// processes returns the table of the processes of all nodes, by CPU time. The page's script sorts it by other columns.
func (p *Page) processes(run *reporter.Run) (rows []processRow) {
	for _, n := range p.nodes {
		for _, row := range n.processes {
			rows = append(rows, processRow{row, text.Printable(n.name), text.Printable(row.Command), nil})
		}
	}
	if len(p.nodes) > 1 {
		rows = heaviest(rows)
	}

	seconds := func(label string, v float64) exactNumber { return exactNumber{exact(v), text.Seconds(v), label} }
	known := func(label string, v float64, words string) exactNumber {
		if v > 0 {
			return exactNumber{exact(v), words, label}
		}
		return exactNumber{"", text.Absent, label}
	}

	for i := range rows {
		p := &rows[i]
		end := cmp.Or(p.End.Time, run.End.Time)
		lasted := seconds("lasted", max(0, end.Sub(p.Start.Time)).Seconds())
		if p.End.IsZero() { // still running
			lasted.Words = "> " + lasted.Words
		}
		p.Numbers = []exactNumber{
			seconds("CPU time", p.CPUSeconds), seconds("ended children", p.EndedChildrenCPUSeconds),
			known("peak memory", p.PeakMemoryMB, text.SizeText(p.PeakMemoryMB)),
			known("threads", float64(p.Threads), strconv.Itoa(p.Threads)),
			seconds("began", max(0, p.Start.Sub(run.Start.Time)).Seconds()), lasted,
		}
	}
	return rows
}

// deathRow is a row of the table of deaths. All texts are printable.
type deathRow struct {
	PID                             int
	Node, Command, Died, After, CPU string
}

// deaths returns the table of the deaths on all nodes, by node and time. Of several nodes, each has at most
// pageProcesses.
func (p *Page) deaths(run *reporter.Run) (rows []deathRow) {
	for _, n := range p.nodes {
		list := n.deaths
		if len(p.nodes) > 1 {
			list = list[:min(len(list), pageProcesses)]
		}
		for _, d := range list {
			row := deathRow{d.PID, text.Printable(n.name), text.Printable(cmp.Or(d.Command, text.Absent)), summary.DiedOf(&d),
				text.Seconds(max(0, d.End.Sub(run.Start.Time).Seconds())), text.Absent}
			if d.CPUSeconds > 0 {
				row.CPU = text.Seconds(d.CPUSeconds)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// heaviest returns the processes with the highest peak memory and those with the most CPU time, by CPU time.
func heaviest(rows []processRow) []processRow {
	byMemory := func(a, b processRow) int { return cmp.Compare(b.PeakMemoryMB, a.PeakMemoryMB) }
	byCPU := func(a, b processRow) int { return cmp.Compare(b.CPUSeconds, a.CPUSeconds) }

	slices.SortStableFunc(rows, byMemory)
	few := min(pageProcesses, len(rows))
	rest := slices.Clone(rows[few:])
	slices.SortStableFunc(rest, byCPU)
	out := append(rows[:few:few], rest[:min(pageProcesses, len(rest))]...)
	slices.SortStableFunc(out, byCPU)
	return out
}
