package plotter

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// shownNodes is the maximum number of nodes with charts. If there are more, the page has heat maps of all nodes.
const shownNodes = 8

// heatColumns is the number of time columns of a heat map.
const heatColumns = 256

// nodesView is the page's view of several nodes.
type nodesView struct {
	Title       string
	Maps        []heatMap
	Multiples   []nodeMultiple
	Rows        []nodeRow
	Jobs, Ranks bool // whether any node has a job, and whether any node has ranks
}

// heatMap is a picture with a row for each node or rank: a PNG in base64.
type heatMap struct {
	ID, Title, Scale string // Scale is the value of the darkest color
	Picture          string
	Height           int
	FirstFailure     *position
}

// mapData is the script's data about a heat map: the names of its rows, its length, and the amount that is 100 %.
type mapData struct {
	Names  []string `json:"n"`
	Length float64  `json:"len"`
	Top    float64  `json:"top"`
	Unit   string   `json:"u"`
}

// nodeMultiple is a node with small charts, which have the same scales as the charts of other nodes.
type nodeMultiple struct {
	Name, Host, Odd string
	Ranks           []rankBar
	Charts          []pageChart
}

// rankBar is a bar that shows how long a rank ran.
type rankBar struct {
	Rank   int
	Length string
	Width  float64
	Odd    bool
}

// nodeRow is a node's row in the table of the nodes.
type nodeRow struct {
	Name, Host, Ranks, End string
	Numbers                []summary.Highlight // "–" = unknown
	Missing                int
	Odd                    bool
}

// odd returns the reason why node i is shown before the others; "" if there is none.
func (p *Page) odd(i int) string {
	n := p.nodes[i]
	switch {
	case p.failed.node == i && p.failed.rank >= 0:
		return fmt.Sprintf("rank %d failed first", p.failed.rank)
	case p.failed.node == i:
		return "failed first"
	case n.exit != "" && n.exit != "0":
		return "exit " + n.exit
	}
	for _, f := range n.slim.Findings {
		words := map[string]string{
			"straggler": "ended late", "odd_node": "far from the others", "imbalance": "uneven",
		}[f.ID]
		if words == "" {
			continue
		}
		if k := slices.IndexFunc(n.ranks.rows, func(r summary.RankRow) bool { return r.Odd }); k >= 0 {
			words = fmt.Sprintf("rank %d %s", n.ranks.rows[k].Rank, words)
		}
		return words
	}
	return ""
}

// order returns the indexes of the nodes, odd nodes first. The second list has the result of odd for each index.
func (p *Page) order() ([]int, []string) {
	order, why := make([]int, len(p.nodes)), make([]string, len(p.nodes))
	for i := range order {
		order[i], why[i] = i, p.odd(i)
	}
	rank := func(i int) int {
		switch {
		case i == p.failed.node:
			return 0
		case why[i] != "":
			return 1
		}
		return 2
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank(a) - rank(b) })
	return order, why
}

// drawNodes adds the table, the heat maps and the charts of the nodes to the page.
func (p *Page) drawNodes(v *pageView) {
	v.Nodes = &nodesView{Title: "The nodes, on the same scales"}
	for _, n := range p.nodes {
		v.Nodes.Jobs = v.Nodes.Jobs || n.slim.Job != nil
		v.Nodes.Ranks = v.Nodes.Ranks || len(n.ranks.rows) > 0
	}
	order, why := p.order()
	for i, n := range p.nodes {
		v.Nodes.Rows = append(v.Nodes.Rows, n.row(why[i], v.Nodes.Jobs))
	}
	if p.remoteNodes == len(p.nodes) {
		v.Nodes.Title = "The nodes"
		return
	}
	v.Data.Maps = make(map[string]mapData)
	if len(p.nodes) > shownNodes {
		p.nodeMaps(v, order)
		v.Nodes.Title = fmt.Sprintf("%d nodes, %d of them on the same scales", len(p.nodes), shownNodes)
	}
	p.rankMaps(v)
	order = order[:min(len(order), shownNodes)]
	if len(p.nodes) <= shownNodes {
		slices.Sort(order)
	}
	p.multiples(v, order, why)
}

// multiples adds the charts of the given nodes, on the same scales.
func (p *Page) multiples(v *pageView, order []int, why []string) {
	length, tops := 0.0, make(map[string]float64)
	for _, i := range order {
		n := p.nodes[i]
		length = max(length, n.time.Length())
		for k := range n.charts {
			tops[n.charts[k].ID] = max(tops[n.charts[k].ID], n.charts[k].top())
		}
	}
	longest := 0.0
	for _, n := range p.nodes {
		longest = max(longest, n.ranks.longest)
	}
	for _, i := range order {
		n := p.nodes[i]
		m := nodeMultiple{Name: n.name, Host: n.host, Odd: why[i], Ranks: n.rankBars(longest)}
		for k := range n.charts {
			c := &n.charts[k]
			if len(c.Series) == 0 {
				continue
			}
			f := newFigure(c, &n.time, 3, 2)
			f.xs = newTimeAxis(length, 3)
			if !c.Rows {
				f.ys = valueAxis(c.Unit, 0, tops[c.ID], false, 2)
			}
			drawn := n.picture(c, f, &v.Data)
			drawn.Whole, drawn.Key = "", nil
			if drawn.Unit = f.ys.Unit; c.Unit == "CPUs" {
				drawn.Unit = "CPUs busy"
			}
			v.Data.Times[n.name] = timeData{reporter.Numbers(n.time.Ends), length}
			m.Charts = append(m.Charts, drawn)
		}
		v.Nodes.Multiples = append(v.Nodes.Multiples, m)
	}
}

// row returns the row of the node in the table.
func (p *pageNode) row(odd string, jobs bool) nodeRow {
	row := nodeRow{Name: p.name, Host: p.host, Missing: p.listed, Odd: odd != "", End: "succeeded"}
	switch {
	case odd != "" && p.exit == "0":
		row.End = "succeeded, " + odd
	case odd != "":
		row.End = odd
	case p.exit == "":
		row.End = text.Absent
	}
	add := func(label, value string) {
		row.Numbers = append(row.Numbers, summary.Highlight{Label: label, Value: value})
	}
	percent := func(metric string) string { return text.Percentage(p.slim.Metric(metric)).Normalize().String() }
	if jobs {
		add("time", text.Seconds(p.slim.Wall()))
		add("CPU time", text.Seconds(p.slim.Metric(reporter.MetricJobCPU)))
		add("peak memory", text.SizeText(p.slim.Metric(reporter.MetricJobMemoryPeak)))
	}
	add("CPU of the node", percent(reporter.MetricCPUMean))
	add("its memory", percent(reporter.MetricMemoryPeak))
	if rows := p.ranks.rows; len(rows) == 1 {
		row.Ranks = strconv.Itoa(rows[0].Rank)
	} else if len(rows) > 1 {
		row.Ranks = fmt.Sprintf("%d to %d", rows[0].Rank, rows[len(rows)-1].Rank)
	}
	return row
}

// nodesFold returns the collapsible part of the page about the nodes.
func (p *Page) nodesFold(run *reporter.Run) nodeFold {
	f := nodeFold{Words: fmt.Sprintf("%d, with everything that ran there", len(p.nodes)), Details: runDetails(run)}
	start, _ := p.span()
	add := func(label, value string) {
		f.Details = append(f.Details, summary.Highlight{Label: label, Value: value})
	}
	for _, n := range p.nodes[:min(len(p.nodes), shownNodes)] {
		label := "node " + n.name
		if late := n.time.Start - start; late >= 1 && start > 0 {
			add(label, "began "+text.Seconds(late)+" after the first node")
		}
		if v := n.slim.Verdict; v != nil && v.Text != "" {
			add(label+", end", text.Printable(strings.Join(append([]string{v.Text}, v.Conditions...), ", ")))
		}
		for _, d := range n.details {
			add(label+", "+d.Label, d.Value)
		}
		for _, m := range n.missing[:n.listed] {
			f.Missing = append(f.Missing, reporter.Missing{What: label + ", " + m.What, Why: m.Why})
		}
	}
	return f
}

// span returns the time that the nodes cover together: its start in seconds since 1970 and its length in seconds. If no
// start is known, all nodes begin at 0. If there are no buckets, the time is 0 to 1.
func (p *Page) span() (start, length float64) {
	start, end := math.Inf(1), math.Inf(-1)
	for _, n := range p.nodes {
		if len(n.time.Ends) > 0 {
			start, end = min(start, n.time.Start), max(end, n.time.Start+n.time.Length())
		}
	}

	if !(end > start) {
		return 0, 1
	}

	return start, end - start
}

// nodeMaps adds a heat map of the CPU usage and a heat map of the memory of all nodes.
func (p *Page) nodeMaps(v *pageView, order []int) {
	start, length := p.span()
	names := make([]string, len(order))
	var ring *position
	for row, i := range order {
		names[row] = cmp.Or(p.nodes[i].host, "node "+p.nodes[i].name)
		if i == p.failed.node && !p.failed.at.IsZero() && start != 0 {
			ring = p.failed.position(row, len(order), start, length)
		}
	}
	for _, title := range []string{"CPU", "Memory"} {
		rows, any := make([][]float64, len(order)), false
		for row, i := range order {
			n := p.nodes[i]
			s, scale := n.jobShare(strings.ToLower(title))
			if s == nil || math.IsInf(scale, 0) {
				continue
			}
			any = true
			rows[row] = resample(s.Band.Max, n.time, n.time.Start-start, length, heatColumns)
			for x := range rows[row] {
				rows[row][x] *= scale
			}
		}
		if any {
			v.addMap(heatMap{ID: strings.ToLower(title), Title: title + ", highest, of what each node may use",
				Scale: "100 %", FirstFailure: ring}, rows, heatColumns, mapData{names, length, 100, "%"})
		}
	}
}

// addMap adds a heat map of rows of percentages.
func (v *pageView) addMap(m heatMap, rows [][]float64, columns int, data mapData) {
	m.Picture = encodeHeat(rows, columns)
	m.Height = max(40, min(18, max(1, 420/len(data.Names)))*len(data.Names))
	v.Data.Maps[m.ID] = data
	v.Nodes.Maps = append(v.Nodes.Maps, m)
}

// resample resamples list into columns of equal duration. The value of a column is the maximum of the buckets that
// overlap it, or NaN if there are none.
func resample(list reporter.Numbers, t Timeline, offset, length float64, columns int) []float64 {
	out, width := slices.Repeat([]float64{math.NaN()}, columns), length/float64(columns)

	begin := offset
	for i, v := range list[:min(len(list), len(t.Ends))] {
		end := offset + t.Ends[i]
		last := min(columns-1, int(math.Ceil(end/width))-1)
		for c := max(0, int(begin/width)); c <= last; c++ {
			if math.IsNaN(out[c]) || v > out[c] {
				out[c] = v
			}
		}
		begin = end
	}

	return out
}

// position is a point in a picture, in percent of its size.
type position struct{ Left, Top float64 }

// position returns the position of the failure in the given row of a heat map with the given number of rows.
func (f failure) position(row, rows int, start, length float64) *position {
	x := 100 * (float64(f.at.UnixMilli())/1000 - start) / length
	return &position{min(100, max(0, x)), 100 * (float64(row) + 0.5) / float64(rows)}
}
