package plotter

import "github.com/perfagent/perfagent/reporter"

// writeSection writes what the page shows of a node: of the only one, or of the one that is chosen, which is the first
// until its script chooses another.
func (p *Page) writeSection(w *htmlWriter, run *reporter.Run, shown []int) {
	n, many := p.nodes[0], len(p.nodes) > 1
	w.ours("\n<section id=\"node\" data-node=\"").text(n.name).ours("\">\n")
	if many {
		w.ours(`<h2>Node <select id="choose" aria-label="node"></select><span class="nojs">`).text(n.name)
		w.ours("</span></h2>\n<div id=\"nodeadvice\">")
		n.writeMessages(w)
		w.ours("</div>")
	}

	charts := n.chosen(shown, p.lanes())
	hidden := len(charts) == 0
	w.ours("\n<h2").when(hidden, " hidden").ours(">Over time</h2>\n")
	w.ours(`<p class="note nojs-hide noprint"`).when(hidden, " hidden")
	w.ours(">Drag to zoom, double click or Esc to go back; arrow keys read values, + and − zoom. ")
	w.ours("Lines and areas are means, bands span least to greatest. ")
	w.ours("<button id=\"all\" hidden>Show all</button></p>\n")
	for i := range charts {
		charts[i].write(w, n.time)
	}

	w.ours("\n<div id=\"phases\">")
	n.writePhases(w)
	if !many {
		p.workTables(w)
		p.processTable(w, run)
	}
	w.ours("</div>\n<h2>Numbers</h2>\n")
	n.writeNumbers(w, many)
	w.ours(`<h2>Metrics</h2>
<div class="wide"><table id="metrics"><thead><tr><th>name</th><th>value</th><th>unit</th><th>meaning</th></tr></thead>
`)
	n.writeMetrics(w, p.metrics())
	w.ours("</table></div>\n</section>\n</main>\n<footer><p>Made by perfagent ").text(n.version)
	w.ours(". Totals, peaks, means and shares are of every sample. MiB = 2<sup>20</sup> bytes. ")
	w.ours("Charts by uPlot, © Leon Sorokin, MIT License.</p></footer>\n")
}

// writeMessages writes how the job ended on the node, and what to change.
func (p *pageNode) writeMessages(w *htmlWriter) {
	for _, m := range p.messages {
		writeVerdict(w, m)
	}
	for _, m := range p.advice {
		w.ours(`<div class="advice`).when(m.Bad, " bad").ours(`"><p>`).text(m.Text).ours("</p></div>")
	}
}

// writePhases writes the table of the phases, if there are some.
func (p *pageNode) writePhases(w *htmlWriter) {
	if len(p.phases) == 0 {
		return
	}

	w.ours(`<h2>Phases</h2>
<div class="wide"><table data-phases><thead><tr><th>phase</th><th>began</th><th>lasted</th><th>CPU</th><th>memory</th>`)
	w.ours("<th>GPU</th></tr></thead>\n<tbody>\n")
	for _, r := range p.phases {
		w.ours("<tr><td>").text(r.Name).ours("</td><td>").text(r.Count).ours("</td><td>").text(r.Seconds)
		w.ours("</td><td>").text(r.CPUs).ours("</td><td>").text(r.Memory).ours("</td><td>").text(r.GPU)
		w.ours("</td></tr>\n")
	}
	w.ours("</tbody></table></div>")
}

// writeNumbers writes the most important numbers of the node, and what is missing. The facts of the only node are at
// the top of the page.
func (p *pageNode) writeNumbers(w *htmlWriter, many bool) {
	w.ours("<div class=\"cards\">\n")
	for _, c := range p.cards {
		w.ours(`<div class="card"><p class="label">`).text(c.Label).ours(`</p><p class="value">`).text(c.Value)
		w.ours(`</p><p class="hint">`).text(c.Note).ours("</p></div>\n")
	}
	w.ours("</div>\n")
	if many {
		w.ours("<dl class=\"facts\" id=\"nodefacts\">\n")
		writeFacts(w, p.details)
		w.ours("</dl>")
	}

	w.ours("\n<div id=\"missing\">")
	if p.listed > 0 {
		w.ours("<h3>Not measured, or noted</h3><ul>")
		for _, m := range p.missing[:p.listed] {
			w.ours("<li><b>").text(m.What).ours("</b>: ").text(m.Why).ours("</li>")
		}
		w.ours("</ul>")
	}
	w.ours("</div>\n")
}

// A pageChart is a chart of the page.
type pageChart struct {
	Chart
	hidden bool // there is no data here, but other nodes have some
}

// chosen returns the charts of the node that the page shows. lanes reports whether GPUs have lanes.
func (p *pageNode) chosen(shown []int, lanes bool) []pageChart {
	var out []pageChart
	for _, i := range shown {
		chart := p.charts[i]
		switch {
		case lanes && i == 0:
			chart = joined(p.charts, p.scales)[0]
		case lanes && i < gpuCharts: // it is in the first
			continue
		}
		chart = chart.Stacked()
		out = append(out, pageChart{chart, chart.whenMeasured && len(chart.Series) == 0})
	}
	return out
}

// write writes the chart as a picture, which its script replaces by one that can be zoomed.
func (c *pageChart) write(w *htmlWriter, t Timeline) {
	const width = 800
	height, label := c.height(chartHeight, width), titleOf(c.Chart, t)
	w.ours(`<figure class="chart`).when(c.Quiet(), " quiet").ours(`" data-chart="`).text(c.ID)
	w.ours(`" tabindex="0" aria-label="`).text(label).ours(`"`).when(c.hidden, " hidden").ours(`><div class="static">`)
	picture := svgCanvas{w}
	picture.open(width, height, label)
	drawChart(picture, c.Chart, t, box{0, 0, width, height})
	picture.close()
	w.ours("</div></figure>\n")
}

// writeMetrics writes the rows of the metric table in groups.
func (p *pageNode) writeMetrics(w *htmlWriter, metrics []*reporter.Metric) {
	why := make(map[string]string, len(p.missing))
	for _, m := range p.missing {
		why[m.What] = m.Why
	}

	for _, group := range reporter.Groups() {
		head := false
		for _, m := range metrics {
			if m.Group != group {
				continue
			}
			if !head {
				w.ours(`<tbody><tr class="group"><th colspan="4">`).text(string(group)).ours("</th></tr>\n")
				head = true
			}
			p.writeMetric(w, m, why[m.Name])
		}
		w.when(head, "</tbody>\n")
	}
}

// writeMetric writes the row of a metric: its value in four digits, and exactly where the mouse rests, or why it has
// none.
func (p *pageNode) writeMetric(w *htmlWriter, m *reporter.Metric, why string) {
	w.ours(`<tr data-metric="`).text(m.Name)
	if v, has := p.metrics[m.Name]; has {
		w.ours(`" data-value="`).fixed(v, -1).ours(`" data-unit="`).text(string(m.Unit)).ours(`"><td>`).text(m.Name)
		w.ours(`</td><td class="number" title="`).fixed(v, -1).ours(`">`).text(short(v)).ours("</td>")
	} else {
		w.ours(`"><td>`).text(m.Name).ours("</td>").ours(absentCell)
	}

	w.ours(`<td>`).text(string(m.Unit)).ours(`</td><td title="`).text(m.How).ours(`">`).text(m.Meaning)
	if why != "" {
		w.ours(" <i>(").text(why).ours(")</i>")
	}
	w.ours("</td></tr>\n")
}
