package summary

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// Options control the look of a summary for a terminal.
type Options struct {
	Color bool // use colours
	// Width is the width of the terminal in cells. 0 and widths above 80 mean 80: longer lines are
	// harder to read.
	Width int
	Path  string // of the report; "" = there is no file
	Page  string // of the report's page; "" = there is none
	// AllPhases shows all phases, and not only the longest.
	AllPhases bool
	// Pictures are lines between the numbers and perfagent's own cost: sparklines, plain text of at
	// most Width cells. Empty = none.
	Pictures []string
}

// phases returns how many phases are shown.
func (o Options) phases() int {
	if o.AllPhases {
		return collector.MaxPhases
	}
	return phasesShown
}

// Width is the maximum width of a line of a summary, in cells.
const Width = 80

// Write writes what a run used and wasted as a few lines for people: one node in full, several nodes in a
// line each. Nothing in the report can make it write control characters or lines wider than Options.Width.
// Only the paths of the report and its page are never cut.
func Write(w io.Writer, r *reporter.Report, o Options) error {
	p := &layout{width: Width, color: o.Color}
	if o.Width > 0 {
		p.width = min(o.Width, Width)
	}

	s, end := ending(r)
	p.line(s, "perfagent: "+end)
	p.verdict(r)
	p.about(r)
	if len(r.Nodes) > 1 {
		p.nodes(r, o)
	} else {
		p.node(r, o)
	}

	p.advice(r)
	p.missing(r)
	p.push(r)
	p.path("report", o.Path)
	p.path("page", o.Page)
	if _, err := w.Write(p.out.Bytes()); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// about writes what the run was.
func (p *layout) about(r *reporter.Report) {
	if r.Run.Incomplete != "" {
		p.text(alarm, "incomplete", text.Printable(r.Run.Incomplete))
	}
	if len(r.Run.Command) > 0 {
		p.line(plain, text.PadRight("command", labelWidth)+CommandLine(r.Run.Command))
	}
	p.line(plain, text.PadRight("run", labelWidth)+runLine(r))
	if len(r.Run.Tags) > 0 {
		p.line(plain, text.PadRight("tags", labelWidth)+strings.Join(Tags(&r.Run), ", "))
	}
}

// onlyNode returns the only node of a report, or an empty one if there is none.
func onlyNode(r *reporter.Report) *reporter.Node {
	for _, n := range r.Nodes {
		if n != nil {
			return n
		}
	}
	return &reporter.Node{}
}

// node writes the only node in full.
func (p *layout) node(r *reporter.Report, o Options) {
	n := onlyNode(r)
	p.host(n)
	p.line(plain, "")
	for _, row := range numberRows(n, &r.Run) {
		p.row(row)
	}
	p.phases(r, o.phases())
	p.work(r)
	p.pictures(o.Pictures)
	p.agent(n)
}

// host writes what the node is, and remarks on its numbers.
func (p *layout) host(n *reporter.Node) {
	if n.Host != nil {
		p.line(plain, text.PadRight("host", labelWidth)+hostLine(n.Host))
	}
	if n.Origin == reporter.OriginPerfPy {
		p.text(bold, "note", reporter.PerfPyRemark)
	}
}

// numberRows returns the numbers of a node that people want to see.
func numberRows(n *reporter.Node, run *reporter.Run) []row {
	wall := run.WallSeconds
	if n.Origin == reporter.OriginPerfPy {
		wall = 0 // rates of totals since boot mean nothing
	}
	rows := append(cpuRows(n), memoryRows(n)...)
	rows = append(rows, trafficRows(n, wall)...)
	rows = append(rows, strainRows(n, run.WallSeconds)...)
	rows = append(rows, jobRows(n, run)...)
	rows = append(rows, limitRows(n)...)
	return append(rows, gpuRows(n)...)
}

func hostLine(h *reporter.Host) string {
	var words []string
	if h.Hostname != "" {
		words = append(words, text.Clip(text.Printable(h.Hostname), 40))
	}
	if h.CPUs > 0 {
		words = append(words, fmt.Sprintf("%d CPUs", h.CPUs))
	}
	if h.MemoryMB > 0 {
		words = append(words, text.SizeText(h.MemoryMB)+" memory")
	}
	if len(words) == 0 {
		return text.Absent
	}
	return strings.Join(words, ", ")
}

func cpuRows(n *reporter.Node) []row {
	unused, hours := n.Metric(reporter.MetricUnusedCPUHours), n.Metric(reporter.MetricCPUHours)
	return []row{
		{label: "CPU", value: text.Percentage(n.Metric(reporter.MetricCPUMean)), note: "mean of all CPUs" + p95(n)},
		{value: text.Percentage(n.Metric(reporter.MetricCPUPeak)), note: "peak"},
		{value: text.Percentage(n.Metric(reporter.MetricCPUOver80)), note: "of the time at 80 % or more"},
		{
			label: "wasted",
			value: text.Quantity{Number: text.Hours(unused), Unit: "CPU·h"},
			note:  wasteNote(unused, hours),
		},
	}
}

func p95(n *reporter.Node) string {
	if q, ok := n.Summaries[collector.CPUAvg.Key()]; ok && q.P95 != nil {
		return ", p95 " + text.Percent(*q.P95)
	}
	return ""
}

func wasteNote(unused, hours float64) string {
	if math.IsNaN(unused) || hours <= 0 {
		return "unused"
	}
	return fmt.Sprintf("unused, %s of %s", text.Percent(100*unused/hours), text.Hours(hours))
}

func memoryRows(n *reporter.Node) []row {
	rows := []row{{label: "memory", value: text.Percentage(n.Metric(reporter.MetricMemoryPeak)), note: memoryNote(n)}}
	switch {
	case n.Job == nil || n.Job.Attached || jobPeak(n) > 0: // then the whole job has a row of its own
		return rows
	case n.Job.MaxRSSAtMost:
		return append(rows, row{value: text.Size(n.Job.MaxRSSMB),
			note: "at most: peak of the job's largest process"})
	}
	return append(rows, row{value: text.Size(n.Job.MaxRSSMB), note: "peak of the job's largest process"})
}

// memoryNote returns the peak of the node's memory in bytes.
func memoryNote(n *reporter.Node) string {
	peak := n.Metric(reporter.MetricMemoryPeak)
	if n.Host == nil || n.Host.MemoryMB <= 0 || math.IsNaN(peak) {
		return "peak of the node"
	}
	all := n.Host.MemoryMB
	return fmt.Sprintf("peak of the node, %s of %s", text.SizeText(peak/100*all), text.SizeText(all))
}

func trafficRows(n *reporter.Node, wall float64) []row {
	var rows []row
	label := collector.Group("")
	for _, c := range collector.Traffic() {
		counter := c.Info()
		v := n.Metric(reporter.TotalOf(c))
		if math.IsNaN(v) && counter.Since == collector.Device {
			continue
		}

		r := row{value: text.Size(v), note: counter.Word}
		if counter.Group != label { // print the label once
			label, r.label = counter.Group, string(counter.Group)
		}
		if wall > 0 && math.Abs(v) > 0 {
			r.rate = text.Rate(v / wall)
		}
		rows = append(rows, r)
	}

	disk := text.Percentage(n.Metric(reporter.MetricDiskPeak))
	return append(rows, row{label: "disk fill", value: disk, note: "peak"})
}

// agent writes the cost of the measuring.
func (p *layout) agent(n *reporter.Node) {
	if words := nodeCost(n); words != "" {
		p.line(dim, text.PadRight("perfagent", labelWidth)+words)
	}
}

// nodeCost returns the cost of the measuring, and how it went.
func nodeCost(n *reporter.Node) string {
	var words []string
	if n.Agent != nil && n.Agent.CPUSeconds > 0 {
		words = append(words, "own cost "+text.Seconds(n.Agent.CPUSeconds)+" of CPU")
	}
	if s := n.Sampling; s != nil {
		words = append(words, fmt.Sprintf("%d × %v s sampled", s.Samples, s.IntervalSeconds))
		if s.MissedTicks > 0 {
			words = append(words, fmt.Sprintf("%d missed", s.MissedTicks))
		}
	}
	return strings.Join(words, ", ")
}
