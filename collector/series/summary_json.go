package series

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// summaryJSON is the JSON form of a Summary. Floats have the shortest form that is read back as the same bits.
type summaryJSON struct {
	Count      int64      `json:"count"`
	Weight     float64    `json:"weight"`
	Sum        float64    `json:"sum"`
	Min        *float64   `json:"min,omitempty"` // missing if nothing was measured
	Max        *float64   `json:"max,omitempty"`
	Thresholds []float64  `json:"thresholds,omitempty"`
	Above      []float64  `json:"above,omitempty"`
	Histogram  *histogram `json:"histogram,omitempty"` // missing if the Summary has no histogram, [] if all bins are 0
}

// histogram is the JSON form of a Summary's bins: a pair [bin, weight] for each bin with a weight above 0, in ascending
// order. Bin 500 is the value 50.0.
type histogram [][]float64

// MarshalJSON writes the whole state: {"count":2,"weight":2,"sum":3,"min":1,"max":2}, with "thresholds" and the weight
// "above" each of them, and a sparse "histogram" of [bin, weight] pairs, if the Summary has them.
func (s Summary) MarshalJSON() ([]byte, error) {
	w := summaryJSON{
		Count: s.all.Count, Weight: s.all.Weight, Sum: s.all.Sum, Thresholds: s.thresholds, Above: s.above,
	}
	if s.all.Count > 0 {
		w.Min, w.Max = &s.all.Min, &s.all.Max
	}
	if s.bins != nil {
		w.Histogram = new(histogram{})
		for i, weight := range s.bins {
			if weight != 0 {
				*w.Histogram = append(*w.Histogram, []float64{float64(i), weight})
			}
		}
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads the output of MarshalJSON without loss of precision. It returns an error and leaves s unchanged
// if the Summary is impossible: a negative count, a mean outside min..max, a share above 100, unsorted thresholds or
// bins. It ignores unknown keys.
func (s *Summary) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil // as encoding/json expects
	}
	var w summaryJSON
	if err := json.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("read summary: %w", err)
	}
	read, err := w.summary()
	if err != nil {
		return fmt.Errorf("read summary: %w", err)
	}
	*s = *read
	return nil
}

// summary checks the JSON form and returns it as a Summary.
func (w summaryJSON) summary() (*Summary, error) {
	s := &Summary{
		all:        Stat{Sum: w.Sum, Weight: w.Weight, Count: w.Count},
		thresholds: w.Thresholds,
		above:      w.Above,
	}

	if (w.Min == nil) != (w.Count == 0) || (w.Max == nil) != (w.Count == 0) {
		return nil, errors.New("min and max must be present if the count is above 0, and only then")
	}
	if w.Count != 0 {
		s.all.Min, s.all.Max = *w.Min, *w.Max
	}
	if err := s.all.check(); err != nil {
		return nil, err
	}
	if err := s.checkThresholds(); err != nil {
		return nil, err
	}

	if w.Histogram != nil {
		bins, err := w.Histogram.bins(s.all.divisor())
		if err != nil {
			return nil, err
		}
		s.bins = bins
	}

	return s, nil
}

// checkThresholds returns an error if the thresholds are impossible. The weight at or above a threshold cannot exceed
// the total or the weight for the previous threshold, because floating-point addition preserves this order.
func (s *Summary) checkThresholds() error {
	if len(s.above) != len(s.thresholds) {
		return fmt.Errorf("%d thresholds with %d weights", len(s.thresholds), len(s.above))
	}
	last, most := math.Inf(-1), s.all.divisor()
	for i, t := range s.thresholds {
		if !inRange(t) || t <= last {
			return fmt.Errorf("threshold %v is out of range or order", t)
		}
		if w := s.above[i]; !(w >= 0 && w <= most) {
			return fmt.Errorf("weight %v above threshold %v is out of range", w, t)
		}
		last, most = t, s.above[i]
	}
	return nil
}

// bins checks the JSON form and returns the bins of a histogram. Their weights must add up to total.
func (h histogram) bins(total float64) (*[lastBin + 1]float64, error) {
	bins := new([lastBin + 1]float64)
	last, sum := -1.0, 0.0
	for _, pair := range h {
		if len(pair) != 2 {
			return nil, fmt.Errorf("histogram: %v is not a pair of bin and weight", pair)
		}
		i, w := pair[0], pair[1]
		if !(i > last && i <= lastBin) || i != math.Trunc(i) {
			return nil, fmt.Errorf("histogram: bin %v is out of range or order", i)
		}
		if !(w > 0 && w <= weightLimit) {
			return nil, fmt.Errorf("histogram: weight %v of bin %v is out of range", w, i)
		}
		bins[int(i)] = w
		last = i
		sum += w
	}

	if math.Abs(sum-total) > 1e-6*total { // rounding errors are far smaller
		return nil, fmt.Errorf("histogram: weights add up to %v, want %v", sum, total)
	}
	return bins, nil
}
