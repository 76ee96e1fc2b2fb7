package plotter

import (
	"cmp"
	_ "embed" // for the parts of the page
	"fmt"
	"html/template"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// The parts of the page.
var (
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string
)

// PageOptions configures a page.
type PageOptions struct {
	// Live is the interval at which the page requests updates. It is 0 unless the page is served during the run.
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

// Page is a page under construction. Nodes are added one by one, so only the drawn parts of a large report need to be
// in memory.
type Page struct {
	options     PageOptions
	nodes       []*pageNode
	ranks       int // number of ranks on all nodes
	failed      failure
	remoteNodes int // number of nodes with their series in a store
}

// NewPage returns a page without nodes.
func NewPage(o PageOptions) *Page { return &Page{options: o} }

// Add adds a node. Nodes may be added in any order. The page keeps only the parts of n that Write needs. If the run is
// still unknown, run is the zero value.
func (p *Page) Add(run *reporter.Run, name string, n *reporter.Node) {
	node := newPageNode(run, name, n)
	if p.options.Live > 0 {
		node.removeMissing(reporter.JobGoesOn)
	}
	p.nodes = append(p.nodes, node)
	if n.Reference != "" && n.Samples.Len() == 0 {
		p.remoteNodes++
	}
	p.ranks += node.ranks.count()
	if len(p.nodes) == 2 {
		p.nodes[0].reduce()
	}
	if len(p.nodes) > 1 {
		node.reduce()
	}
}

// pageView is the data of the template of a page.
type pageView struct {
	Title, Note, Footer string
	Style               template.CSS
	Script              template.JS
	Head                headView
	Live                *liveView // nil unless the page is served during the run
	Phase               string    // current phase of a running job
	Siblings            []string  // pages of other nodes
	Key                 []keyItem // entries of the key for all charts
	Charts              []pageChart
	Sentences           []string // sentences that replace charts without usage
	Phases              []phaseRow
	HasGPU              bool   // whether any phase has GPU numbers
	Marks               []Mark // at most maxMarks
	MoreMarks           int
	Nodes               *nodesView // nil unless there are several nodes
	Cards               []summary.Highlight
	Node                nodeFold
	Operations          *operationsView
	Processes           []processRow
	Deaths              []deathRow
	MoreDeaths          string // on those that are not listed; "" for several nodes
	Ranks               *ranksView
	Metrics             metricsView
	Table               *chartsTable // nil without charts
	Data                pageData
}

// Many reports whether there are several nodes.
func (v *pageView) Many() bool { return v.Nodes != nil }

// liveView is the time at which a live page was made.
type liveView struct {
	Text string // "14:29:12 UTC"; "" if unknown
	Unix int64  // seconds since 1970
}

// pageScript returns the page's script, stripped of comments and indentation.
var pageScript = sync.OnceValue(func() template.JS {
	return template.JS(regexp.MustCompile(`(?m)^\s*(//.*)?`).ReplaceAllString(pageJS, ""))
})

// nodeFold is the collapsible part of the page about the nodes.
type nodeFold struct {
	Words          string // text of the summary element
	Cards, Details []summary.Highlight
	Missing        []reporter.Missing
}

// phaseRow is a row of the table of phases.
type phaseRow struct {
	Color int
	Cells []string
}

// Write writes the page of the added nodes.
func (p *Page) Write(w io.Writer, run *reporter.Run) error {
	if len(p.nodes) == 0 {
		return fmt.Errorf("write page: the report has no nodes")
	}

	slices.SortFunc(p.nodes, func(a, b *pageNode) int { return reporter.CompareNodes(a.name, b.name) })
	return writeTemplate(w, "page", p.view(run))
}

// view returns the data of the page's template.
func (p *Page) view(run *reporter.Run) *pageView {
	r, n := p.report(run), p.nodes[0]
	p.markOddRanks(r)
	p.failed = p.firstFailure(run)
	conclusion := summary.Conclude(r)
	if p.options.Live > 0 {
		conclusion.Cause, conclusion.How = "Running for "+text.Seconds(run.WallSeconds)+".", ""
	}
	v := &pageView{
		Title: "perfagent", Style: template.CSS(pageCSS), Script: pageScript(),
		Head: p.head(r, conclusion), Siblings: p.options.Siblings,
		Operations: p.operationsView(), Processes: p.processes(run), Deaths: p.deaths(run), Metrics: p.metricsView(),
		Cards: summary.JobCards(r), Footer: p.footer(),
	}
	v.Data = pageData{
		Run:  run.ID + "@" + strconv.FormatInt(run.Start.UnixMicro(), 10) + "/" + n.name,
		Live: p.options.Live.Milliseconds(), Times: map[string]timeData{}, Charts: map[string]chartData{},
	}
	if run.ID != "" {
		v.Title = text.Printable(run.ID) + " · perfagent"
	}
	if p.remoteNodes > 0 {
		v.Note = fmt.Sprintf("The series of %s are in the store, and not on this page. "+
			"perfagent plot REPORT --to PAGE.html fetches and draws them.", text.Count(p.remoteNodes, "node", "nodes"))
	}
	if p.options.Live > 0 {
		v.Live = &liveView{}
		if !run.End.IsZero() {
			*v.Live = liveView{run.End.UTC().Format("15:04:05 MST"), run.End.Unix()}
		}
	}
	if v.Phases, v.HasGPU = phaseRows(r); len(p.nodes) > 1 {
		v.Node = p.nodesFold(run)
		p.drawNodes(v)
	} else {
		if v.Live != nil {
			v.Phase = text.Printable(n.whole.CurrentPhase())
		}
		v.Charts, v.Sentences = n.pageCharts(conclusion, &v.Data)
		v.Table = n.table()
		v.Marks = n.time.Marks[:min(len(n.time.Marks), maxMarks)]
		v.MoreMarks = len(n.time.Marks) - len(v.Marks)
		v.Node, v.MoreDeaths = n.fold(run), n.moreDeaths
	}
	v.Key = p.key(v)
	v.Ranks = p.ranksView()
	return v
}

// maxMarks is the maximum number of marks in a list.
const maxMarks = 100

// phaseRows returns the rows of the table of phases, for all nodes. gpu reports whether any phase has GPU numbers.
func phaseRows(r *reporter.Report) (rows []phaseRow, gpu bool) {
	for i, cells := range summary.Phases(r) {
		for k := range cells {
			cells[k] = unbroken(cells[k])
		}
		rows, gpu = append(rows, phaseRow{min(i, phaseColors), cells}), gpu || cells[len(cells)-1] != ""
	}
	return rows[:min(len(rows), maxPageLines)], gpu
}

// footer returns a sentence about perfagent's own resource usage.
func (p *Page) footer() string {
	cost := 0.0
	for _, n := range p.nodes {
		cost += n.cost
	}
	words := strings.TrimRight("Measured by perfagent "+p.nodes[0].version, " ")
	if cost > 0 {
		words += ", which took " + text.Seconds(cost) + " of CPU time"
		if len(p.nodes) > 1 {
			words += " on all nodes"
		}
	}
	return words + ". 1 MiB = 1,048,576 bytes."
}

// PagePath returns the path of the page of the given report: next to the report, with the extension .html.
func PagePath(report string) string {
	if ext := filepath.Ext(report); strings.EqualFold(ext, ".json") {
		report = report[:len(report)-len(ext)]
	}

	return report + ".html"
}

// metricsView is the page's table of metrics, in groups.
type metricsView struct {
	Count  int
	Nodes  []string // the columns of values, if there are several
	Groups []metricGroup
}

// metricGroup is a part of the table of metrics.
type metricGroup struct {
	Name reporter.Group
	Rows []metricRow
}

// metricRow is the row of a metric, with a value for each node.
type metricRow struct {
	*reporter.Metric
	Values []metricValue
}

// metricValue is a value, both exact and in four digits, or the reason why the value is missing.
type metricValue struct{ Value, Short, Why string }

// metricsView returns the metrics of the first nodes: first the metrics in reporter.Metrics, then the missing metrics,
// by name. It omits totals since boot and metrics of devices that no node has.
func (p *Page) metricsView() (v metricsView) {
	nodes := p.nodes[:min(len(p.nodes), shownNodes)]
	others, groups := make(reporter.Values), make(map[reporter.Group][]metricRow)
	for _, n := range nodes {
		maps.Copy(others, n.metrics)
		if len(p.nodes) > 1 {
			v.Nodes = append(v.Nodes, "node "+n.name)
		}
	}
	add := func(m *reporter.Metric, always bool) {
		row, shown := metricRow{Metric: m}, always
		for _, n := range nodes {
			value, known := n.metric(m.Name)
			row.Values, shown = append(row.Values, value), shown || known
		}
		if shown {
			groups[m.Group] = append(groups[m.Group], row)
		}
	}
	for i := range reporter.Metrics() {
		m := &reporter.Metrics()[i]
		delete(others, m.Name)
		if m.Group != reporter.GroupBoot {
			add(m, !m.OfDevice())
		}
	}
	for _, name := range others.Names() {
		m, _ := reporter.MetricByName(name) // a metric of a GPU
		m.Name, m.Group = name, cmp.Or(m.Group, reporter.GroupNode)
		add(&m, true)
	}
	for _, name := range reporter.Groups() {
		if rows := groups[name]; len(rows) > 0 {
			v.Groups, v.Count = append(v.Groups, metricGroup{name, rows}), v.Count+len(rows)
		}
	}
	return v
}
