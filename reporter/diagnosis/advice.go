package diagnosis

import (
	"slices"

	"github.com/perfagent/perfagent/reporter"
)

// Advice is a finding with the nodes that have it.
type Advice struct {
	reporter.Finding          // of the first of the nodes where its severity is highest
	Nodes            []string // by index
}

// AdviceOf returns the findings of all nodes, each ID once, in the order of the findings of one node.
func AdviceOf(r *reporter.Report) []Advice {
	var list []reporter.Finding
	nodes := make(map[string][]string)
	for name, n := range r.EachNode() {
		for _, f := range n.Findings {
			i := slices.IndexFunc(list, func(had reporter.Finding) bool { return had.ID == f.ID })
			switch {
			case i < 0:
				list = append(list, f)
			case list[i].Severity != SeverityWarning && f.Severity == SeverityWarning:
				list[i] = f
			}
			if had := nodes[f.ID]; len(had) == 0 || had[len(had)-1] != name {
				nodes[f.ID] = append(had, name)
			}
		}
	}

	sortFindings(list)
	out := make([]Advice, len(list))
	for i, f := range list {
		out[i] = Advice{f, nodes[f.ID]}
	}
	return out
}
