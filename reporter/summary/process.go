package summary

import (
	"bytes"
	"cmp"
	"io"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// WriteProcesses writes the processes of each node as a table, by CPU time, and the deaths as another one, in lines of
// at most width cells; 0 = unlimited. No command can make it write control characters.
func WriteProcesses(w io.Writer, r *reporter.Report, width int) error {
	out := new(bytes.Buffer)
	for name, n := range r.EachNode() {
		if len(n.Processes)+len(n.Deaths) == 0 {
			continue
		}

		if out.Len() > 0 {
			out.WriteByte('\n')
		}
		if len(r.Nodes) > 1 {
			out.WriteString("node " + text.Printable(name) + "\n")
		}
		if len(n.Processes) > 0 {
			_ = processTable(n.Processes).WriteText(out, width, false) // a buffer accepts everything
		}
		if len(n.Processes) > 0 && len(n.Deaths) > 0 {
			out.WriteByte('\n')
		}
		if len(n.Deaths) > 0 {
			_ = deathTable(n, r.Run.Start).WriteText(out, width, false)
		}
		if words := MoreDeaths(n); words != "" {
			out.WriteString(words + "\n")
		}
	}

	return write(w, out.Bytes(), "processes")
}

// deathTable returns the table of the deaths on n, with times since start.
func deathTable(n *reporter.Node, start reporter.Time) *table.Table {
	t := &table.Table{Columns: []table.Column{
		{Head: "PID"}, {Head: "END"}, {Head: "AFTER", Right: true}, {Head: "CPU", Right: true},
		{Head: "MEMORY", Right: true}, {Head: "COMMAND"},
	}}
	for _, d := range n.Deaths {
		cpu, memory := table.Absent(), table.Absent()
		if d.CPUSeconds > 0 {
			cpu = table.Bare(text.ShortSeconds(d.CPUSeconds))
		}
		if d.PeakMemoryMB > 0 {
			memory = table.Number(text.Size(d.PeakMemoryMB))
		}
		t.Add(table.Bare(strconv.Itoa(d.PID)), table.Untrusted(DiedOf(&d)),
			table.Bare(text.ShortSeconds(max(0, d.End.Sub(start.Time).Seconds()))), cpu, memory,
			table.Untrusted(cmp.Or(d.Command, text.Absent)))
	}
	return t
}

// DiedOf returns how a process ended, in a few words: "killed by SIGSEGV (core dumped)", "exited with code 3".
func DiedOf(d *reporter.Death) string {
	words := text.Clip(strings.TrimPrefix(d.DiedOf(), "was "), 30)
	if d.CoreDumped {
		words += " (core dumped)"
	}
	return words
}

// MoreDeaths returns a sentence on the deaths of n that are not listed; "" if there are none.
func MoreDeaths(n *reporter.Node) string {
	var words text.Parts
	words.Add(n.MoreDeaths > 0, "%s", text.Count(float64(n.MoreDeaths), "more death", "more deaths"))
	words.Add(n.QuietExits > 0, "%s, such as grep without a match",
		text.Count(float64(n.QuietExits), "other failure", "other failures"))
	return sentence(strings.Join(words, "; "))
}

func processTable(list []reporter.Process) *table.Table {
	t := &table.Table{Columns: []table.Column{
		{Head: "PID"}, {Head: "CPU", Right: true}, {Head: "CHILDREN", Right: true}, {Head: "MEMORY", Right: true},
		{Head: "THREADS", Right: true}, {Head: "COMMAND"},
	}}
	for _, p := range list {
		memory, threads := table.Absent(), table.Absent()
		if p.PeakMemoryMB > 0 {
			memory = table.Number(text.Size(p.PeakMemoryMB))
		}
		if p.Threads > 0 {
			threads = table.Bare(strconv.Itoa(p.Threads))
		}
		t.Add(table.Bare(strconv.Itoa(p.PID)), table.Bare(text.ShortSeconds(p.CPUSeconds)),
			table.Bare(text.ShortSeconds(p.EndedChildrenCPUSeconds)), memory, threads, table.Untrusted(p.Command))
	}

	return t
}
