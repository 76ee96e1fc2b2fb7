package book

import (
	"math"

	"github.com/perfagent/perfagent/opstats"
)

// quantiles is a Sketch within the memory of the Book. It is given up, and then knows nothing, if there is no memory
// for a wider range of values.
type quantiles struct {
	Sketch opstats.Sketch `json:"sketch,omitzero"`
	Lost   bool           `json:"lost,omitzero"`
}

// add counts a value as often as a count of values went up, in whole numbers.
func (q *quantiles) add(v, before, after float64, used *usage) {
	if q.Lost {
		return
	}
	n := uint64(min(math.Round(after)-math.Round(before), 1<<62))

	bytes := q.Sketch.Bytes()
	err := q.Sketch.AddN(v, n)
	used.sketchBytes += q.Sketch.Bytes() - bytes
	if err != nil || used.sketchBytes > maxSketchBytes {
		used.sketchBytes -= q.Sketch.Bytes()
		*q = quantiles{Lost: true}
	}
}
