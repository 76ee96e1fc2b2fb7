package plotter

import (
	_ "embed" // the style of ranks
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

//go:embed page_ranks.css
var ranksCSS string

const (
	// maxRanks is up to how many ranks of all nodes the page shows each rank's usage over time and a row for it. If
	// there are more, each node has an equal share of the rows.
	maxRanks    = 4096
	minRanks    = 4   // minimum number of rows of a node
	nodeRanks   = 512 // maximum number of rows of a node
	rankColumns = 160 // time columns of a strip
	rankHeight  = 14  // of a strip on the page, in pixels
)

// rankTable is the part of a node's ranks that the page keeps.
type rankTable struct {
	rows   []summary.RankRow
	left   []summary.RankRow // ranks without a row, on a node with very many
	strips []rankStrips      // of measured columns; none if there are too many ranks
	time   Timeline          // only the end of the last bucket is kept
}

// rankStrips shows the usage of a resource over time: a picture with a row for each rank.
type rankStrips struct {
	ID, Title string
	Data      string // a PNG, in base64
	Top       string // value of the darkest color
}

// newRankTable returns the ranks of n, or nil if it has none.
func newRankTable(run *reporter.Run, name string, n *reporter.Node) *rankTable {
	if len(n.Ranks) == 0 {
		return nil
	}

	t := &rankTable{time: NewTimeline(run, n)}
	t.rows, t.left = summary.ChooseRanks(summary.RanksOf(&reporter.Run{}, name, n), nodeRanks)
	slices.SortFunc(t.rows, func(a, b summary.RankRow) int { return a.Rank - b.Rank })
	t.draw("cpu", "CPU", n, collector.JobCPU, func(top float64) string { return text.Fixed(top, 2) },
		func(b reporter.Band) reporter.Numbers { return b.Mean })
	t.draw("memory", "memory", n, collector.JobMemory, text.SizeText,
		func(b reporter.Band) reporter.Numbers { return b.Max })
	t.time.Ends = t.time.Ends[max(0, len(t.time.Ends)-1):] // the length
	return t
}

// draw adds the strips of c, scaled to the greatest value on the node.
func (t *rankTable) draw(
	id, title string, n *reporter.Node, c collector.Column, show func(float64) string,
	of func(reporter.Band) reporter.Numbers,
) {
	bands := make(map[int]reporter.Numbers)
	for _, r := range n.RankList() {
		bands[r.Rank] = of(r.Envelope[c.Key()])
	}

	rows, top, length := make([][]float64, len(t.rows)), 0.0, t.time.Length()
	for i, row := range t.rows {
		values := bands[row.Rank]
		if length > 0 {
			rows[i] = resample(values[:min(len(values), len(t.time.Ends))], t.time, 0, length, rankColumns)
		}
		for _, v := range rows[i] {
			if v > top && !math.IsInf(v, 0) {
				top = v
			}
		}
	}
	if top == 0 {
		return
	}

	for _, row := range rows {
		for x := range row {
			row[x] *= 100 / top
		}
	}
	t.strips = append(t.strips, rankStrips{id, title, encodeHeat(rows, rankColumns), show(top)})
}

// ranksStyle returns the style of ranks and of the first failure, if the page has any.
func (p *Page) ranksStyle(run *reporter.Run) string {
	_, _, _, failed := p.firstFailure(run)
	if p.ranks == 0 && (!failed || len(p.nodes) == 1) {
		return ""
	}
	return ranksCSS
}

// addRanks counts the ranks in t, and drops the strips of all nodes if there are too many ranks.
func (p *Page) addRanks(t *rankTable) {
	if t == nil {
		return
	}
	p.ranks += t.count()
	if len(p.nodes) < 2 || p.ranks <= maxRanks {
		return
	}
	for _, n := range p.nodes {
		if n.ranks != nil {
			n.ranks.strips = nil
		}
	}
}

// firstFailure returns the index of the node with the first failed job, the rank or -1, and when it failed; ok is false
// if no job is known to have failed.
func (p *Page) firstFailure(run *reporter.Run) (node, rank int, at time.Time, ok bool) {
	index, known := summary.EvidenceIndex(run.Verdict, "node")
	node = slices.IndexFunc(p.nodes, func(n *pageNode) bool { return known && n.name == strconv.Itoa(index) })
	if node < 0 {
		return 0, 0, at, false
	}
	if rank, known = summary.EvidenceIndex(run.Verdict, "rank"); !known {
		rank = -1
	}
	n := p.nodes[node]
	if n.slim.Job != nil {
		at = n.slim.Job.End.Time
	}
	if n.ranks != nil {
		for _, row := range n.ranks.rows {
			if row.Rank == rank {
				at = row.End
			}
		}
	}
	return node, rank, at, true
}

// position is a place on a picture, in percent of its size.
type position struct{ Left, Top string }

// failurePosition returns the position of the first failure on a heat map of all nodes; nil if the failure or its time
// is unknown.
func (p *Page) failurePosition(run *reporter.Run, start, length float64) *position {
	node, _, at, ok := p.firstFailure(run)
	if !ok || at.IsZero() || start == 0 {
		return nil
	}
	y := 100 * (float64(node) + 0.5) / float64(len(p.nodes))
	return &position{timePercent(at, start, length), strconv.FormatFloat(y, 'f', 2, 64)}
}

// timePercent returns the position of at on a time axis, in percent.
func timePercent(at time.Time, start, length float64) string {
	x := 100 * (float64(at.UnixMilli())/1000 - start) / length
	return strconv.FormatFloat(min(100, max(0, x)), 'f', 2, 64)
}

// ranksView is the page's view of the ranks of a node.
type ranksView struct {
	Node   string
	Count  string // "4 ranks"
	Failed int    // failed ranks
	Open   bool   // whether the ranks are unfolded: one of them failed first
	Strips []rankStrips
	Height int // of the pictures, in pixels
	Rows   []rankRow
	Rest   string // counts the ranks without a row
}

// rankRow is the row of a rank. The picture of all ranks is the background of each strip; a bar marks the first
// failure.
type rankRow struct {
	*summary.RankRow
	Y int    // offset of the pictures, in pixels
	X string // of the first failure, in percent; "" if another rank failed first
}

// ranksView returns the ranks of n; nil if it has none, or if it is the only node and has a single rank.
func (p *Page) ranksView(n *pageNode, run *reporter.Run) *ranksView {
	t := n.ranks
	if t == nil || len(p.nodes) == 1 && len(t.rows) < 2 {
		return nil
	}

	first := -1
	node, rank, _, known := p.firstFailure(run)
	if known = known && p.nodes[node] == n; known {
		first = rank
	}
	rows, left := slices.Clone(t.rows), t.left
	place := make(map[int]int, len(rows))
	for i := range rows {
		place[rows[i].Rank], rows[i].First = i, rows[i].Rank == first
	}
	if len(p.nodes) > 1 && p.ranks > maxRanks {
		var more []summary.RankRow
		rows, more = summary.ChooseRanks(rows, max(minRanks, maxRanks*len(rows)/p.ranks))
		left = append(more, left...)
	}

	v := &ranksView{
		Node: n.name, Count: text.Count(t.count(), "rank", "ranks"), Open: known, Strips: t.strips,
		Height: rankHeight * len(t.rows), Rest: summary.RestOfRanks(left),
	}
	for _, row := range slices.Concat(t.rows, t.left) {
		if row.Failed {
			v.Failed++
		}
	}
	for i := range rows {
		row := rankRow{RankRow: &rows[i], Y: -rankHeight * place[rows[i].Rank]}
		if length := t.time.Length(); row.First && !row.End.IsZero() && length > 0 {
			row.X = timePercent(row.End, t.time.Start, length)
		}
		v.Rows = append(v.Rows, row)
	}
	return v
}

// count returns how many ranks the node has.
func (t *rankTable) count() int { return len(t.rows) + len(t.left) }
