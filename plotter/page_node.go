package plotter

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// A pageNode is what the page keeps of a node.
type pageNode struct {
	name, host, origin string
	time               Timeline
	charts             []Chart // all of chartPlans, measured or not
	gpus               int
	lines              []reporter.WorkLine // of operations, that are drawn
	unseen             int                 // lines that are not
	work               *reporter.Node      // the operations and transfers, without keys; nil if not recorded
	processes          []reporter.Process
	cpus               float64 // that the job may use; 0 if not known
	messages, advice   []summary.Message
	thinned            bool
	cards, details     []summary.Highlight
	phases             []summary.PhaseRow
	phase              string // that the job is in
	scales             []laneScale
	slim               *reporter.Node // for the head of the page
	ranks              *rankTable     // nil if there are none
	metrics            reporter.Values
	missing            []reporter.Missing
	listed             int // how many of missing are listed; the others are normal
	exit               string
	version            string
	elsewhere          bool // its series are in a store
}

func newPageNode(run *reporter.Run, name string, n *reporter.Node) *pageNode {
	p := &pageNode{
		name:    name,
		origin:  n.Origin,
		metrics: printableMetrics(n.Metrics),
		details: summary.Details(n),
		gpus:    gpusOf(n),
		scales:  laneScales(n),
		slim:    slimNode(n),
		ranks:   newRankTable(run, name, n),

		elsewhere: n.Reference != "" && n.Samples.Len() == 0,
	}
	p.lines, p.unseen = chosenLines(n)
	p.work, p.processes = workOf(n), n.Processes[:min(len(n.Processes), maxPageLines)]
	charts, _ := chartsOf(n, p.gpus, p.lines)
	p.time, p.charts = drawn(run, n, charts)
	alone := &reporter.Report{Run: *run, Nodes: map[string]*reporter.Node{name: n}}
	p.messages, p.advice = summary.Verdicts(alone), summary.Advice(alone)
	p.phases, p.phase = summary.Phases(alone), text.Printable(n.CurrentPhase())
	wall := run.WallSeconds
	if n.Host != nil {
		p.host = text.Printable(n.Host.Hostname)
		p.cpus = float64(n.Host.CPUs)
	}

	if n.Limits != nil && n.Limits.CPUs > 0 {
		p.cpus = n.Limits.CPUs
	}

	if n.Job != nil {
		if n.Job.ExitCode != nil {
			p.exit = strconv.Itoa(*n.Job.ExitCode)
		}
		if n.Job.Signal != "" {
			p.exit += " " + text.Printable(n.Job.Signal)
		}
		wall = n.Job.End.Sub(n.Job.Start.Time).Seconds()
	}

	if n.Agent != nil {
		p.version = text.Printable(n.Agent.Version)
	}

	p.cards = summary.Highlights(n, wall)
	room := pageRoom(maxPageText)
	p.takeMissing(n.Missing, &room)
	p.messages, p.advice = room.fit(p.messages), room.fit(p.advice)
	p.details = p.details[:min(len(p.details), maxPageLines)]
	return p
}

// takeMissing keeps the missing entries: first those that are listed, then those that are
// normal, whose reasons appear only beside the metrics.
func (p *pageNode) takeMissing(missing []reporter.Missing, room *pageRoom) {
	var rest []reporter.Missing
	for i, m := range missing {
		if i == maxPageLines {
			p.missing = append(
				p.missing,
				reporter.Missing{What: "…", Why: fmt.Sprintf("%d more, see the report", len(missing)-i)},
			)
			break
		}

		shown := reporter.Missing{What: room.text(m.What), Code: m.Code, Why: room.text(m.Why)}
		if reporter.NothingToMeasure(m) {
			rest = append(rest, shown)
			continue
		}

		p.missing = append(p.missing, shown)
	}

	p.listed = len(p.missing)
	p.missing = append(p.missing, rest...)
}

// forget removes what is missing for a reason that is only noise while the run goes on.
func (p *pageNode) forget(code reporter.Code) {
	kept := slices.DeleteFunc(p.missing[:p.listed], func(m reporter.Missing) bool { return m.Code == code })
	p.missing = append(kept, p.missing[p.listed:]...)
	p.listed = len(kept)
}

// Limits on the lists and texts that a page takes from a report, which has none.
const (
	maxPageLines = 500
	maxPageText  = 8 << 20 // bytes of a node's texts; later ones are truncated
	cutPageText  = 200
)

// A pageRoom is the number of bytes of text that are left.
type pageRoom int

// text returns a text as the page shows it: in full while the budget lasts.
func (r *pageRoom) text(words string) string {
	if len(words) > cutPageText && len(words) > int(*r) {
		words = strings.ToValidUTF8(words[:cutPageText], "") + "…"
	}
	*r -= pageRoom(min(len(words), int(*r)))
	return text.Printable(words)
}

func (r *pageRoom) fit(list []summary.Message) []summary.Message {
	out := slices.Clone(list[:min(len(list), maxPageLines)])
	for i := range out {
		out[i].Text = r.text(out[i].Text)
	}
	return out
}

func (p *pageNode) cells() int {
	n := len(p.time.Ends)
	eachSeries(p.charts, func(s *Series) {
		n += len(s.Band.Mean)
		if !same(s.Band) {
			n += len(s.Band.Min) + len(s.Band.Max)
		}
	})
	return n
}

// thin merges neighbors until there are at most limit buckets. The lists are copies, so that those
// of the report can be collected.
func (p *pageNode) thin(limit int) {
	k := group(len(p.time.Ends), limit)
	if k == 1 && p.thinned {
		return
	}

	t := p.time
	eachSeries(p.charts, func(s *Series) {
		s.Band = s.Band.Fold(k, t.width)
	})

	for i := range p.charts {
		for j := range p.charts[i].Asides { // a hint needs no band
			if s := &p.charts[i].Asides[j]; !s.Spread {
				s.Band.Min, s.Band.Max = s.Band.Mean, s.Band.Mean
			}
		}
	}

	p.time, p.thinned = t.thin(k), true
}

// same reports whether a band is a line, in which each bucket has one sample. The means of a report
// are rounded to six decimals.
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

// A metricRow is a row of the page's metric table.
type metricRow struct {
	Name, Value, Short, Unit, Meaning, How, Why string
	Has                                         bool
}

// A section is what the template shows of a node.
type section struct {
	Name, Version    string
	Many             bool
	Messages, Advice []summary.Message
	Cards, Details   []summary.Highlight
	Missing          []reporter.Missing
	Charts           []chartData
	Phases           []summary.PhaseRow
	Work             template.HTML // made by hand, as Metrics
	Metrics          template.HTML
}

type chartData struct {
	ID, Label string
	Picture   template.HTML // made by svgCanvas, which escapes what it writes
	Hidden    bool          // no data here, but other nodes have some
	Quiet     bool          // nothing happened
}

// section returns the node with the charts that the page has. lanes reports whether GPUs have lanes.
func (p *pageNode) section(many bool, metrics []reporter.Metric, has []bool, lanes bool) section {
	s := section{
		Name:     p.name,
		Version:  p.version,
		Many:     many,
		Messages: p.messages,
		Advice:   p.advice,
		Cards:    p.cards,
		Details:  p.details,
		Missing:  p.missing[:p.listed],
		Phases:   p.phases,
		Metrics:  metricTable(p.metricRows(metrics)),
	}
	plans, charts := chartPlans(0, nil), p.charts
	if lanes {
		charts = slices.Clone(charts)
		charts[0] = joined(charts, p.scales)[0]
	}
	for i, chart := range charts {
		if !has[i] || lanes && i > 0 && i < gpuCharts {
			continue
		}

		const width = 800
		chart = chart.Stacked()
		height := chart.height(chartHeight, width)
		var c svgCanvas
		label := titleOf(chart, p.time)
		c.open(width, height, label)
		drawChart(&c, chart, p.time, box{0, 0, width, height})
		c.close()
		s.Charts = append(
			s.Charts,
			chartData{
				chart.ID, label, template.HTML(c.out), plans[i].whenMeasured && len(chart.Series) == 0, chart.Quiet(),
			},
		)
	}

	return s
}

// metricRows returns a row for each of the metrics.
func (p *pageNode) metricRows(metrics []reporter.Metric) []metricRow {
	why := make(map[string]string)
	for _, m := range p.missing {
		why[m.What] = m.Why
	}

	var rows []metricRow
	for _, m := range metrics {
		v, has := p.metrics[m.Name]
		row := metricRow{
			Name:    m.Name,
			Unit:    string(m.Unit),
			Meaning: m.Meaning,
			How:     m.How,
			Has:     has,
			Why:     why[m.Name],
		}
		if has {
			row.Value, row.Short = strconv.FormatFloat(v, 'f', -1, 64), short(v)
		}
		rows = append(rows, row)
	}

	return rows
}

// printableMetrics returns the metrics by their printable names, without values that are not
// finite.
func printableMetrics(v reporter.Values) reporter.Values {
	out := make(reporter.Values, len(v))
	for name, value := range v {
		if !math.IsNaN(value) && !math.IsInf(value, 0) {
			out[text.Printable(name)] = value
		}
	}
	return out
}

// The groups of the page's metric table, in their order.
func metricGroups() []string { return []string{"Job", "Limits", "GPU", "Node", "Since boot"} }

// group returns the group that a metric belongs to.
func (r *metricRow) group() string {
	has := func(start string) bool { return strings.HasPrefix(r.Name, start) }
	switch {
	case has("boot_"):
		return "Since boot"
	case has("gpu_") || has("max_t_gpu_"):
		return "GPU"
	case has("limit_") || has("max_t_limit_") || strings.Contains(r.Name, "throttled"):
		return "Limits"
	case has("job_") || has("max_t_job_") || r.Name == reporter.MetricWall:
		return "Job"
	}
	return "Node"
}

// metricTable renders the rows in groups. It does not use the template, which would take longer for them
// than for the rest of the page, at the end of every job.
func metricTable(rows []metricRow) template.HTML {
	out := make(tables, 0, 1<<14)
	for _, group := range metricGroups() {
		head := false
		for i := range rows {
			if rows[i].group() != group {
				continue
			}
			if !head {
				out.words(`<tbody><tr class="group"><th colspan="4">`, group, "</th></tr>\n")
				head = true
			}
			out.metric(&rows[i])
		}
		if head {
			out.words("</tbody>\n")
		}
	}
	return template.HTML(out)
}

// metric appends the row of a metric: its value in four digits, and exactly where the mouse rests.
func (t *tables) metric(r *metricRow) {
	t.words(`<tr data-metric="`, r.Name, `"`)
	if r.Has {
		t.words(` data-value="`, r.Value, `" data-unit="`, r.Unit, `"`)
		t.words(`><td>`, r.Name, `</td><td class="number" title="`, r.Value, `">`, r.Short, `</td>`)
	} else {
		t.words(`><td>`, r.Name, `</td><td class="number">`+text.Absent+`</td>`)
	}

	t.words(`<td>`, r.Unit, `</td><td title="`, r.How, `">`, r.Meaning)
	if r.Why != "" {
		t.words(` <i>(`, r.Why, `)</i>`)
	}
	t.words("</td></tr>\n")
}

// nodeJSON is the node for the page's script, without its series: t, the ends of its buckets; c,
// the bands of each chart; a, the bands of its asides. They are written by hand, because encoding/json
// would validate each number again, which takes half as long as the page. The names are short
// because a thousand nodes repeat them.
type nodeJSON struct {
	Start   float64         `json:"s"`
	Cards   [][3]string     `json:"k,omitzero"`
	Details [][2]string     `json:"f,omitzero"`
	Metrics reporter.Values `json:"m,omitzero"`
	Missing [][2]string     `json:"x,omitzero"`
	Listed  int             `json:"y,omitzero"` // how many of Missing are listed
	// Bounds are the limits of the charts and their texts, by chart.
	Bounds map[string][2]any `json:"b,omitempty"`
	// Wholes are how much the node has of what stacked charts show; Ends the ends of their axes, where
	// they do not show it all; Peaks those that lay between two samples, with their texts. By chart.
	Wholes map[string]float64 `json:"w,omitempty"`
	Ends   map[string]float64 `json:"z,omitempty"`
	Peaks  map[string][2]any  `json:"o,omitempty"`
	// Quiet are the charts in which nothing happened.
	Quiet []string `json:"q,omitempty"`
	// Scales are the memory and the power of each GPU.
	Scales [][2]float64 `json:"l,omitempty"`
	// Marks are times and texts; Phases times of beginnings and ends, names, and colors.
	Marks  [][2]any `json:"e,omitempty"`
	Phases [][4]any `json:"h,omitempty"`
	// Table has the cells of the phases.
	Table [][6]string `json:"p,omitempty"`
	// Messages and Advice are texts, each with whether it is bad.
	Messages [][2]any `json:"v,omitzero"`
	Advice   [][2]any `json:"g,omitzero"`
}

// A band is the numbers of a series: [mean] if minimum and maximum are the same, otherwise [min,
// mean, max]; for a spread [min, [], max]; null if nothing was measured.
type band []numbers

// numbers is a list of a node's series. On a page of many nodes it is packed.
type numbers struct {
	list   reporter.Numbers
	packed bool
}

// append appends the list as JSON: as it is or, if packed, as [min, max, base64] with two bytes per
// number, little endian, from 0 for the minimum to 65534 for the maximum. 65535 means not measured.
// A list with only one distinct number is [number, length].
func (n numbers) append(out []byte) []byte {
	if !n.packed {
		list, _ := n.list.MarshalJSON() // never fails
		return append(out, list...)
	}

	least, greatest := math.Inf(1), math.Inf(-1)
	whole := true
	for _, v := range n.list {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			whole = false
			continue
		}
		least, greatest = min(least, v), max(greatest, v)
	}

	switch {
	case greatest < least: // nothing was measured
		least, greatest = 0, 0
	case least == greatest && whole:
		return fmt.Appendf(out, "[%v,%d]", least, len(n.list))
	}

	bytes := make([]byte, 0, 2*len(n.list))
	for _, v := range n.list {
		bytes = binary.LittleEndian.AppendUint16(bytes, packedNumber(v, least, greatest))
	}

	return fmt.Appendf(out, `[%v,%v,"%s"]`, least, greatest, base64.StdEncoding.EncodeToString(bytes))
}

const unmeasured = 65535

func packedNumber(v, least, greatest float64) uint16 {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return unmeasured
	case greatest == least:
		return 0
	}
	return uint16(math.Round((v/2 - least/2) / (greatest/2 - least/2) * (unmeasured - 1)))
}

// writeJSON writes the node as the content of a script element.
func (p *pageNode) writeJSON(out *bufio.Writer, plans []chartPlan, has []bool, many bool) error {
	d := nodeJSON{Start: p.time.Start, Bounds: make(map[string][2]any)}
	series, asides := []byte(`,"c":[`), []byte(`,"a":[`)
	for i, plan := range plans {
		if !has[i] {
			continue
		}
		d.addChart(&p.charts[i])
		series = append(appendBands(series, p.bandsOf(plan.series, p.charts[i].Series)), ',')
		asides = append(appendBands(asides, p.bandsOf(plan.aside, p.charts[i].Asides)), ',')
	}

	if slices.ContainsFunc(p.charts[:gpuCharts], func(c Chart) bool { return len(c.Series) > 0 }) {
		for _, s := range p.scales {
			d.Scales = append(d.Scales, [2]float64{s.memory, s.power})
		}
	}

	for _, m := range p.time.Marks {
		d.Marks = append(d.Marks, [2]any{m.At, m.Text})
	}
	for _, st := range p.time.Phases {
		d.Phases = append(d.Phases, [4]any{st.From, st.To, st.Name, st.Color % len(seriesColors())})
	}
	if many { // otherwise it is on the page itself
		d.describe(p)
	}

	data, err := json.Marshal(d) // escapes <, > and &
	if err != nil {
		return err
	}

	ours(
		out,
		`<script type="application/json" id="node-`,
		p.name,
		`">`,
		string(data[:len(data)-1]),
		`,"t":`,
		string(numbers{p.time.Ends, p.thinned}.append(nil)),
	)
	_, _ = out.Write(append(bytes.TrimSuffix(series, []byte(",")), ']'))
	_, _ = out.Write(append(bytes.TrimSuffix(asides, []byte(",")), "]}"...))
	ours(out, "</script>\n")
	return nil
}

// addChart adds what the script cannot know of a chart from its numbers.
func (d *nodeJSON) addChart(c *Chart) {
	put := func(into *map[string]float64, v float64) {
		if *into == nil {
			*into = make(map[string]float64)
		}
		(*into)[c.ID] = v
	}

	if c.BoundText != "" {
		d.Bounds[c.ID] = [2]any{c.Bound, c.BoundText}
	}
	if c.Whole > 0 {
		put(&d.Wholes, c.Whole)
		if s := c.Stacked(); s.Top != c.Whole && len(s.Series) > 0 {
			put(&d.Ends, s.Top)
		}
	}
	if c.Peak > 0 {
		if d.Peaks == nil {
			d.Peaks = make(map[string][2]any)
		}
		d.Peaks[c.ID] = [2]any{c.Peak, c.PeakText}
	}
	if c.Quiet() {
		d.Quiet = append(d.Quiet, c.ID)
	}
}

// describe adds what is shown when the node is selected.
func (d *nodeJSON) describe(p *pageNode) {
	d.Cards, d.Details, d.Metrics, d.Missing = [][3]string{}, [][2]string{}, p.metrics, [][2]string{}
	for _, c := range p.cards {
		d.Cards = append(d.Cards, [3]string{c.Label, c.Value, c.Note})
	}

	for _, f := range p.details {
		d.Details = append(d.Details, [2]string{f.Label, f.Value})
	}

	for _, m := range p.missing {
		d.Missing = append(d.Missing, [2]string{m.What, m.Why})
	}

	for _, r := range p.phases {
		d.Table = append(d.Table, [6]string{r.Name, r.Count, r.Seconds, r.CPUs, r.Memory, r.GPU})
	}

	d.Listed = p.listed
	d.Messages, d.Advice = messagesJSON(p.messages), messagesJSON(p.advice)
}

func messagesJSON(list []summary.Message) [][2]any {
	out := [][2]any{}
	for _, s := range list {
		out = append(out, [2]any{s.Text, s.Bad})
	}
	return out
}

// appendBands appends the bands of a chart as JSON.
func appendBands(out []byte, bands []band) []byte {
	out = append(out, '[')
	for i, b := range bands {
		if i > 0 {
			out = append(out, ',')
		}

		if b == nil {
			out = append(out, "null"...)
			continue
		}

		for j, list := range b {
			out = append(out, "[,"[min(j, 1)])
			out = list.append(out)
		}

		out = append(out, ']')
	}

	return append(out, ']')
}

// bandsOf returns the bands of the series in the order of the plans; a series that was not measured
// is null.
func (p *pageNode) bandsOf(plans []seriesPlan, have []Series) []band {
	list := func(v reporter.Numbers) numbers { return numbers{v, p.thinned} }
	out := make([]band, len(plans))
	for i, plan := range plans {
		for _, s := range have {
			if s.Key != plan.name() {
				continue
			}
			switch {
			case s.Spread:
				out[i] = band{list(s.Band.Min), {}, list(s.Band.Max)}
			case same(s.Band):
				out[i] = band{list(s.Band.Max)}
			default:
				out[i] = band{list(s.Band.Min), list(s.Band.Mean), list(s.Band.Max)}
			}
		}
	}

	return out
}
