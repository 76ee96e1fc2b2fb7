package catalog

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// assignIndexes assigns the lowest free indexes to the nodes without an index, in the order of their lowest rank, host
// name and start. It then sorts all nodes by index. Nodes with matching keys get the same index. The indexes of nodes
// with keys in merged do not change.
func assignIndexes(nodes []Node, merged []nodeKey) {
	taken := make(map[int]bool)
	for _, p := range merged {
		taken[p.index] = true
	}
	var unindexed []*Node
	for i := range nodes {
		n := &nodes[i]
		if n.Index = n.index; n.keepsIndex() {
			taken[n.Index] = true
		} else {
			unindexed = append(unindexed, n)
		}
	}

	sortUnindexed(unindexed)
	next := 0
	for i, n := range unindexed {
		if at := slices.IndexFunc(merged, n.matches); at >= 0 {
			n.Index = merged[at].index
			continue
		}
		if at := slices.IndexFunc(unindexed[:i], func(o *Node) bool { return n.matches(o.nodeKey) }); at >= 0 {
			n.Index = unindexed[at].Index
			continue
		}

		for taken[next] {
			next++
		}
		n.Index, taken[next] = next, true
	}

	slices.SortStableFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Index, b.Index) })
}

// keepsIndex reports whether the node keeps the index from its file. This is the case if the index was given, if the
// file has several nodes, or if another program wrote the file.
func (n *Node) keepsIndex() bool { return n.hasIndex || n.merged || n.Entries[0].head.Node == "" }

// sortUnindexed sorts nodes by their lowest rank, host name and start.
func sortUnindexed(nodes []*Node) {
	if len(nodes) < 2 {
		return
	}

	lowest := make(map[*Node]int, len(nodes))
	for _, n := range nodes {
		lowest[n] = math.MaxInt
		for _, r := range n.Entries {
			for rank := range rankStarts(r) {
				lowest[n] = min(lowest[n], rank)
			}
		}
	}
	slices.SortFunc(nodes, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(lowest[a], lowest[b]), compareNatural(a.host, b.host), a.start().Compare(b.start()),
			cmp.Compare(a.Path(), b.Path()))
	})
}

// start returns the start of the node's first recording.
func (n *Node) start() time.Time {
	first := n.Entries[0].start
	for _, r := range n.Entries {
		if r.start.Before(first) {
			first = r.start
		}
	}
	return first
}
