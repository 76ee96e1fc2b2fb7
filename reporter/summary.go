package reporter

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector"
)

// SummaryOptions say how the terminal summary looks.
type SummaryOptions struct {
	Color bool // use colours
	// Width is the terminal's, in cells. 0 and what exceeds 80 is 80: longer lines
	// are harder to read.
	Width int
	Path  string // where the report is; "" = in no file
}

// summaryWidth is the most that a line of a summary takes, in cells.
const summaryWidth = 80

// WriteSummary writes what a run used and wasted as a few lines for people: of one
// node in full, of several as a line for each. Nothing in the report can make it
// write control characters or lines wider than asked for, but the report's path,
// which is never cut.
func WriteSummary(w io.Writer, r *Report, o SummaryOptions) error {
	p := &page{width: summaryWidth, color: o.Color}
	if o.Width > 0 {
		p.width = min(o.Width, summaryWidth)
	}
	p.header(r)
	if len(r.Nodes) > 1 {
		p.nodes(r)
	} else {
		p.node(r)
	}
	p.missing(r)
	p.push(r)
	p.path(o.Path)
	if _, err := w.Write(p.out.Bytes()); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// header says how the run ended and what it was.
func (p *page) header(r *Report) {
	s, end := ending(r)
	p.line(s, "perfagent: "+end)
	if r.Run.Incomplete != "" {
		p.text(alarm, "incomplete", Printable(r.Run.Incomplete))
	}
	if len(r.Run.Command) > 0 {
		p.line(plain, padRight("command", labelWidth)+commandLine(r.Run.Command))
	}
	p.line(plain, padRight("run", labelWidth)+runLine(r))
	if len(r.Run.Tags) > 0 {
		var tags []string
		for k, v := range r.Run.Tags {
			tags = append(tags, Printable(k+"="+v))
		}
		slices.Sort(tags)
		p.line(plain, padRight("tags", labelWidth)+strings.Join(tags, ", "))
	}
}

// ending says how the run ended and how long it took.
func ending(r *Report) (style, string) {
	run, length := r.Run, seconds(r.Run.wall())
	switch {
	case run.Incomplete != "":
		return alarm, "no end, seen for " + length
	case run.Signal != "" && run.ExitCode != nil:
		return alarm, fmt.Sprintf("killed by %s (exit %d) after %s", clip(Printable(run.Signal), 20), *run.ExitCode, length)
	case run.ExitCode != nil && *run.ExitCode != 0:
		return alarm, fmt.Sprintf("failed (exit %d) after %s", *run.ExitCode, length)
	case run.ExitCode != nil:
		return bold, "exit 0 after " + length
	case len(r.Nodes) > 0 && len(perfpyNodes(r)) == len(r.Nodes):
		return bold, "perf.py's samples of " + length
	}
	return bold, "sampled for " + length
}

// wall is how long the run took; NaN = unknown.
func (r *Run) wall() float64 {
	if r.WallSeconds == 0 && r.Start.IsZero() {
		return math.NaN()
	}
	return r.WallSeconds
}

// commandLine shows a command; arguments that would look like several are quoted.
func commandLine(command []string) string {
	words := make([]string, len(command))
	for i, arg := range command {
		words[i] = Printable(arg)
		if arg == "" || strings.Contains(arg, " ") {
			words[i] = "'" + words[i] + "'"
		}
	}
	return strings.Join(words, " ")
}

// runLine names the run, its node or nodes, and when it began.
func runLine(r *Report) string {
	words := []string{clip(Printable(r.Run.ID), 34)}
	if r.Run.ID == "" {
		words[0] = none
	}
	if names := r.NodeNames(); len(names) == 1 {
		words = append(words, "node "+clip(Printable(names[0]), 10))
	} else {
		words = append(words, fmt.Sprintf("%d nodes", len(names)))
	}
	if !r.Run.Start.IsZero() {
		words = append(words, r.Run.Start.UTC().Format("2006-01-02 15:04 MST"))
	}
	return strings.Join(words, ", ")
}

// node writes the one node in full.
func (p *page) node(r *Report) {
	n := &Node{}
	for _, only := range r.Nodes {
		if only != nil {
			n = only
		}
	}
	if n.Host != nil {
		p.line(plain, padRight("host", labelWidth)+hostLine(n.Host))
	}
	wall := r.Run.WallSeconds
	if n.Origin == OriginPerfPy {
		p.text(bold, "note", perfpyRemark)
		wall = 0 // rates of totals since boot mean nothing
	}
	p.line(plain, "")
	p.cpu(n)
	p.memory(n)
	p.traffic(n, wall)
	p.job(n.Job, r.Run.WallSeconds)
	p.agent(n)
}

func hostLine(h *Host) string {
	var words []string
	if h.Hostname != "" {
		words = append(words, clip(Printable(h.Hostname), 40))
	}
	if h.CPUs > 0 {
		words = append(words, fmt.Sprintf("%d CPUs", h.CPUs))
	}
	if h.MemoryMB > 0 {
		words = append(words, sizeText(h.MemoryMB)+" memory")
	}
	if len(words) == 0 {
		return none
	}
	return strings.Join(words, ", ")
}

// metric is a metric's value; NaN = absent.
func (n *Node) metric(name string) float64 {
	if n == nil {
		return math.NaN()
	}
	if v, ok := n.Metrics[name]; ok {
		return v
	}
	return math.NaN()
}

func (p *page) cpu(n *Node) {
	p.row("CPU", percent(n.metric(cpuMeanMetric)), "mean of all CPUs"+p95(n))
	p.row("", percent(n.metric(cpuPeakMetric)), "peak")
	p.row("", percent(n.metric(cpuOver80Metric)), "of the time at 80 % or more")
	unused, hours := n.metric(unusedHoursMetric), n.metric(cpuHoursMetric)
	p.row("wasted", hoursText(unused)+" CPU·h", wasteNote(unused, hours))
}

func p95(n *Node) string {
	if q, ok := n.Summaries[collector.CPUAvg.Key()]; ok && q.P95 != nil {
		return ", p95 " + percent(*q.P95)
	}
	return ""
}

func wasteNote(unused, hours float64) string {
	if math.IsNaN(unused) || hours <= 0 {
		return "unused"
	}
	return fmt.Sprintf("unused, %s of %s", percent(100*unused/hours), hoursText(hours))
}

func (p *page) memory(n *Node) {
	peak, note := n.metric(memPeakMetric), "peak of the node"
	if n.Host != nil && n.Host.MemoryMB > 0 && !math.IsNaN(peak) {
		note += fmt.Sprintf(", %s of %s", sizeText(peak/100*n.Host.MemoryMB), sizeText(n.Host.MemoryMB))
	}
	p.row("memory", percent(peak), note)
	switch {
	case n.Job == nil:
	case n.Job.MaxRSSAtMost:
		p.row("", sizeText(n.Job.MaxRSSMB), "at most: peak of the job's largest process")
	default:
		p.row("", sizeText(n.Job.MaxRSSMB), "peak of the job's largest process")
	}
}

func (p *page) traffic(n *Node, wall float64) {
	for _, t := range []struct{ label, metric, note string }{
		{"disk", diskReadMetric, "read"},
		{"", diskWriteMetric, "written"},
		{"network", extRecvMetric, "received"},
		{"", extSentMetric, "sent"},
		{"loopback", loRecvMetric, "received"},
		{"", loSentMetric, "sent"},
	} {
		v, note := n.metric(t.metric), t.note
		if wall > 0 && math.Abs(v) > 0 {
			note = padRight(note, len("received")) + "  " + padLeft(rate(v/wall), 13)
		}
		p.row(t.label, sizeText(v), note)
	}
	p.row("disk fill", percent(n.metric(diskPeakMetric)), "peak")
}

func (p *page) job(j *Job, wall float64) {
	if j == nil {
		return
	}
	cpu := jobCPU(j)
	note := fmt.Sprintf("user %s, system %s", seconds(j.UserSeconds), seconds(j.SystemSeconds))
	switch busy := cpu / wall; {
	case wall <= 0:
	case busy < 9.995:
		note += fmt.Sprintf(", %s CPUs busy", fixed(busy, 2))
	default:
		note += fmt.Sprintf(", %s CPUs busy", fixed(busy, 1))
	}
	p.row("job CPU", seconds(cpu), note)
}

// agent says what the measuring itself cost, and how it went.
func (p *page) agent(n *Node) {
	var words []string
	if n.Agent != nil && n.Agent.CPUSeconds > 0 {
		words = append(words, "own cost "+seconds(n.Agent.CPUSeconds)+" of CPU")
	}
	if s := n.Sampling; s != nil {
		words = append(words, fmt.Sprintf("%d × %v s sampled", s.Samples, s.IntervalSeconds))
		if s.MissedTicks > 0 {
			words = append(words, fmt.Sprintf("%d missed", s.MissedTicks))
		}
	}
	if len(words) > 0 {
		p.line(dim, padRight("perfagent", labelWidth)+strings.Join(words, ", "))
	}
}
