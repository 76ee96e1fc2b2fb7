package book

import (
	"encoding/json"
	"math"

	"github.com/perfagent/perfagent/opstats"
)

// quantiles is a Sketch within the memory of the Book. It is given up, and then knows nothing, if there is no memory for
// a wider range of values.
type quantiles struct {
	sketch opstats.Sketch
	ranges [2]sizeRange // of the positive and of the negative values
	lost   bool
}

// A sizeRange is the range of sizes that there is memory for. The zero value is empty.
type sizeRange struct{ low, high float64 }

// bytes returns an upper bound of what a Sketch needs for the range.
func (r sizeRange) bytes() int {
	if r.high == 0 {
		return 0
	}
	// A bin takes 4 bytes and is 2 % wide, bins come in pages of 32, and there are at most 2048 of them.
	bins := math.Log(r.high/r.low)/0.0199 + 64
	return 4 * int(min(bins, 2048))
}

// has reports whether a size is in the range.
func (r sizeRange) has(size float64) bool { return size >= r.low && size <= r.high && r.high > 0 }

// add counts a value n times.
func (q *quantiles) add(v float64, n uint64, used *usage) {
	size, sign := math.Abs(v), 0
	if v < 0 {
		sign = 1
	}
	if !q.lost && size >= 0x1p-1022 && !q.ranges[sign].has(size) && !q.widen(sign, size, used) {
		q.lose(used)
	}
	if !q.lost && q.sketch.AddN(v, n) != nil {
		q.lose(used)
	}
}

// widen takes the memory for a size and its neighbours. It reports whether there is enough.
func (q *quantiles) widen(sign int, size float64, used *usage) bool {
	r := q.ranges[sign]
	if r.high == 0 {
		r.low = size
	}
	wide := sizeRange{min(r.low, max(size/2, 0x1p-1022)), max(r.high, min(size*2, 1e100))}
	more := wide.bytes() - r.bytes()
	if used.sketchBytes+more > maxSketchBytes {
		return false
	}
	used.sketchBytes += more
	q.ranges[sign] = wide

	return true
}

// lose gives the Sketch up.
func (q *quantiles) lose(used *usage) {
	used.sketchBytes -= q.ranges[0].bytes() + q.ranges[1].bytes()
	*q = quantiles{lost: true}
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
	Ranges [4]float64      `json:"ranges,omitzero"`
	Lost   bool            `json:"lost,omitzero"`
}

func (q *quantiles) MarshalJSON() ([]byte, error) {
	w := quantilesJSON{Lost: q.lost, Ranges: [4]float64{q.ranges[0].low, q.ranges[0].high, q.ranges[1].low, q.ranges[1].high}}
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
	q.ranges = [2]sizeRange{{w.Ranges[0], w.Ranges[1]}, {w.Ranges[2], w.Ranges[3]}}
	return nil
}
