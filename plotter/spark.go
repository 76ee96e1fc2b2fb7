package plotter

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// The levels of a sparkline, lowest first. A blank is no level: it means that nothing
// was measured, so the lowest must be seen.
const (
	blockLevels = "▁▂▃▄▅▆▇█"
	asciiLevels = "_.-=+*#@"
)

// Spark draws values as one line of at most width cells: a cell for each value or,
// where there are more values than cells, for neighbours of equal number, of which it
// shows the greatest. So no peak is lost, and nothing is drawn between values. A cell's
// sparkLevel is the nearest of eight from lo to hi; what lies outside is clamped, and so is
// everything where hi ≤ lo. NaN is not measured: a cell of nothing else is blank.
// The levels are ▁▂▃▄▅▆▇█, or _.-=+*#@ where only ASCII is to be written.
func Spark(values []float64, width int, lo, hi float64, ascii bool) string {
	levels := []rune(blockLevels)
	if ascii {
		levels = []rune(asciiLevels)
	}
	n := min(len(values), width)
	var out strings.Builder
	for i := range n {
		v := sparkPeak(values[i*len(values)/n : (i+1)*len(values)/n])
		if math.IsNaN(v) {
			out.WriteByte(' ')
			continue
		}
		out.WriteRune(levels[sparkLevel(v, lo, hi, len(levels)-1)])
	}
	return out.String()
}

// sparkLevel is which of the levels 0…top is nearest to v on the scale from lo to hi.
func sparkLevel(v, lo, hi float64, top int) int {
	switch {
	case !(hi > lo) || v <= lo:
		return 0
	case v >= hi:
		return top
	}
	// Halves, because the difference of two huge numbers may be infinite.
	share := (v/2 - lo/2) / (hi/2 - lo/2)
	if !(share >= 0 && share <= 1) {
		return 0
	}
	return int(math.Round(float64(top) * share))
}

// sparkPeak is the greatest of what was measured; NaN = nothing was.
func sparkPeak(values []float64) float64 {
	most := math.NaN()
	for _, v := range values {
		if math.IsNaN(most) || v > most {
			most = v
		}
	}
	return most
}

// The layout of a sparkline in the summary.
const (
	sparkLabel   = 11 // cells of the label, as in the summary
	leastPicture = 8  // cells that a picture must have to tell anything
	// leastRate is the least that a full height stands for, MiB/s: else a network that
	// is as good as idle would look busy.
	leastRate = 0.1
	// peakPerCell is said where a cell stands for several samples.
	peakPerCell = "peak of each cell"
	// sparkAbsent stands for what was not measured, as in the summary.
	sparkAbsent = "–"
)

// Sparklines are the pictures of one node for a terminal: a line each for CPU, memory,
// disk and network (loopback where anything went that way), for the busiest of the job's
// GPUs in place of a network that is idle, and one that says the time
// that they span. A line has a label, the picture and its scale in words, takes at most
// width cells and holds no control characters. Pictures are of the envelope's greatest
// values, so that no peak is lost however few samples were kept, and of the samples
// where a node from perf.py has no envelope. Nothing is drawn of what the report does
// not have: perf.py's has no rates.
// It gives nil where there is no room, or fewer than two samples.
func Sparklines(n *reporter.Node, width int, ascii bool) []string {
	rows := sparkRows(n)
	if len(rows) == 0 {
		return nil
	}
	p := sparkPicture{rows: rows, samples: n.Samples.Len(), ascii: ascii}
	p.thinned = n.Sampling != nil && n.Sampling.Stride > 1
	from, to := sparkSpan(n)
	return p.lines(width, to-from)
}

// sparkPicture is a block of rows with one time axis.
type sparkPicture struct {
	rows    []sparkRow
	samples int  // of the row that has most
	thinned bool // a value stands for several samples
	ascii   bool
}

// sparkRow is one row; hi is what its highest level stands for.
type sparkRow struct {
	label  string
	values []float64
	hi     float64
	scale  string
}

// cells is how many cells the pictures have in lines of a width; 0 = no room.
func (p *sparkPicture) cells(width int) int {
	said := utf8.RuneCountInString(peakPerCell)
	for _, r := range p.rows {
		said = max(said, utf8.RuneCountInString(r.scale))
	}
	cells := min(p.samples, width-sparkLabel-2-said)
	if cells < min(leastPicture, p.samples) {
		return 0
	}
	return cells
}

// lines writes the rows and the axis, which spans some seconds.
func (p *sparkPicture) lines(width int, span float64) []string {
	cells := p.cells(width)
	if cells == 0 {
		return nil
	}
	var lines []string
	for i, r := range p.rows {
		if i > 0 && r.label == p.rows[i-1].label {
			r.label = ""
		}
		lines = append(lines, sparkLine(r.label, Spark(r.values, cells, 0, r.hi, p.ascii), cells, r.scale, p.ascii))
	}
	axis, note := sparkAxis(span, cells), ""
	if (p.thinned || p.samples > cells) && utf8.RuneCountInString(axis) <= cells {
		note = peakPerCell
	}
	return append(lines, sparkLine("time", axis, cells, note, p.ascii))
}

// sparkLine joins label, picture and words. ASCII has no dash of that width.
func sparkLine(label, picture string, cells int, words string, ascii bool) string {
	pad := max(0, cells-utf8.RuneCountInString(picture))
	line := label + strings.Repeat(" ", max(1, sparkLabel-utf8.RuneCountInString(label))) + picture + strings.Repeat(" ", pad) + "  " + words
	if ascii {
		line = strings.ReplaceAll(line, sparkAbsent, "-")
	}
	return strings.TrimRight(line, " ")
}

// sparkAxis is the line under the pictures: 0 under the first cell, and the span ends
// under the last where that leaves a gap.
func sparkAxis(span float64, cells int) string {
	words := text.Seconds(span)
	if span < 0 || words == sparkAbsent {
		return sparkAbsent
	}
	gap := cells - 1 - utf8.RuneCountInString(words)
	if gap < 2 {
		return "0 to " + words
	}
	return "0" + strings.Repeat(" ", gap) + words
}

// sparkRows picks what is drawn of a node.
func sparkRows(n *reporter.Node) []sparkRow {
	if n == nil || n.Samples.Len() < 2 {
		return nil
	}
	var rows []sparkRow
	gpus := busiestGPU(n)
	crowded := gpus != nil
	for _, r := range []struct {
		label  string
		column collector.Column
		what   string
	}{
		{"CPU", collector.CPUAvg, ""},
		{"memory", collector.MemPercent, ""},
		{"disk", collector.DiskReadRate, "read"},
		{"disk", collector.DiskWriteRate, "written"},
		{"network", collector.NetExtRecvRate, "received"},
		{"network", collector.NetExtSentRate, "sent"},
		{"loopback", collector.NetLoRecvRate, "received"},
		{"loopback", collector.NetLoSentRate, "sent"},
	} {
		values := sparkValues(n, r.column)
		if values == nil || r.label == "loopback" && !overLoopback(n) || r.label == "network" && crowded && !(sparkPeak(values) > 0) {
			continue
		}
		if r.label == "disk" && gpus != nil { // it comes before the disk
			rows, gpus = append(rows, sparkRow{label: "GPU", values: gpus, hi: 100, scale: "0 to 100 %"}), nil
		}
		row := sparkRow{label: r.label, values: values, hi: 100, scale: "0 to 100 %"}
		switch most := sparkPeak(values); {
		case math.IsNaN(most):
			row.scale = strings.TrimRight(sparkAbsent+" "+r.what, " ")
		case !r.column.Percent() && most <= 0:
			row.scale = "nothing " + r.what
		case !r.column.Percent():
			row.hi = max(most, leastRate)
			row.scale = "0 to " + text.Rate(row.hi) + " " + r.what
		}
		rows = append(rows, row)
	}
	return rows
}

// busiestGPU gives for each kept sample how busy the busiest of the job's GPUs was at
// most; nil where there is none. Where the node has no job all GPUs count.
func busiestGPU(n *reporter.Node) []float64 {
	var out []float64
	for i := range min(len(n.GPUs), collector.MaxGPUs) {
		if !n.ShowsGPU(i) {
			continue
		}
		values := sparkValues(n, collector.GPUColumn(i, collector.GPUUtilization))
		for j, v := range values {
			if j == len(out) {
				out = append(out, math.NaN())
			}
			out[j] = sparkPeak([]float64{out[j], v})
		}
	}
	return out
}

// overLoopback tells whether anything went over loopback.
func overLoopback(n *reporter.Node) bool {
	return sparkPeak(sparkValues(n, collector.NetLoRecvRate)) > 0 || sparkPeak(sparkValues(n, collector.NetLoSentRate)) > 0
}

// sparkValues gives the greatest value of what each kept sample stands for; nil = not
// in the report.
func sparkValues(n *reporter.Node, c collector.Column) []float64 {
	if band, ok := n.Envelope[c.Key()]; ok {
		return band.Max
	}
	return n.Samples.Column(c.Key())
}

// sparkEnds gives for each kept sample the time of the last sample that it stands for.
func sparkEnds(n *reporter.Node) []float64 { return sparkValues(n, collector.Timestamp) }

// sparkSpan is from when to when the samples are, seconds since 1970; NaN = unknown.
func sparkSpan(n *reporter.Node) (from, to float64) {
	from, to = math.NaN(), sparkPeak(sparkEnds(n))
	for _, ts := range n.Samples.Column(collector.Timestamp.Key()) {
		if !math.IsNaN(ts) {
			from = ts
			break
		}
	}
	if n.Sampling != nil && !n.Sampling.Start.IsZero() {
		from = float64(n.Sampling.Start.UnixMicro()) / 1e6
	}
	return from, to
}
