package terminal

import (
	"math"
	"slices"
	"strconv"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// row shows one column on a screen.
type row struct {
	priority int
	label    string
	column   collector.Column
}

// rowsOf lists the rows from top to bottom: the rows of the node, and the measured rows of the job, its limits and the
// GPUs.
func rowsOf(n *reporter.Node, live LiveNode) []row {
	rows := []row{
		{1, "CPU", collector.CPUAvg},
		{9, "busiest", collector.CPUMax},
		{1, "memory", collector.MemPercent},
	}
	for _, row := range append([]row{
		{1, "job CPU", collector.JobCPU},
		{1, "job memory", collector.JobMemory},
		{1, "mem limit", collector.LimitMemoryPercent},
		{2, "throttled", collector.JobThrottled},
	}, gpuRows(n)...) {
		if now, peak := numbersOf(n, live, row.column); !math.IsNaN(now) || !math.IsNaN(peak) {
			rows = append(rows, row)
		}
	}
	rows = append(rows, trafficRows(n, live)...)
	return append(rows, row{11, "disk fill", collector.DiskPercent})
}

// trafficRows returns the transfer rates of the devices that the node has.
func trafficRows(n *reporter.Node, live LiveNode) []row {
	var rows []row
	for _, c := range collector.Traffic() {
		counter := c.Info()
		r := row{2, counter.Short, counter.Rate}
		switch counter.TrafficGroup {
		case collector.TrafficLoopback:
			r.priority = 10
		case collector.TrafficNFS, collector.TrafficLustre: // the devices below them also have rows
			r.priority = 9
		}
		if now, peak := numbersOf(n, live, c); counter.Always || !math.IsNaN(now) || !math.IsNaN(peak) {
			rows = append(rows, r)
		}
	}
	return rows
}

// gpuRows returns the rows of the job's GPUs, or of all the node's GPUs if the job has none. If there is no room, the
// last ones are omitted first.
func gpuRows(n *reporter.Node) []row {
	gpus := n.GPUs[:min(len(n.GPUs), collector.MaxGPUs)]
	own := slices.ContainsFunc(gpus, func(g reporter.GPU) bool { return g.OfJob })
	var rows []row
	for i, g := range gpus {
		if own && !g.OfJob {
			continue
		}
		name, place := "GPU "+strconv.Itoa(i), len(rows)/2
		rows = append(rows, row{min(2+place, 8), name, collector.GPUColumn(i, collector.GPUUtilization)},
			row{min(5+place, 8), name + " mem", collector.GPUColumn(i, collector.GPUMemoryUsed)})
	}
	return rows
}

// topOf returns the upper end of the sparkline of c: 100 for percentages, and otherwise the greatest of values and the
// known bound of the column.
func topOf(n *reporter.Node, c collector.Column, values []float64) float64 {
	if c.IsPercent() {
		return 100
	}
	return max(minRate, highest(values), boundOf(n, c))
}

// boundOf returns the upper bound of c; 0 = none, or unknown.
func boundOf(n *reporter.Node, c collector.Column) float64 {
	device, _, isGPU := c.GPU()
	switch bound := c.Info().Bound; {
	case bound == collector.BoundCPUs && n.Limits != nil:
		return n.Limits.MostCPUs()
	case bound == collector.BoundMemory && n.Limits != nil && n.Limits.MostMemoryMB().Known():
		return float64(n.Limits.MostMemoryMB())
	case bound == collector.BoundDeviceMemory && isGPU && device < len(n.GPUs) && n.GPUs[device].MemoryMB.Known():
		return float64(n.GPUs[device].MemoryMB)
	}
	return 0
}

// rowLines returns the sparklines with their numbers, below their headings.
func rowLines(n *reporter.Node, live LiveNode, o Options) []line {
	cells, numbers := o.Width-labelWidth-2*numberWidth-1, 2
	if cells < minSparkCells {
		cells, numbers = cells+numberWidth, 1
	}
	if cells < minSparkCells {
		cells = 0
	}
	if o.Width < labelWidth+numberWidth {
		return narrowLines(n, live, o)
	}

	t := &table.Table{HeadStyle: table.Faint, Columns: []table.Column{{Min: labelWidth}, {Min: cells},
		{Min: min(cells, 1)}}}
	if used := min(n.Samples.Len(), cells); used > 0 {
		from, to := spanOf(n)
		t.Columns[1].Head = timeAxis(to-from, used)
	}
	for _, head := range []string{firstHead(live), "peak"}[:numbers] {
		t.Columns = append(t.Columns, table.Column{Head: head, Right: true, Min: numberWidth})
	}
	lines := []line{{priority: 6}}
	for _, row := range rowsOf(n, live) {
		values, picture := valuesOf(n, row.column), ""
		if cells > 0 {
			picture = Spark(values, cells, 0, topOf(n, row.column, values), o.ASCII)
		}
		now, peak := numbersOf(n, live, row.column)
		t.Add(table.Texts(row.label, picture, "", valueText(row.column, now, numberWidth-1),
			valueText(row.column, peak, numberWidth-1))...)
		lines = append(lines, line{priority: row.priority})
	}
	for i, l := range t.Lines(0, 0) {
		lines[i].style, lines[i].text = l.Style, l.Text
	}

	return lines
}

// narrowLines returns the rows for a screen without room for sparklines or for spaces between label and number.
func narrowLines(n *reporter.Node, live LiveNode, o Options) []line {
	lines := []line{{6, table.Faint, text.PadLeft(firstHead(live), o.Width)}}
	for _, row := range rowsOf(n, live) {
		now, _ := numbersOf(n, live, row.column)
		room := o.Width - text.Width(row.label)
		words := row.label
		if room > 1 {
			words += text.PadLeft(valueText(row.column, now, room-1), room)
		}
		lines = append(lines, line{row.priority, "", words})
	}
	return lines
}

// firstHead returns the heading of the first number.
func firstHead(live LiveNode) string {
	switch {
	case live.Ended:
		return "mean"
	case live.Alarm:
		return "last"
	}
	return "now"
}

// numbersOf returns the newest value of c, or its mean if the node has ended, and its peak; NaN = unknown.
func numbersOf(n *reporter.Node, live LiveNode, c collector.Column) (now, peak float64) {
	now, peak = math.NaN(), math.NaN()
	q, ok := n.Summaries[c.Key()]
	if ok {
		peak = q.Max
	}
	switch {
	case live.Ended && ok:
		now = q.Mean
	case !live.Ended && int(c) < len(live.Newest):
		now = live.Newest[c]
	}
	return now, peak
}
