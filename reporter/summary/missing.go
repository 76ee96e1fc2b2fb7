package summary

import (
	"fmt"
	"slices"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// maxMissing is how many reasons the summary gives; the report has them all.
const maxMissing = 5

// missing writes what could not be measured, a line or two per reason.
func (p *layout) missing(r *reporter.Report) {
	list := absences(r)
	if len(list) == 0 {
		return
	}
	p.gap()
	label := "missing"
	for i, a := range list {
		if i == maxMissing {
			p.text(plain, label, fmt.Sprintf("and %d more, see the report", len(list)-i))
			return
		}
		p.text(plain, label, a.text(len(r.Nodes)))
		label = ""
	}
}

// absence is one reason, what is missing for it, and where.
type absence struct {
	what    []string
	why     string
	nodes   []string
	sources int // how many of what are sources
	seen    map[string]bool
}

// absences groups what is missing by its reason: a source that could not be read takes many
// metrics with it.
func absences(r *reporter.Report) []absence {
	g := groups{byReason: make(map[reason]int)}
	for _, name := range r.NodeNames() {
		n := r.Nodes[name]
		if n == nil {
			continue
		}

		g.ofNode = make(map[origin]int)
		for _, m := range n.Missing {
			if !reporter.NothingAmiss(m) {
				g.add(m, name)
			}
		}
	}

	return g.list
}

// groups are the absences so far.
type groups struct {
	list     []absence
	byReason map[reason]int
	ofNode   map[origin]int // of the node that is being looked at
}

// A reason is a code with its text, less how many readings lacked a source.
type reason struct {
	code reporter.Code
	why  string
}

// An origin is a code and the source that it was of; "" stands for any source.
type origin struct {
	code   reporter.Code
	source string
}

// add adds what a node lacks to the absence with the same reason. A metric with another text than
// its source goes with the source: "the number of CPUs is unknown: open /proc/stat".
func (g *groups) add(m reporter.Missing, node string) {
	why := reason{m.Code, reporter.CauseOf(m)}
	source, isSource := reporter.SourceOf(m.What)
	from := origin{code: m.Code}
	if isSource {
		from.source = source
	}

	i, ok := g.byReason[why]
	if _, isMetric := reporter.MetricNamed(m.What); !ok && isMetric {
		i, ok = g.ofNode[from]
	}
	if !ok {
		i = len(g.list)
		g.list = append(g.list, absence{why: m.Why, seen: make(map[string]bool)})
		g.byReason[why] = i
	}

	g.list[i].add(source, isSource, node)
	for _, of := range []origin{from, {code: m.Code}, {}} { // {} is for metrics of reports without codes
		if _, has := g.ofNode[of]; !has && isSource {
			g.ofNode[of] = i
		}
	}
}

// add adds a source, or what has none, of a node.
func (a *absence) add(source string, isSource bool, node string) {
	if len(a.nodes) == 0 || a.nodes[len(a.nodes)-1] != node { // node after node
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

// text is the line of the summary, of a report with so many nodes.
func (a *absence) text(nodes int) string {
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
