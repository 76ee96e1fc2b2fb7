package summary

import (
	"fmt"
	"slices"
	"strings"

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

// absences groups what is missing by its reason: a source that could not be read
// takes many metrics with it, each with the source's reason.
func absences(r *reporter.Report) []absence {
	var out []absence
	byReason := make(map[string]int) // of each absence its own reason
	for _, name := range r.NodeNames() {
		n := r.Nodes[name]
		if n == nil {
			continue
		}
		for _, m := range n.Missing {
			if reporter.NothingAmiss(m.Why) {
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
	source, isSource := reporter.SourceOf(what)
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
