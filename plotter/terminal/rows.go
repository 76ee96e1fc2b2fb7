package terminal

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// row is a row of a screen that shows one column.
type row struct {
	priority int
	label    string
	column   collector.Column
}

// jobRows lists the rows of the job and its GPUs from top to bottom. Columns that were not measured, and rates that
// were always 0, have no row.
func jobRows(n *reporter.Node, live LiveNode) []row {
	rows := slices.Concat([]row{
		{1, "CPU", collector.JobCPU},
		{1, "memory", collector.JobMemory},
		{1, "mem limit", collector.LimitMemoryPercent},
		{2, "throttled", collector.JobThrottled},
	}, gpuRows(n), []row{
		{3, "disk write", collector.JobWriteRate},
		{3, "disk read", collector.JobReadRate},
		{4, "processes", collector.JobProcesses},
	})
	return slices.DeleteFunc(rows, func(r row) bool {
		now, peak := numbersOf(n, live, r.column)
		hidesZero := r.column == collector.JobThrottled || r.column.Info().Unit == collector.MebibytesPerSecond
		return math.IsNaN(now) && math.IsNaN(peak) || hidesZero && isIdle(n, live, r.column)
	})
}

// nodeRows lists the rows of the node from top to bottom. If there are no rows of a job, they are the most important.
func nodeRows(n *reporter.Node, live LiveNode, hasJob bool) []row {
	rows := []row{{1, "CPU", collector.CPUAvg}, {1, "memory", collector.MemPercent}}
	if hasJob {
		rows[0].priority, rows[1].priority = 5, 5
	}
	for _, c := range collector.Traffic() {
		counter := c.Info()
		if isIdle(n, live, counter.Rate) {
			continue
		}
		r := row{5, counter.Short, counter.Rate}
		switch counter.TrafficGroup {
		case collector.TrafficLoopback:
			r.priority = 10
		case collector.TrafficNFS, collector.TrafficLustre: // the network and disk below these also have rows
			r.priority = 9
		}
		rows = append(rows, r)
	}
	return append(rows, row{11, "disk used", collector.DiskPercent})
}

// isIdle reports whether the rate c has never been above 0.
func isIdle(n *reporter.Node, live LiveNode, c collector.Column) bool {
	now, peak := numbersOf(n, live, c)
	return !(now != 0 && !math.IsNaN(now) || peak != 0 && !math.IsNaN(peak))
}

// idleWords returns a sentence if the node's network was measured and idle, and otherwise "".
func idleWords(n *reporter.Node, live LiveNode) string {
	for _, c := range []collector.Column{collector.NetExtRecvRate, collector.NetExtSentRate} {
		if _, peak := numbersOf(n, live, c); math.IsNaN(peak) || !isIdle(n, live, c) {
			return ""
		}
	}
	return "No network traffic on the counted interfaces so far."
}

// gpuRows returns the rows of the job's GPUs, or of all the node's GPUs if the job has none. If there is no room, the
// last rows are omitted first.
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

// boundOf returns the upper bound of c: the limit of the job or, without a limit, the capacity of the node; 0 = none,
// or unknown.
func boundOf(n *reporter.Node, c collector.Column) float64 {
	limits, host := cmp.Or(n.Limits, &reporter.Limits{}), cmp.Or(n.Host, &reporter.Host{})
	device, _, isGPU := c.GPU()
	switch bound := c.Info().Bound; {
	case bound == collector.BoundCPUs:
		return cmp.Or(limits.MostCPUs(), float64(host.CPUs))
	case bound == collector.BoundMemory && n.Limits != nil && limits.MostMemoryMB() > 0:
		return float64(limits.MostMemoryMB())
	case bound == collector.BoundMemory:
		return host.MemoryMB
	case bound == collector.BoundDeviceMemory && isGPU && device < len(n.GPUs) && n.GPUs[device].MemoryMB.Known():
		return float64(n.GPUs[device].MemoryMB)
	}
	return 0
}

// The widths of the columns of a row. The sparkline takes the remaining width.
const (
	barWidth  = 12
	nowWidth  = 21
	peakWidth = 11
	sparkGap  = 3
)

// jobInk is the color of the job's bars and sparklines.
const jobInk table.Style = "34"

// rowLines returns a heading with the given label, and a line for each row: a label, a bar of the newest value, that
// value, the peak, and a sparkline from 0 to the peak. The narrower the screen, the more is omitted: first the
// sparkline, then the bar, then the peak. At last, the value has less room.
func rowLines(n *reporter.Node, live LiveNode, o Options, head string, rows []row, ink table.Style) []line {
	room := max(1, min(nowWidth, o.Width-labelWidth))
	cells := o.Width - labelWidth - barWidth - nowWidth - peakWidth - sparkGap
	hasBar, hasPeak := cells >= -sparkGap, o.Width >= labelWidth+nowWidth+peakWidth
	if cells < minSparkCells {
		cells = 0
	}
	join := func(label, bar, now, peak, spark string) string {
		words := text.PadRight(text.Clip(label, labelWidth-1), labelWidth)
		if hasBar {
			words += text.PadRight(bar, barWidth)
		}
		words += text.PadRight(text.Clip(now, room), room)
		if hasPeak {
			words += text.PadLeft(peak, peakWidth)
		}
		if spark != "" {
			words += strings.Repeat(" ", sparkGap) + spark
		}
		return words
	}

	axis := ""
	if used := min(n.Samples.Len(), cells); used > 0 {
		from, to := spanOf(n)
		axis = timeAxis(to-from, used)
	}
	lines := []line{{priority: 6, style: table.Faint, text: join(head, "", firstHead(live), "peak", axis)}}
	for _, r := range rows {
		now, peak := numbersOf(n, live, r.column)
		values := valuesOf(n, r.column)
		l := line{priority: r.priority, ink: ink}
		bar := ""
		if share := shareUsed(n, r.column, now); !math.IsNaN(share) {
			bar = summary.Bar{Percent: share}.Picture()
			isMemory := r.column == collector.JobMemory || r.column == collector.LimitMemoryPercent
			if share >= 100 && isMemory {
				l.ink = table.Bad
			}
		}
		l.text = join(r.label, bar, nowText(n, live, r.column, now, max(1, room-1)),
			valueText(r.column, peak, peakWidth-1), Spark(values, cells, 0, highest(values), o.ASCII))
		lines = append(lines, l)
	}

	return lines
}

// shareUsed returns v, a value of c, in percent of its upper bound; NaN if either is unknown.
func shareUsed(n *reporter.Node, c collector.Column, v float64) float64 {
	switch bound := boundOf(n, c); {
	case math.IsInf(v, 0) || math.IsInf(bound, 0):
		return math.NaN()
	case c.IsPercent():
		return v
	case bound > 0:
		return 100 * v / bound
	}
	return math.NaN()
}

// nowText formats v, the newest value of c, in at most room cells, with its bound if that is known: "1.83 of 2 CPUs".
func nowText(n *reporter.Node, live LiveNode, c collector.Column, v float64, room int) string {
	short, words, bound := valueText(c, v, room), "", boundOf(n, c)
	switch {
	case short == text.Absent:
	case c == collector.JobProcesses:
		words = text.Fixed(v, 0)
		if threads, _ := numbersOf(n, live, collector.JobThreads); !math.IsNaN(threads) {
			words += ", with " + text.Count(threads, "thread", "threads")
		}
	case c == collector.MemPercent && n.Host != nil && n.Host.MemoryMB > 0:
		words = short + ", " + text.SizeText(v/100*n.Host.MemoryMB)
	case !(bound > 0):
	case c.Info().Unit == collector.CPUs:
		words = text.UsedCPUs(v) + " of " + text.CPUs(bound) + " " + text.Plural(bound, "CPU", "CPUs")
	case c.Info().Unit == collector.Mebibytes:
		words = text.SizeText(v) + " of " + text.TrimmedSizeText(bound)
	}
	if words == "" || text.Width(words) > room {
		return short
	}
	return words
}

// firstHead returns the heading of the first number in a row.
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
