package summary

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// Options configures a summary for a terminal.
type Options struct {
	Color bool // use colors
	ASCII bool // draw the bars in ASCII, and no curves
	// Width is the width of the terminal in cells. 0 and widths above 80 mean 80: longer lines are harder to read.
	Width int
	Path  string // of the report; "" = none
	Page  string // of the report's page; "" = none
	Show  string // arguments of perfagent show that name the run; "" = derived from Path
	// Long shows all that is known about a single node, instead of only the most important facts.
	Long bool
	// Whole shows each of several nodes in full, instead of in one line.
	Whole bool
	// JobSparklines and NodeSparklines are lines of a long summary, below the numbers of the job and of the node: plain
	// text of at most Width cells. Empty = none.
	JobSparklines, NodeSparklines []string
	// Curve draws values as one line of at most width cells on a scale from lo to hi; nil = no curves.
	Curve func(values []float64, width int, lo, hi float64, ascii bool) string
}

// Width is the maximum width of a line of a summary, in cells.
const Width = 80

// Write writes a few human-readable lines on how a run ended, what to do about it, and what it used. Each of several
// nodes gets one line. A long summary continues with all numbers: first the job, then the node, then perfagent's own
// cost and the paths. Nothing in the report can make it write control characters or lines wider than Options.Width,
// except that paths are never cut.
func Write(w io.Writer, r *reporter.Report, o Options) error {
	p := &terminalWriter{width: Width, label: headWidth, color: o.Color}
	if o.Width > 0 {
		p.width = min(o.Width, Width)
	}

	c := Conclude(r)
	p.conclusion(&c, o.Long || len(r.Nodes) > 1)
	switch {
	case len(r.Nodes) > 1:
		p.nodes(r, &c, o)
	case o.Long:
		p.long(r, &c, o)
	default:
		p.short(r, &c, o)
	}
	return write(w, p.out.Bytes(), "summary")
}

// long writes all that is known about a run of one node.
func (p *terminalWriter) long(r *reporter.Report, c *Conclusion, o Options) {
	p.listed("also", slices.Concat(c.Notes, c.Other), furtherShown, 4, ", see the report")
	p.log(r)
	p.jobRows(barRows(r, c), Options{ASCII: o.ASCII})
	p.deltas(Deltas(r))
	p.gap()
	p.label = labelWidth
	p.about(r)
	n := onlyNode(r)
	p.rows(jobNumbers(n, &r.Run))
	p.phases(r, collector.MaxPhases, o)
	p.operations(r)
	p.sparklines(o.JobSparklines)
	p.ranks(r)
	p.nodeNumbers("node", n, &r.Run)
	p.ending(r, o)
}

// furtherShown is the maximum number of further findings in a summary.
const furtherShown = 10

// paths writes the paths of the page and of the report.
func (p *terminalWriter) paths(r *reporter.Report, o Options) {
	if o.Page == "" {
		p.path("report", o.Path)
	} else {
		p.path("data", o.Path)
		p.path("report", o.Page)
	}
	if o.Path != "" && o.Page == "" && r.Run.WallSeconds > 0 && !WorthPage(r) {
		p.text(plain, "page", "none below 2 s; perfagent plot REPORT --to FILE.html makes one")
	}
}

// write writes data to w. what names the data in an error.
func write(w io.Writer, data []byte, what string) error {
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}

// about writes the command, the run, its tags, and remarks on it.
func (p *terminalWriter) about(r *reporter.Report) {
	label := "command"
	for _, line := range commandLines(r) {
		p.line(plain, text.PadRight(label, labelWidth)+line)
		label = ""
	}
	p.line(plain, text.PadRight("run", labelWidth)+runLine(r))
	if len(r.Run.Tags) > 0 {
		p.line(plain, text.PadRight("tags", labelWidth)+strings.Join(Tags(&r.Run), ", "))
	}
	if nodes := perfpyNodes(r); len(nodes) > 0 {
		p.text(bold, "note", fmt.Sprintf("node %s: %s", text.Printable(text.List(nodes, 3)), reporter.PerfPyRemark))
	}
}

// onlyNode returns the only node of a report. It returns the first of several nodes, and an empty node if there is
// none.
func onlyNode(r *reporter.Report) *reporter.Node {
	for _, n := range r.EachNode() {
		return n
	}
	return &reporter.Node{}
}

// nodeNumbers writes the rows of a node, if there are any, under a heading with its host.
func (p *terminalWriter) nodeNumbers(heading string, n *reporter.Node, run *reporter.Run) {
	rows := nodeNumbers(n, run)
	if len(rows) == 0 {
		return
	}
	p.gap()
	p.line(bold, text.PadRight(heading, labelWidth)+HostLine(n.HostName(), cmp.Or(n.Host, &reporter.Host{})))
	p.rows(rows)
}

// jobNumbers returns the rows of the job, its limits and its GPUs.
func jobNumbers(n *reporter.Node, run *reporter.Run) []numberRow {
	return slices.Concat(jobRows(n, run), waitRows(n, run.WallSeconds, true), limitRows(n), gpuRows(n))
}

// nodeNumbers returns the rows of the node. A run that was too short for more than one reading has none.
func nodeNumbers(n *reporter.Node, run *reporter.Run) []numberRow {
	wall := run.WallSeconds
	if wall > 0 && wall < notableAfter && math.IsNaN(n.Metric(reporter.MetricCPUMean)) {
		return nil
	}
	if n.Origin == reporter.OriginPerfPy {
		wall = 0 // rates of totals since boot are meaningless
	}
	rows, peak := cpuRows(n), n.Metric(reporter.MetricMemoryPeak)
	rows.add(!math.IsNaN(peak), numberRow{label: "memory", value: text.Percentage(peak), note: memoryNote(n)})
	return slices.Concat(rows, trafficRows(n, wall), energyRows(n, wall), nodePressureRows(n, run.WallSeconds))
}

// HostLine describes a host with the name of its node, or returns "" if nothing is known about it.
func HostLine(name string, h *reporter.Host) string {
	var words text.Parts
	words.Add(name != "", "%s", text.Clip(text.Printable(name), 40))
	words.Add(h.CPUs > 0, "%d CPUs", h.CPUs)
	words.Add(h.MemoryMB > 0, "%s memory", text.SizeText(h.MemoryMB))
	return words.String()
}

// cpuRows returns rows on the load of the node's CPUs and, if there is no job, on idle CPUs.
func cpuRows(n *reporter.Node) (rows numberRows) {
	mean, peak := n.Metric(reporter.MetricCPUMean), n.Metric(reporter.MetricCPUPeak)
	if math.IsNaN(mean) {
		return nil
	}
	over, note := n.Metric(reporter.MetricCPUOver80), text.Parts{"mean" + p95(n)}
	note.Add(!math.IsNaN(peak), "peak %s", text.Percent(peak))
	rows.add(true, numberRow{label: "CPU", value: text.Percentage(mean), note: note.String()})
	rows.add(over > 0, numberRow{value: text.Percentage(over), note: "of the time at 80 % or more"})
	if n.Job == nil && n.Host != nil {
		cpus := float64(n.Host.CPUs)
		rows = append(rows, idleRows("not used", cpus*(1-mean/100), cpus, n.Metric(reporter.MetricUnusedCPUHours))...)
	}
	return rows
}

// Idle CPUs get a row if they are at least notableIdle percent of the CPUs. The row has a number if they add up to at
// least notableHours CPU hours.
const (
	notableIdle  = 1
	notableHours = 0.1
)

// idleRows returns a row with the number of idle CPUs out of all CPUs, or nil if the share is insignificant.
func idleRows(label string, idle, of, hours float64) []numberRow {
	share := 100 * idle / of
	if !(share >= notableIdle) || math.IsInf(share, 0) {
		return nil
	}

	r := numberRow{label: label, note: fmt.Sprintf("%s of %s %s (%s)", text.UsedCPUs(idle), text.CPUs(of),
		text.Plural(of, "CPU", "CPUs"), text.WholePercent(share))}
	if hours >= notableHours {
		r.value = text.Quantity{Number: text.Fixed(hours, 1), Unit: "CPU·h"}
	}
	return []numberRow{r}
}

func p95(n *reporter.Node) string {
	if q, ok := n.Summaries[collector.CPUAvg.Key()]; ok && q.P95 != nil {
		return ", p95 " + text.Percent(*q.P95)
	}
	return ""
}

// memoryNote returns a note on the peak of the node's memory, with its size if the size of the memory is known.
func memoryNote(n *reporter.Node) string {
	peak := n.Metric(reporter.MetricMemoryPeak)
	if n.Host == nil || n.Host.MemoryMB <= 0 || math.IsNaN(peak) {
		return "peak of the node"
	}
	all := n.Host.MemoryMB
	return fmt.Sprintf("peak of the node, %s of %s", text.SizeText(peak/100*all), text.SizeText(all))
}

// trafficRows returns rows on the bytes that the node moved, if any, and on the peak usage of its disk.
func trafficRows(n *reporter.Node, wall float64) (rows numberRows) {
	label := collector.TrafficGroup("")
	for _, c := range collector.Traffic() {
		counter := c.Info()
		v := n.Metric(reporter.TotalMetricName(c))
		if math.IsNaN(v) || v == 0 {
			continue
		}

		r := numberRow{value: text.Size(v), note: counter.Direction}
		if counter.TrafficGroup != label { // print the label once
			label, r.label = counter.TrafficGroup, string(counter.TrafficGroup)
		}
		if wall > 0 {
			r.rate = text.SpeedText(v / wall)
		}
		rows = append(rows, r)
	}

	fill := n.Metric(reporter.MetricDiskPeak)
	rows.add(!math.IsNaN(fill), numberRow{label: "disk used", value: text.Percentage(fill), note: "peak"})
	return rows
}

// energyRows returns rows on the energy that the node's CPU packages and their memory used, and on the peak
// temperature.
func energyRows(n *reporter.Node, wall float64) (rows numberRows) {
	joules, celsius := n.Metric(reporter.MetricNodeEnergy), n.Metric(reporter.MetricCPUTemperature)
	energy, heat := text.Parts{"of CPU packages and memory"}, text.Parts{"hottest CPU package, peak"}
	energy.Add(wall > 0, "%s W on average", text.Fixed(joules/wall, 1))
	times := n.Metric(reporter.MetricCPUThrottleEvents)
	heat.Add(times > 0, "clocked down %s", text.Count(times, "time", "times"))
	rows.add(joules > 0, numberRow{label: "energy", value: text.Energy(joules), note: energy.String()})
	rows.add(celsius > 0, numberRow{label: "heat", note: heat.String(),
		value: text.Quantity{Number: text.Fixed(celsius, 1), Unit: collector.Celsius.Symbol()}})
	return rows
}

// costOf returns perfagent's own cost in words, and the sampling of a single node, or "" if they are unknown.
func costOf(r *reporter.Report) string {
	var words text.Parts
	if len(r.Nodes) > 1 {
		_, all := nodeRows(r)
		words.Add(!math.IsNaN(all.agent), "overhead %s of CPU on all nodes", text.Seconds(all.agent))
		return words.String()
	}
	n := onlyNode(r)
	if n.Agent != nil {
		words.Add(n.Agent.CPUSeconds > 0, "overhead %s of CPU", text.Seconds(n.Agent.CPUSeconds))
	}
	if s := n.Sampling; s != nil {
		words.Add(true, "%s, %v s apart", text.Count(float64(s.Samples), "sample", "samples"), s.IntervalSeconds)
		words.Add(s.MissedTicks > 0, "%d missed", s.MissedTicks)
	}
	return words.String()
}

// ending writes the end of a long summary.
func (p *terminalWriter) ending(r *reporter.Report, o Options) {
	p.sparklines(o.NodeSparklines)
	p.missing(r)
	p.push(r)
	if words := costOf(r); words != "" {
		p.line(dim, text.PadRight("overhead", labelWidth)+strings.TrimPrefix(words, "overhead "))
	}
	p.paths(r, o)
}
