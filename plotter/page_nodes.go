package plotter

import (
	"bytes"
	"math"
	"slices"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// tableOpen is how many rows the table of the nodes has at most, so that it is not folded.
const tableOpen = 50

// writeNodes writes what the page shows of many nodes.
func (p *Page) writeNodes(w *htmlWriter, run *reporter.Run) error {
	w.ours("\n<section id=\"nodes\">\n<h2>").whole(len(p.nodes))
	if run.Gather != nil && run.Gather.NodesExpected > len(p.nodes) {
		w.ours(" of ").whole(run.Gather.NodesExpected)
	}
	w.ours(" nodes</h2>\n")
	if err := p.writeMaps(w, run); err != nil {
		return err
	}

	w.ours("</div>\n<details id=\"table\"").when(len(p.nodes) <= tableOpen, " open")
	w.ours(`><summary>Table of the nodes</summary>
<div class="wide"><table><thead><tr><th>node</th><th>host</th><th>exit</th><th>CPU mean</th><th>CPU peak</th>`)
	columns, job := 8, p.anyOfJob()
	if job {
		columns += 2
	}
	w.ours("<th>memory peak</th><th>unused CPU·h</th>").when(job, "<th>job CPUs</th><th>job memory</th>")
	w.ours("<th>missing</th></tr></thead>\n<tbody>\n")
	first, _, _, failed := p.first(run)
	for i, n := range p.nodes {
		n.writeRow(w, failed && i == first, job)
		p.ranksOf(w, n, run, columns)
	}

	w.ours("</tbody></table></div></details>\n")
	p.workTables(w)
	p.processTable(w, run)
	w.ours("</section>\n")
	return nil
}

// writeRow writes the node's line in the table of the nodes.
func (p *pageNode) writeRow(w *htmlWriter, first, job bool) {
	w.ours("<tr").when(first, ` class="first"`).ours(`><td><a href="`).link("#node=" + p.name).ours(`">`).text(p.name)
	brief := summary.Brief(p.metrics)
	cells := []string{p.host, p.exit, brief.CPUMean, brief.CPUPeak, brief.MemoryPeak, brief.UnusedHours}
	if job {
		cells = append(cells, brief.JobCPUs, brief.JobMemory)
	}
	w.ours("</a></td>")
	for _, words := range cells {
		w.ours("<td>").text(words).ours("</td>")
	}
	w.ours("<td>").whole(p.listed).ours("</td></tr>\n")
}

// writeMaps writes the heat maps, and before them how to read them. They are left out if the series are
// elsewhere.
func (p *Page) writeMaps(w *htmlWriter, run *reporter.Run) error {
	if p.elsewhere() > 0 {
		w.ours("<div class=\"maps\">\n")
		return nil
	}

	start, length := p.span()
	w.ours(`<p class="note noprint">Each row of a map is a node, from `).text(p.nodes[0].name)
	w.ours(" at the top to ").text(p.nodes[len(p.nodes)-1].name).ours("; time runs to the right over ")
	w.text(text.Seconds(length)).ours(". A click, or Enter, shows the node below.")
	w.when(p.ringed(run, start), " The ring is where the first job failed.").ours("</p>\n<div class=\"maps\">\n")
	for _, plan := range heatPlans() {
		if plan.ofJob && !p.any(plan) {
			continue
		}
		if err := p.writeMap(w, run, plan, start, length); err != nil {
			return err
		}
	}
	return nil
}

// writeMap writes a heat map.
func (p *Page) writeMap(w *htmlWriter, run *reporter.Run, plan heatPlan, start, length float64) error {
	mean, err := p.heatmap(plan, start, length, func(b reporter.Band) reporter.Numbers { return b.Mean })
	if err != nil {
		return err
	}
	peak, err := p.heatmap(plan, start, length, func(b reporter.Band) reporter.Numbers { return b.Max })
	if err != nil {
		return err
	}

	w.ours(`<figure class="heat" data-heatmap="`).ours(plan.id).ours(`" data-of="`).ours(plan.chart)
	w.ours(`" tabindex="0" aria-label="`).ours(plan.title)
	w.ours(" of all nodes over time; arrow keys move, Enter shows a node\">\n<figcaption>").ours(plan.title)
	w.ours(` <label class="mean"><input type="radio" name="`).ours(plan.id)
	w.ours(`"> mean</label> <label class="peak"><input type="radio" name="`).ours(plan.id)
	w.ours(`" checked> peak</label> <span class="scale">0 <i></i> 100 %</span></figcaption>
<div class="map" style="height:`).whole(p.mapHeight())
	w.ours(`px"><img class="mean" alt="" src="data:image/png;base64,`).base64(mean)
	w.ours(`"><img class="peak" alt="" src="data:image/png;base64,`).base64(peak)
	w.ours(`"><div class="cross"></div>`)
	p.ring(w, run, start, length)
	w.ours("</div>\n</figure>\n")
	return nil
}

// mapHeight returns the height of a heat map in pixels: several per node, but with many nodes only
// one.
func (p *Page) mapHeight() int {
	each := min(18, max(1, 420/len(p.nodes)))
	return max(60, each*len(p.nodes))
}

// span returns the time that all nodes together cover: its start in seconds since 1970 and its
// length in seconds. If no start is known, all nodes begin at 0.
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

// heatColumns returns how many time columns a heat map has: no more than its nodes have points.
func (p *Page) heatColumns() int {
	const most = 256
	if p.limit > 0 {
		return min(p.limit, most)
	}
	return most
}

// A heatPlan says what a heat map shows: a percentage of each node.
type heatPlan struct {
	id, title markup
	chart     markup // whose values the tooltip shows
	ofJob     bool   // left out if no node has it
	// shares returns the values of a node and the factor that makes percentages of them; nil if there
	// are none.
	shares func(*pageNode) (*Series, float64)
}

func heatPlans() []heatPlan {
	return []heatPlan{
		{id: "cpu", title: "CPU", chart: "cpu", shares: func(n *pageNode) (*Series, float64) {
			return n.chart("cpu").part(PartShare), 1
		}},
		{
			id: "job_cpu", title: "Job CPU, of what it may use", chart: "cpu", ofJob: true,
			shares: func(n *pageNode) (*Series, float64) { return n.chart("cpu").part(PartJob), 100 / n.cpus },
		},
		{id: "memory", title: "Memory", chart: "memory", shares: func(n *pageNode) (*Series, float64) {
			c := n.chart("memory")
			if used := c.part(PartAll); used != nil {
				return used, 100 / c.Whole
			}
			return c.part(PartShare), 1
		}},
	}
}

// chart returns a chart of the node by its ID.
func (p *pageNode) chart(id string) *Chart {
	i := slices.IndexFunc(p.charts, func(c Chart) bool { return c.ID == id })
	return &p.charts[i] // each node has all
}

// any reports whether some node has what a heat map shows.
func (p *Page) any(plan heatPlan) bool {
	return slices.ContainsFunc(p.nodes, func(n *pageNode) bool {
		s, _ := plan.shares(n)
		return s != nil
	})
}

// anyOfJob reports whether the table shows what the jobs used.
func (p *Page) anyOfJob() bool {
	return slices.ContainsFunc(heatPlans(), func(plan heatPlan) bool { return plan.ofJob && p.any(plan) })
}

// heatmap draws nodes × time as a PNG, one pixel per value.
func (p *Page) heatmap(
	plan heatPlan,
	start, length float64,
	of func(reporter.Band) reporter.Numbers,
) ([]byte, error) {
	rows, columns := make([][]float64, len(p.nodes)), p.heatColumns()
	for i, n := range p.nodes {
		s, scale := plan.shares(n)
		if s == nil || math.IsInf(scale, 0) {
			continue
		}

		rows[i] = spread(of(s.Band), n.time, n.time.Start-start, length, columns)
		for x := range rows[i] {
			rows[i][x] *= scale
		}
	}

	var picture bytes.Buffer
	err := encodeHeat(&picture, rows, columns)
	return picture.Bytes(), err
}

// spread resamples values into columns of equal time. Each column has the maximum of the buckets
// that overlap it, or NaN if none does.
func spread(list reporter.Numbers, t Timeline, offset, length float64, columns int) []float64 {
	out, width := make([]float64, columns), length/float64(columns)
	for i := range out {
		out[i] = math.NaN()
	}

	begin := offset
	for i, v := range list {
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
