package opstats

import (
	"encoding/json"
	"math"
	"slices"
)

// Sketch estimates quantiles of any number of values without keeping them. A quantile differs from the nearest-rank
// value by at most 1 % of that value, even for negative values. The value 0, the smallest value and the largest value
// are exact. The zero value is empty and ready to use.
//
// Values are counted in bins on a logarithmic scale, as in a DDSketch. Counts are whole numbers, so the result depends
// neither on the order of values nor on the order of merges. The size of a value is its absolute value. A Sketch takes
// 8 bytes for each bin between the smallest and the largest size, and at most 16 KiB for each sign; if the sizes differ
// by a factor of 1000, it takes 3 kB. The 1 % applies to all sizes above 1/10^17 of the largest size of the same sign;
// smaller sizes are counted in the smallest bin. Sizes below 1e-100 count as 0.
//
// docs/dev/dependencies.md explains, with figures, why perfagent does not use github.com/DataDog/sketches-go, the
// package of the inventors of DDSketch.
type Sketch struct {
	count    uint64 // of all values
	zeros    uint64
	min, max float64
	positive bins
	negative bins // counted by size
}

// Add counts one value. It returns [ErrNotFinite] for NaN, infinities and values beyond ±1e100. It allocates only when
// the range of sizes grows.
func (s *Sketch) Add(v float64) error { return s.AddN(v, 1) }

// AddN counts a value n times. Besides the errors of Add, it returns ErrNotFinite if the count would exceed 2^53.
//
// A sampled event may stand for a number of events that is not whole. n is then the increase of the rounded running
// count, so that the count of the Sketch is the rounded count of a [TimeStats]:
//
//	before := math.Round(stats.Count)
//	err := stats.AddN(ms, 1/rate, at) // if there is no error:
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

// widen extends the range of values to include low and high. It must be called before count is updated.
func (s *Sketch) widen(low, high float64) {
	if s.count == 0 {
		s.min, s.max = low, high
	}
	s.min, s.max = min(s.min, low), max(s.max, high)
}

// Count returns the number of counted values.
func (s *Sketch) Count() uint64 { return s.count }

// Bytes returns the memory of the bins in bytes. It grows with the range of sizes, up to 32 KiB, but not with the
// number of values. It is unchanged after a round trip through JSON.
func (s *Sketch) Bytes() int { return 8 * (len(s.positive.counts) + len(s.negative.counts)) }

// Merge adds the values of o. It is commutative and associative. An empty Sketch changes nothing. If the count would
// exceed 2^53, Merge returns [ErrNotFinite] and changes nothing.
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
	c.positive.counts, c.negative.counts = slices.Clone(s.positive.counts), slices.Clone(s.negative.counts)
	return &c
}

// Quantile estimates the least value that is not exceeded by the share q (0 to 1) of all values; q = 0.5 gives the
// median. The estimate is within 1 % of that value, and never outside the range of values. Quantile returns NaN and
// false if nothing was counted or q is not from 0 to 1.
func (s *Sketch) Quantile(q float64) (value float64, ok bool) {
	if s.count == 0 || !(q >= 0 && q <= 1) {
		return math.NaN(), false
	}

	// Compensate for the rounding of a product that should be whole: 0.07 × 100 is 7.000000000000001.
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

// ranked returns the middle of the bin with the value of the given rank. The smallest value has rank 1.
func (s *Sketch) ranked(rank uint64) float64 {
	var sum uint64
	for i, n := range slices.Backward(s.negative.counts) {
		if sum += n; sum >= rank {
			return -middle(s.negative.first + i)
		}
	}

	if sum += s.zeros; sum >= rank {
		return 0
	}

	for i, n := range s.positive.counts {
		if sum += n; sum >= rank {
			return middle(s.positive.first + i)
		}
	}

	return s.max // not reached: rank is at most the sum of all counts
}

// The bins of a Sketch are equally wide on a logarithmic scale: bin i has the sizes from e^((i−1)·binWidth), exclusive,
// to e^(i·binWidth), inclusive. The middle of a bin differs from any size in it by at most 0.99997 %. Rounding adds far
// less than the remainder of the promised 1 %.
const (
	binWidth = 0.0199
	minSize  = 1 / limit // smaller sizes count as 0
	maxBins  = 2048      // maximum number of bins, for sizes that differ by a factor of e^(2048·0.0199) = 5·10^17
	pageSize = 32        // bins are added in pages
)

// binOf returns the bin of a size that is at least minSize.
func binOf(size float64) int { return int(math.Ceil(math.Log(size) / binWidth)) }

// middle returns the size in the middle of a bin, within 1 % of all sizes in the bin.
func middle(bin int) float64 { return math.Exp((float64(bin) - 0.5) * binWidth) }

// bins holds the counts of the sizes of one sign. It spans the pages from the smallest to the largest bin, but at most
// maxBins bins; smaller sizes are counted in the smallest bin.
type bins struct {
	first  int // the bin of counts[0], a multiple of pageSize
	counts []uint64
}

// add adds n to the count of the given bin.
func (b *bins) add(bin int, n uint64) {
	b.include(bin)
	b.counts[max(bin-b.first, 0)] += n
}

// include makes room for a bin, unless the bin is too far below the largest.
func (b *bins) include(bin int) {
	if i := bin - b.first; i >= 0 && i < len(b.counts) {
		return
	}

	from, end := bin&^(pageSize-1), bin&^(pageSize-1)+pageSize
	if len(b.counts) > 0 {
		from, end = min(from, b.first), max(end, b.first+len(b.counts))
	}
	from = max(from, end-maxBins)
	if from == b.first && end-from == len(b.counts) {
		return
	}

	old := *b
	*b = bins{first: from, counts: make([]uint64, end-from)}
	b.merge(&old)
}

// merge adds the counts of o.
func (b *bins) merge(o *bins) {
	if len(o.counts) == 0 {
		return
	}

	b.include(o.first + len(o.counts) - 1)
	b.include(o.first)
	for i, n := range o.counts {
		if n > 0 {
			b.add(o.first+i, n)
		}
	}
}

// sketchJSON is the JSON form of a Sketch.
type sketchJSON struct {
	Min      *float64 `json:"min,omitempty"` // nil if nothing was counted
	Max      *float64 `json:"max,omitempty"`
	Zeros    uint64   `json:"zeros,omitzero"`
	Positive []int64  `json:"positive,omitempty"` // first bin, then the counts from that bin on
	Negative []int64  `json:"negative,omitempty"`
}

// MarshalJSON writes the whole state: {"min":-1,"max":5,"zeros":2,"positive":[81,3],"negative":[0,1]}. A list begins
// with the number of its first bin, followed by the counts from that bin on.
func (s *Sketch) MarshalJSON() ([]byte, error) {
	w := sketchJSON{Zeros: s.zeros, Positive: s.positive.list(), Negative: s.negative.list()}
	if s.count > 0 {
		w.Min, w.Max = &s.min, &s.max
	}

	return json.Marshal(w)
}

// UnmarshalJSON reads the output of MarshalJSON. Unknown keys are ignored.
func (s *Sketch) UnmarshalJSON(data []byte) error {
	return readJSON("sketch", data, s, sketchJSON.sketch)
}

// list returns the number of the first bin with a count, followed by the counts up to the last bin with a count. It
// returns nil if there are no counts.
func (b *bins) list() []int64 {
	var list []int64
	for i, n := range b.counts {
		if list == nil && n != 0 {
			list = append(make([]int64, 0, 1+len(b.counts)-i), int64(b.first+i))
		}
		if list != nil {
			list = append(list, int64(n))
		}
	}
	for len(list) > 0 && list[len(list)-1] == 0 {
		list = list[:len(list)-1]
	}
	return list
}

// sketch checks the JSON form and returns it as a Sketch.
func (w sketchJSON) sketch() (s Sketch, err error) {
	s = Sketch{count: w.Zeros, zeros: w.Zeros}
	for b, list := range map[*bins][]int64{&s.positive: w.Positive, &s.negative: w.Negative} {
		n, ok := b.read(list)
		if !ok {
			return s, ErrMalformed
		}
		s.count += n
	}
	if w.Min != nil && w.Max != nil {
		s.min, s.max = *w.Min, *w.Max
	}

	return s, nil
}

// read fills empty bins from a list and returns the sum of the counts. It reports false if the list does not fit or a
// count is negative.
func (b *bins) read(list []int64) (sum uint64, ok bool) {
	if len(list) == 0 {
		return 0, true
	}
	first, counts := int(list[0]), list[1:]
	if first < binOf(minSize) || first > binOf(limit) || len(counts) > maxBins {
		return 0, false
	}

	b.include(first + len(counts) - 1)
	for i, n := range counts {
		if n < 0 {
			return 0, false
		}
		if n > 0 {
			sum += uint64(n)
			b.add(first+i, uint64(n))
		}
	}

	return sum, true
}
