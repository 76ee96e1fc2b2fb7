package summary

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// WriteProcesses writes the processes of each node as a table, by CPU time, in lines of at most width cells; 0 is any
// number. No command can make it write control characters.
func WriteProcesses(w io.Writer, r *reporter.Report, width int) error {
	out := new(bytes.Buffer)
	for _, name := range r.NodeNames() {
		n := r.Nodes[name]
		if n == nil || len(n.Processes) == 0 {
			continue
		}

		if out.Len() > 0 {
			out.WriteByte('\n')
		}
		if len(r.Nodes) > 1 {
			out.WriteString("node " + text.Printable(name) + "\n")
		}
		writeProcesses(out, n.Processes, width)
	}

	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write processes: %w", err)
	}
	return nil
}

func writeProcesses(out *bytes.Buffer, list []reporter.Process, width int) {
	t := &table{heads: []string{"PID", "CPU", "CHILDREN", "MEMORY", "THREADS", "COMMAND"}, words: true, whole: true}
	for _, p := range list {
		memory, threads := text.Absent, text.Absent
		if p.PeakMemoryMB > 0 {
			memory = text.SizeText(p.PeakMemoryMB)
		}
		if p.Threads > 0 {
			threads = strconv.Itoa(p.Threads)
		}
		t.add(strconv.Itoa(p.PID), text.ShortSeconds(p.CPUSeconds), text.ShortSeconds(p.EndedChildrenCPUSeconds),
			memory, threads, p.Command)
	}

	lines := new(bytes.Buffer)
	t.write(lines)
	for line := range strings.Lines(lines.String()) {
		if line = strings.TrimRight(line, "\n"); width > 0 {
			line = text.Clip(line, width)
		}
		out.WriteString(line + "\n")
	}
}
