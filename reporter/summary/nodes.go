package summary

import (
	"cmp"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// nodeTable returns the table of nodes. Its short form has 79 cells, and omits some columns.
func nodeTable(rows []nodeRow, all *nodeRow, short bool) *table.Table {
	number := func(head, long, group string, width int) table.Column {
		return table.Column{Head: head, LongHead: long, GroupHead: group, Right: true, Min: width, Max: width}
	}
	host := table.Column{Head: "host", Min: 10, Max: 10}
	t := &table.Table{HeadStyle: dim, Columns: []table.Column{
		number("node", "", "", 5), host, number("wall", "", "", 7), number("mean", "CPU mean", "", 5),
		number("peak", "CPU peak", "CPU %", 5), number("peak", "memory peak", "mem %", 5), number("read", "", "", 5),
		number("write", "written", "disk", 5), number("recv", "received", "", 5), number("sent", "", "network", 5),
		number("CPU·h", "unused", "unused", 7), number("exit", "", "", 4),
	}}
	if !short {
		more := []table.Column{{Head: "job CPUs", Right: true}, {Head: "job memory", Right: true}}
		t.Columns = slices.Insert(t.Columns, len(t.Columns)-1, more...)
	}
	for _, row := range rows {
		t.Rows = append(t.Rows, row.cells(table.Untrusted(row.node), short))
	}
	t.Rows = append(t.Rows, all.cells(table.Texts(all.node)[0], short))
	t.Rows[len(rows)].Style = bold

	return t
}

// nodeRow is one line of the table; NaN = unknown.
type nodeRow struct {
	node, host, hostname         string // hostname is the full name, as in the report
	wall, mean, peak, mem        float64
	read, write, recv, sent      float64
	unused, hours, jobCPU, agent float64
	jobMemory                    float64
	used, mayUse, idleHours      float64 // CPUs of the job
	exit                         string
	failed                       bool
}

// nodes writes the numbers of all nodes together, a line for each node, a line for all nodes, and the sparklines.
func (p *terminalWriter) nodes(r *reporter.Report, o Options) {
	rows, all := nodeRows(r)
	p.rows(allRows(r, &all))
	p.phases(r, o.phases())
	p.operations(r)

	p.gap()
	p.table("", nodeTable(rows, &all, true), 1)
	p.line(dim, text.PadRight("units", labelWidth)+"K, M, G = KiB, MiB, GiB; network without loopback")
	p.ranks(r)

	p.sparklines(o.NodeSparklines)
}

// nodeRows returns the lines of the nodes and the line of all nodes.
func nodeRows(r *reporter.Report) (rows []nodeRow, all nodeRow) {
	none := math.NaN()
	all = nodeRow{node: "all", wall: r.Run.Wall(), exit: exitText(r.Run.ExitCode), peak: none, mem: none, jobMemory: none}
	for _, name := range r.NodeNames() {
		rows = append(rows, newNodeRow(name, r.Nodes[name], &r.Run))
		all.add(rows[len(rows)-1])
	}
	if len(perfpyNodes(r)) > 0 { // perf.py's bytes are since boot, all others since the start
		all.read, all.write, all.recv, all.sent = math.NaN(), math.NaN(), math.NaN(), math.NaN()
	}
	all.mean = 100 * (1 - all.unused/all.hours)
	return rows, all
}

// allRows returns rows with the numbers of all nodes together for which the table has no column.
func allRows(r *reporter.Report, all *nodeRow) []numberRow {
	gpus := newGPUTotals(r)
	return append(all.rows(), gpus.rows()...)
}

// rows returns rows on the jobs' CPU time and unused CPUs or, if there are no jobs, on the nodes' idle CPUs.
func (a *nodeRow) rows() []numberRow {
	if math.IsNaN(a.jobCPU) {
		cpus := a.hours / a.wall * 3600
		return idleRows("all idle", a.unused/a.hours*cpus, cpus, a.unused)
	}
	rows := []numberRow{{label: "job CPU", value: text.Duration(a.jobCPU), note: "of all nodes"}}
	if a.wall > 0 {
		rows[0].note += ", " + text.UsedCPUs(a.jobCPU/a.wall) + " CPUs busy"
	}
	return append(rows, idleRows("job idle", a.mayUse-a.used, a.mayUse, a.idleHours)...)
}

// cost returns perfagent's own cost, or "" if it is unknown.
func (a *nodeRow) cost() string {
	if math.IsNaN(a.agent) {
		return ""
	}
	return "own cost " + text.Seconds(a.agent) + " of CPU on all nodes"
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

func newNodeRow(name string, n *reporter.Node, run *reporter.Run) nodeRow {
	row := nodeRow{
		node: text.Printable(name), host: text.Absent, exit: text.Absent,
		jobCPU: math.NaN(), agent: math.NaN(), jobMemory: math.NaN(),
		used: math.NaN(), mayUse: math.NaN(), idleHours: math.NaN(),
	}

	row.mean, row.peak = n.Metric(reporter.MetricCPUMean), n.Metric(reporter.MetricCPUPeak)
	row.mem = n.Metric(reporter.MetricMemoryPeak)
	row.read, row.write = n.Metric(reporter.MetricDiskRead), n.Metric(reporter.MetricDiskWritten)
	row.recv, row.sent = n.Metric(reporter.MetricNetworkReceived), n.Metric(reporter.MetricNetworkSent)
	row.unused, row.hours = n.Metric(reporter.MetricUnusedCPUHours), n.Metric(reporter.MetricCPUHours)
	row.wall = n.Wall()

	if n == nil {
		return row
	}

	if host := n.HostName(); host != "" {
		row.host, row.hostname = shortHost(text.Printable(host)), host
	}
	if n.Job != nil {
		row.exit, row.jobCPU = exitText(n.Job.ExitCode), cpuOfJob(n)
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

func exitText(code *int) string {
	if code == nil {
		return text.Absent
	}
	return strconv.Itoa(*code)
}

// add adds a node: the maximum of the peaks, the sum of the amounts. A sum that lacks a node is unknown, because
// readers would take it for the total.
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

// greatest returns the larger of two numbers; NaN is less than any.
func greatest(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}

// cells returns the row of the table.
func (a *nodeRow) cells(name table.Cell, short bool) table.Row {
	number, host := table.Number, table.Untrusted(cmp.Or(a.hostname, a.host))
	if short {
		number = func(q text.Quantity) table.Cell { return table.Bare(q.Normalize().Narrow()) }
		host = table.Untrusted(a.host)
	}
	row := table.Row{Cells: []table.Cell{
		name, host, number(text.Duration(a.wall)),
		number(text.Percentage(a.mean)), number(text.Percentage(a.peak)), number(text.Percentage(a.mem)),
		number(text.Size(a.read)), number(text.Size(a.write)), number(text.Size(a.recv)), number(text.Size(a.sent)),
		table.Bare(text.ShortHours(a.unused)),
	}}
	if !short {
		row.Cells = append(row.Cells, table.Bare(text.UsedCPUs(a.jobCPU/a.wall)), number(text.Size(a.jobMemory)))
	}
	row.Cells = append(row.Cells, table.Bare(a.exit))
	if a.failed {
		row.Style = alarm
	}

	return row
}
