package opstats

import (
	"encoding/json"
	"math"
	"slices"
)

// Sketch estimates quantiles of any number of values without keeping them. A quantile differs from the nearest-rank
// value by at most 1 % of that value, also for negative values; 0, the smallest and the largest value are exact. The
// zero value is empty and ready to use.
//
// Values are counted in bins on a logarithmic scale, like in a DDSketch. Counts are whole numbers, so the result
// depends neither on the order of values nor on the order of merges. A Sketch takes 8 bytes for each bin between its
// smallest and its largest size, at most 16 KiB for each sign: 3 kB if the sizes differ by a factor of 1000. The 1 %
// holds for all sizes above 1/10^17 of the largest size of the same sign; smaller sizes count as that size. Sizes below
// 1e-100 count as 0.
//
// docs/dev/dependencies.md explains, with figures, why perfagent does not use github.com/DataDog/sketches-go, the
// package by the inventors of DDSketch.
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

// AddN counts a value n times. Besides the errors of Add, it returns ErrNotFinite if the count would exceed 2^53.
//
// A sampled event stands for a fraction of events; n is then the increase of a rounded running count. So the count of
// the Sketch is the rounded count of a [TimeStats]:
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

// widen extends the range of the values to low and high. Call it before updating count.
func (s *Sketch) widen(low, high float64) {
	if s.count == 0 {
		s.min, s.max = low, high
	}
	s.min, s.max = min(s.min, low), max(s.max, high)
}

// Count returns the number of counted values.
func (s *Sketch) Count() uint64 { return s.count }

// Bytes returns the memory of the bins. It grows with the range of sizes, up to 32 KiB, and not with the number of
// values. It is the same after a round trip through JSON.
func (s *Sketch) Bytes() int { return 8 * (len(s.positive.counts) + len(s.negative.counts)) }

// Merge adds the values of o; an empty Sketch changes nothing. It is commutative and associative. It returns
// [ErrNotFinite], and changes nothing, if the count would exceed 2^53.
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

// Quantile returns the least value such that a share q (0 to 1) of all values is not larger: 0.5 is the median. It is
// within 1 % of that value, and never outside the range of values. It reports false if nothing was counted or q is not
// a share.
func (s *Sketch) Quantile(q float64) (value float64, ok bool) {
	if s.count == 0 || !(q >= 0 && q <= 1) {
		return math.NaN(), false
	}

	// Undo rounding of a product that should be whole: 0.07 × 100 is 7.000000000000001.
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

// ranked returns the middle of the bin that holds the value of the given rank; the smallest value has rank 1.
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

// The bins of a Sketch are equally wide on a logarithmic scale: bin i has the sizes from e^((i−1)·binWidth), excluded,
// to e^(i·binWidth), included. The middle of a bin is then at most 0.99997 % away from any size in it. Rounding adds
// far less than the rest of the promised 1 %.
const (
	binWidth = 0.0199
	minSize  = 1 / limit // smaller sizes count as 0
	maxBins  = 2048      // kept bins: sizes that differ by the factor e^(2048·0.0199) = 5·10^17
	pageSize = 32        // bins are added in pages
)

// binOf returns the bin of a size that is at least minSize.
func binOf(size float64) int { return int(math.Ceil(math.Log(size) / binWidth)) }

// middle returns the size in the middle of a bin, within 1 % of all sizes in the bin.
func middle(bin int) float64 { return math.Exp((float64(bin) - 0.5) * binWidth) }

// bins are the counts of the sizes of one sign. They span the pages from the smallest to the largest bin, but at most
// maxBins: smaller sizes count in the smallest kept bin.
type bins struct {
	first  int // the bin of counts[0], a multiple of pageSize
	counts []uint64
}

// add adds n to the count of a bin.
func (b *bins) add(bin int, n uint64) {
	b.include(bin)
	b.counts[max(bin-b.first, 0)] += n
}

// include makes room for a bin, if it is not too far below the largest.
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
	Min      *float64 `json:"min,omitempty"` // missing if nothing was counted
	Max      *float64 `json:"max,omitempty"`
	Zeros    uint64   `json:"zeros,omitzero"`
	Positive []int64  `json:"positive,omitempty"` // first bin, then the counts from there on
	Negative []int64  `json:"negative,omitempty"`
}

// MarshalJSON writes the whole state: {"min":-1,"max":5,"zeros":2,"positive":[81,3],"negative":[0,1]}. A list has the
// number of its first bin and then the counts from that bin on.
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

// list returns the first bin with a count and the counts from there to the last bin with a count, or nil.
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

// sketch returns the JSON form as a Sketch.
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

// read fills empty bins from a list and returns the sum of its counts. It reports false for a list that would not fit,
// and for negative counts.
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
