package series

import (
	"fmt"
	"math"
)

const (
	// MaxCapacity is the largest capacity of a ring; NewRing reduces larger capacities, which are probably mistakes.
	MaxCapacity = 1 << 30
	// MaxWidth is the largest number of columns of a ring.
	MaxWidth = 1 << 12

	// firstCells is the maximum number of cells (buckets × columns) that a new ring allocates: 3 MB. Rings of ordinary
	// size never need more, and an absurd capacity in a file does no harm.
	firstCells = 1 << 16
)

// Ring keeps at most Capacity buckets of a stream of samples of any length.
//
// After n Adds, it holds one bucket for each index that is a multiple of Stride, the least power of two with ⌈n/Stride⌉
// ≤ Capacity. Bucket i holds the sample at index i·Stride unchanged and, per column, a Stat over the samples i·Stride …
// (i+1)·Stride−1 that have been added. So merging all buckets gives the exact count, min and max of the whole stream,
// and its mean up to rounding. Saving, restoring and cloning the ring preserves every bit.
//
// [NewRing] and [RestoreRing] create rings.
type Ring struct {
	capacity, width int
	stride, count   int64
	used            int // number of buckets

	// The cells, one row of width cells per bucket. The slices span all of the storage; only the first used rows are in
	// use.
	values []float64
	stats  []Stat
}

// Bucket is one point of a ring: a sample, and statistics of all samples in the bucket.
type Bucket struct {
	// Values is the sample at index i·Stride of the stream, with NaN for columns that were not measured.
	Values []float64
	// Stats has the statistics of each column over all samples of the bucket. A column without measured values has Count 0
	// and NaN in Min, Max and Mean().
	Stats []Stat
}

// NewRing returns an empty ring for samples of width columns. It rounds the capacity up to an even number, at least 2
// and at most MaxCapacity, because a full ring must split into pairs. It panics if width is outside 1..MaxWidth.
func NewRing(capacity, width int) *Ring {
	if width < 1 || width > MaxWidth {
		panic(fmt.Sprintf("series: a ring cannot have %d columns", width))
	}
	capacity = min(max(capacity, 2), MaxCapacity)
	r := &Ring{capacity: capacity + capacity%2, width: width, stride: 1}
	r.resize(min(r.capacity, max(firstCells/width, 2)))
	return r
}

// Capacity returns the maximum number of buckets: the argument of NewRing, rounded up to an even number.
func (r *Ring) Capacity() int { return r.capacity }

// Len returns the current number of buckets: ⌈Count/Stride⌉, or 0 before the first Add.
func (r *Ring) Len() int { return r.used }

// Stride returns the number of samples per bucket: 1, 2, 4, 8… The last bucket may have fewer.
func (r *Ring) Stride() int64 { return r.stride }

// Count returns the number of samples added so far.
func (r *Ring) Count() int64 { return r.count }

// Width returns the number of columns of a sample.
func (r *Ring) Width() int { return r.width }

// Add adds a sample: one value per column, and as its weight the seconds that it covers. NaN is a value that was not
// measured. A value with the weight NaN is left out of the statistics, but not of the bucket's Values. Add copies both
// slices, and panics if their lengths are not Width.
//
// Add does not allocate, except while a ring of more than 65,536 cells is still growing.
func (r *Ring) Add(values, weights []float64) {
	if len(values) != r.width || len(weights) != r.width {
		panic(fmt.Sprintf("series: a sample of %d values and %d weights for a ring of %d columns",
			len(values), len(weights), r.width))
	}

	r.begin(func(i int) float64 { return values[i] })
	stats := r.row(r.used - 1).Stats
	for i, v := range values {
		stats[i].Add(v, weights[i])
	}
}

// AddStats adds a sample of summaries. The value of a column is its mean.
func (r *Ring) AddStats(sample []Stat) {
	if len(sample) != r.width {
		panic(fmt.Sprintf("series: a sample of %d stats for a ring of %d columns", len(sample), r.width))
	}

	r.begin(func(i int) float64 { return sample[i].Mean() })
	stats := r.row(r.used - 1).Stats
	for i, st := range sample {
		stats[i].Merge(st)
	}
}

// begin counts a sample. If the sample begins a new bucket, value(i) becomes the bucket's value of column i.
func (r *Ring) begin(value func(i int) float64) {
	if r.count&(r.stride-1) == 0 {
		if r.used == r.capacity {
			// The sample's index is capacity·stride. The capacity is even, so the index is a multiple of the new
			// stride, too, and the sample still begins a bucket.
			r.halve()
		}
		r.open(value)
	}
	r.count++
}

// NewAligned returns a ring with width other columns for the same samples. The samples added so far have no values in
// these columns.
func (r *Ring) NewAligned(width int) *Ring {
	other := NewRing(r.capacity, width)
	other.stride, other.count = r.stride, r.count
	for range r.used {
		other.open(func(int) float64 { return math.NaN() })
	}

	return other
}

// Bucket returns bucket i, 0 ≤ i < Len, and panics for any other i. Its slices are read-only views into the ring, valid
// until the next Add.
func (r *Ring) Bucket(i int) Bucket {
	if i < 0 || i >= r.used {
		panic(fmt.Sprintf("series: bucket %d of a ring of %d", i, r.used))
	}
	return r.row(i)
}

// Clone returns an independent ring with the same contents, for another goroutine to read or continue.
func (r *Ring) Clone() *Ring {
	c := *r
	c.values, c.stats = nil, nil
	c.resize(r.used)
	copy(c.values, r.values)
	copy(c.stats, r.stats)
	return &c
}

// Halved returns an independent copy as if the ring had always had half the capacity, rounded up to even.
func (r *Ring) Halved() *Ring {
	c := r.Clone()
	half := max(r.capacity/2, 2)
	c.capacity = half + half%2
	for c.stride < minStride(c.capacity, c.count) {
		c.halve()
	}
	return c
}

// Widen adds columns at the end until there are width columns, at most MaxWidth. Existing buckets have no values in the
// new columns. A smaller width changes nothing.
func (r *Ring) Widen(width int) {
	if width <= r.width {
		return
	}
	old := *r
	r.width = min(width, MaxWidth)
	r.values, r.stats = nil, nil
	r.resize(max(old.used, len(old.values)/old.width))
	for i := range old.used {
		from, to := old.row(i), r.row(i)
		copy(to.Values, from.Values)
		copy(to.Stats, from.Stats)
		for c := old.width; c < r.width; c++ {
			to.Values[c], to.Stats[c] = math.NaN(), empty()
		}
	}
}

// row returns bucket i of the storage. The capacities of its slices keep an append from writing to the next row.
func (r *Ring) row(i int) Bucket {
	from, to := i*r.width, (i+1)*r.width
	return Bucket{Values: r.values[from:to:to], Stats: r.stats[from:to:to]}
}

// open appends a bucket. value(i) is its value of column i.
func (r *Ring) open(value func(i int) float64) {
	if r.used*r.width == len(r.values) {
		r.resize(min(max(2*r.used, 2), r.capacity))
	}
	b := r.row(r.used)
	r.used++
	for i := range b.Values {
		v := value(i)
		if !inRange(v) {
			v = math.NaN()
		}
		b.Values[i], b.Stats[i] = v, empty()
	}
}

// halve merges each pair of neighbouring buckets into one. If the number of buckets is odd, the last one remains
// unmerged.
func (r *Ring) halve() {
	for i := range r.used / 2 {
		to, a, b := r.row(i), r.row(2*i), r.row(2*i+1)
		copy(to.Values, a.Values)
		copy(to.Stats, a.Stats)
		for c := range to.Stats {
			to.Stats[c].Merge(b.Stats[c])
		}
	}

	if r.used%2 == 1 {
		to, last := r.row(r.used/2), r.row(r.used-1)
		copy(to.Values, last.Values)
		copy(to.Stats, last.Stats)
	}

	r.used -= r.used / 2
	r.stride *= 2
}

// resize moves the cells to storage for the given number of buckets.
func (r *Ring) resize(buckets int) {
	values, stats := make([]float64, buckets*r.width), make([]Stat, buckets*r.width)
	copy(values, r.values)
	copy(stats, r.stats)
	r.values, r.stats = values, stats
}

// RestoreRing rebuilds a ring from the results of Capacity, Width, Stride, Count and Bucket. It copies the buckets. The
// restored ring continues like the original, bit for bit. The arguments may come from a damaged or hostile file, so it
// returns an error for an impossible state.
func RestoreRing(capacity, width int, stride, count int64, buckets []Bucket) (*Ring, error) {
	if err := checkShape(capacity, width, stride, count); err != nil {
		return nil, fmt.Errorf("restore ring: %w", err)
	}
	if want := ceilDiv(count, stride); int64(len(buckets)) != want {
		return nil, fmt.Errorf("restore ring: %d buckets for %d samples at stride %d, want %d",
			len(buckets), count, stride, want)
	}

	r := NewRing(capacity, width)
	r.stride, r.count = stride, count
	for i, b := range buckets {
		stands := min(stride, count-int64(i)*stride)
		if err := b.check(width, stands); err != nil {
			return nil, fmt.Errorf("restore ring: bucket %d: %w", i, err)
		}
		r.open(func(i int) float64 { return b.Values[i] })
		stats := r.row(i).Stats
		for c, st := range b.Stats {
			if st.Count > 0 { // otherwise keep the NaNs
				stats[c] = st
			}
		}
	}

	return r, nil
}

// checkShape returns an error if no ring can have these numbers, which may come from a file.
func checkShape(capacity, width int, stride, count int64) error {
	switch {
	case capacity < 2 || capacity > MaxCapacity || capacity%2 != 0:
		return fmt.Errorf("capacity %d is not an even number from 2 to %d", capacity, MaxCapacity)
	case width < 1 || width > MaxWidth:
		return fmt.Errorf("%d columns, want 1 to %d", width, MaxWidth)
	case count < 0 || count > countLimit:
		return fmt.Errorf("count %d is out of range", count)
	case stride < 1 || stride&(stride-1) != 0:
		return fmt.Errorf("stride %d is not a power of two", stride)
	}

	if want := minStride(capacity, count); stride != want {
		return fmt.Errorf("stride %d for %d samples and capacity %d, want %d", stride, count, capacity, want)
	}
	return nil
}

// check returns an error if the bucket, which may come from a file, is impossible for the given number of samples.
func (b Bucket) check(width int, samples int64) error {
	if len(b.Values) != width || len(b.Stats) != width {
		return fmt.Errorf("%d values and %d stats for %d columns", len(b.Values), len(b.Stats), width)
	}
	for c, st := range b.Stats {
		if v := b.Values[c]; !inRange(v) && !math.IsNaN(v) {
			return fmt.Errorf("column %d: value %v is out of range", c, v)
		}
		if err := st.check(); err != nil {
			return fmt.Errorf("column %d: %w", c, err)
		}
		if st.Count > samples {
			return fmt.Errorf("column %d: %d values counted in %d samples", c, st.Count, samples)
		}
	}
	return nil
}

// minStride returns the least power of two with which count samples fit into a ring, as the contract of Ring requires.
func minStride(capacity int, count int64) int64 {
	stride := int64(1)
	for ceilDiv(count, stride) > int64(capacity) {
		stride *= 2
	}
	return stride
}

// ceilDiv returns ⌈a/b⌉ for a ≥ 0, b ≥ 1, even if a+b would overflow.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 {
		q++
	}
	return q
}
