package reporter

import "github.com/perfagent/perfagent/opstats"

// GatherResult describes the nodes of a run that were found in a store and merged.
type GatherResult struct {
	Store         string                `json:"store"`                    // address, without user info
	NodesExpected int                   `json:"nodes_expected,omitempty"` // 0 = unknown
	NodesFound    int                   `json:"nodes_found"`              // with a final report
	Partial       []int                 `json:"partial"`                  // nodes that have only a partial report
	Missing       []Missing             `json:"missing"`                  // unreadable nodes, with reasons
	WaitedSeconds float64               `json:"waited_seconds"`
	Metrics       *opstats.StoreMetrics `json:"metrics"` // of listing and reading
}

// WithSeries returns a copy of the node with the series that another report of the same node has.
func (n *Node) WithSeries(from *Node) *Node {
	out := *n
	out.Samples, out.Envelope = from.Samples, from.Envelope
	out.Ranks = n.Ranks.withEnvelopes(func(name string, _ *Rank) Envelope {
		if had := from.Ranks[name]; had != nil {
			return had.Envelope
		}
		return nil
	})
	return &out
}

// WithReference returns a copy of the node in which the series are replaced with a reference to the stored object that
// contains them.
func (n *Node) WithReference(reference string, bytes int64, sha256 string) *Node {
	out := n.WithSeries(new(Node))
	out.Reference, out.Bytes, out.SHA256 = reference, bytes, sha256
	return out
}

// WithoutReference returns a copy of the node without the reference to its series. The node must have its series.
func (n *Node) WithoutReference() *Node {
	out := *n
	out.Reference, out.Bytes, out.SHA256 = "", 0, ""
	return &out
}
