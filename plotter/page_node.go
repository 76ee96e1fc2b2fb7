package plotter

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// pageNode is the part of a node that the page keeps.
type pageNode struct {
	name, host, version, exit string
	time                      Timeline
	charts                    []Chart        // if there are several nodes, only the charts that every node has
	unseen                    int            // number of operation lines that are not drawn
	operations                *reporter.Node // operations and transfers, without keys; nil if not recorded
	processes                 []reporter.Process
	deaths                    []reporter.Death
	moreDeaths                string         // on those that are not listed
	whole                     *reporter.Node // nil if there are several nodes
	cpus, memory              float64        // amounts that the job may use; 0 if unknown
	cost                      float64        // perfagent's CPU time in seconds
	cards, details            []summary.Highlight
	slim                      *reporter.Node // for the top of the page
	ranks                     *rankTable     // nil if there are none
	metrics                   reporter.Values
	missing                   []reporter.Missing
	listed                    int // number of entries at the start of missing that the page lists; the rest are normal
}

// maxPoints is the maximum number of points of a series on the page. More points would be indistinguishable.
const maxPoints = 300

func newPageNode(run *reporter.Run, name string, n *reporter.Node) *pageNode {
	p := &pageNode{
		name: name, host: text.Printable(n.HostName()), whole: n,
		metrics: printableMetrics(n.Metrics), details: summary.Details(n), slim: slimNode(n),
		ranks:      newRankTable(run, name, n),
		operations: operationsOf(n), processes: n.Processes[:min(len(n.Processes), maxPageLines)],
		deaths: n.Deaths[:min(len(n.Deaths), maxPageLines)], moreDeaths: summary.MoreDeaths(n),
	}
	_, p.unseen = chosenLines(n)
	p.time, p.charts = withSuspendGaps(run, n, Charts(n))
	p.time.thin(p.charts, maxPoints)
	wall := run.WallSeconds
	if h := n.Host; h != nil {
		p.cpus, p.memory = float64(h.CPUs), h.MemoryMB
	}
	if l := n.Limits; l != nil {
		if l.CPUs > 0 {
			p.cpus = l.MeanCPUs()
		}
		if most := float64(l.MostMemoryMB()); most > 0 && !math.IsInf(most, 0) {
			p.memory = most
		}
	}
	if j := n.Job; j != nil {
		if j.ExitCode != nil {
			p.exit = strconv.Itoa(*j.ExitCode)
		}
		if j.Signal != "" {
			p.exit += " " + text.Printable(j.Signal)
		}
		wall = j.End.Sub(j.Start.Time).Seconds()
	}
	if n.Agent != nil {
		p.version, p.cost = text.Printable(n.Agent.Version), n.Agent.CPUSeconds
	}

	p.cards = summary.Highlights(n, wall)
	budget := textBudget(maxPageText)
	p.takeMissing(n.Missing, &budget)
	p.details = p.details[:min(len(p.details), maxPageLines)]
	return p
}

// reduce drops everything that a page of several nodes does not show of each node. It copies the remaining lists, so
// that the report's lists can be garbage collected.
func (p *pageNode) reduce() {
	p.charts = slices.DeleteFunc(p.charts, func(c Chart) bool {
		return c.ID != "cpu" && c.ID != "memory" && c.ID != "gpu_utilization"
	})
	eachSeries(p.charts, func(s *Series) {
		s.Band = mapped(s.Band, func(list reporter.Numbers) reporter.Numbers { return slices.Clone(list) })
	})
	p.time.Marks, p.time.Phases = nil, nil
	p.whole = nil
}

// takeMissing stores the entries of missing in p: first the entries that the page lists, then the normal entries. The
// reasons of normal entries are shown only next to the metrics.
func (p *pageNode) takeMissing(missing []reporter.Missing, budget *textBudget) {
	var rest []reporter.Missing
	for i, m := range missing {
		if i == maxPageLines {
			left := fmt.Sprintf("%d more, see the report", len(missing)-i)
			p.missing = append(p.missing, reporter.Missing{What: "…", Why: left})
			break
		}

		shown := reporter.Missing{What: budget.text(m.What), Code: m.Code, Why: budget.text(m.Why)}
		if reporter.NothingToMeasure(m) {
			rest = append(rest, shown)
		} else {
			p.missing = append(p.missing, shown)
		}
	}

	p.listed = len(p.missing)
	p.missing = append(p.missing, rest...)
}

// removeMissing removes the listed entries with the given code. During the run they would be noise.
func (p *pageNode) removeMissing(code reporter.Code) {
	kept := slices.DeleteFunc(p.missing[:p.listed], func(m reporter.Missing) bool { return m.Code == code })
	p.missing = append(kept, p.missing[p.listed:]...)
	p.listed = len(kept)
}

// The limits on lists and texts that a page takes from a report. The report itself has no such limits.
const (
	maxPageLines = 500
	maxPageText  = 8 << 20 // maximum size of a node's texts in bytes; further texts are truncated
	cutPageText  = 200
)

// textBudget is the remaining number of bytes of text.
type textBudget int

// text returns words for the page: in full while the budget lasts, and truncated to cutPageText bytes afterwards.
func (r *textBudget) text(words string) string {
	if len(words) > cutPageText && len(words) > int(*r) {
		words = strings.ToValidUTF8(words[:cutPageText], "") + "…"
	}
	*r -= textBudget(min(len(words), int(*r)))
	return text.Printable(words)
}

func (r *textBudget) fit(list []string) []string {
	out := slices.Clone(list[:min(len(list), maxPageLines)])
	for i := range out {
		out[i] = unbroken(r.text(out[i]))
	}
	return out
}

// printableMetrics returns the metrics by their printable names, without values that are not finite.
func printableMetrics(v reporter.Values) reporter.Values {
	out := make(reporter.Values, len(v))
	for name, value := range v {
		if !math.IsNaN(value) && !math.IsInf(value, 0) {
			out[text.Printable(name)] = value
		}
	}
	return out
}

// metric returns the node's value of a metric, or the reason why it is missing. known reports whether there is either.
func (p *pageNode) metric(name string) (value metricValue, known bool) {
	if v, has := p.metrics[name]; has {
		return metricValue{exact(v), short(v), ""}, true
	}
	for _, m := range p.missing {
		if m.What == name {
			return metricValue{"", text.Absent, m.Why}, true
		}
	}
	return metricValue{"", text.Absent, ""}, false
}

// fold returns the collapsible part of the page about the node.
func (p *pageNode) fold(run *reporter.Run) nodeFold {
	words := text.Parts{}
	if h := p.slim.Host; h != nil {
		words = append(words, text.Clip(p.host, stripLetters)+": "+summary.HostLine("", h))
	}
	words.Add(p.metrics[reporter.MetricCPUMean] > 0, "%s CPU in use", text.Percent(p.metrics[reporter.MetricCPUMean]))
	return nodeFold{words.String(), p.cards, append(runDetails(run), p.details...), p.missing[:p.listed]}
}

// runDetails returns when the run began and ended.
func runDetails(run *reporter.Run) (out []summary.Highlight) {
	for i, at := range []reporter.Time{run.Start, run.End} {
		if label := [...]string{"from", "to"}[i]; !at.IsZero() {
			out = append(out, summary.Highlight{Label: label, Value: at.UTC().Format("2006-01-02 15:04:05 MST")})
		}
	}
	if signal := text.Printable(run.Signal); len(signal) > 20 { // sentences show only the beginning of a long signal name
		out = append(out, summary.Highlight{Label: "signal", Value: signal})
	}
	return out
}

// pageChart is a chart of the page with its picture. The memory chart has a second picture at the scale of the node.
type pageChart struct {
	ID, Data, Title, Unit string        // Data is the key of the values in the page's data
	Big                   bool          // whether the chart spans both columns
	Picture, Whole        template.HTML // Whole is at the scale of the node; "" = none
	WholeUnit, WholeSize  string        // "23.5 GiB"
	Key                   []keyItem
	Rows                  int // number of rows of colors; 0 = lines
	HasPhases, HasDeath   bool
}

// keyItem is an entry of a key: a line, or the color of a phase.
type keyItem struct{ Look, Text string }

// pageCharts returns the charts of the node in the order of the page, and the sentences that replace other charts. The
// chart that explains the end of the job comes first. pageCharts adds the values of the charts to data.
func (p *pageNode) pageCharts(end summary.Conclusion, data *pageData) ([]pageChart, []string) {
	charts, sentences := settled(p.charts, end.Subject)
	killed := end.Subject != "" && (end.Outcome == summary.Failed || end.Outcome == summary.Stopped)
	var out []pageChart
	for i := range charts {
		c := p.picture(&charts[i], newFigure(&charts[i], &p.time, 6, 3), data)
		c.Big = i == 0 && killed && subjectRank(c.ID, end.Subject) == 0
		out = append(out, c)
	}
	p.charts = charts
	return out, sentences
}

// settled returns the charts with usage, and sentences about the others. The chart that explains the end of the job
// comes first.
func settled(charts []Chart, subject string) (shown []Chart, sentences []string) {
	for _, c := range charts {
		sentence := c.Settle()
		if len(c.Series) > 0 {
			shown = append(shown, c)
		}
		if sentence != "" {
			sentences = append(sentences, sentence)
		}
	}
	slices.SortStableFunc(shown, func(a, b Chart) int {
		return min(3, subjectRank(a.ID, subject)) - min(3, subjectRank(b.ID, subject))
	})
	return shown, sentences
}

// picture draws a chart of the node, and adds its values to data.
func (p *pageNode) picture(c *Chart, f *figure, data *pageData) pageChart {
	canvas := &pageCanvas{}
	f.draw(canvas)
	title, unit := f.caption()
	out := pageChart{
		ID: c.ID, Data: p.name + "/" + c.ID, Title: title, Unit: unit, Picture: canvas.html(describe(f.chart, &p.time)),
		HasPhases: len(p.time.Phases) > 0, HasDeath: p.time.Death != nil,
	}
	if c.Rows {
		out.Rows = len(c.Series)
	}
	if c.needsKey() {
		for _, s := range c.own() {
			out.Key = append(out.Key, keyItem{s.ink().look().class, s.Label})
		}
	}
	if c.ID == "memory" && c.Capacity > f.ys.Max {
		node, canvas := *f, &pageCanvas{}
		node.chart, node.ys = c, valueAxis(c.Unit, 0, c.Capacity, true, 3)
		node.draw(canvas)
		out.Whole = canvas.html(describe(c, &p.time) + "; at the scale of the node")
		out.WholeUnit, out.WholeSize = node.ys.Unit, text.TrimmedSizeText(c.Capacity)
	}
	data.add(p, out.Data, f.chart, f.ys)
	return out
}

// describe returns a description of c in words, for people who cannot see the chart.
func describe(c *Chart, t *Timeline) string {
	words := text.Parts{c.Title + " over " + text.Seconds(t.Length())}
	for _, s := range c.Series[:min(len(c.Series), maxLines)] {
		words = append(words, s.Label+" at most "+short(s.top())+" "+c.Unit)
	}
	if d := t.Death; d != nil {
		words = append(words, d.Words+" at "+text.Seconds(d.At))
	}
	return strings.Join(words, "; ")
}

// maxOthers is the maximum number of phases that the key names without a separate color.
const maxOthers = 10

// key returns the key of all charts: the lines of the job and of others, the kill, and the phases.
func (p *Page) key(v *pageView) (out []keyItem) {
	const unseen = "not measured: the last rise to the limit"
	shown := make(map[string]bool)
	for _, n := range p.nodes[:min(len(p.nodes), shownNodes)] {
		for i := range n.charts {
			if c := &n.charts[i]; len(c.whole) > 0 && len(c.Series) > 0 {
				shown["this job"] = shown["this job"] || c.Series[0].Key == c.column.Key()
				shown["others on the node"] = shown["others on the node"] || c.Series[len(c.Series)-1].Others
			}
		}
		if d := n.time.Death; d != nil {
			shown["killed"], shown[unseen] = true, shown[unseen] || d.Limit > 0
		}
	}
	shown["the node"] = !shown["this job"] && !shown["others on the node"] && len(v.Charts) > 0
	shown["marks"] = len(v.Marks) > 0
	for _, item := range []keyItem{
		{"j", "this job"}, {"j", "the node"}, {"un", unseen}, {"o", "others on the node"}, {"k", "killed"}, {"mk", "marks"},
	} {
		if item.Look == "mk" && v.Nodes == nil {
			var others []string
			for _, row := range v.Phases {
				if row.Color == phaseColors {
					others = append(others, row.Cells[0])
					continue
				}
				out = append(out, keyItem{"sq p" + strconv.Itoa(row.Color), row.Cells[0]})
			}
			if len(others) > 0 {
				out = append(out, keyItem{"sq p" + strconv.Itoa(phaseColors), "other phases: " + text.List(others, maxOthers)})
			}
		}
		if shown[item.Text] {
			out = append(out, item)
		}
	}
	return out
}

// chartsTable is a table with the values of the charts, as text.
type chartsTable struct {
	Heads []string
	Rows  [][]string
	Words string
}

// tableRows is the maximum number of rows of a table of values.
const tableRows = 60

// table returns a table of the first series of each chart. It omits stacked charts, because their first series is only
// a part.
func (p *pageNode) table() *chartsTable {
	if len(p.charts) == 0 || len(p.time.Ends) == 0 {
		return nil
	}
	t, charts := p.time, slices.DeleteFunc(slices.Clone(p.charts), func(c Chart) bool { return c.Stacked })
	for i := range charts {
		charts[i].Series = slices.Clone(charts[i].Series[:1])
	}
	t.thin(charts, tableRows)
	out := &chartsTable{Words: text.Count(len(t.Ends), "row", "rows")}
	scales := make([]float64, len(charts))
	for i := range charts {
		c, unit := &charts[i], ""
		scales[i], unit = binaryUnit(c.top(), c.Unit)
		out.Heads = append(out.Heads, strings.TrimRight(c.Title+", "+unit, ", "))
	}
	for i, end := range t.Ends {
		row := []string{text.Seconds(end)}
		for k := range charts {
			cell, list := "not measured", charts[k].Series[0].Band.Mean
			if i < len(list) && !math.IsNaN(list[i]) {
				cell = text.Number(rounded(list[i] / scales[k]))
			}
			row = append(row, cell)
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// rounded returns v, rounded to four digits.
func rounded(v float64) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil { // v was rounded up beyond the range of float64
		return v
	}
	return out
}

// pageData is the data of the page's script.
type pageData struct {
	Run    string               `json:"run"`            // identifies the run among the runs served at one address
	Live   int64                `json:"live,omitempty"` // milliseconds between two updates
	Times  map[string]timeData  `json:"times"`          // by node
	Charts map[string]chartData `json:"charts"`         // by node and chart: "0/cpu"
	Maps   map[string]mapData   `json:"maps,omitempty"`
}

// timeData holds the ends of a node's buckets and the end of its time axis, in seconds.
type timeData struct {
	Ends   reporter.Numbers `json:"t"`
	Length float64          `json:"len"`
}

// chartData holds the values of a chart in a unit. Total is the unit of a rate's total; "" = none.
type chartData struct {
	Node  string       `json:"node"`
	Unit  string       `json:"u"`
	Total string       `json:"tu,omitempty"`
	Rows  bool         `json:"rows,omitempty"`
	Key   bool         `json:"key,omitempty"` // whether the chart's own key shows the values
	Lines []seriesData `json:"s"`
}

// seriesData holds the means of a series. If the least and greatest values differ from the means, it also holds them.
type seriesData struct {
	Name string           `json:"n"`
	Mean reporter.Numbers `json:"v"`
	Min  reporter.Numbers `json:"lo,omitempty"`
	Max  reporter.Numbers `json:"hi,omitempty"`
}

// add adds the values of a chart, divided by the scale of its axis.
func (d *pageData) add(p *pageNode, key string, c *Chart, axis Axis) {
	digits := func(list reporter.Numbers) reporter.Numbers {
		out := make(reporter.Numbers, min(len(list), len(p.time.Ends)))
		for i := range out {
			out[i] = rounded(list[i] / axis.Scale)
			if math.IsInf(out[i], 0) {
				out[i] = math.NaN()
			}
		}
		return out
	}
	d.Times[p.name] = timeData{reporter.Numbers(p.time.Ends), p.time.Length()}
	out := chartData{Node: p.name, Unit: axis.Unit, Rows: c.Rows, Key: c.needsKey()}
	if rate, ok := strings.CutSuffix(axis.Unit, "/s"); ok && rate != "1" {
		out.Total = rate
	} else if axis.Unit == "CPUs" {
		out.Total = "CPU·s"
	}
	for _, s := range c.Series {
		line := seriesData{Name: s.Label, Mean: digits(s.Band.Mean)}
		if !same(s.Band) {
			line.Min, line.Max = digits(s.Band.Min), digits(s.Band.Max)
		}
		out.Lines = append(out.Lines, line)
	}
	d.Charts[key] = out
}

// same reports whether b is only a line, because each bucket has one sample. It allows for the rounding of means in a
// report to six decimals.
func same(b reporter.Band) bool {
	if len(b.Mean) != len(b.Min) || len(b.Mean) != len(b.Max) {
		return false
	}

	for i, v := range b.Mean {
		if (b.Min[i] != b.Max[i] || math.Abs(v-b.Max[i]) > 5.1e-7) && !math.IsNaN(v) {
			return false
		}
	}
	return true
}

// jobShare returns the job's usage in the chart with the given ID, or the node's usage if there is no job. The factor
// converts the usage into a percentage of the allowed amount. The series is nil if the usage is unknown.
func (p *pageNode) jobShare(id string) (*Series, float64) {
	i := slices.IndexFunc(p.charts, func(c Chart) bool { return c.ID == id && len(c.Series) > 0 })
	if i < 0 {
		return nil, 0
	}
	c := &p.charts[i]
	s := &c.Series[0]
	switch {
	case c.Unit == "%":
		return s, 1
	case s.Key == collector.JobCPU.Key():
		return s, 100 / p.cpus
	case s.Key == collector.JobMemory.Key():
		return s, 100 / p.memory
	}
	return s, 100 / c.Capacity
}
