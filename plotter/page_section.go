package plotter

import (
	"html/template"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// nodeView is the page's view of the only node or, of several, the selected one. The first node is selected until the
// script selects another.
type nodeView struct {
	Name, Version    string
	Messages, Advice []summary.Message   // how the job ended, and what to change
	Cards, Details   []summary.Highlight // the most important numbers; the facts
	Missing          []reporter.Missing
	Phases           [][]string
	Charts           []pageChart
	Metrics          []metricGroup
}

// pageChart is a chart of the page: a picture, which the script replaces by one with zoom.
type pageChart struct {
	ID, Label     string
	Picture       template.HTML
	Quiet, Hidden bool // nothing happened; the node has no data, but other nodes have
}

// pageCharts returns the charts of the node on the page. lanes reports whether GPUs have lanes.
func (p *pageNode) pageCharts(shown []int, lanes bool) []pageChart {
	var out []pageChart
	for _, i := range shown {
		chart := p.charts[i]
		switch {
		case lanes && i == 0:
			chart = withLanes(p.charts, p.scales)[0]
		case lanes && i < gpuCharts: // part of the first chart
			continue
		}
		chart = chart.Stacked()
		const width = 800
		height, label := chart.height(chartHeight, width), titleOf(chart, p.time)
		picture := &svgCanvas{}
		picture.open(width, height, label)
		drawChart(picture, chart, p.time, box{0, 0, width, height})
		picture.close()
		out = append(out, pageChart{
			chart.ID, label, template.HTML(picture.out), chart.Quiet(), chart.Optional && len(chart.Series) == 0,
		})
	}
	return out
}

// metricGroup is a part of the page's metric table.
type metricGroup struct {
	Name reporter.Group
	Rows []metricRow
}

// metricRow is the row of a metric: its value in four digits, and exactly in its tooltip, or the reason why it is
// missing.
type metricRow struct {
	*reporter.Metric
	Value, Short, Why string
}

// metricGroups returns the metric table of the first node, in groups.
func (p *Page) metricGroups() []metricGroup {
	n := p.nodes[0]
	why := make(map[string]string, len(n.missing))
	for _, m := range n.missing {
		why[m.What] = m.Why
	}

	var groups []metricGroup
	for _, name := range reporter.Groups() {
		g := metricGroup{Name: name}
		for _, m := range p.metrics() {
			if m.Group != name {
				continue
			}
			row := metricRow{m, "", text.Absent, why[m.Name]}
			if v, has := n.metrics[m.Name]; has {
				row.Value, row.Short = exact(v), short(v)
			}
			g.Rows = append(g.Rows, row)
		}
		groups = append(groups, g)
	}
	return groups
}
