package reporter

import (
	"fmt"
	"math"
	"math/bits"
)

// shrink halves the series of all nodes until the encoded report fits into limit
// bytes. Nodes are measured one by one: the whole may be too large to be held.
func (r *Report) shrink(limit int) error {
	for {
		size, err := r.encodedSize()
		if err != nil || size <= limit {
			return err
		}
		halvings := max(1, bits.Len(uint(size/limit))-1)
		before := r.points()
		for range halvings {
			for _, n := range r.Nodes {
				n.halve()
			}
		}
		if r.points() == before {
			return fmt.Errorf("merge: the report takes %d bytes even without its series; %d are the limit", size, limit)
		}
	}
}

// encodedSize is how many bytes Encode gives at most.
func (r *Report) encodedSize() (int, error) {
	run, err := Encode(&Report{Schema: r.Schema, Run: r.Run, Nodes: map[string]*Node{}})
	if err != nil {
		return 0, err
	}
	size := len(run)
	for name, n := range r.Nodes {
		data, err := Encode(&Report{Nodes: map[string]*Node{name: n}})
		if err != nil {
			return 0, err
		}
		size += len(data)
	}
	return size, nil
}

// points is how many samples the nodes keep.
func (r *Report) points() int {
	sum := 0
	for _, n := range r.Nodes {
		sum += n.Samples.Len()
	}
	return sum
}

// halve merges neighbouring points of the node's series, as a ring does. The node
// gets new slices; those of the input stay as they are.
func (n *Node) halve() {
	if n.Samples.Len() < 2 {
		return
	}
	if n.Sampling != nil {
		s := *n.Sampling
		s.Stride *= 2
		n.Sampling = &s
	}
	envelope := make(Envelope, len(n.Envelope))
	for key, b := range n.Envelope {
		envelope[key] = b.halved()
	}
	samples := Samples{Keys: n.Samples.Keys}
	for i, column := range n.Samples.Columns {
		if _, ok := envelope[n.Samples.Keys[i]]; !ok { // perf.py's samples stand for themselves
			envelope[n.Samples.Keys[i]] = Band{column, column, column}.halved()
		}
		samples.Columns = append(samples.Columns, pairs(column, func(a, _ float64) float64 { return a }))
	}
	n.Samples, n.Envelope = samples, envelope
}

// halved merges neighbouring points; what was not measured changes nothing.
func (b Band) halved() Band {
	return Band{
		Min:  pairs(b.Min, known(math.Min)),
		Mean: pairs(b.Mean, known(func(a, b float64) float64 { return a/2 + b/2 })),
		Max:  pairs(b.Max, known(math.Max)),
	}
}

// known applies f where both are measured, else gives the one that is.
func known(f func(a, b float64) float64) func(a, b float64) float64 {
	return func(a, b float64) float64 {
		switch {
		case math.IsNaN(a):
			return b
		case math.IsNaN(b):
			return a
		}
		return f(a, b)
	}
}

// pairs joins each two neighbours; the last of an odd number stays alone.
func pairs(in []float64, join func(a, b float64) float64) []float64 {
	out := make([]float64, 0, (len(in)+1)/2)
	for i := 0; i < len(in); i += 2 {
		if i+1 < len(in) {
			out = append(out, join(in[i], in[i+1]))
		} else {
			out = append(out, in[i])
		}
	}
	return out
}
