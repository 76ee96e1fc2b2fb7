package reporter

import (
	"fmt"
	"slices"
)

// A remark is what some ranks say to be missing, in the same words.
type remark struct {
	Missing
	ranks []int
}

// missing returns what the node lacks: what its ranks lack, what of the job or the host has no value for it, and what
// cannot be put together. What only some ranks lack says which.
func (c *combination) missing(n *Node) []Missing {
	out := c.jointRemarks()
	if len(c.hosts) == 0 {
		out = append(out, Missing{What: "host", Code: HostByAnother, Why: "no rank's recording has measurements of the host"})
	}
	for _, h := range c.hosts {
		for _, m := range h.Missing {
			_, have := n.Metrics[m.What]
			_, metric := MetricNamed(m.What)
			if metric && !have && ofHost(m.What) && !slices.ContainsFunc(out, func(o Missing) bool { return o.What == m.What }) {
				out = append(out, m)
			}
		}
	}
	return append(out, c.lacking...)
}

// jointRemarks returns what the ranks lack, but for metrics. Of the host and of clocks, that of the ranks counts whose
// points the node has.
func (c *combination) jointRemarks() []Missing {
	var list []*remark
	for _, p := range c.pieces {
		for _, m := range p.Missing {
			if _, metric := MetricNamed(m.What); metric || m.Code == HostByAnother || !c.speaksOf(p, m.What) {
				continue
			}
			list = addRemark(list, p, m)
		}
	}

	var out []Missing
	for _, r := range list {
		if slices.Sort(r.ranks); !ofTheNode(r.What) && len(r.ranks) < len(c.ranks()) {
			r.Why = rankNames(r.ranks) + ": " + r.Why
		}
		if r.Of > 0 {
			r.Why += ofReadings(r.Count, r.Of)
		}
		out = append(out, r.Missing)
	}
	return out
}

// addRemark adds what a piece lacks to those that say the same.
func addRemark(list []*remark, p *piece, m Missing) []*remark {
	cause := CauseOf(m)
	i := slices.IndexFunc(list, func(r *remark) bool {
		return r.What == m.What && r.Code == m.Code && r.Why == cause && (r.Of > 0) == (m.Of > 0)
	})
	if i < 0 {
		i = len(list)
		list = append(list, &remark{Missing: Missing{What: m.What, Code: m.Code, Why: cause}})
	}

	r := list[i]
	r.Count, r.Of = r.Count+m.Count, r.Of+m.Of
	r.ranks = append(r.ranks, numbersOf(p)...)
	return list
}

// ofTheNode reports whether something is of the node, whoever says it.
func ofTheNode(what string) bool { return what == "clock" || ofHost(what) }

// speaksOf reports whether what a piece lacks is lacking of the node.
func (c *combination) speaksOf(p *piece, what string) bool {
	if !ofTheNode(what) {
		return true
	}
	return slices.ContainsFunc(c.hosts, func(h hosting) bool { return h.piece == p }) ||
		what == "clock" && slices.ContainsFunc(c.stretches, func(s stretch) bool { return s.piece == p })
}

// whyAbsent says why the node lacks a metric that some of its ranks lack.
func (c *combination) whyAbsent(name string) error {
	var first *Missing
	lack := c.which(func(p *piece) bool { _, ok := p.Metrics[name]; return !ok })
	for _, p := range lack {
		i := slices.IndexFunc(p.Missing, func(m Missing) bool { return m.What == name })
		if i >= 0 && first == nil {
			first = &p.Missing[i]
		}
	}

	numbers := numbersOf(lack...)
	switch {
	case first == nil:
		return &absence{NotCombined, rankNames(numbers) + " do not say why"}
	case len(numbers) == len(c.ranks()):
		return &absence{first.Code, first.Why}
	}
	return &absence{first.Code, fmt.Sprintf("%s: %s", rankNames(numbers), first.Why)}
}
