package reporter

import "fmt"

func tooLarge(size, limit int) error {
	return fmt.Errorf("merge: the report takes %d bytes even without its series; %d are the limit", size, limit)
}

// encodedSize returns the number of bytes that Encode returns.
func (r *Report) encodedSize() (int, error) {
	var size counter
	err := EncodeTo(&size, r)
	return int(size), err
}

// A counter counts the bytes that are written to it.
type counter int

// Write implements io.Writer.
func (c *counter) Write(data []byte) (int, error) {
	*c += counter(len(data))
	return len(data), nil
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
