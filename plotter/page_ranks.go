package plotter

import (
	"bytes"
	_ "embed" // the style of ranks
	"encoding/base64"
	"fmt"
	"html/template"
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
func (p *Page) ranksStyle(run *reporter.Run) string {
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
func (p *Page) ring(run *reporter.Run, start, length float64) template.HTML {
	node, _, at, ok := p.first(run)
	if !ok || at.IsZero() || start == 0 {
		return ""
	}
	x := 100 * (float64(at.UnixMilli())/1000 - start) / length
	y := 100 * (float64(node) + 0.5) / float64(len(p.nodes))
	return template.HTML(fmt.Sprintf(`<i class="ring" style="left:%.2f%%;top:%.2f%%"></i>`, min(100, max(0, x)), y))
}

// ranksSection renders the ranks of the only node.
func (p *Page) ranksSection(run *reporter.Run) template.HTML {
	n := p.nodes[0]
	if n.ranks == nil || len(n.ranks.rows) < 2 {
		return ""
	}
	out := tables(nil)
	out.words("<section>\n<h2>", text.Count(n.ranks.count(), "rank", "ranks"), "</h2>\n")
	p.rankRows(&out, n, run)
	out.words("</section>\n")
	return template.HTML(out)
}

// ranksOf renders the ranks of one of several nodes, folded, as a row of the table of nodes. Those of the node
// where the first job failed are open.
func (p *Page) ranksOf(n *pageNode, run *reporter.Run, columns int) template.HTML {
	if n.ranks == nil {
		return ""
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

	out := tables(nil)
	out.words(`<tr class="ranks"><td colspan="`, strconv.Itoa(columns), `"><details`)
	if node, _, _, ok := p.first(run); ok && p.nodes[node] == n {
		out.words(" open")
	}
	out.words("><summary>", words, "</summary>\n")
	p.rankRows(&out, n, run)
	out.words("</details></td></tr>\n")
	return template.HTML(out)
}

// count returns how many ranks the node has.
func (t *rankTable) count() int { return len(t.rows) + len(t.left) }

// rankRows appends the table of a node's ranks.
func (p *Page) rankRows(out *tables, n *pageNode, run *reporter.Run) {
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

	out.words(`<div class="wide" data-ranks="`, n.name, `" style="`)
	for _, s := range []struct{ name, data string }{{"cpu", n.ranks.cpu.data}, {"memory", n.ranks.memory.data}} {
		if s.data != "" {
			out.words("--"+s.name+":url(data:image/png;base64,", s.data, ");")
		}
	}
	out.words(`"><table><thead><tr><th>rank</th><th>exit</th><th>CPU</th><th>cores</th><th>peak memory</th>`,
		`<th>length</th><th></th>`)
	if n.ranks.cpu.data != "" {
		out.words("<th>CPU, up to ", n.ranks.cpu.top, "</th>")
	}
	if n.ranks.memory.data != "" {
		out.words("<th>memory, up to ", n.ranks.memory.top, "</th>")
	}
	out.words("</tr></thead>\n<tbody>\n")
	for i := range rows {
		n.ranks.row(out, &rows[i], place[rows[i].Rank])
	}
	out.words("</tbody></table>")
	if rest := summary.RestOfRanks(left); rest != "" {
		out.words(`<p class="note">`, rest, "</p>")
	}
	out.words("</div>\n")
}

// row appends the row of a rank, which is at a place of the strips.
func (t *rankTable) row(out *tables, r *summary.RankRow, place int) {
	look := ""
	if r.Failed {
		look = "failed"
	}
	if r.First {
		look += " first"
	}
	rank := strconv.Itoa(r.Rank)
	out.words(`<tr data-rank="`, rank, `" class="`, look, `"><td>`, rank, "</td><td>", r.Exit, `</td><td class="number">`, r.CPU, `</td><td class="number">`, r.Cores, `</td><td class="number">`, r.Memory,
		`</td><td class="number">`, r.Length, "</td><td>", r.Note(), "</td>")
	t.strip(out, "cpu", t.cpu, r, place)
	t.strip(out, "memory", t.memory, r, place)
	out.words("</tr>\n")
}

// strip appends what a rank used over time. The picture of all ranks is the background of each; a bar marks the
// first failure.
func (t *rankTable) strip(out *tables, name string, s rankStrips, r *summary.RankRow, place int) {
	if s.data == "" {
		return
	}
	style := fmt.Sprintf("background-image:var(--%s);background-size:100%% %dpx;background-position:0 %dpx",
		name, rankHeight*len(t.rows), -rankHeight*place)
	label := name + " of rank " + strconv.Itoa(r.Rank)
	out.words(`<td><i class="strip" role="img" aria-label="`, label, `" style="`, style, `">`)
	if length := t.time.Length(); r.First && !r.End.IsZero() && length > 0 {
		x := 100 * (float64(r.End.UnixMilli())/1000 - t.time.Start) / length
		out.words(fmt.Sprintf(`<b style="left:%.2f%%"></b>`, min(100, max(0, x))))
	}
	out.words("</i></td>")
}
