package opstats

import (
	"maps"
	"math"
	"slices"
)

// Sketch answers quantiles of any number of values without keeping them. A quantile differs from the nearest-rank
// value by at most 1 % of that value, for negative values too; a 0 is exact, and so are the smallest and the largest
// value. The zero value is empty and ready to use.
//
// Values are counted in bins on a logarithmic scale, as in a DDSketch. Counts are whole numbers, so the result depends
// neither on the order of the values nor on which Sketches were merged first. A Sketch takes 4 bytes for each bin
// between its smallest and its largest size, at most 8 KiB for each sign: 1.6 kB if the sizes differ by a factor of
// 1000. The promise holds for all sizes above 1/10^17 of the largest one of the same sign; smaller ones are counted as
// if they were of that size. Sizes below 1e-100 count as 0.
//
// There is a package of the inventors of DDSketch, github.com/DataDog/sketches-go. docs/dependencies.md says with
// figures why this is not it.
type Sketch struct {
	count    uint64 // of all values
	zeros    uint64
	min, max float64
	positive bins
	negative bins // by size
}

// Add counts one value. It returns [ErrNotFinite] for NaN, infinities and values beyond ±1e100. It allocates only when
// the range of sizes grows.
func (s *Sketch) Add(v float64) error { return s.AddN(v, 1) }

// AddN counts a value n times. Besides the errors of Add, it returns ErrNotFinite if more than 2^53 values would be
// counted.
//
// Of a sampled event, which stands for a fraction of events, n is how far a rounded running count went up. So the
// count of the Sketch is that of a [TimeStats], rounded:
//
//	before := math.Round(stats.Count)
//	err := stats.AddN(ms, 1/rate, at) // and if there is none:
//	err = sketch.AddN(ms, uint64(math.Round(stats.Count)-before))
func (s *Sketch) AddN(v float64, n uint64) error {
	switch {
	case !inRange(v) || n > maxCount-s.count:
		return ErrNotFinite
	case n == 0:
		return nil
	}

	size := math.Abs(v)
	switch {
	case size < minSize:
		v = 0
		s.zeros += n
	case v > 0:
		s.positive.add(binOf(size), n)
	default:
		s.negative.add(binOf(size), n)
	}
	s.widen(v, v)
	s.count += n

	return nil
}

// widen makes the range of the values reach from low to high at least. It comes before the count.
func (s *Sketch) widen(low, high float64) {
	if s.count == 0 {
		s.min, s.max = low, high
	}
	s.min, s.max = min(s.min, low), max(s.max, high)
}

// Count returns how many values were counted.
func (s *Sketch) Count() uint64 { return s.count }

// Bytes returns the memory that the bins take. It grows with the range of sizes, up to 16 KiB, and not with the number
// of values. A Sketch that is read from JSON takes as much as the one that was written.
func (s *Sketch) Bytes() int { return 4 * (len(s.positive.counts) + len(s.negative.counts)) }

// Merge counts all that o counts; an empty Sketch changes nothing. It is commutative and associative. It returns
// [ErrNotFinite], and changes nothing, if more than 2^53 values would be counted.
func (s *Sketch) Merge(o *Sketch) error {
	switch {
	case o.count > maxCount-s.count:
		return ErrNotFinite
	case o.count == 0:
		return nil
	}

	s.widen(o.min, o.max)
	s.count += o.count
	s.zeros += o.zeros
	s.positive.merge(&o.positive)
	s.negative.merge(&o.negative)

	return nil
}

// Clone returns an independent copy.
func (s *Sketch) Clone() *Sketch {
	c := *s
	for _, b := range []*bins{&c.positive, &c.negative} {
		b.counts, b.high = slices.Clone(b.counts), maps.Clone(b.high)
	}

	return &c
}

// Quantile returns the least value such that a share q (0 to 1) of all values is not larger: 0.5 is the median. It is
// within 1 % of that value, and never outside of the range of values. It reports false if nothing was counted or q is
// not a share.
func (s *Sketch) Quantile(q float64) (value float64, ok bool) {
	if s.count == 0 || !(q >= 0 && q <= 1) {
		return math.NaN(), false
	}

	// A product that ought to be whole may come out a little above it: 0.07 × 100 is 7.000000000000001.
	const exact = 1 - 0x1p-52
	rank := uint64(max(1, math.Ceil(q*float64(s.count)*exact)))
	switch rank {
	case 1:
		return s.min, true
	case s.count:
		return s.max, true
	}
	return min(max(s.ranked(rank), s.min), s.max), true
}

// ranked returns the middle of the bin that has the value of a rank, the smallest value having rank 1.
func (s *Sketch) ranked(rank uint64) float64 {
	var sum uint64
	for i := range slices.Backward(s.negative.counts) {
		if sum += s.negative.at(i); sum >= rank {
			return -middle(s.negative.first + i)
		}
	}

	if sum += s.zeros; sum >= rank {
		return 0
	}

	for i := range s.positive.counts {
		if sum += s.positive.at(i); sum >= rank {
			return middle(s.positive.first + i)
		}
	}

	return s.max // not reached: rank is at most the sum of all counts
}
