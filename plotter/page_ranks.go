package plotter

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
	"github.com/perfagent/perfagent/reporter/summary"
)

const (
	// maxRanks is up to how many ranks of all nodes the page shows each rank's usage over time and a row for it. If
	// there are more, each node has an equal share of the rows.
	maxRanks    = 4096
	minRanks    = 4   // minimum number of rows of a node
	nodeRanks   = 512 // maximum number of rows of a node
	rankBars    = 8   // maximum number of bars of a node
	rankColumns = 160 // time columns of a heat map of ranks
)

// rankTable is the part of a node's ranks that the page keeps.
type rankTable struct {
	rows   []summary.RankRow
	left   []summary.RankRow           // ranks without a row, on a node with very many
	usage  [len(rankUsage)][][]float64 // over time, a list for each row
	begin  []time.Time                 // of the rows
	length float64                     // of the time of usage, in seconds
}

// rankUsage are the heat maps of ranks.
var rankUsage = [...]struct {
	id, title string
	column    collector.Column
	of        func(reporter.Band) reporter.Numbers
}{
	{"rank_cpu", "CPU of each rank", collector.JobCPU, func(b reporter.Band) reporter.Numbers { return b.Mean }},
	{"rank_memory", "Memory of each rank", collector.JobMemory, func(b reporter.Band) reporter.Numbers { return b.Max }},
}

// newRankTable returns the ranks of n, or nil if it has none.
func newRankTable(run *reporter.Run, name string, n *reporter.Node) *rankTable {
	if len(n.Ranks) == 0 {
		return nil
	}

	axis := NewTimeline(run, n)
	t := &rankTable{length: axis.Length()}
	t.rows, t.left = summary.ChooseRanks(summary.RanksOf(&reporter.Run{}, name, n), nodeRanks)
	slices.SortFunc(t.rows, func(a, b summary.RankRow) int { return a.Rank - b.Rank })
	of := make(map[int]*reporter.Rank)
	for _, r := range n.RankList() {
		of[r.Rank] = r
	}
	for _, row := range t.rows {
		t.begin = append(t.begin, of[row.Rank].Start.Time)
		for k, u := range rankUsage {
			var values []float64
			if t.length > 0 {
				values = resample(u.of(of[row.Rank].Envelope[u.column.Key()]), axis, 0, t.length, rankColumns)
			}
			t.usage[k] = append(t.usage[k], values)
		}
	}
	return t
}

// markOddRanks marks the ranks that are far from the others.
func (p *Page) markOddRanks(r *reporter.Report) {
	odd := make(map[int]bool)
	for rank := range diagnosis.OddRanks(r) {
		odd[rank.Rank] = true
	}
	for _, n := range p.nodes {
		if n.ranks != nil {
			for i := range n.ranks.rows {
				n.ranks.rows[i].Odd = odd[n.ranks.rows[i].Rank]
			}
		}
	}
}

// count returns how many ranks the node has.
func (t *rankTable) count() int {
	if t == nil {
		return 0
	}
	return len(t.rows) + len(t.left)
}

// span returns the numbers of the ranks: "0 to 3".
func (t *rankTable) span() string {
	first, last := t.rows[0].Rank, t.rows[len(t.rows)-1].Rank
	if first == last {
		return strconv.Itoa(first)
	}
	return fmt.Sprintf("%d to %d", first, last)
}

// lengthOf returns for how long row i ran, in seconds, or NaN if that is unknown.
func (t *rankTable) lengthOf(i int) float64 {
	if t.rows[i].End.IsZero() || t.begin[i].IsZero() {
		return math.NaN()
	}
	return max(0, t.rows[i].End.Sub(t.begin[i]).Seconds())
}

// longestRank returns the greatest length of a rank's run.
func (p *Page) longestRank() float64 {
	longest := 0.0
	for _, n := range p.nodes {
		for i := range n.ranks.count() {
			if i < len(n.ranks.rows) && n.ranks.lengthOf(i) > longest {
				longest = n.ranks.lengthOf(i)
			}
		}
	}
	return longest
}

// rankBars returns the lengths of the ranks as bars, if there are few.
func (p *pageNode) rankBars(longest float64) (out []rankBar) {
	if n := p.ranks.count(); n < 2 || n > rankBars {
		return nil
	}
	for i := range p.ranks.rows {
		row, length := &p.ranks.rows[i], p.ranks.lengthOf(i)
		if math.IsNaN(length) || longest == 0 {
			continue
		}
		out = append(out, rankBar{row.Rank, row.Length, 100 * length / longest, row.Failed || row.Odd})
	}
	return out
}

// rankMaps adds heat maps of the ranks of all nodes, unless there are too many.
func (p *Page) rankMaps(v *pageView, run *reporter.Run) {
	if p.ranks < 2 || p.ranks > maxRanks {
		return
	}
	_, first, at, failed := p.firstFailure(run)
	for k, u := range rankUsage {
		var rows [][]float64
		var names []string
		var ring *position
		top, length := 0.0, 0.0
		for _, n := range p.nodes {
			if n.ranks == nil {
				continue
			}
			length = max(length, n.ranks.length)
			for i, values := range n.ranks.usage[k] {
				rows, names = append(rows, values), append(names, "rank "+strconv.Itoa(n.ranks.rows[i].Rank))
				if failed && first >= 0 && n.ranks.rows[i].Rank == first && n.ranks.length > 0 {
					x := 100 * (float64(at.UnixMilli())/1000 - n.time.Start) / n.ranks.length
					ring = &position{strconv.FormatFloat(min(100, max(0, x)), 'f', 2, 64), strconv.Itoa(len(rows))}
				}
				for _, value := range values {
					if value > top && !math.IsInf(value, 0) {
						top = value
					}
				}
			}
		}
		if top == 0 {
			continue
		}
		for _, row := range rows {
			for x := range row {
				row[x] *= 100 / top
			}
		}
		if ring != nil {
			number, _ := strconv.Atoi(ring.Top)
			ring.Top = strconv.FormatFloat(100*(float64(number)-0.5)/float64(len(rows)), 'f', 2, 64)
		}
		scale, unit := binaryUnit(top, u.column.Info().Unit.Symbol())
		v.addMap(heatMap{ID: u.id, Title: u.title, Scale: short(top/scale) + " " + unit,
			Picture: encodeHeat(rows, rankColumns), FirstFailure: ring}, mapData{names, length, top / scale, unit})
	}
}

// firstFailure returns the index of the node with the first failed job, the rank or -1, and when it failed; ok is false
// if no job is known to have failed.
func (p *Page) firstFailure(run *reporter.Run) (node, rank int, at time.Time, ok bool) {
	index, known := summary.EvidenceIndex(run.Verdict, "node")
	node = slices.IndexFunc(p.nodes, func(n *pageNode) bool { return known && n.name == strconv.Itoa(index) })
	if node < 0 {
		return 0, -1, at, false
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

// ranksView is the page's table of ranks.
type ranksView struct {
	Count string // "16 ranks"
	Rows  []rankRow
	Rest  []string // counts the ranks without a row
}

// rankRow is the row of a rank.
type rankRow struct {
	summary.RankRow
	Host string
}

// ranksView returns the ranks of all nodes; nil if there are fewer than two.
func (p *Page) ranksView(run *reporter.Run) *ranksView {
	if p.ranks < 2 {
		return nil
	}
	v := &ranksView{Count: text.Count(p.ranks, "rank", "ranks")}
	node, first, _, known := p.firstFailure(run)
	for at, n := range p.nodes {
		if n.ranks == nil {
			continue
		}
		rows, left := slices.Clone(n.ranks.rows), n.ranks.left
		for i := range rows {
			rows[i].First = known && at == node && rows[i].Rank == first
		}
		if p.ranks > maxRanks {
			var more []summary.RankRow
			rows, more = summary.ChooseRanks(rows, max(minRanks, maxRanks*len(rows)/p.ranks))
			left = append(more, left...)
		}
		for _, row := range rows {
			v.Rows = append(v.Rows, rankRow{row, n.host})
		}
		if rest := summary.RestOfRanks(left); rest != "" {
			v.Rest = append(v.Rest, "Node "+n.name+": "+rest)
		}
	}
	return v
}
