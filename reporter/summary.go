package reporter

import (
	"bytes"
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
	p.path(o.Path)
	if _, err := w.Write(p.out.Bytes()); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// page lays lines out.
type page struct {
	out   bytes.Buffer
	width int
	color bool
}

// The layout of a row: label, number, unit, note.
const (
	labelWidth  = 11
	numberWidth = 9
	unitWidth   = 6
)

// style is how a line stands out where colours are allowed (ECMA-48, SGR).
type style string

const (
	plain style = ""
	bold  style = "1"
	dim   style = "2"
	alarm style = "1;31" // bold red
)

// line writes one line, cut to the page.
func (p *page) line(s style, text string) {
	text = clip(strings.TrimRight(text, " "), p.width)
	if p.color && s != plain && text != "" {
		text = "\x1b[" + string(s) + "m" + text + "\x1b[0m"
	}
	p.out.WriteString(text + "\n")
}

// text writes a label and words, on two lines at most.
func (p *page) text(s style, label, words string) {
	for _, part := range wrap(words, max(20, p.width-labelWidth), 2) {
		p.line(s, padRight(label, labelWidth)+part)
		label = ""
	}
}

// row writes a label, a value and what it is. The last word of the value is its
// unit; numbers end and units begin in the same column on every row.
func (p *page) row(label, value, note string) {
	number, unit := value, ""
	if at := strings.LastIndexByte(value, ' '); at >= 0 {
		number, unit = value[:at], value[at+1:]
	}
	if number == none {
		unit = ""
	}
	p.line(plain, padRight(label, labelWidth)+padLeft(number, numberWidth)+" "+padRight(unit, unitWidth)+" "+note)
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
	run, length := r.Run, seconds(r.Run.WallSeconds)
	if run.WallSeconds == 0 && run.Start.IsZero() {
		length = none
	}
	perfpy := true
	for _, n := range r.Nodes {
		perfpy = perfpy && n != nil && n.Origin == OriginPerfPy
	}
	switch {
	case run.Incomplete != "":
		return alarm, "no end, seen for " + length
	case run.Signal != "" && run.ExitCode != nil:
		return alarm, fmt.Sprintf("killed by %s (exit %d) after %s", clip(Printable(run.Signal), 20), *run.ExitCode, length)
	case run.ExitCode != nil && *run.ExitCode != 0:
		return alarm, fmt.Sprintf("failed (exit %d) after %s", *run.ExitCode, length)
	case run.ExitCode != nil:
		return bold, "exit 0 after " + length
	case perfpy:
		return bold, "perf.py's samples of " + length
	}
	return bold, "sampled for " + length
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
	return fmt.Sprintf("unused, %s of the %s that there were", percent(100*unused/hours), hoursText(hours))
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
		if wall > 0 && !math.IsNaN(v) {
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
	note := fmt.Sprintf("of CPU: user %s, system %s", seconds(j.UserSeconds), seconds(j.SystemSeconds))
	if wall > 0 {
		note += fmt.Sprintf("; %s CPUs busy", fixed(cpu/wall, 2))
	}
	p.row("job", seconds(cpu), note)
}

// agent says what the measuring itself cost, and how it went.
func (p *page) agent(n *Node) {
	var words []string
	if n.Agent != nil {
		words = append(words, "own cost "+seconds(n.Agent.CPUSeconds)+" of CPU")
	}
	if s := n.Sampling; s != nil {
		words = append(words, fmt.Sprintf("%d samples, one per %s", s.Samples, seconds(s.IntervalSeconds)))
		if s.MissedTicks > 0 {
			words = append(words, fmt.Sprintf("%d missed", s.MissedTicks))
		}
	}
	if len(words) > 0 {
		p.line(dim, padRight("perfagent", labelWidth)+strings.Join(words, ", "))
	}
}

// path writes where the report is, last and whole.
func (p *page) path(path string) {
	if path == "" {
		return
	}
	path = Printable(path)
	if labelWidth+textWidth(path) > p.width {
		p.line(plain, "report")
		p.out.WriteString(path + "\n")
		return
	}
	p.out.WriteString(padRight("report", labelWidth) + path + "\n")
}
