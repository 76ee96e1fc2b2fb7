package reporter

import "github.com/perfagent/perfagent/opstats"

// GatherResult says what of a run was found in a store when its nodes were merged.
type GatherResult struct {
	Store         string                `json:"store"`                    // its address, without user info
	NodesExpected int                   `json:"nodes_expected,omitempty"` // 0 = nobody said
	NodesFound    int                   `json:"nodes_found"`              // final
	Partial       []int                 `json:"partial"`                  // nodes with what was known while they ran
	Missing       []Missing             `json:"missing"`                  // nodes of which nothing can be read, and why
	WaitedSeconds float64               `json:"waited_seconds"`
	Metrics       *opstats.StoreMetrics `json:"metrics"` // of the listing and the gets
}

// WithSeries returns a copy of a node with the series of another report of it.
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

// WithReference returns a copy of a node without any series, which are in the object of a store.
func (n *Node) WithReference(reference string, bytes int64, sha256 string) *Node {
	out := n.WithSeries(new(Node))
	out.Reference, out.Bytes, out.SHA256 = reference, bytes, sha256
	return out
}

// WithoutReference returns a copy of a node that does not say where its series are, because it has them.
func (n *Node) WithoutReference() *Node {
	out := *n
	out.Reference, out.Bytes, out.SHA256 = "", 0, ""
	return &out
}
