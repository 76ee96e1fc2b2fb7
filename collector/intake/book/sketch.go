package book

import (
	"encoding/json"

	"github.com/perfagent/perfagent/opstats"
)

// quantiles is a Sketch within the memory of the Book. It is given up, and then knows nothing, if there is no memory for
// a wider range of values.
type quantiles struct {
	sketch opstats.Sketch
	lost   bool
}

// add counts a value n times.
func (q *quantiles) add(v float64, n uint64, used *usage) {
	if q.lost {
		return
	}

	before := q.sketch.Bytes()
	err := q.sketch.AddN(v, n)
	used.sketchBytes += q.sketch.Bytes() - before
	if err != nil || used.sketchBytes > maxSketchBytes {
		used.sketchBytes -= q.sketch.Bytes()
		*q = quantiles{lost: true}
	}
}

// clone returns an independent copy.
func (q *quantiles) clone() quantiles {
	c := *q
	c.sketch = *q.sketch.Clone()
	return c
}

// shares are the quantiles that a report has.
var shares = [...]float64{0.5, 0.9, 0.99}

// figures returns the three quantiles of a report. It reports false if they are not known.
func (q *quantiles) figures() (figures [len(shares)]float64, ok bool) {
	for i, share := range shares {
		if figures[i], ok = q.sketch.Quantile(share); !ok {
			return figures, false
		}
	}
	return figures, true
}

// quantilesJSON is a quantiles in a state.
type quantilesJSON struct {
	Sketch *opstats.Sketch `json:"sketch,omitempty"`
	Lost   bool            `json:"lost,omitzero"`
}

func (q *quantiles) MarshalJSON() ([]byte, error) {
	w := quantilesJSON{Lost: q.lost}
	if q.sketch.Count() > 0 {
		w.Sketch = &q.sketch
	}
	return json.Marshal(w)
}

func (q *quantiles) UnmarshalJSON(data []byte) error {
	w := quantilesJSON{Sketch: &q.sketch}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	q.lost = w.Lost
	return nil
}
