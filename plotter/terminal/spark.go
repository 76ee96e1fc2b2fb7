package terminal

import (
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// The levels of a sparkline, lowest first. The lowest level must be visible, because a blank means not measured.
const (
	blockLevels = "▁▂▃▄▅▆▇█"
	asciiLevels = "_.-=+*#@"
)

// Spark draws values as one line of at most width cells. A cell shows one value or, if there are more values than
// cells, the greatest of several neighboring values, so no peak is lost. Nothing is interpolated. The level of a cell
// is the nearest of eight levels from lo to hi. Values below lo have the lowest level, and values above hi the highest;
// if hi ≤ lo, all values have the lowest level. NaN means not measured: a cell with only NaN values is blank. The
// levels are ▁▂▃▄▅▆▇█, or _.-=+*#@ if ascii is set.
func Spark(values []float64, width int, lo, hi float64, ascii bool) string {
	levels := []rune(blockLevels)
	if ascii {
		levels = []rune(asciiLevels)
	}
	n := min(len(values), width)
	var out strings.Builder
	for i := range n {
		v := highest(values[i*len(values)/n : (i+1)*len(values)/n])
		if math.IsNaN(v) {
			out.WriteByte(' ')
			continue
		}
		out.WriteRune(levels[level(v, lo, hi, len(levels)-1)])
	}
	return out.String()
}

// level returns the level from 0 to top that is nearest to v on the scale from lo to hi.
func level(v, lo, hi float64, top int) int {
	switch {
	case !(hi > lo) || v <= lo:
		return 0
	case v >= hi:
		return top
	}
	// The values are halved because the difference of two huge numbers may overflow.
	share := (v/2 - lo/2) / (hi/2 - lo/2)
	if !(share >= 0 && share <= 1) {
		return 0
	}
	return int(math.Round(float64(top) * share))
}

// The layout of a sparkline in the summary.
const (
	minSparkCells = 8  // fewer cells are useless
	sparkLabel    = 12 // width of a label, the same as in the summary
	// minRate is the lowest rate, in MiB/s, that may have full height. Without it, an almost idle network would look
	// busy.
	minRate = 0.1
	// minCPUs is the lowest number of CPUs that may have full height in the job's sparkline.
	minCPUs = 0.1
	// peakPerCell is the note below sparklines with several samples per cell.
	peakPerCell = "peak of each cell"
)

// SparklineBlocks holds lines with sparklines: Job is about the job and its GPUs, and Node about the node.
type SparklineBlocks struct{ Job, Node []string }

// Sparklines returns the sparklines of one node for a terminal. There is a line each for CPU and memory of the job, for
// the busiest of its GPUs, and for CPU, memory, disk and network of the node. Columns that were always zero, or that
// the report lacks, have no line. For example, perf.py's report has no rates. The last line of each block is the time
// axis. A line has a label, the sparkline and its scale, takes at most width cells and has no control characters.
// Sparklines show the greatest values of the envelope, so no peak is lost however few samples were kept. A node from
// perf.py has no envelope, so its sparklines show the samples. There are no sparklines if there is no room, or if there
// are fewer than two samples.
func Sparklines(n *reporter.Node, width int, ascii bool) SparklineBlocks {
	if n == nil || n.Samples.Len() < 2 {
		return SparklineBlocks{}
	}

	job, node := jobSparklines(n), sparklinesOf(n)
	p := sparklineBlock{rows: slices.Concat(job, node), samples: n.Samples.Len(), ascii: ascii}
	p.thinned = n.Sampling != nil && n.Sampling.Stride > 1
	from, to := spanOf(n)
	cells := p.cells(width) // the same for both blocks, so that they share a time axis

	lines := func(rows []sparkline) []string {
		p.rows = rows
		return p.lines(cells, to-from)
	}
	return SparklineBlocks{lines(job), lines(node)}
}

// sparklineBlock is a block of rows with one time axis.
type sparklineBlock struct {
	rows    []sparkline
	samples int  // number of samples in the longest row
	thinned bool // whether a value covers several samples
	ascii   bool
}

// sparkline is a row of a block. hi is the value of the highest level.
type sparkline struct {
	label  string
	values []float64
	hi     float64
	scale  string
}

// cells returns the number of cells of the sparklines in lines of the given width; 0 = no room.
func (p *sparklineBlock) cells(width int) int {
	words := text.Width(peakPerCell)
	for _, r := range p.rows {
		words = max(words, text.Width(r.scale))
	}
	cells := min(p.samples, width-sparkLabel-2-words)
	if cells < min(minSparkCells, p.samples) {
		return 0
	}
	return cells
}

// lines returns the rows with sparklines of the given number of cells, and the time axis for span seconds.
func (p *sparklineBlock) lines(cells int, span float64) []string {
	if cells == 0 || len(p.rows) == 0 {
		return nil
	}
	var lines []string
	for i, r := range p.rows {
		if i > 0 && r.label == p.rows[i-1].label {
			r.label = ""
		}
		lines = append(lines, pictureLine(r.label, Spark(r.values, cells, 0, r.hi, p.ascii), cells, r.scale, p.ascii))
	}
	axis, note := timeAxis(span, cells), ""
	if (p.thinned || p.samples > cells) && text.Width(axis) <= cells {
		note = peakPerCell
	}
	return append(lines, pictureLine("time", axis, cells, note, p.ascii))
}

// pictureLine joins the label, the sparkline and words. If ascii is set, the words are in ASCII.
func pictureLine(label, picture string, cells int, words string, ascii bool) string {
	line := text.PadRight(text.PadRight(label, sparkLabel-1)+" "+picture, sparkLabel+cells) + "  " + words
	if ascii {
		line = text.ASCII(line)
	}
	return strings.TrimRight(line, " ")
}

// timeAxis returns the line below the sparklines: 0 below the first cell and, if there is room for both, the end of the
// span below the last cell.
func timeAxis(span float64, cells int) string {
	words := text.Seconds(span)
	if span < 0 || words == text.Absent {
		return text.Absent
	}
	gap := cells - 1 - text.Width(words)
	if gap < 2 {
		return "0 to " + words
	}
	return "0" + strings.Repeat(" ", gap) + words
}

// sparklinesOf returns the sparklines of n. For transferred bytes, they show the rate.
func sparklinesOf(n *reporter.Node) []sparkline {
	var rows []sparkline
	add := func(label string, c collector.Column, what string) {
		values := valuesOf(n, c)
		row, most := sparkline{label: label, values: values, hi: 100, scale: "0 to 100 %"}, highest(values)
		switch {
		case values == nil || !c.IsPercent() && most <= 0:
			return
		case math.IsNaN(most):
			row.scale = strings.TrimRight(text.Absent+" "+what, " ")
		case !c.IsPercent():
			row.hi = max(most, minRate)
			row.scale = "0 to " + text.SpeedText(row.hi) + " " + what
		}
		rows = append(rows, row)
	}
	add("CPU", collector.CPUAvg, "")
	add("memory", collector.MemPercent, "")
	for _, c := range collector.Traffic() {
		row := c.Info()
		add(string(row.TrafficGroup), row.Rate, row.Direction)
	}
	return rows
}

// jobSparklines returns the sparklines of the job, scaled to their own peaks, and of its GPUs.
func jobSparklines(n *reporter.Node) []sparkline {
	var rows []sparkline
	if values := valuesOf(n, collector.JobCPU); highest(values) > 0 {
		peak := max(minCPUs, highest(values))
		rows = append(rows, sparkline{"CPU", values, peak, "0 to " + text.CPUs(peak) + " CPUs"})
	}
	if values := valuesOf(n, collector.JobMemory); highest(values) > 0 {
		peak := highest(values)
		rows = append(rows, sparkline{"memory", values, peak, "0 to " + text.SizeText(peak)})
	}
	if values := busiestGPU(n); values != nil {
		row := sparkline{label: "GPU", values: values, hi: 100, scale: "0 to 100 %"}
		if math.IsNaN(highest(values)) {
			row.scale = text.Absent
		}
		rows = append(rows, row)
	}
	return rows
}
