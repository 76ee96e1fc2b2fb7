package plotter

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// tableOpen is the maximum number of rows of an unfolded table of nodes.
const tableOpen = 50

// nodesView is the page's view of several nodes.
type nodesView struct {
	Count        string // of the nodes: "3", or "3 of 4"
	First, Last  string // nodes
	Length       string // of the time that all nodes cover
	Maps         []heatMap
	MapHeight    int       // in pixels: several for each node, but one if there are many nodes
	FirstFailure *position // of the first failure on each map, if known
	Open, Job    bool      // whether the table is unfolded, and whether it has the jobs' usage
	Rows         []nodeRow
}

// nodeRow is a node's row in the table of the nodes.
type nodeRow struct {
	Name, Host, Exit string
	Numbers          []string // "–" = unknown
	Missing          int
	First            bool       // its job was the first that failed
	Ranks            *ranksView // nil if there are none
}

// nodesView returns the view of several nodes. The heat maps are omitted if series are in a store.
func (p *Page) nodesView(run *reporter.Run) *nodesView {
	start, length := p.span()
	v := &nodesView{
		Count: strconv.Itoa(len(p.nodes)), First: p.nodes[0].name, Last: p.nodes[len(p.nodes)-1].name,
		Length: text.Seconds(length), FirstFailure: p.failurePosition(run, start, length),
		MapHeight: max(60, min(18, max(1, 420/len(p.nodes)))*len(p.nodes)),
		Open:      len(p.nodes) <= tableOpen, Job: p.anyOfJob(),
	}
	if run.Gather != nil && run.Gather.NodesExpected > len(p.nodes) {
		v.Count += " of " + strconv.Itoa(run.Gather.NodesExpected)
	}
	for _, plan := range heatPlans {
		if p.remoteNodes > 0 || plan.ofJob && !p.any(plan) {
			continue
		}
		v.Maps = append(v.Maps, heatMap{
			plan,
			p.heatmap(plan, start, length, func(b reporter.Band) reporter.Numbers { return b.Mean }),
			p.heatmap(plan, start, length, func(b reporter.Band) reporter.Numbers { return b.Max }),
		})
	}

	first, _, _, failed := p.firstFailure(run)
	for i, n := range p.nodes {
		row := nodeRow{n.name, n.host, n.exit, nil, n.listed, failed && i == first, p.ranksView(n, run)}
		for _, name := range []string{reporter.MetricCPUMean, reporter.MetricCPUPeak, reporter.MetricMemoryPeak} {
			row.Numbers = append(row.Numbers, text.Percent(n.slim.Metric(name)))
		}
		row.Numbers = append(row.Numbers, text.Hours(n.slim.Metric(reporter.MetricUnusedCPUHours)))
		if v.Job {
			row.Numbers = append(row.Numbers, text.Fixed(n.slim.Metric(reporter.MetricJobCores), 2),
				text.SizeText(n.slim.Metric(reporter.MetricJobMemoryPeak)))
		}
		v.Rows = append(v.Rows, row)
	}
	return v
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

// heatColumns returns the number of time columns of a heat map, which is at most the number of the nodes' points.
func (p *Page) heatColumns() int {
	const most = 256
	return min(cmp.Or(p.limit, most), most)
}

// heatPlan is the content of a heat map: one percentage for each node over time.
type heatPlan struct {
	ID, Title string
	Chart     string // ID of the chart with the values that the tooltip shows
	ofJob     bool   // omitted if no node has it
	// shares returns the values of a node, and the factor that turns them into percentages; nil if there are none.
	shares func(*pageNode) (*Series, float64)
}

// heatMap has the pictures of a heat map: PNGs, in base64.
type heatMap struct {
	heatPlan
	Mean, Peak string
}

var heatPlans = []heatPlan{
	{ID: "cpu", Title: "CPU", Chart: "cpu", shares: func(n *pageNode) (*Series, float64) {
		return n.chart("cpu").part(PartShare), 1
	}},
	{
		ID: "job_cpu", Title: "Job CPU, of what it may use", Chart: "cpu", ofJob: true,
		shares: func(n *pageNode) (*Series, float64) { return n.chart("cpu").part(PartJob), 100 / n.cpus },
	},
	{ID: "memory", Title: "Memory", Chart: "memory", shares: func(n *pageNode) (*Series, float64) {
		c := n.chart("memory")
		if used := c.part(PartTotal); used != nil {
			return used, 100 / c.Capacity
		}
		return c.part(PartShare), 1
	}},
}

// chart returns the node's chart with the given ID.
func (p *pageNode) chart(id string) *Chart {
	i := slices.IndexFunc(p.charts, func(c Chart) bool { return c.ID == id })
	return &p.charts[i] // each node has all charts
}

// any reports whether some node has values for the heat map of plan.
func (p *Page) any(plan heatPlan) bool {
	return slices.ContainsFunc(p.nodes, func(n *pageNode) bool {
		s, _ := plan.shares(n)
		return s != nil
	})
}

// anyOfJob reports whether the table shows the jobs' usage.
func (p *Page) anyOfJob() bool {
	return slices.ContainsFunc(heatPlans, func(plan heatPlan) bool { return plan.ofJob && p.any(plan) })
}

// heatmap draws nodes × time as a PNG in base64, one pixel per value.
func (p *Page) heatmap(plan heatPlan, start, length float64, of func(reporter.Band) reporter.Numbers) string {
	rows, columns := make([][]float64, len(p.nodes)), p.heatColumns()
	for i, n := range p.nodes {
		s, scale := plan.shares(n)
		if s == nil || math.IsInf(scale, 0) {
			continue
		}

		rows[i] = resample(of(s.Band), n.time, n.time.Start-start, length, columns)
		for x := range rows[i] {
			rows[i][x] *= scale
		}
	}

	return encodeHeat(rows, columns)
}

// resample resamples values into columns of equal time. Each column has the maximum of the buckets that overlap it, or
// NaN if none does.
func resample(list reporter.Numbers, t Timeline, offset, length float64, columns int) []float64 {
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
