package summary

import (
	"bytes"
	"io"
	"strconv"

	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// WriteProcesses writes the processes of each node as a table, by CPU time, in lines of at most width cells; 0 =
// unlimited. No command can make it write control characters.
func WriteProcesses(w io.Writer, r *reporter.Report, width int) error {
	out := new(bytes.Buffer)
	for name, n := range r.EachNode() {
		if len(n.Processes) == 0 {
			continue
		}

		if out.Len() > 0 {
			out.WriteByte('\n')
		}
		if len(r.Nodes) > 1 {
			out.WriteString("node " + text.Printable(name) + "\n")
		}
		_ = processTable(n.Processes).WriteText(out, width, false) // a buffer accepts everything
	}

	return write(w, out.Bytes(), "processes")
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
