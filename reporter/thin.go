package reporter

import "fmt"

func tooLarge(size, limit int) error {
	return fmt.Errorf("merge: the report takes %d bytes even without its series; %d are the limit", size, limit)
}

// frame returns the report without its nodes.
func (r *Report) frame() *Report {
	return &Report{Schema: r.Schema, Run: r.Run, Nodes: map[string]*Node{}}
}

// encodedSize returns an upper bound of the bytes that Encode returns.
func (r *Report) encodedSize() (int, error) {
	run, err := Encode(r.frame())
	if err != nil {
		return 0, err
	}
	size := len(run)
	for name, n := range r.Nodes {
		one, err := n.encodedSize(name)
		if err != nil {
			return 0, err
		}
		size += one
	}
	return size, nil
}

// encodedSize returns the bytes that a node takes in a report, and a few more.
func (n *Node) encodedSize(name string) (int, error) {
	data, err := Encode(&Report{Nodes: map[string]*Node{name: n}})
	return len(data), err
}

// halve merges neighbouring points of the node's series, as a ring does. The node
// gets new slices; the input's slices stay as they are.
func (n *Node) halve() {
	if n.Samples.Len() < 2 {
		return
	}
	if n.Sampling != nil {
		s := *n.Sampling
		s.Stride *= 2
		n.Sampling = &s
	}

	envelope := n.Envelope.halved()
	samples := Samples{Keys: n.Samples.Keys}
	for i, column := range n.Samples.Columns {
		if _, ok := envelope[n.Samples.Keys[i]]; !ok { // perf.py's samples stand for themselves
			envelope[n.Samples.Keys[i]] = Band{column, column, column}.Fold(2, nil)
		}
		samples.Columns = append(samples.Columns, fold(column, 2, func(i, _ int) float64 { return column[i] }))
	}

	n.Samples, n.Envelope = samples, envelope
	n.halveRanks()
}

// halveRanks does the same for the series of the node's ranks, which get copies.
func (n *Node) halveRanks() {
	if n.Ranks == nil {
		return
	}
	ranks := make(map[string]*Rank, len(n.Ranks))
	for name, r := range n.Ranks {
		r = new(*r)
		r.Envelope, ranks[name] = r.Envelope.halved(), r
	}
	n.Ranks = ranks
}

// halved merges neighbouring points.
func (e Envelope) halved() Envelope {
	out := make(Envelope, len(e))
	for key, b := range e {
		out[key] = b.Fold(2, nil)
	}
	return out
}
