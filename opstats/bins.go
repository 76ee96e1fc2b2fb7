package opstats

import "math"

// The bins of a Sketch are equally wide on a logarithmic scale: bin i has the sizes from e^((i−1)·binWidth), excluded,
// to e^(i·binWidth), included. The middle of a bin is then at most 0.99997 % away from any size in it, and what
// rounding adds is far below the rest of the promised 1 %.
const (
	binWidth = 0.0199
	minSize  = 1 / limit // smaller sizes count as 0
	maxBins  = 2048      // how many bins are kept: sizes that differ by the factor e^(2048·0.0199) = 5·10^17
	pageSize = 32        // bins are added by this many
)

// binOf returns the bin of a size that is at least minSize.
func binOf(size float64) int { return int(math.Ceil(math.Log(size) / binWidth)) }

// middle returns the size in the middle of a bin, which is within 1 % of all sizes in the bin.
func middle(bin int) float64 { return math.Exp((float64(bin) - 0.5) * binWidth) }

// bins are the counts of the sizes of one sign. They reach from the page of the smallest bin to the page of the
// largest, but at most over maxBins: what is smaller counts in the smallest bin that is kept.
type bins struct {
	first  int            // the bin of counts[0], a multiple of pageSize
	counts []uint32       // the low halves of the counts
	high   map[int]uint64 // the high halves, by bin, of the rare ones that have any
}

// at returns the count of the bin at an index of counts.
func (b *bins) at(i int) uint64 { return b.high[b.first+i]<<32 | uint64(b.counts[i]) }

// add adds n to the count of a bin.
func (b *bins) add(bin int, n uint64) {
	b.include(bin)
	i := max(bin-b.first, 0)

	sum := uint64(b.counts[i]) + n
	b.counts[i] = uint32(sum)
	if carry := sum >> 32; carry > 0 {
		if b.high == nil {
			b.high = make(map[int]uint64)
		}
		b.high[b.first+i] += carry
	}
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
	*b = bins{first: from, counts: make([]uint32, end-from)}
	b.merge(&old)
}

// merge adds the counts of o.
func (b *bins) merge(o *bins) {
	if len(o.counts) == 0 {
		return
	}

	b.include(o.first + len(o.counts) - 1)
	b.include(o.first)
	for i := range o.counts {
		if n := o.at(i); n > 0 {
			b.add(o.first+i, n)
		}
	}
}
