package pusher

import (
	"strconv"

	"github.com/perfagent/perfagent/reporter"
)

// withoutIndex is the NodeFrom of a node whose index nobody told.
const withoutIndex = "none"

// nodeName returns the name of a node in MLflow: its index or, where a launcher told none, the name of its host.
// The key of such a node in a report depends on the other nodes that the report has.
func nodeName(key string, n *reporter.Node) string { return NodeName(key, n.Identity, hostOf(n)) }

// NodeName returns the name in MLflow of the node of a process. key is the one that it has in reports.
func NodeName(key string, id *reporter.Identity, host string) string {
	if isUnindexed(id) && plain(host) {
		return host
	}
	return key
}

// isUnindexed reports whether a launcher with ranks did not tell the index of the node. Without a launcher the
// index is 0.
func isUnindexed(id *reporter.Identity) bool {
	return id != nil && id.NodeFrom == withoutIndex && id.WorldSize > 0
}

// hostOf returns the name of a node's host; "" if it is not known.
func hostOf(n *reporter.Node) string {
	if n.Host != nil {
		return n.Host.Hostname
	}
	return ""
}

// nodeStep returns the step of a node's metrics: its index, or the lowest rank on it.
func nodeStep(key string, n *reporter.Node) int64 {
	index, _ := strconv.ParseInt(key, 10, 64) // checked by the reader
	if nodeName(key, n) == key {
		return index
	}

	ranks := n.RankList()
	switch {
	case len(ranks) > 0:
		return int64(ranks[0].Rank)
	case n.Identity.Rank != nil:
		return int64(*n.Identity.Rank)
	}
	return index
}

// leads reports whether it is up to a process to create the MLflow run of a launch: it is on node 0 or, without
// indices, on the node of rank 0. Of a launcher that fills one node after the other, that is the one where ranks
// and local ranks are the same.
func leads(node int, id *reporter.Identity) bool {
	if !isUnindexed(id) || id.Rank == nil {
		return node == 0
	}
	return *id.Rank == 0 || id.LocalRank != nil && *id.LocalRank == *id.Rank
}
