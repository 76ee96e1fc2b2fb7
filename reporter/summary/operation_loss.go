package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// operationProblems writes the amounts of dropped data, and the sources that failed or received nothing.
func (p *terminalWriter) operationProblems(r *reporter.Report, ops *reporter.Operations) {
	if words := droppedWords(ops.Dropped); words != "" {
		p.text(plain, "dropped", words)
	}
	p.listed("sources", textsOf(sourceProblems(r), r), maxMissing, 2, seeOperations)
}

// droppedWords returns the amounts of dropped data, and the consequence; "" if nothing was dropped.
func droppedWords(d aggregate.Dropped) string {
	var words text.Parts
	for _, reason := range d.Reasons() {
		words.Add(reason.Count > 0, "%s %s", text.Number(float64(reason.Count)),
			cmp.Or(droppedReasons[reason.Name], strings.ReplaceAll(reason.Name, "_", " ")))
	}
	all := words.String()
	if d.Datagrams() > 0 {
		all += ": counts and sums are lower bounds"
	}
	return all
}

// sourceProblems returns the problems of sources, with a group for each problem.
func sourceProblems(r *reporter.Report) []missingGroup {
	var list []missingGroup
	fromSocket := func(s aggregate.Source) bool { return s.Scrapes == nil && s.Events > 0 }
	for node, n := range r.EachNode() {
		if n.Operations == nil {
			continue
		}
		received := slices.ContainsFunc(n.Operations.Sources, fromSocket)
		for _, s := range n.Operations.Sources {
			why, name := sourceProblem(&s, received), s.Kind
			if why == "" {
				continue
			}
			if s.Scrapes != nil {
				name = s.Address
			}
			i := slices.IndexFunc(list, func(a missingGroup) bool { return a.why == why })
			if i < 0 {
				i, list = len(list), append(list, missingGroup{why: why, seen: make(map[string]bool)})
			}
			list[i].add(name, true, node)
		}
	}
	return list
}

// sourceProblem returns the problem of a source that failed or received nothing; "" if there is none. A job uses only
// one of the two ports, so a port without events is no problem if the other received events (received is set).
func sourceProblem(s *aggregate.Source, received bool) string {
	switch {
	case s.Scrapes != nil && *s.Scrapes == 0:
		return "was not scraped"
	case s.Scrapes != nil && *s.Scrapes == 1 && s.Failures > 0:
		return "the only scrape failed: " + s.Why
	case s.Scrapes != nil && s.Failures >= *s.Scrapes:
		return fmt.Sprintf("none of %d scrapes succeeded: %s", *s.Scrapes, s.Why)
	case s.Scrapes != nil && s.Failures > 0:
		return fmt.Sprintf("%d of %d scrapes failed: %s", s.Failures, *s.Scrapes, s.Why)
	case s.Failures > 0:
		return "failed: " + s.Why
	case s.Events > 0:
		return ""
	case s.Datagrams != nil && *s.Datagrams > 0:
		return text.Count(int(*s.Datagrams), "datagram", "datagrams") + ", but none that could be used"
	case s.Scrapes == nil && received:
		return ""
	}
	return "nothing came"
}

// droppedReasons describes the reasons for dropping in words, where the words differ from the name.
var droppedReasons = map[string]string{
	"kernel": "datagrams by the kernel", "rate": "datagrams beyond the share of CPU",
	"series": "beyond the number of series", "keys": "beyond the number of keys",
}
