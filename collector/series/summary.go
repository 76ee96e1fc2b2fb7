package series

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// The histogram has one bin per 0.1 percentage points, from 0 to 100 inclusive. A value is counted in the nearest bin.
const (
	binsPerPoint = 10
	lastBin      = 100 * binsPerPoint
)

// Summary describes one column over all samples in a fixed amount of memory: count, weight (seconds), mean, min, max,
// the share of time at or above some thresholds and, for percentages, quantiles to 0.1 points. The zero value is an
// empty Summary without thresholds and quantiles, ready to use.
type Summary struct {
	all        Stat
	thresholds []float64 // ascending; never changed, because clones share them
	above      []float64 // per threshold: weight of the values at or above it

	// bins holds the weight of the values in each bin; nil without a histogram. Like above and all.Sum, it counts each
	// value as 1 while the total weight is 0.
	bins *[lastBin + 1]float64
}

// NewSummary returns an empty Summary that counts the time at or above each of the thresholds, which may be in any
// order. It drops thresholds that are not finite or beyond ±1e100.
func NewSummary(thresholds ...float64) *Summary {
	kept := slices.DeleteFunc(slices.Clone(thresholds), func(t float64) bool { return !inRange(t) })
	slices.Sort(kept)
	kept = slices.Compact(kept)
	return &Summary{thresholds: kept, above: make([]float64, len(kept))}
}

// NewPercentSummary returns a Summary with a histogram from 0 to 100 (8 KB), for quantiles. Values outside this range
// are counted in the first or the last bin.
func NewPercentSummary(thresholds ...float64) *Summary {
	s := NewSummary(thresholds...)
	s.bins = new([lastBin + 1]float64)
	return s
}

// SummaryOf returns a Summary of the values of a Stat, without thresholds or quantiles.
func SummaryOf(s Stat) *Summary { return &Summary{all: s} }

// Add adds a value that covers weight seconds. It ignores values that were not measured according to the rules of the
// package, and does not allocate.
func (s *Summary) Add(value, weight float64) {
	if !isMeasured(value, weight) {
		return
	}
	share := weight
	switch {
	case weight == 0 && s.all.Weight == 0:
		share = 1
	case weight > 0 && s.all.Weight == 0 && s.all.Count > 0:
		s.forget()
	}

	s.all.Add(value, weight)
	for i, t := range s.thresholds {
		if value < t {
			break
		}
		s.above[i] += share
	}

	if s.bins != nil {
		s.bins[bin(value)] += share
	}
}

// forget drops the counts of values of weight 0. Once a value has a positive weight, only time counts.
func (s *Summary) forget() {
	clear(s.above)
	if s.bins != nil {
		clear(s.bins[:])
	}
}

// bin returns the bin nearest to a value. The conversion float64() makes the rounding the same on every machine.
func bin(value float64) int {
	switch {
	case value <= 0:
		return 0
	case value >= 100:
		return lastBin
	}
	return int(float64(value*binsPerPoint) + 0.5)
}

// Merge adds the samples of o as if they had been added to s. It is commutative and associative (count, min and max
// exactly, sums up to rounding). An empty Summary of the same kind, or nil, changes nothing. Merge returns an error and
// leaves s unchanged if the thresholds differ, only one of the two has a histogram, or a sum is out of range.
func (s *Summary) Merge(o *Summary) error {
	if o == nil {
		return nil
	}
	if err := s.mergeable(o); err != nil {
		return fmt.Errorf("merge summaries: %w", err)
	}

	into, from := s.all.Weight > 0, o.all.Weight > 0
	if from && !into {
		s.forget()
	}
	s.all.Merge(o.all)
	if into && !from {
		return nil // o's values cover no time, so they count only for all.Count, Min and Max
	}

	for i, w := range o.above {
		s.above[i] += w
	}

	if s.bins != nil {
		for i, w := range o.bins {
			s.bins[i] += w
		}
	}

	return nil
}

// mergeable returns an error if o cannot be merged into s.
func (s *Summary) mergeable(o *Summary) error {
	switch {
	case !slices.Equal(s.thresholds, o.thresholds):
		return fmt.Errorf("thresholds %v and %v differ", s.thresholds, o.thresholds)
	case (s.bins == nil) != (o.bins == nil):
		return errors.New("only one has a histogram")
	case s.all.Count+o.all.Count > countLimit || s.all.Weight+o.all.Weight > weightLimit:
		return errors.New("the sum is out of range")
	}
	return nil
}

// Clone returns an independent Summary with the same contents, for another goroutine to read or continue.
func (s *Summary) Clone() *Summary {
	c := *s
	c.above = slices.Clone(s.above)
	if s.bins != nil {
		bins := *s.bins
		c.bins = &bins
	}
	return &c
}

// Count returns the number of measured values.
func (s *Summary) Count() int64 { return s.all.Count }

// Weight returns the number of seconds of the measured values.
func (s *Summary) Weight() float64 { return s.all.Weight }

// Stat returns count, weight, sum, min and max. Min and Max are NaN if nothing was measured.
func (s *Summary) Stat() Stat {
	if s.all.Count == 0 {
		return empty()
	}
	return s.all
}

// Mean returns the mean weighted by seconds (the plain mean if the total weight is 0), never outside Min..Max. It
// returns false if nothing was measured.
func (s *Summary) Mean() (mean float64, ok bool) { return s.measured(s.all.Mean()) }

// Min returns the smallest measured value. It returns false if nothing was measured.
func (s *Summary) Min() (value float64, ok bool) { return s.measured(s.all.Min) }

// Max returns the largest measured value. It returns false if nothing was measured.
func (s *Summary) Max() (value float64, ok bool) { return s.measured(s.all.Max) }

// measured returns v and true, or NaN and false if nothing was measured.
func (s *Summary) measured(v float64) (float64, bool) {
	if s.all.Count == 0 {
		return math.NaN(), false
	}
	return v, true
}

// Share returns the percentage, 0 to 100, of the measured time in which the value was at or above a threshold. It
// returns NaN and false if nothing was measured or the Summary has no such threshold.
func (s *Summary) Share(threshold float64) (percent float64, ok bool) {
	i, found := slices.BinarySearch(s.thresholds, threshold)
	if !found {
		return math.NaN(), false
	}
	// The result is never above 100: a rounded sum of fewer terms in the same order is never larger.
	return s.measured(s.above[i] / s.all.divisor() * 100)
}

// Quantile returns the least number, to 0.1 points, that the value did not exceed for the share q (0 to 1) of the
// measured time: q = 0.5 gives the median, 0 the exact minimum and 1 the exact maximum. The result is never outside
// Min..Max. Values outside 0..100 have no bins, so a quantile among them is 0 or 100, whichever is nearer, clamped to
// Min..Max. It returns NaN and false if nothing was measured, the Summary has no histogram, or q is not from 0 to 1.
func (s *Summary) Quantile(q float64) (value float64, ok bool) {
	if s.bins == nil || s.all.Count == 0 || !(q >= 0 && q <= 1) {
		return math.NaN(), false
	}
	switch q {
	case 0:
		return s.all.Min, true
	case 1:
		return s.all.Max, true
	}

	// Compute the total in the order of the bins, so that the search below reaches it in spite of rounding.
	var total, sum float64
	for _, w := range s.bins {
		total += w
	}
	i, goal := 0, q*total
	for ; i < lastBin; i++ {
		sum += s.bins[i]
		if sum >= goal {
			break
		}
	}

	return min(max(float64(i)/binsPerPoint, s.all.Min), s.all.Max), true
}
