package summary

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// nodeTable returns the table of nodes with their numbers, for Markdown.
func nodeTable(rows []nodeRow, all *nodeRow) *table.Table {
	t := &table.Table{Columns: []table.Column{{Head: "node"}, {Head: "host"}}}
	for _, head := range []string{"time", "CPU mean", "CPU peak", "memory peak", "read", "written", "received", "sent",
		"not used", "job CPUs", "job memory", "end"} {
		t.Columns = append(t.Columns, table.Column{Head: head, Right: true})
	}
	for _, row := range rows {
		t.Rows = append(t.Rows, row.cells(table.Untrusted(row.node)))
	}
	t.Rows = append(t.Rows, all.cells(table.Texts(all.node)[0]))
	return t
}

// endTable returns a table with a line for each node: its host, its ranks, its usage and its end.
func endTable(r *reporter.Report) *table.Table {
	right := func(head string) table.Column { return table.Column{Head: head, Right: true} }
	t := &table.Table{HeadStyle: dim, Columns: []table.Column{right(""), {Head: "host", Max: 16},
		{Head: "ranks", Max: 12, Optional: true}, right("time"), right("CPU time"), right("memory"), {Head: "end"}}}
	rows, _ := nodeRows(r)
	last, _, _ := lateNode(r)
	for i, name := range r.NodeNames() {
		n, row := r.Nodes[name], rows[i]
		end := nodeEnd(n)
		if name == last {
			end += ", last"
		}
		host := table.Untrusted(shortHost(text.Printable(row.host)))
		line := table.Row{Cells: []table.Cell{table.Untrusted(text.Clip(row.node, 10)), host, {Text: ranksText(n)},
			table.Number(text.Duration(row.wall)), table.Number(text.Duration(row.jobCPU)),
			table.Number(text.Size(row.jobMemory)), table.Untrusted(end)}}
		if row.failed {
			line.Style = alarm
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

// nodeEnd returns how the job of a node ended, in a few words.
func nodeEnd(n *reporter.Node) string {
	switch {
	case n == nil || n.Job == nil:
		return text.Absent
	case n.Job.ExitCode != nil && n.Verdict != nil && diagnosis.IsOutOfMemory(n.Verdict.Cause):
		return "out of memory"
	}
	return endText(n.Job.ExitCode, n.Job.Signal)
}

// endText returns how a job with the given exit code, or killed by the given signal, ended.
func endText(code *int, signal string) string {
	switch {
	case code == nil:
		return text.Absent
	case signal != "":
		return text.Clip(text.Printable(signal), 12)
	case *code != 0:
		return "exit " + strconv.Itoa(*code)
	}
	return "succeeded"
}

// ranksText returns the numbers of a node's ranks: "0 to 3".
func ranksText(n *reporter.Node) string {
	list := n.RankList()
	if len(list) == 0 {
		return ""
	}
	first, last := list[0].Rank, list[len(list)-1].Rank
	switch {
	case len(list) == 1:
		return strconv.Itoa(first)
	case last-first == len(list)-1:
		return fmt.Sprintf("%d to %d", first, last)
	}
	return fmt.Sprintf("%d of %d to %d", len(list), first, last)
}

// nodeRow is one line of the table; NaN = unknown.
type nodeRow struct {
	node, host                   string // the full name, as in the report
	wall, mean, peak, mem        float64
	read, write, recv, sent      float64
	unused, hours, jobCPU, agent float64
	jobMemory                    float64
	used, mayUse, idleHours      float64 // CPUs of the job
	exit                         string
	failed                       bool
}

// nodes writes the summary of several nodes: a line for each node and, if o.Whole is set, all numbers of each node.
func (p *terminalWriter) nodes(r *reporter.Report, c *Conclusion, o Options) {
	p.listed("also", slices.Concat(c.Notes, c.Other), furtherShown, 4, ", see the report")
	p.log(r)
	p.jobRows(jobRowsOf(r, c), o)
	p.table("nodes", endTable(r), 2)
	p.deltas(Deltas(r))
	phases := phasesShown
	if o.Whole {
		phases = collector.MaxPhases
	}
	p.phases(r, phases, o)
	p.operations(r)
	if !o.Whole {
		p.missing(r)
		p.last(r, o)
		return
	}

	p.label = labelWidth
	p.gap()
	p.about(r)
	_, all := nodeRows(r)
	p.rows(allRows(r, &all))
	p.ranks(r)
	for name, n := range r.EachNode() {
		if rows := jobNumbers(n, &r.Run); len(rows) > 0 {
			p.gap()
			p.line(bold, text.PadRight(shortNode(name), labelWidth)+nodeEnd(n))
			p.rows(rows)
		}
	}
	for name, n := range r.EachNode() {
		p.nodeNumbers(shortNode(name), n, &r.Run)
	}
	p.ending(r, o)
}

// nodeRows returns the lines of the nodes and the line of all nodes.
func nodeRows(r *reporter.Report) (rows []nodeRow, all nodeRow) {
	none := math.NaN()
	all = nodeRow{node: "all", wall: r.Run.Wall(), exit: endText(r.Run.ExitCode, r.Run.Signal), peak: none, mem: none,
		jobMemory: none}
	for _, name := range r.NodeNames() {
		rows = append(rows, newNodeRow(name, r.Nodes[name], &r.Run))
		all.add(rows[len(rows)-1])
	}
	if len(perfpyNodes(r)) > 0 { // perf.py counts bytes since boot, perfagent since the start
		all.read, all.write, all.recv, all.sent = math.NaN(), math.NaN(), math.NaN(), math.NaN()
	}
	all.mean = 100 * (1 - all.unused/all.hours)
	return rows, all
}

// allRows returns rows on all nodes together, with the numbers that have no column in the table: the jobs' CPU time and
// unused CPUs or, if there are no jobs, the nodes' idle CPUs, and the GPUs.
func allRows(r *reporter.Report, all *nodeRow) (rows []numberRow) {
	gpus := newGPUTotals(r)
	if math.IsNaN(all.jobCPU) {
		cpus := all.hours / all.wall * 3600
		return append(idleRows("not used", all.unused/all.hours*cpus, cpus, all.unused), gpus.rows()...)
	}
	note := text.Parts{"of all nodes"}
	note.Add(all.wall > 0, "%s CPUs busy", text.UsedCPUs(all.jobCPU/all.wall))
	rows = []numberRow{{label: "CPU time", value: text.Duration(all.jobCPU), note: note.String()}}
	return slices.Concat(rows, idleRows("not used", all.mayUse-all.used, all.mayUse, all.idleHours), gpus.rows())
}

func perfpyNodes(r *reporter.Report) []string {
	var out []string
	for name, n := range r.EachNode() {
		if n.Origin == reporter.OriginPerfPy {
			out = append(out, name)
		}
	}
	return out
}

// newNodeRow returns the line of a node.
func newNodeRow(name string, n *reporter.Node, run *reporter.Run) nodeRow {
	none := math.NaN()
	row := nodeRow{
		node: text.Printable(name), host: cmp.Or(n.HostName(), text.Absent), exit: text.Absent, wall: n.Wall(),
		mean: n.Metric(reporter.MetricCPUMean), peak: n.Metric(reporter.MetricCPUPeak),
		mem:  n.Metric(reporter.MetricMemoryPeak),
		read: n.Metric(reporter.MetricDiskRead), write: n.Metric(reporter.MetricDiskWritten),
		recv: n.Metric(reporter.MetricNetworkReceived), sent: n.Metric(reporter.MetricNetworkSent),
		unused: n.Metric(reporter.MetricUnusedCPUHours), hours: n.Metric(reporter.MetricCPUHours),
		jobCPU: none, agent: none, jobMemory: none, used: none, mayUse: none, idleHours: none,
	}
	if n == nil {
		return row
	}

	if n.Job != nil {
		row.exit, row.jobCPU = nodeEnd(n), cpuOfJob(n)
		row.failed = n.Job.ExitCode != nil && *n.Job.ExitCode != 0
	}
	row.used, row.mayUse = cpuBar(n, run)
	if row.mayUse = cpusGiven(n, row.mayUse); !math.IsNaN(row.wall) {
		row.idleHours = (row.mayUse - row.used) * row.wall / 3600
	}
	if peak := jobPeak(n); peak > 0 {
		row.jobMemory = peak
	}
	if n.Agent != nil {
		row.agent = n.Agent.CPUSeconds
	}
	return row
}

// shortHost removes the domain, and the beginning of a long name, because the host names of a cluster differ at the
// end.
func shortHost(name string) string {
	if first, _, cut := strings.Cut(name, "."); cut && net.ParseIP(name) == nil {
		name = first
	}
	return text.ClipStart(name, 10)
}

// add adds a node: the maximum of the peaks, the sum of the amounts. If an amount is unknown for a node, the sum is
// unknown, because readers would take a partial sum for the total.
func (a *nodeRow) add(b nodeRow) {
	a.peak, a.mem, a.jobMemory = greatest(a.peak, b.peak), greatest(a.mem, b.mem), greatest(a.jobMemory, b.jobMemory)
	for _, sum := range []struct{ to, from *float64 }{
		{&a.read, &b.read}, {&a.write, &b.write}, {&a.recv, &b.recv}, {&a.sent, &b.sent},
		{&a.unused, &b.unused}, {&a.hours, &b.hours},
		{&a.used, &b.used}, {&a.mayUse, &b.mayUse}, {&a.idleHours, &b.idleHours},
		{&a.jobCPU, &b.jobCPU}, {&a.agent, &b.agent},
	} {
		*sum.to += *sum.from
	}
}

// greatest returns the larger of two numbers. NaN is less than any number.
func greatest(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}

// cells returns a as a row of the table, with name in the first cell.
func (a *nodeRow) cells(name table.Cell) table.Row {
	return table.Row{Cells: []table.Cell{
		name, table.Untrusted(a.host), table.Number(text.Duration(a.wall)),
		table.Number(text.Percentage(a.mean)), table.Number(text.Percentage(a.peak)), table.Number(text.Percentage(a.mem)),
		table.Number(text.Size(a.read)), table.Number(text.Size(a.write)), table.Number(text.Size(a.recv)),
		table.Number(text.Size(a.sent)), table.Bare(text.ShortHours(a.unused)), table.Bare(text.UsedCPUs(a.jobCPU / a.wall)),
		table.Number(text.Size(a.jobMemory)), table.Untrusted(a.exit),
	}}
}
