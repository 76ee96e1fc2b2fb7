package plotter

import (
	"bytes"
	_ "embed" // the style of ranks
	"encoding/base64"
	"fmt"
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
var ranksCSS markup

const (
	// mostRanks is the number of ranks of all nodes up to which a page has their use over time, and a row for
	// each. Of more, each node has an equal share of the rows.
	mostRanks   = 4096
	fewestRanks = 4   // rows of a node
	nodeRanks   = 512 // of one node, at most
	rankColumns = 160 // in time
	rankHeight  = 14  // pixels on the page
)

// A rankTable is what the page keeps of the ranks of a node.
type rankTable struct {
	rows        []summary.RankRow
	left        []summary.RankRow // of one node with very many
	cpu, memory rankStrips
	time        Timeline // without its series
}

// rankStrips are the use of something by each rank over time: a picture with a row for each.
type rankStrips struct {
	data string // a PNG, in base64; "" = nothing was measured, or there are too many ranks
	top  string // what the darkest color stands for
}

// newRankTable returns the ranks of a node, or nil if it has none.
func newRankTable(run *reporter.Run, name string, n *reporter.Node) *rankTable {
	if len(n.Ranks) == 0 {
		return nil
	}

	t := &rankTable{time: NewTimeline(run, n)}
	t.rows, t.left = summary.ChooseRanks(summary.RanksOf(&reporter.Run{}, name, n), nodeRanks)
	slices.SortFunc(t.rows, func(a, b summary.RankRow) int { return a.Rank - b.Rank })
	t.cpu = t.strips(n, collector.JobCPU, func(top float64) string { return text.Fixed(top, 2) },
		func(b reporter.Band) reporter.Numbers { return b.Mean })
	t.memory = t.strips(n, collector.JobMemory, text.SizeText,
		func(b reporter.Band) reporter.Numbers { return b.Max })
	t.time.Ends = t.time.Ends[max(0, len(t.time.Ends)-1):] // the length
	return t
}

// strips draws a column of the ranks, to the scale of the greatest value on the node.
func (t *rankTable) strips(
	n *reporter.Node, c collector.Column, show func(float64) string, of func(reporter.Band) reporter.Numbers,
) rankStrips {
	bands := make(map[int]reporter.Numbers)
	for _, r := range n.RankList() {
		bands[r.Rank] = of(r.Envelope[c.Key()])
	}

	rows, top, length := make([][]float64, len(t.rows)), 0.0, t.time.Length()
	for i, row := range t.rows {
		values := bands[row.Rank]
		if length > 0 {
			rows[i] = spread(values[:min(len(values), len(t.time.Ends))], t.time, 0, length, rankColumns)
		}
		for _, v := range rows[i] {
			if v > top && !math.IsInf(v, 0) {
				top = v
			}
		}
	}
	if top == 0 {
		return rankStrips{}
	}

	for _, row := range rows {
		for x := range row {
			row[x] *= 100 / top
		}
	}
	var picture bytes.Buffer
	if err := encodeHeat(&picture, rows, rankColumns); err != nil { // a buffer takes everything
		return rankStrips{}
	}
	return rankStrips{base64.StdEncoding.EncodeToString(picture.Bytes()), show(top)}
}

// ranksStyle returns the style of what a page has of ranks and of the first failure, if it has some.
func (p *Page) ranksStyle(run *reporter.Run) markup {
	_, _, _, failed := p.first(run)
	if p.ranks == 0 && (!failed || len(p.nodes) == 1) {
		return ""
	}
	return ranksCSS
}

// addRanks counts the ranks of a node, and drops the use over time of all if there are too many.
func (p *Page) addRanks(t *rankTable) {
	if t == nil {
		return
	}
	p.ranks += t.count()
	if len(p.nodes) < 2 || p.ranks <= mostRanks {
		return
	}
	for _, n := range p.nodes {
		if n.ranks != nil {
			n.ranks.cpu, n.ranks.memory = rankStrips{}, rankStrips{}
		}
	}
}

// first returns the place of the node where the first job failed, the rank if it has one, and when; ok is false
// if none is known to have failed.
func (p *Page) first(run *reporter.Run) (node, rank int, at time.Time, ok bool) {
	if run.Verdict == nil {
		return 0, 0, at, false
	}
	index, known := run.Verdict.Evidence["node"].(float64)
	node = slices.IndexFunc(p.nodes, func(n *pageNode) bool {
		return known && n.name == strconv.FormatFloat(index, 'f', -1, 64)
	})
	if node < 0 {
		return 0, 0, at, false
	}

	rank = -1
	if v, ok := run.Verdict.Evidence["rank"].(float64); ok && v >= 0 && v < math.MaxInt32 {
		rank = int(v)
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

// ring marks the first failure on a heat map of all nodes.
func (p *Page) ring(w *htmlWriter, run *reporter.Run, start, length float64) {
	if !p.ringed(run, start) {
		return
	}
	node, _, at, _ := p.first(run)
	x := 100 * (float64(at.UnixMilli())/1000 - start) / length
	y := 100 * (float64(node) + 0.5) / float64(len(p.nodes))
	w.ours(`<i class="ring" style="left:`).fixed(min(100, max(0, x)), 2).ours("%;top:").fixed(y, 2).ours(`%"></i>`)
}

// ringed reports whether the first failure is known, and when it was, so that heat maps have a ring.
func (p *Page) ringed(run *reporter.Run, start float64) bool {
	_, _, at, ok := p.first(run)
	return ok && !at.IsZero() && start != 0
}

// ranksSection writes the ranks of the only node.
func (p *Page) ranksSection(w *htmlWriter, run *reporter.Run) {
	n := p.nodes[0]
	if n.ranks == nil || len(n.ranks.rows) < 2 {
		return
	}
	w.ours("<section>\n<h2>").text(text.Count(n.ranks.count(), "rank", "ranks")).ours("</h2>\n")
	p.rankRows(w, n, run)
	w.ours("</section>\n")
}

// ranksOf writes the ranks of one of several nodes, folded, as a row of the table of nodes. Those of the node
// where the first job failed are open.
func (p *Page) ranksOf(w *htmlWriter, n *pageNode, run *reporter.Run, columns int) {
	if n.ranks == nil {
		return
	}
	failed := 0
	for _, row := range slices.Concat(n.ranks.rows, n.ranks.left) {
		if row.Failed {
			failed++
		}
	}
	words := text.Count(n.ranks.count(), "rank", "ranks")
	if failed > 0 {
		words += fmt.Sprintf(", %d failed", failed)
	}

	node, _, _, known := p.first(run)
	w.ours(`<tr class="ranks"><td colspan="`).whole(columns).ours(`"><details`)
	w.when(known && p.nodes[node] == n, " open").ours("><summary>").text(words).ours("</summary>\n")
	p.rankRows(w, n, run)
	w.ours("</details></td></tr>\n")
}

// count returns how many ranks the node has.
func (t *rankTable) count() int { return len(t.rows) + len(t.left) }

// rankRows writes the table of a node's ranks.
func (p *Page) rankRows(w *htmlWriter, n *pageNode, run *reporter.Run) {
	rows, left, first := slices.Clone(n.ranks.rows), n.ranks.left, -1
	if node, rank, _, ok := p.first(run); ok && p.nodes[node] == n {
		first = rank
	}
	place := make(map[int]int, len(rows))
	for i := range rows {
		place[rows[i].Rank], rows[i].First = i, rows[i].Rank == first
	}
	if len(p.nodes) > 1 && p.ranks > mostRanks {
		var more []summary.RankRow
		rows, more = summary.ChooseRanks(rows, max(fewestRanks, mostRanks*len(rows)/p.ranks))
		left = append(more, left...)
	}

	w.ours(`<div class="wide" data-ranks="`).text(n.name).ours(`" style="`)
	n.ranks.cpu.variable(w, "cpu")
	n.ranks.memory.variable(w, "memory")
	w.ours(`"><table><thead><tr><th>rank</th><th>exit</th><th>CPU</th><th>cores</th><th>peak memory</th>`)
	w.ours("<th>length</th><th></th>")
	if n.ranks.cpu.data != "" {
		w.ours("<th>CPU, up to ").text(n.ranks.cpu.top).ours("</th>")
	}
	if n.ranks.memory.data != "" {
		w.ours("<th>memory, up to ").text(n.ranks.memory.top).ours("</th>")
	}
	w.ours("</tr></thead>\n<tbody>\n")
	for i := range rows {
		n.ranks.row(w, &rows[i], place[rows[i].Rank])
	}
	w.ours("</tbody></table>")
	if rest := summary.RestOfRanks(left); rest != "" {
		w.ours(`<p class="note">`).text(rest).ours("</p>")
	}
	w.ours("</div>\n")
}

// variable writes the picture as a variable of the style.
func (s rankStrips) variable(w *htmlWriter, name markup) {
	if s.data != "" {
		w.ours("--").ours(name).ours(":url(data:image/png;base64,").text(s.data).ours(");")
	}
}

// row writes the row of a rank, which is at a place of the strips.
func (t *rankTable) row(w *htmlWriter, r *summary.RankRow, place int) {
	w.ours(`<tr data-rank="`).whole(r.Rank).ours(`" class="`).when(r.Failed, "failed").when(r.First, " first")
	w.ours(`"><td>`).whole(r.Rank).ours("</td><td>").text(r.Exit).ours(`</td><td class="number">`).text(r.CPU)
	w.ours(`</td><td class="number">`).text(r.Cores).ours(`</td><td class="number">`).text(r.Memory)
	w.ours(`</td><td class="number">`).text(r.Length).ours("</td><td>").text(r.Note()).ours("</td>")
	t.strip(w, "cpu", t.cpu, r, place)
	t.strip(w, "memory", t.memory, r, place)
	w.ours("</tr>\n")
}

// strip writes what a rank used over time. The picture of all ranks is the background of each; a bar marks the
// first failure.
func (t *rankTable) strip(w *htmlWriter, name markup, s rankStrips, r *summary.RankRow, place int) {
	if s.data == "" {
		return
	}
	w.ours(`<td><i class="strip" role="img" aria-label="`).ours(name).ours(" of rank ").whole(r.Rank)
	w.ours(`" style="background-image:var(--`).ours(name)
	w.ours(");background-size:100% ").whole(rankHeight * len(t.rows))
	w.ours("px;background-position:0 ").whole(-rankHeight * place).ours(`px">`)
	if length := t.time.Length(); r.First && !r.End.IsZero() && length > 0 {
		x := 100 * (float64(r.End.UnixMilli())/1000 - t.time.Start) / length
		w.ours(`<b style="left:`).fixed(min(100, max(0, x)), 2).ours(`%"></b>`)
	}
	w.ours("</i></td>")
}
