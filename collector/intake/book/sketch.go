package book

import "github.com/perfagent/perfagent/opstats"

// quantiles is a Sketch within the memory of the Book. It is given up, and then knows nothing, if there is no memory
// for a wider range of values.
type quantiles struct {
	Sketch opstats.Sketch `json:"sketch,omitzero"`
	Lost   bool           `json:"lost,omitzero"`
}

// add counts a value n times.
func (q *quantiles) add(v float64, n uint64, used *usage) {
	if q.Lost {
		return
	}

	before := q.Sketch.Bytes()
	err := q.Sketch.AddN(v, n)
	used.sketchBytes += q.Sketch.Bytes() - before
	if err != nil || used.sketchBytes > maxSketchBytes {
		used.sketchBytes -= q.Sketch.Bytes()
		*q = quantiles{Lost: true}
	}
}
