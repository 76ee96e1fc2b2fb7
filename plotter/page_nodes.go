package plotter

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// nodesData is what the template shows of many nodes.
type nodesData struct {
	Count               string // of the nodes: 3, or 3 of 4
	First, Last, Length string
	Heatmaps            []heatmapData
	Nodes               []nodeRow
	Job                 bool // whether the table shows what the jobs used
	Work                template.HTML
	Ring                template.HTML // on the heat maps, where the first job failed
}

type heatmapData struct {
	ID, Title  string
	Chart      string       // whose values the tooltip shows
	Height     int          // pixels on the page
	Mean, Peak template.URL // pictures made here
}

type nodeRow struct {
	Name, Host, Exit, Mean, Peak, Memory, Unused string
	JobCPUs, JobMemory                           string
	Missing                                      int
	First                                        bool // the first job failed there
	Ranks                                        template.HTML
}

func (p *Page) nodesData(run *reporter.Run) (nodesData, error) {
	start, length := p.span()
	d := nodesData{
		Count: strconv.Itoa(len(p.nodes)),
		First: p.nodes[0].name, Last: p.nodes[len(p.nodes)-1].name, Length: text.Seconds(length),
	}
	if run.Gather != nil && run.Gather.NodesExpected > len(p.nodes) {
		d.Count += fmt.Sprintf(" of %d", run.Gather.NodesExpected)
	}
	for _, plan := range heatPlans() {
		d.Job = d.Job || plan.ofJob && p.any(plan)
		if plan.ofJob && !p.any(plan) || p.elsewhere() > 0 {
			continue
		}

		h := heatmapData{ID: plan.id, Title: plan.title, Chart: plan.chart, Height: p.mapHeight()}
		var err error
		if h.Mean, err = p.heatmap(plan, start, length, func(b reporter.Band) reporter.Numbers { return b.Mean }); err != nil {
			return d, err
		}
		if h.Peak, err = p.heatmap(plan, start, length, func(b reporter.Band) reporter.Numbers { return b.Max }); err != nil {
			return d, err
		}

		d.Heatmaps = append(d.Heatmaps, h)
	}

	columns := 8
	if d.Job {
		columns += 2
	}
	first, _, _, failed := p.first(run)
	for i, n := range p.nodes {
		row := n.row()
		row.First, row.Ranks = failed && i == first, p.ranksOf(n, run, columns)
		d.Nodes = append(d.Nodes, row)
	}

	d.Ring = p.ring(run, start, length)
	d.Work = p.workTables() + p.processTable(run)
	return d, nil
}

// mapHeight returns the height of a heat map in pixels: several per node, but with many nodes only
// one.
func (p *Page) mapHeight() int {
	each := min(18, max(1, 420/len(p.nodes)))
	return max(60, each*len(p.nodes))
}

// row returns the node's line in the table.
func (p *pageNode) row() nodeRow {
	r := nodeRow{Name: p.name, Host: p.host, Exit: p.exit, Missing: p.listed}
	brief := summary.Brief(p.metrics)
	r.Mean, r.Peak, r.Memory, r.Unused = brief.CPUMean, brief.CPUPeak, brief.MemoryPeak, brief.UnusedHours
	r.JobCPUs, r.JobMemory = brief.JobCPUs, brief.JobMemory
	return r
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
	id, title, chart string
	ofJob            bool // left out if no node has it
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

// heatmap draws nodes × time, one pixel per value.
func (p *Page) heatmap(
	plan heatPlan,
	start, length float64,
	of func(reporter.Band) reporter.Numbers,
) (template.URL, error) {
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
	if err := encodeHeat(&picture, rows, columns); err != nil {
		return "", err
	}

	return template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(picture.Bytes())), nil
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

// planJSON is what the page's script knows about all nodes.
type planJSON struct {
	Charts []planChart `json:"charts"`
	Run    string      `json:"run"` // distinguishes runs that are served at the same address
	First  string      `json:"first"`
	Nodes  []string    `json:"nodes"`
	Hosts  []string    `json:"hosts"`
	Start  float64     `json:"start"`
	Length float64     `json:"length"`
	Live   int64       `json:"live"` // ms between two updates; 0 if the run has ended
	Packed bool        `json:"packed,omitempty"`
	// Columns is the number of time columns of a heat map.
	Columns int `json:"columns"`
}

// lacks reports whether a series is that of a device, other than a GPU, that no node has.
func (p *Page) lacks(s seriesPlan) bool {
	_, _, gpu := s.key.GPU()
	if gpu || s.key.Info().Since != collector.Device {
		return false
	}
	return !slices.ContainsFunc(p.nodes, func(n *pageNode) bool {
		return slices.ContainsFunc(n.charts, func(c Chart) bool {
			return slices.ContainsFunc(c.Series, func(have Series) bool { return have.Key == s.key.Key() })
		})
	})
}

type planChart struct {
	ID     string       `json:"id"`
	Title  string       `json:"title"`
	Unit   string       `json:"unit"`
	Top    float64      `json:"top"`
	Series []planSeries `json:"series"`
	Asides []planSeries `json:"asides"`
	Maybe  bool         `json:"maybe,omitempty"` // left out if a node has no data for it
	Signed bool         `json:"signed,omitempty"`
	Stack  []string     `json:"stack,omitempty"`  // the labels of the plan
	Lanes  bool         `json:"lanes,omitempty"`  // a lane for each GPU, with the next two charts in it
	Within bool         `json:"within,omitempty"` // it is one of these two
}

type planSeries struct {
	Label  string `json:"label"`
	Spread bool   `json:"spread,omitempty"`
	Color  int    `json:"color,omitempty"`
	Dash   int    `json:"dash,omitempty"` // kind of line, see dashes
	Unit   string `json:"unit,omitempty"`
	Part   Part   `json:"part,omitempty"`
}

// writeData writes the page's data for its script.
func (p *Page) writeData(out *bufio.Writer, run *reporter.Run, has []bool) error {
	d := planJSON{
		Run:     fmt.Sprintf("%s@%d", run.ID, run.Start.UnixMicro()),
		First:   p.nodes[0].name,
		Live:    p.options.Live.Milliseconds(),
		Packed:  p.limit > 0,
		Columns: p.heatColumns(),
		Charts:  []planChart{}, // not null
	}
	d.Start, d.Length = p.span()
	gpus := 0
	for _, n := range p.nodes {
		gpus = max(gpus, n.gpus)
	}

	plans := chartPlans(gpus, p.lines())
	for i, plan := range plans {
		if !has[i] {
			continue
		}

		c := planChart{
			ID:     plan.id,
			Title:  plan.title,
			Unit:   plan.unit(),
			Top:    plan.top(),
			Maybe:  plan.whenMeasured,
			Signed: plan.line.Signed(),
			Lanes:  i == 0 && p.lanes(),
			Within: i > 0 && i < gpuCharts && p.lanes(),
		}
		if plan.stack.rest != "" {
			c.Stack = []string{plan.stack.rest, plan.stack.alone, plan.stack.share}
		}
		plan.series = slices.DeleteFunc(plan.series, p.lacks)
		plans[i].series = plan.series
		for _, s := range plan.series {
			c.Series = append(c.Series, planSeries{
				Label: s.label, Spread: s.upper != 0, Color: s.color, Dash: s.dash, Part: s.part,
			})
		}

		for _, s := range plan.aside {
			c.Asides = append(c.Asides, planSeries{Label: s.label, Spread: s.upper != 0, Unit: s.asideUnit()})
		}

		d.Charts = append(d.Charts, c)
	}

	for _, n := range p.nodes {
		d.Nodes = append(d.Nodes, n.name)
		if len(p.nodes) > 1 {
			d.Hosts = append(d.Hosts, n.host)
		}
	}

	data, err := json.Marshal(d) // escapes <, > and &
	if err != nil {
		return err
	}

	ours(out, `<script type="application/json" id="plan">`, string(data), "</script>\n")
	for _, n := range p.nodes {
		if err := n.writeJSON(out, plans, has, len(p.nodes) > 1); err != nil {
			return err
		}
	}

	return nil
}
