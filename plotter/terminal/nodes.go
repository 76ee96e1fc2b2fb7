package terminal

import (
	"math"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// MaxNodes is the maximum number of nodes drawn one below the other in a terminal.
const MaxNodes = 16

// ReportSparklines returns the sparklines below the summary of r: the Sparklines of a single node, or the CPU of each
// node on a common time axis, which makes stragglers visible. For more than MaxNodes nodes, it returns none.
func ReportSparklines(r *reporter.Report, width int, ascii bool) SparklineBlocks {
	names := r.NodeNames()
	switch {
	case len(names) == 1:
		return Sparklines(r.Nodes[names[0]], width, ascii)
	case len(names) > MaxNodes:
		return SparklineBlocks{}
	}
	return SparklineBlocks{Node: nodeSparklines(r, names, width, ascii)}
}

// nodeSparklines draws the CPU of each node from the start of the first node to the end of the last. A node is blank
// before its own start and after its own end.
func nodeSparklines(r *reporter.Report, names []string, width int, ascii bool) []string {
	p := sparklineBlock{ascii: ascii}
	from, to := math.Inf(1), math.Inf(-1)
	for _, n := range r.EachNode() {
		if n.Samples.Len() == 0 {
			continue
		}
		p.samples = max(p.samples, n.Samples.Len())
		p.thinned = p.thinned || n.Sampling != nil && n.Sampling.Stride > 1
		if a, b := spanOf(n); a < b { // not NaN
			from, to = min(from, a), max(to, b)
		}
	}

	if p.samples < 2 || !(from < to) || math.IsInf(to-from, 0) {
		return nil
	}

	for i, name := range names {
		row := sparkline{label: nodeLabel(name), hi: 100}
		if i == 0 {
			row.scale = "CPU, 0 to 100 %"
		}
		p.rows = append(p.rows, row)
	}

	cells := p.cells(width)
	if cells == 0 {
		return nil
	}

	for i, name := range names {
		p.rows[i].values = cpuByTime(r.Nodes[name], from, to, cells)
	}
	return p.lines(cells, to-from)
}

// nodeLabel returns the label of the named node, in at most eleven cells.
func nodeLabel(name string) string {
	name = text.Printable(name)
	if label := "node " + name; text.Width(label) < sparkLabel {
		return label
	}
	return text.Clip(name, sparkLabel-1)
}

// cpuByTime divides the time between from and to into as many equal parts as there are cells, and returns the greatest
// CPU percentage in each part. A kept sample counts in every part that its bucket overlaps, so no peak is lost.
func cpuByTime(n *reporter.Node, from, to float64, cells int) []float64 {
	out := make([]float64, cells)
	for i := range out {
		out[i] = math.NaN()
	}

	if n == nil {
		return out
	}

	values, ends := valuesOf(n, collector.CPUAvg), endsOf(n)
	begin, _ := spanOf(n)
	for i := range min(len(values), len(ends)) {
		first := min(cells-1, int(shareOf(begin, from, to)*float64(cells)))
		last := max(first, int(math.Ceil(shareOf(ends[i], from, to)*float64(cells)))-1)
		for c := first; c <= min(last, cells-1); c++ {
			out[c] = highest([]float64{out[c], values[i]})
		}
		if ends[i] > begin {
			begin = ends[i]
		}
	}

	return out
}

// shareOf returns the position of the time at between from and to, as a number from 0 to 1. If at is unknown, it
// returns 0.
func shareOf(at, from, to float64) float64 {
	if !(at > from) {
		return 0
	}
	return min(1, (at-from)/(to-from))
}
