package reporter

import (
	"cmp"
	"fmt"
	"slices"
)

// RankList returns the ranks of a node in order.
func (n *Node) RankList() []*Rank {
	if n == nil {
		return nil
	}
	var out []*Rank
	for _, r := range n.Ranks {
		if r != nil {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *Rank) int { return cmp.Compare(a.Rank, b.Rank) })
	return out
}

// RankValues returns the metrics of a node's ranks as "rank.3.job_cpu_seconds", and their exit codes as
// "rank.3.exit_code".
func (n *Node) RankValues() Values {
	out := make(Values)
	for _, r := range n.RankList() {
		for name, v := range r.Metrics {
			out[fmt.Sprintf("rank.%d.%s", r.Rank, name)] = v
		}
		if r.ExitCode != nil {
			out[fmt.Sprintf("rank.%d.exit_code", r.Rank)] = float64(*r.ExitCode)
		}
	}
	return out
}

// HostName returns the name of a node as its scheduler calls it, or else its host's; "" if neither is known.
func (n *Node) HostName() string {
	switch {
	case n == nil:
		return ""
	case n.Identity != nil && n.Identity.NodeName != "":
		return n.Identity.NodeName
	case n.Host != nil:
		return n.Host.Hostname
	}
	return ""
}
