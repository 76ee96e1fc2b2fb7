package series

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// These bounds make overflow impossible without checks on the hot path: a product of a value and a weight stays below
// 1e200, and a sum of 2^53 such products below 1e250. No host reports values near the bounds.
const (
	limit       = 1e100   // the largest value, and the largest weight of one value
	weightLimit = 1e150   // the largest total weight in input and merges
	countLimit  = 1 << 53 // the largest count in input and merges, which a float64 can represent exactly
)

// isMeasured reports whether a value with this weight counts. It returns false if either is NaN.
func isMeasured(value, weight float64) bool {
	return inRange(value) && weight >= 0 && weight <= limit
}

// inRange reports whether a value is within ±limit. It returns false for NaN.
func inRange(value float64) bool { return value >= -limit && value <= limit }

// Stat summarizes one column over some samples. A Stat with Count 0, such as the zero value, has no measured value. In
// the buckets of a ring, such a Stat has NaN in Min and Max, so that it is not mistaken for a measured 0.
type Stat struct {
	Min, Max float64 // smallest and largest measured value; NaN when nothing was measured
	// Sum is Σ value·weight, or Σ value while Weight is 0.
	Sum    float64
	Weight float64 // seconds of the measured values
	Count  int64   // number of measured values
}

// empty returns the Stat of a bucket's column without measured values.
func empty() Stat { return Stat{Min: math.NaN(), Max: math.NaN()} }

// Add adds a value that covers weight seconds. It ignores values that were not measured according to the rules of the
// package.
func (s *Stat) Add(value, weight float64) {
	if !isMeasured(value, weight) {
		return
	}
	if s.Count == 0 {
		*s = Stat{Min: value, Max: value}
	}
	s.Count++
	s.Min, s.Max = min(s.Min, value), max(s.Max, value)
	// float64() prevents fused multiply-add, so that the same samples give the same bits on amd64 and arm64.
	switch {
	case weight > 0 && s.Weight > 0:
		s.Sum += float64(value * weight)
	case weight > 0: // first positive weight: values of weight 0 no longer count for the mean
		s.Sum = float64(value * weight)
	case s.Weight == 0:
		s.Sum += value
	}

	s.Weight += weight
}

// Merge adds the values of o. It is commutative and associative (min, max and count exactly, sums up to rounding). An
// empty Stat changes nothing.
func (s *Stat) Merge(o Stat) {
	if o.Count == 0 {
		return
	}
	if s.Count == 0 {
		*s = o
		return
	}

	s.Count += o.Count
	s.Min, s.Max = min(s.Min, o.Min), max(s.Max, o.Max)
	switch {
	case (s.Weight > 0) == (o.Weight > 0):
		s.Sum += o.Sum
	case o.Weight > 0:
		s.Sum = o.Sum
	}

	s.Weight += o.Weight
}

// Mean returns the mean of the measured values, weighted by seconds. It is the plain mean if no value has a weight
// above 0, and NaN if nothing was measured. It is always within Min..Max.
func (s Stat) Mean() float64 {
	if s.Count == 0 {
		return math.NaN()
	}
	return min(max(s.Sum/s.divisor(), s.Min), s.Max)
}

// divisor returns the denominator of Sum, and of the accumulators of a Summary.
func (s Stat) divisor() float64 {
	if s.Weight > 0 {
		return s.Weight
	}
	return float64(s.Count)
}

// check returns an error if s, which may come from a file, is impossible. A valid Stat can be merged and written.
func (s Stat) check() error {
	if s.Count < 0 || s.Count > countLimit {
		return fmt.Errorf("count %d is out of range", s.Count)
	}
	if s.Count == 0 {
		if s.Sum != 0 || s.Weight != 0 || !absent(s.Min) || !absent(s.Max) {
			return errors.New("the count is 0, but there are numbers")
		}
		return nil
	}

	if !inRange(s.Min) || !inRange(s.Max) || s.Min > s.Max {
		return fmt.Errorf("min %v and max %v are not a range", s.Min, s.Max)
	}
	if !(s.Weight >= 0 && s.Weight <= weightLimit) || math.Signbit(s.Weight) {
		return fmt.Errorf("weight %v is out of range", s.Weight)
	}

	// The sum must be between min and max times the weight, up to rounding. The margin is far larger than the error of
	// 2^53 additions in any order; its last term is for products that underflow.
	total := s.divisor()
	slack := 1e-6*max(math.Abs(s.Min), math.Abs(s.Max))*total + 1e-300
	if !(s.Sum >= s.Min*total-slack && s.Sum <= s.Max*total+slack) {
		return fmt.Errorf("sum %v does not fit min %v, max %v and weight %v", s.Sum, s.Min, s.Max, s.Weight)
	}
	return nil
}

// MarshalJSON writes the list of count, weight, sum, min and max without loss of precision, or [] if nothing was
// measured.
func (s Stat) MarshalJSON() ([]byte, error) {
	if s.Count == 0 {
		return []byte("[]"), nil
	}
	return json.Marshal([]float64{float64(s.Count), s.Weight, s.Sum, s.Min, s.Max})
}

// UnmarshalJSON reads the output of MarshalJSON. It returns an error and leaves s unchanged if the Stat is impossible.
func (s *Stat) UnmarshalJSON(data []byte) error {
	var list []float64
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("read stat: %w", err)
	}

	read := empty()
	switch {
	case len(list) == 0:
	case len(list) != 5 || list[0] != math.Trunc(list[0]) || !(list[0] > 0 && list[0] <= countLimit):
		return errors.New("read stat: not a count, weight, sum, min and max")
	default:
		read = Stat{Count: int64(list[0]), Weight: list[1], Sum: list[2], Min: list[3], Max: list[4]}
	}
	if err := read.check(); err != nil {
		return fmt.Errorf("read stat: %w", err)
	}
	*s = read

	return nil
}

// absent reports whether v is the Min or Max of an empty Stat: NaN in a ring, 0 in a zero Stat.
func absent(v float64) bool { return v == 0 || math.IsNaN(v) }
