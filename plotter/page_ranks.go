package plotter

import (
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
	// maxRanks is the maximum number of rows of ranks on a page. If there are more ranks, each node gets an equal share
	// of the rows, and the page has no heat maps of ranks.
	maxRanks    = 4096
	minRanks    = 4   // minimum number of rows of a node
	nodeRanks   = 512 // maximum number of rows of a node
	rankBars    = 8   // maximum number of bars of a node
	rankColumns = 160 // time columns of a heat map of ranks
)

// rankTable is the part of a node's ranks that the page keeps.
type rankTable struct {
	rows    []summary.RankRow
	left    []summary.RankRow           // ranks without a row, on a node with too many ranks
	usage   [len(rankUsage)][][]float64 // over time, a list for each row
	length  float64                     // duration of usage, in seconds
	lengths []float64                   // how long the rank of each row ran; NaN = unknown
	longest float64                     // the maximum of lengths
}

// rankUsage lists the heat maps of ranks.
var rankUsage = [...]struct {
	id, title string
	column    collector.Column
	of        func(reporter.Band) reporter.Numbers
}{
	{"rank_cpu", "CPU of each rank", collector.JobCPU, func(b reporter.Band) reporter.Numbers { return b.Mean }},
	{"rank_memory", "Memory of each rank", collector.JobMemory, func(b reporter.Band) reporter.Numbers { return b.Max }},
}

// newRankTable returns the ranks of n.
func newRankTable(run *reporter.Run, name string, n *reporter.Node) *rankTable {
	if len(n.Ranks) == 0 {
		return &rankTable{}
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
		length := math.NaN()
		if start := of[row.Rank].Start; !row.End.IsZero() && !start.IsZero() {
			length = max(0, row.End.Sub(start.Time).Seconds())
			t.longest = max(t.longest, length)
		}
		t.lengths = append(t.lengths, length)
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

// markOddRanks marks the ranks with values that are far from the other ranks'.
func (p *Page) markOddRanks(r *reporter.Report) {
	odd := make(map[int]bool)
	for rank := range diagnosis.OddRanks(r) {
		odd[rank.Rank] = true
	}
	for _, n := range p.nodes {
		for i := range n.ranks.rows {
			n.ranks.rows[i].Odd = odd[n.ranks.rows[i].Rank]
		}
	}
}

// count returns the number of ranks of the node.
func (t *rankTable) count() int { return len(t.rows) + len(t.left) }

// rankBars returns bars that show how long each rank ran, if there are few ranks.
func (p *pageNode) rankBars(longest float64) (out []rankBar) {
	if n := p.ranks.count(); n < 2 || n > rankBars {
		return nil
	}
	for i := range p.ranks.rows {
		row, length := &p.ranks.rows[i], p.ranks.lengths[i]
		if math.IsNaN(length) || longest == 0 {
			continue
		}
		out = append(out, rankBar{row.Rank, row.Length, 100 * length / longest, row.Failed || row.Odd})
	}
	return out
}

// rankMaps adds heat maps of the ranks of all nodes, unless there are too many.
func (p *Page) rankMaps(v *pageView) {
	if p.ranks < 2 || p.ranks > maxRanks {
		return
	}
	for k, u := range rankUsage {
		var rows [][]float64
		var names []string
		failed, of := -1, p.nodes[0]
		top, length := 0.0, 0.0
		for at, n := range p.nodes {
			length = max(length, n.ranks.length)
			for i, values := range n.ranks.usage[k] {
				if p.failed.is(at, n.ranks.rows[i].Rank) && n.ranks.length > 0 {
					failed, of = len(rows), n
				}
				rows, names = append(rows, values), append(names, "rank "+strconv.Itoa(n.ranks.rows[i].Rank))
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
		scale, unit := binaryUnit(top, u.column.Info().Unit.Symbol())
		m := heatMap{ID: u.id, Title: u.title, Scale: short(top/scale) + " " + unit}
		if failed >= 0 {
			m.FirstFailure = p.failed.position(failed, len(rows), of.time.Start, of.ranks.length)
		}
		v.addMap(m, rows, rankColumns, mapData{names, length, top / scale, unit})
	}
}

// failure identifies the first job that is known to have failed.
type failure struct {
	node, rank int // the index of the node, and the rank; -1 = unknown or none
	at         time.Time
}

// is reports whether the rank of the node with the given index failed first.
func (f failure) is(node, rank int) bool { return f.rank >= 0 && f.node == node && f.rank == rank }

// firstFailure returns the first failure according to the verdict of the run.
func (p *Page) firstFailure(run *reporter.Run) failure {
	index, known := summary.EvidenceIndex(run.Verdict, "node")
	f := failure{node: slices.IndexFunc(p.nodes, func(n *pageNode) bool { return known && n.name == strconv.Itoa(index) }),
		rank: -1}
	if f.node < 0 {
		return f
	}
	if rank, known := summary.EvidenceIndex(run.Verdict, "rank"); known {
		f.rank = rank
	}
	n := p.nodes[f.node]
	if n.slim.Job != nil {
		f.at = n.slim.Job.End.Time
	}
	for _, row := range n.ranks.rows {
		if row.Rank == f.rank {
			f.at = row.End
		}
	}
	return f
}

// ranksView is the page's table of ranks.
type ranksView struct {
	Count string // "16 ranks"
	Rows  []rankRow
	Rest  []string // sentences that count the ranks without a row
}

// rankRow is the row of a rank.
type rankRow struct {
	summary.RankRow
	Host string
}

// ranksView returns the ranks of all nodes; nil if there are fewer than two.
func (p *Page) ranksView() *ranksView {
	if p.ranks < 2 {
		return nil
	}
	v := &ranksView{Count: text.Count(p.ranks, "rank", "ranks")}
	for at, n := range p.nodes {
		rows, left := slices.Clone(n.ranks.rows), n.ranks.left
		for i := range rows {
			rows[i].First = p.failed.is(at, rows[i].Rank)
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
