package plotter

import (
	"cmp"
	_ "embed" // the page's parts
	"fmt"
	"html/template"
	"io"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// The parts of the page. uPlot is the chart library; its licence is in the page.
var (
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string
	//go:embed uplot/uPlot.iife.min.js
	uplotJS string
	//go:embed uplot/uPlot.min.css
	uplotCSS string
	//go:embed uplot/LICENSE
	uplotLicense string
)

// PageOptions configures a page.
type PageOptions struct {
	// Live is the time after which the page asks for an update. It is 0 for a page that is not served during the run.
	Live time.Duration
	// Siblings are the names of the pages of other nodes of the run, in the same directory.
	Siblings []string
}

// WritePage writes the HTML page of a report: one file that needs no network.
func WritePage(w io.Writer, r *reporter.Report, o PageOptions) error {
	p := NewPage(o)
	for _, name := range r.NodeNames() {
		p.Add(&r.Run, name, r.Nodes[name])
	}
	return p.Write(w, &r.Run)
}

// Page is a page under construction. Nodes are added one by one, so that only the drawn part of a large report needs to
// be in memory.
type Page struct {
	options         PageOptions
	nodes           []*pageNode
	values          int // numbers of all nodes' series
	limit           int // buckets per node, set if there were too many values; 0 means all, exactly
	longest         int // buckets of the longest node
	ranks           int // of all nodes
	gpus            int // of the node with the most
	remoteNodes     int // nodes with their series in a store
	annotationBytes int // bytes of marks and phases; -1 after there were too many
}

// NewPage returns a page without nodes.
func NewPage(o PageOptions) *Page { return &Page{options: o} }

// The page of one or a few nodes has every kept sample exactly. If there are more than maxExactValues numbers, they are
// packed into two bytes each; beyond maxPackedValues, neighboring buckets are merged. So the page of a thousand nodes
// stays below 15 MB.
const (
	maxExactValues  = 1_200_000 // of some 9 bytes
	maxPackedValues = 4_200_000 // of 8/3 bytes in base64
	minBuckets      = 16        // per node, always kept
)

// Add adds a node, in any order. The page keeps the parts of it that Write needs. If the run is still unknown, run is
// its zero value.
func (p *Page) Add(run *reporter.Run, name string, n *reporter.Node) {
	node := newPageNode(run, name, n)
	if p.options.Live > 0 {
		node.removeMissing(reporter.JobGoesOn)
	}
	p.nodes = append(p.nodes, node)
	p.longest, p.gpus = max(p.longest, len(node.time.Ends)), max(p.gpus, node.gpus)
	if n.Reference != "" && n.Samples.Len() == 0 {
		p.remoteNodes++
	}
	if p.limit > 0 {
		node.thin(p.limit)
	}

	p.addRanks(node.ranks)
	p.limitAnnotations(node)
	p.values += node.valueCount()
	for len(p.nodes) > 1 && p.limit != minBuckets &&
		(p.values > maxPackedValues || p.limit == 0 && p.values > maxExactValues) {
		p.shrink()
	}
}

// limitAnnotations counts the bytes of marks and phases, and trims them if there are too many.
func (p *Page) limitAnnotations(node *pageNode) {
	if p.annotationBytes < 0 {
		node.trimAnnotations()
		return
	}

	p.annotationBytes += node.annotationBytes()
	if len(p.nodes) > 1 && p.annotationBytes > maxAnnotationBytes {
		p.annotationBytes = -1
		for _, n := range p.nodes {
			n.trimAnnotations()
		}
	}
}

// shrink packs the numbers or, if they are packed, halves the buckets of the nodes.
func (p *Page) shrink() {
	if p.limit == 0 {
		p.limit = max(p.longest, minBuckets)
	} else {
		p.limit = max((min(p.limit, p.longest)+1)/2, minBuckets)
	}

	p.values = 0
	for _, n := range p.nodes {
		n.thin(p.limit)
		p.values += n.valueCount()
	}
}

// lanes reports whether the GPUs have lanes, because some node has many of them.
func (p *Page) lanes() bool { return p.gpus >= minLanes }

// noteStarts adds a fact to each node that began later than the first. The charts begin with their node, the heat maps
// with the first node.
func (p *Page) noteStarts() {
	first, _ := p.span()
	for _, n := range p.nodes {
		if late := n.time.Start - first; late >= 1 && first > 0 {
			began := summary.Highlight{Label: "began", Value: text.Seconds(late) + " after the first node"}
			n.details = append(n.details, began)
		}
	}
}

// pageView is the data of the template of a page.
type pageView struct {
	Title, Note   string
	Head          headData
	Details       []summary.Highlight
	Siblings      []string   // pages of other nodes
	Many          bool       // there are several nodes
	Nodes         *nodesView // nil unless there are several
	Ranks         *ranksView // of the only node; nil if there are several
	Node          nodeView
	Operations    *operationsView
	Processes     []processRow
	Style         template.CSS
	Scripts       iter.Seq2[string, any] // the data of scripts, by the element's ID
	UPlot, Script template.JS
}

// Write writes the page of the added nodes.
func (p *Page) Write(w io.Writer, run *reporter.Run) error {
	if len(p.nodes) == 0 {
		return fmt.Errorf("write page: the report has no nodes")
	}

	slices.SortFunc(p.nodes, func(a, b *pageNode) int { return reporter.CompareNodes(a.name, b.name) })
	p.noteStarts()
	return writeTemplate(w, "page", p.view(run))
}

// view returns the data of the page's template.
func (p *Page) view(run *reporter.Run) *pageView {
	shown, n := p.visibleCharts(), p.nodes[0]
	v := &pageView{
		Title: "perfagent", Note: p.note(), Head: p.head(run), Details: p.facts(run), Siblings: p.options.Siblings,
		Many: len(p.nodes) > 1, Operations: p.operationsView(), Processes: p.processes(run),
		Node: nodeView{
			n.name, n.version, n.messages, n.advice, n.cards, n.details, n.missing[:n.listed], n.phases,
			n.pageCharts(shown, p.lanes()), p.metricGroups(),
		},
		Style: template.CSS(uplotCSS + pageCSS + p.ranksStyle(run)), Scripts: p.scripts(run, shown),
		UPlot: template.JS("/*\n" + uplotLicense + "*/\n" + uplotJS), Script: template.JS(pageJS),
	}
	if run.ID != "" {
		v.Title = text.Printable(run.ID) + " · perfagent"
	}
	if v.Many {
		v.Nodes = p.nodesView(run)
	} else {
		v.Ranks = p.ranksView(n, run)
	}
	return v
}

// visibleCharts returns the indexes in chartPlans of the charts on the page: the charts that every page has, and charts
// for which some node has data.
func (p *Page) visibleCharts() []int {
	var shown []int
	for i, chart := range p.nodes[0].charts { // all nodes have the same charts
		if !chart.Optional && p.remoteNodes < len(p.nodes) ||
			slices.ContainsFunc(p.nodes, func(n *pageNode) bool { return len(n.charts[i].Series) > 0 }) {
			shown = append(shown, i)
		}
	}
	return shown
}

// metrics returns the metrics on the page: first the metrics in reporter.Metrics, without devices that no node has,
// then the metrics that it lacks, by name.
func (p *Page) metrics() []*reporter.Metric {
	table := reporter.Metrics()
	out := make([]*reporter.Metric, 0, len(table))
	for i := range table {
		m := &table[i]
		if !m.OfDevice() || slices.ContainsFunc(p.nodes, func(n *pageNode) bool { return n.knows(m.Name) }) {
			out = append(out, m)
		}
	}

	all := make(reporter.Values)
	for _, n := range p.nodes {
		maps.Copy(all, n.metrics)
	}
	for _, name := range all.Names() {
		if !slices.ContainsFunc(table, func(m reporter.Metric) bool { return m.Name == name }) {
			m, _ := reporter.MetricByName(name) // of a GPU
			m.Name, m.Group = name, cmp.Or(m.Group, reporter.GroupNode)
			out = append(out, &m)
		}
	}

	return out
}

// knows reports whether the node has the named metric, or a reason for lacking it.
func (p *pageNode) knows(metric string) bool {
	if _, has := p.metrics[metric]; has {
		return true
	}
	return slices.ContainsFunc(p.missing, func(m reporter.Missing) bool { return m.What == metric })
}

// facts returns when and where the run was, for the upper part of the page.
func (p *Page) facts(run *reporter.Run) (out []summary.Highlight) {
	add := func(label, value string) {
		if value != "" {
			out = append(out, summary.Highlight{Label: label, Value: value})
		}
	}

	add("run", text.Printable(run.ID))
	if !run.Start.IsZero() {
		add("from", run.Start.UTC().Format("2006-01-02 15:04:05 MST"))
		add("to", run.End.UTC().Format("2006-01-02 15:04:05 MST"))
	}

	add("took", text.Seconds(run.WallSeconds))
	if signal := text.Printable(run.Signal); len(signal) > 20 { // the headline truncates it
		add("signal", signal)
	}

	for _, tag := range summary.Tags(run) {
		add("tag", tag)
	}

	if len(p.nodes) == 1 {
		out = append(out, p.nodes[0].details...)
	}

	return out
}

// note explains what is not on the page, and how the page was kept small.
func (p *Page) note() string {
	switch {
	case p.remoteNodes > 0:
		return fmt.Sprintf("The series of %s are in the store, and not on this page. "+
			"perfagent plot REPORT --to PAGE.html fetches and draws them.", text.Count(p.remoteNodes, "node", "nodes"))
	case p.limit == 0:
		return ""
	case p.limit >= p.longest:
		return "To stay small this page has its points rounded to 4 digits. The report has them exactly."
	}
	const most = "To stay small this page has at most %d points a node, rounded to 4 digits: each has the least, " +
		"the mean and the greatest of the samples that it stands for, so that peaks are kept. " +
		"The report has %d points a node."
	return fmt.Sprintf(most, p.limit, p.longest)
}

// titleOf describes c in words, for people who cannot see it.
func titleOf(c Chart, t Timeline) string {
	words := text.Parts{c.Title + " over " + text.Seconds(t.Length())}
	for _, s := range c.Series {
		words = append(words, s.Label+" at most "+strconv.FormatFloat(s.top(), 'g', 6, 64)+" "+c.Unit)
	}
	words.Add(len(c.Series) == 0, "not measured")
	return strings.Join(words, "; ")
}

// PagePath returns the path of the page of the given report: next to the report, with the extension .html.
func PagePath(report string) string {
	if ext := filepath.Ext(report); strings.EqualFold(ext, ".json") {
		report = report[:len(report)-len(ext)]
	}

	return report + ".html"
}
