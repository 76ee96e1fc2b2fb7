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

// shownNodes is the maximum number of nodes with charts. Of more, the page has heat maps.
const shownNodes = 8

// heatColumns is the number of time columns of a heat map.
const heatColumns = 256

// nodesView is the page's view of several nodes.
type nodesView struct {
	Title     string
	Maps      []heatMap
	Multiples []nodeMultiple
	Rows      []nodeRow
	Jobs      bool // some node has a job
	Ranks     bool // some node has ranks
	Open      bool // whether the table is unfolded
}

// heatMap is a picture with a row for each node or rank: a PNG, in base64.
type heatMap struct {
	ID, Title, Scale string // Scale is what the darkest color means
	Picture          string
	Height           int
	FirstFailure     *position
}

// mapData is the script's data on a heat map: the names of its rows, its length, and what 100 % is.
type mapData struct {
	Names  []string `json:"n"`
	Length float64  `json:"len"`
	Top    float64  `json:"top"`
	Unit   string   `json:"u"`
}

// nodeMultiple is a node with small charts, on the same scales as other nodes.
type nodeMultiple struct {
	Name, Host, Odd string
	Ranks           []rankBar
	Charts          []pageChart
}

// rankBar is the length of a rank's run as a bar.
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

// odd returns why the node is shown before others; "" if it is like them.
func (p *Page) odd(i int, run *reporter.Run) string {
	n := p.nodes[i]
	if node, rank, _, ok := p.firstFailure(run); ok && node == i {
		if rank >= 0 {
			return fmt.Sprintf("rank %d failed first", rank)
		}
		return "failed first"
	}
	if n.exit != "" && n.exit != "0" {
		return "exit " + n.exit
	}
	for _, f := range n.slim.Findings {
		words, ok := map[string]string{
			"straggler": "ended late", "odd_node": "far from the others", "imbalance": "uneven",
		}[f.ID]
		if !ok {
			continue
		}
		if n.ranks != nil {
			if k := slices.IndexFunc(n.ranks.rows, func(r summary.RankRow) bool { return r.Odd }); k >= 0 {
				words = fmt.Sprintf("rank %d %s", n.ranks.rows[k].Rank, words)
			}
		}
		return words
	}
	return ""
}

// order returns the indexes of the nodes, with the odd ones first.
func (p *Page) order(run *reporter.Run) ([]int, []string) {
	order, why := make([]int, len(p.nodes)), make([]string, len(p.nodes))
	for i := range order {
		order[i], why[i] = i, p.odd(i, run)
	}
	first, _, _, failed := p.firstFailure(run)
	rank := func(i int) int {
		switch {
		case failed && i == first:
			return 0
		case why[i] != "":
			return 1
		}
		return 2
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank(a) - rank(b) })
	return order, why
}

// nodesView returns the view of several nodes, and fills the data of the script.
func (p *Page) nodesView(run *reporter.Run) *nodesView {
	v := &nodesView{Title: "The nodes, on the same scales", Open: len(p.nodes) <= 50}
	for _, n := range p.nodes {
		v.Jobs = v.Jobs || n.slim.Job != nil
		v.Ranks = v.Ranks || n.ranks != nil
	}
	_, why := p.order(run)
	for i, n := range p.nodes {
		v.Rows = append(v.Rows, n.row(why[i], v.Jobs))
	}
	return v
}

// drawNodes adds the heat maps and the charts of the nodes to the page.
func (p *Page) drawNodes(v *pageView, run *reporter.Run) {
	order, why := p.order(run)
	if p.remoteNodes == len(p.nodes) {
		v.Nodes.Title = "The nodes"
		return
	}
	v.Data.Maps = make(map[string]mapData)
	if len(p.nodes) > shownNodes {
		p.nodeMaps(v, run, order)
		v.Nodes.Title = fmt.Sprintf("%d nodes, %d of them on the same scales", len(p.nodes), shownNodes)
	}
	p.rankMaps(v, run)
	if len(order) > shownNodes {
		order = order[:shownNodes]
	} else {
		slices.Sort(order)
	}
	length, tops := 0.0, make(map[string]float64)
	for _, i := range order {
		n := p.nodes[i]
		length = max(length, n.time.Length())
		for k := range n.charts {
			tops[n.charts[k].ID] = max(tops[n.charts[k].ID], n.charts[k].top())
		}
	}
	longest := p.longestRank()
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
			times := v.Data.Times[n.name]
			times.Length = length
			v.Data.Times[n.name] = times
			m.Charts = append(m.Charts, drawn)
		}
		v.Nodes.Multiples = append(v.Nodes.Multiples, m)
	}
}

// row returns the row of the node in the table.
func (p *pageNode) row(odd string, jobs bool) nodeRow {
	row := nodeRow{Name: p.name, Host: p.host, Missing: p.listed, Odd: odd != "", End: "succeeded"}
	switch {
	case odd != "" && (p.exit == "" || p.exit == "0"):
		row.End = "succeeded, " + odd
		if p.exit == "" {
			row.End = odd
		}
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
	if p.ranks != nil {
		row.Ranks = p.ranks.span()
	}
	return row
}

// nodesFold returns the part of the page on the nodes themselves.
func (p *Page) nodesFold(run *reporter.Run) nodeFold {
	f := nodeFold{Words: fmt.Sprintf("%d, with everything that ran there", len(p.nodes)), Details: runDetails(run)}
	start, _ := p.span()
	for _, n := range p.nodes[:min(len(p.nodes), shownNodes)] {
		label := "node " + n.name
		if late := n.time.Start - start; late >= 1 && start > 0 {
			words := "began " + text.Seconds(late) + " after the first node"
			f.Details = append(f.Details, summary.Highlight{Label: label, Value: words})
		}
		if v := n.slim.Verdict; v != nil && v.Text != "" {
			words := text.Printable(strings.Join(append([]string{v.Text}, v.Conditions...), ", "))
			f.Details = append(f.Details, summary.Highlight{Label: label + ", end", Value: words})
		}
		for _, d := range n.details {
			f.Details = append(f.Details, summary.Highlight{Label: label + ", " + d.Label, Value: d.Value})
		}
		for _, m := range n.missing[:n.listed] {
			f.Missing = append(f.Missing, reporter.Missing{What: label + ", " + m.What, Why: m.Why})
		}
	}
	return f
}

// span returns the time that all nodes together cover: its start in seconds since 1970 and its length in seconds. If no
// start is known, all nodes begin at 0. Without any buckets the time is 0 to 1.
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

// nodeMaps adds a heat map of the CPUs and one of the memory of all nodes.
func (p *Page) nodeMaps(v *pageView, run *reporter.Run, order []int) {
	start, length := p.span()
	names := make([]string, len(order))
	for row, i := range order {
		names[row] = cmp.Or(p.nodes[i].host, "node "+p.nodes[i].name)
	}
	for _, plan := range []struct {
		id, title string
		all       func(*pageNode) float64
	}{
		{"cpu", "CPU", func(n *pageNode) float64 { return n.cpus }},
		{"memory", "Memory", func(n *pageNode) float64 { return n.memory }},
	} {
		rows, any := make([][]float64, len(order)), false
		for row, i := range order {
			n := p.nodes[i]
			s, scale := n.jobShare(plan.id, plan.all(n))
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
			v.addMap(heatMap{ID: plan.id, Title: plan.title + ", highest, of what each node may use", Scale: "100 %",
				Picture: encodeHeat(rows, heatColumns), FirstFailure: p.failurePosition(run, start, length, order)},
				mapData{names, length, 100, "%"})
		}
	}
}

// addMap adds a heat map.
func (v *pageView) addMap(m heatMap, data mapData) {
	m.Height = max(40, min(18, max(1, 420/len(data.Names)))*len(data.Names))
	v.Data.Maps[m.ID] = data
	v.Nodes.Maps = append(v.Nodes.Maps, m)
}

// resample resamples values into columns of equal time. Each column has the maximum of the buckets that overlap it, or
// NaN if none does.
func resample(list reporter.Numbers, t Timeline, offset, length float64, columns int) []float64 {
	out, width := make([]float64, columns), length/float64(columns)
	for i := range out {
		out[i] = math.NaN()
	}

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

// position is a place on a picture, in percent of its size.
type position struct{ Left, Top string }

// failurePosition returns the position of the first failure on a heat map of all nodes; nil if the failure or its time
// is unknown.
func (p *Page) failurePosition(run *reporter.Run, start, length float64, order []int) *position {
	node, _, at, ok := p.firstFailure(run)
	if !ok || at.IsZero() || start == 0 {
		return nil
	}
	percent := func(v float64) string { return strconv.FormatFloat(min(100, max(0, v)), 'f', 2, 64) }
	y := 100 * (float64(slices.Index(order, node)) + 0.5) / float64(len(order))
	return &position{percent(100 * (float64(at.UnixMilli())/1000 - start) / length), percent(y)}
}
