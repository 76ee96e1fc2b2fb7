package series

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// The histogram has one bin per 0.1 point from 0 to 100, both included. The bin of a value is the nearest one.
const (
	binsPerPoint = 10
	lastBin      = 100 * binsPerPoint
)

// Summary describes one column over every sample, in fixed memory: count, weight (seconds), mean, min, max, the share
// of time at or above some thresholds and, for percentages, quantiles good to 0.1 point. The zero value is an empty
// Summary without thresholds or quantiles, ready to use.
type Summary struct {
	all        Stat
	thresholds []float64 // ascending, never changed: clones share it
	above      []float64 // per threshold: the weight of values at or above it

	// bins holds the weight of the values in each bin, or is nil. Like above and all.Sum it counts each value as 1
	// while the total weight is 0.
	bins *[lastBin + 1]float64
}

// NewSummary returns an empty Summary that counts the time at or above each of the thresholds, which may come in any
// order. It drops a threshold that is not a finite number.
func NewSummary(thresholds ...float64) *Summary {
	kept := slices.DeleteFunc(slices.Clone(thresholds), func(t float64) bool { return !inRange(t) })
	slices.Sort(kept)
	kept = slices.Compact(kept)
	return &Summary{thresholds: kept, above: make([]float64, len(kept))}
}

// NewPercentSummary returns a Summary with a histogram from 0 to 100 (8 KB), for quantiles. Values outside count in
// the first or the last bin.
func NewPercentSummary(thresholds ...float64) *Summary {
	s := NewSummary(thresholds...)
	s.bins = new([lastBin + 1]float64)
	return s
}

// SummaryOf returns a Summary of what a Stat counts, without thresholds or quantiles.
func SummaryOf(s Stat) *Summary { return &Summary{all: s} }

// Add counts one value that stands for weight seconds. It ignores what was not measured, by the package's rules, and
// does not allocate.
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

// forget drops what was counted per value and not per second: from the first positive weight on, only time counts.
func (s *Summary) forget() {
	clear(s.above)
	if s.bins != nil {
		clear(s.bins[:])
	}
}

// bin returns the histogram's bin nearest to a value in range. float64() keeps the rounding the same on every
// machine.
func bin(value float64) int {
	switch {
	case value <= 0:
		return 0
	case value >= 100:
		return lastBin
	}
	return int(float64(value*binsPerPoint) + 0.5)
}

// Merge counts all that o counts, as if every sample of o had been added to s. It is commutative and
// associative (count, min and max exactly, sums up to rounding); an empty Summary of the same kind, or nil,
// changes nothing. A Summary with other thresholds, or only one of the two with a histogram, is an error, as
// are sums past any sense; s is then unchanged.
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
		return nil // o's values stand for no time: they count in all.Count, Min and Max only
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

// mergeable returns an error if two Summaries cannot become one.
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

// Weight returns the number of seconds that the measured values stand for.
func (s *Summary) Weight() float64 { return s.all.Weight }

// Stat returns the count, weight, sum, min and max as one value. Min and Max are NaN when nothing was measured.
func (s *Summary) Stat() Stat {
	if s.all.Count == 0 {
		return empty()
	}
	return s.all
}

// Mean returns the mean weighted by seconds (the plain mean when the total weight is 0), never outside Min..Max. It
// reports false when nothing was measured.
func (s *Summary) Mean() (mean float64, ok bool) { return s.measured(s.all.Mean()) }

// Min returns the smallest measured value. It reports false when nothing was measured.
func (s *Summary) Min() (value float64, ok bool) { return s.measured(s.all.Min) }

// Max returns the largest measured value. It reports false when nothing was measured.
func (s *Summary) Max() (value float64, ok bool) { return s.measured(s.all.Max) }

// measured returns v and whether anything was measured. If not, the number is NaN, so that it cannot pass for a 0.
func (s *Summary) measured(v float64) (float64, bool) {
	if s.all.Count == 0 {
		return math.NaN(), false
	}
	return v, true
}

// Share returns the percentage, 0 to 100, of the measured time in which the value was at or above a threshold. It
// reports false when nothing was measured or the Summary was not made with that threshold.
func (s *Summary) Share(threshold float64) (percent float64, ok bool) {
	i, found := slices.BinarySearch(s.thresholds, threshold)
	if !found {
		return math.NaN(), false
	}
	// Never above 100: rounding keeps order, so what counts less often, added in the same order, is not more.
	return s.measured(s.above[i] / s.all.divisor() * 100)
}

// Quantile returns the least value, to 0.1 point, such that the value was at or below it for a share q (0 to 1) of
// the measured time: 0.5 is the median, 0 the minimum and 1 the maximum exactly. It is never outside Min..Max. Values
// outside 0..100 are only known to be there: a quantile among them is the nearer of 0 and 100, if Min and Max allow.
// It reports false when nothing was measured, the Summary has no histogram, or q is not a share.
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

	// Sum the total in the bins' own order, so that the search below reaches it in spite of rounding.
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
