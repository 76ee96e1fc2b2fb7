package reporter

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/text"
)

// maxMissing is how many reasons the summary gives; the report has them all.
const maxMissing = 5

// missing writes what could not be measured, a line or two per reason.
func (p *page) missing(r *Report) {
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

// absences groups what is missing by its reason: a source that could not be read
// takes many metrics with it, each with the source's reason.
func absences(r *Report) []absence {
	var out []absence
	byReason := make(map[string]int) // of each absence its own reason
	for _, name := range r.NodeNames() {
		n := r.Nodes[name]
		if n == nil {
			continue
		}
		for _, m := range n.Missing {
			if NothingAmiss(m.Why) {
				continue
			}
			i, ok := coveredBy(byReason, m.Why)
			if !ok {
				i = len(out)
				out = append(out, absence{why: m.Why, seen: make(map[string]bool)})
				byReason[bareReason(m.Why)] = i
			}
			out[i].add(m.What, name)
		}
	}
	return out
}

// maxCauses is how many causes of a reason are looked at.
const maxCauses = 16

// coveredBy finds the first absence of which a reason is the own one, or from which it
// follows: "the number of CPUs is unknown: open /proc/stat". Looking at all absences
// for each of a hostile report's reasons would take for ever.
func coveredBy(byReason map[string]int, why string) (first int, ok bool) {
	why = bareReason(why)
	first, ok = byReason[why]
	rest := why
	for range maxCauses {
		at := strings.LastIndex(rest, ": ")
		if at < 0 {
			break
		}
		if i, found := byReason[why[at+len(": "):]]; found && (!ok || i < first) {
			first, ok = i, true
		}
		rest = rest[:at]
	}
	return first, ok
}

// bareReason is a reason without the count that a source's has: (3 of 10 readings).
func bareReason(why string) string {
	if at := strings.LastIndex(why, " ("); at > 0 && strings.HasSuffix(why, " readings)") {
		return why[:at]
	}
	return why
}

func (a *absence) add(what, node string) {
	if len(a.nodes) == 0 || a.nodes[len(a.nodes)-1] != node { // node after node
		a.nodes = append(a.nodes, node)
	}
	source, isSource := sourceOf(what)
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
	words := text.Printable(listed(what, 5))
	if len(a.nodes) < nodes {
		words += " on node " + text.Printable(listed(a.nodes, 3))
	}
	return words + ": " + text.Printable(a.why)
}

// listed joins at most n words and counts the others.
func listed(words []string, n int) string {
	if len(words) <= n {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:n], ", "), len(words)-n)
}

// sourceError stands for a reason and names the source that it is asked of.
type sourceError string

func (e sourceError) Error() string { return string(e) }

// sourceOf names the source that a sample key or a metric is read from; what has
// no single source keeps its name. The table knows it: a metric computed from
// nothing asks for the reason of its source.
func sourceOf(what string) (name string, isSource bool) {
	if slices.Contains(host.Sources(), what) {
		return what, true
	}
	if c, ok := collector.ColumnNamed(what); ok {
		return columnSource(c), true
	}
	m, ok := MetricNamed(what)
	if !ok {
		return what, false
	}
	nothing := &facts{perfpy: true, wall: func() (float64, error) { return 1, nil }}
	nothing.why = func(c collector.Column) error { return sourceError(columnSource(c)) }
	for i := range nothing.boot {
		nothing.boot[i] = math.NaN()
	}
	_, err := m.value(nothing)
	if source, ok := errors.AsType[sourceError](err); ok {
		return string(source), true
	}
	return what, false
}

// columnSource is the source of a column; of a GPU's it tells which one.
func columnSource(c collector.Column) string {
	if device, _, ok := c.GPU(); ok {
		return fmt.Sprintf("%s %d", c.Source(), device)
	}
	return c.Source()
}
