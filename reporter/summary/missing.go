package summary

import (
	"slices"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// maxMissing is the maximum number of reasons in the summary. The report has all of them.
const maxMissing = 5

// missing writes the missing metrics, in one or two lines per reason.
func (p *terminalWriter) missing(r *reporter.Report) {
	if list := textsOf(missingGroups(r), r); len(list) > 0 {
		p.gap()
		p.listed("missing", list, maxMissing, 2, ", see the report")
	}
}

// missingGroup is a reason, with everything that is missing for this reason, and the nodes.
type missingGroup struct {
	what    []string
	why     string
	nodes   []string
	sources int // number of sources in what
	seen    map[string]bool
}

// missingGroups groups missing metrics by reason, because one failed source may affect many metrics. It omits metrics
// that are missing because the run was too short.
func missingGroups(r *reporter.Report) []missingGroup {
	g := missingGrouper{byReason: make(map[reason]int), list: missingNodes(r)}
	short := r.Run.WallSeconds > 0 && r.Run.WallSeconds < notableAfter
	for name, n := range r.EachNode() {
		g.ofNode = make(map[reason]int)
		for _, m := range n.Missing {
			tooShort := m.Code == reporter.TooShort || m.Code == reporter.NoSample && short
			if !reporter.NothingToMeasure(m) && !tooShort {
				g.add(m, name)
			}
		}
	}
	return g.list
}

// missingNodes returns the nodes that were missing from the store when the report was merged.
func missingNodes(r *reporter.Report) []missingGroup {
	if r.Run.Gather == nil || len(r.Run.Gather.Missing) == 0 {
		return nil
	}

	a := missingGroup{why: r.Run.Gather.Missing[0].Why, nodes: r.NodeNames()}
	for _, m := range r.Run.Gather.Missing {
		a.what = append(a.what, "node "+m.What)
	}
	if len(a.what) > 1 {
		a.why = "not in " + r.Run.Gather.Store + ", or not readable; run.gather has the reasons"
	}
	return []missingGroup{a}
}

// missingGrouper collects the groups.
type missingGrouper struct {
	list     []missingGroup
	byReason map[reason]int
	ofNode   map[reason]int // of the current node, by code and source; "" = any
}

// reason is a code with its text, without the number of failed readings.
type reason struct {
	code reporter.Code
	why  string
}

// add adds m, an entry of node, to the group with the same reason. A metric with a text other than its source's, such
// as "the number of CPUs is unknown: open /proc/stat", joins the group of the source. Columns that are missing from a
// file of perf.py do not join a group, because they have no common source.
func (g *missingGrouper) add(m reporter.Missing, node string) {
	why := reason{m.Code, reporter.CauseOf(m)}
	source, isSource := reporter.SourceOf(m.What)
	from := reason{code: m.Code}
	if isSource {
		from.why = source
	}

	i, ok := g.byReason[why]
	if _, isMetric := reporter.MetricByName(m.What); !ok && isMetric && m.Code != reporter.PerfPyNoValue {
		i, ok = g.ofNode[from]
	}
	if !ok {
		i = len(g.list)
		g.list = append(g.list, missingGroup{why: m.Why, seen: make(map[string]bool)})
		g.byReason[why] = i
	}

	g.list[i].add(source, isSource, node)
	for _, of := range []reason{from, {code: m.Code}, {}} { // {} is for metrics of reports without codes
		if _, has := g.ofNode[of]; !has && isSource {
			g.ofNode[of] = i
		}
	}
}

// add adds a source of node, or an entry without a source.
func (a *missingGroup) add(source string, isSource bool, node string) {
	if len(a.nodes) == 0 || a.nodes[len(a.nodes)-1] != node { // the nodes come one after the other
		a.nodes = append(a.nodes, node)
	}
	if a.seen[source] {
		return
	}
	a.seen[source] = true
	if !isSource {
		a.what = append(a.what, source)
		return
	}
	a.what = slices.Insert(a.what, a.sources, source)
	a.sources++
}

// text returns the line of the summary for a report with the given number of nodes.
func (a *missingGroup) text(nodes int) string {
	what := a.what
	if a.sources > 0 {
		what = what[:a.sources]
	}
	words := text.Printable(text.List(what, 5))
	if len(a.nodes) < nodes {
		words += " on node " + text.Printable(text.List(a.nodes, 3))
	}
	return words + ": " + text.Printable(a.why)
}

// textsOf returns the lines of the groups for a summary of r.
func textsOf(list []missingGroup, r *reporter.Report) (lines []string) {
	for _, a := range list {
		lines = append(lines, a.text(len(r.Nodes)))
	}
	return lines
}
