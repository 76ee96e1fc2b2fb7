package opstats

import (
	"math"
	"slices"
	"strconv"
)

// Sums holds the inputs of a [TransferSummary]. [Transfers.Reduce] computes them from lists. Callers that have only the
// sums, for example from Prometheus histograms, can fill them in.
type Sums struct {
	Count       float64 // transfers
	Xfer        float64 // seconds
	Post        float64 // seconds
	Bytes       float64
	Descriptors float64
	P90Xfer     float64 // seconds, not a sum
	P90Post     float64 // seconds, not a sum
}

// TransferSummary holds the figures that vLLM prints. Without transfers, all of them are 0. Throughput is +Inf or NaN
// if the transfers took no time.
type TransferSummary struct {
	Transfers      float64 // number of transfers
	AvgXfer        float64 // milliseconds, like the next three
	P90Xfer        float64
	AvgPost        float64
	P90Post        float64
	AvgMB          float64 // MiB per transfer
	Throughput     float64 // MiB per second of transfer time
	AvgDescriptors float64
}

// The names of the figures of a [TransferSummary] in vLLM's class. The two P90 values may be estimates.
const (
	TransfersName      = "Num successful transfers"
	AvgXferName        = "Avg xfer time (ms)"
	P90XferName        = "P90 xfer time (ms)"
	AvgPostName        = "Avg post time (ms)"
	P90PostName        = "P90 post time (ms)"
	AvgMBName          = "Avg MB per transfer"
	ThroughputName     = "Throughput (MB/s)"
	AvgDescriptorsName = "Avg number of descriptors"
)

// summaryNames lists the names in the order of the class.
var summaryNames = [...]string{
	TransfersName, AvgXferName, P90XferName, AvgPostName, P90PostName, AvgMBName, ThroughputName, AvgDescriptorsName,
}

// Reduce computes the figures and rounds them like vLLM's class. Means are rounded to 3 decimals, and descriptors to 1
// decimal, like numpy, which multiplies by the power of ten and rounds half to even. P90 values are rounded to 3
// decimals like Python, which rounds the exact binary value.
func (s Sums) Reduce() TransferSummary {
	if s.Count == 0 {
		return TransferSummary{}
	}

	mb := s.Bytes / (1 << 20)
	return TransferSummary{
		Transfers:      s.Count,
		AvgXfer:        numpyRound(s.Xfer/s.Count*1e3, 1000),
		P90Xfer:        pythonRound(s.P90Xfer * 1e3),
		AvgPost:        numpyRound(s.Post/s.Count*1e3, 1000),
		P90Post:        pythonRound(s.P90Post * 1e3),
		AvgMB:          numpyRound(mb/s.Count, 1000),
		Throughput:     numpyRound(mb/s.Xfer, 1000),
		AvgDescriptors: numpyRound(s.Descriptors/s.Count, 10),
	}
}

// Reduce returns the figures of all transfers. While the lists are kept, the figures equal those of vLLM's class with
// numpy bit for bit. After Condense, the two P90 values are estimated by a Sketch, and the sums have no rounding error.
func (t *Transfers) Reduce() TransferSummary {
	n, xfer := t.Sum(TransferDuration)
	_, post := t.Sum(PostDuration)
	_, bytes := t.Sum(BytesTransferred)
	_, parts := t.Sum(NumDescriptors)
	if !t.condensed {
		parts = 0 // the sum is exact in any order
		for _, v := range t.lists[NumDescriptors].values {
			parts += math.Trunc(v) // numpy converts them to 32-bit integers
		}
	}
	p90Xfer, p90Post := t.lists[TransferDuration].p90(), t.lists[PostDuration].p90()
	return Sums{float64(n), xfer, post, bytes, parts, p90Xfer, p90Post}.Reduce()
}

// p90 returns the 90th percentile of the list, which must have values or a sketch.
func (l list) p90() float64 {
	if l.sketch == nil {
		return p90(l.values)
	}
	v, _ := l.sketch.Quantile(0.9) // the result does not matter if there are no transfers
	return v
}

// Estimated returns the names of the figures of Reduce that are estimates: none, or both P90 values.
func (t *Transfers) Estimated() []string {
	if !t.condensed {
		return nil
	}
	return []string{P90XferName, P90PostName}
}

// pairwiseSum adds up a list in the same order as numpy 2.4, because the result depends on the order. It halves the
// list recursively down to at most 128 numbers, which it adds in eight lanes. (numpy 1.26 does so separately for each
// 8192 numbers.)
func pairwiseSum(list []float64) float64 {
	const lanes, block = 8, 128
	if len(list) > block {
		half := len(list) / 2
		half -= half % lanes
		return pairwiseSum(list[:half]) + pairwiseSum(list[half:])
	}

	var sum float64
	if len(list) >= lanes {
		var r [lanes]float64
		for ; len(list) >= lanes; list = list[lanes:] {
			for i := range r {
				r[i] += list[i]
			}
		}
		sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]))
	}
	for _, v := range list {
		sum += v
	}

	return sum
}

// p90 returns the 90th percentile of a list. It interpolates from the nearer neighbour, like numpy. float64() prevents
// fused multiply-add, as in weightedMean.
func p90(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}

	sorted := slices.Clone(list)
	slices.Sort(sorted)
	position := float64(0.9 * float64(len(sorted)-1))
	i := int(position)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}

	share := position - float64(i)
	low, high := sorted[i], sorted[i+1]
	if share >= 0.5 {
		return high - float64((high-low)*(1-share))
	}
	return low + float64((high-low)*share)
}

// numpyRound rounds v to a multiple of 1/scale in the same way as numpy.
func numpyRound(v, scale float64) float64 { return math.RoundToEven(v*scale) / scale }

// pythonRound rounds v to 3 decimals in the same way as Python: to the decimal nearest to the exact binary value.
func pythonRound(v float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'f', 3, 64), 64)
	if err != nil {
		return v // an infinity
	}
	return rounded
}

// numbers returns pointers to the figures in the order of summaryNames.
func (r *TransferSummary) numbers() [len(summaryNames)]*float64 {
	return [...]*float64{
		&r.Transfers, &r.AvgXfer, &r.P90Xfer, &r.AvgPost, &r.P90Post, &r.AvgMB, &r.Throughput, &r.AvgDescriptors,
	}
}

// MarshalJSON writes the figures with the names of vLLM's class and in its order. It writes null for a figure that is
// not finite.
func (r TransferSummary) MarshalJSON() ([]byte, error) {
	var out object
	for i, figure := range r.numbers() {
		if math.IsNaN(*figure) || math.IsInf(*figure, 0) {
			figure = nil
		}
		out.add(summaryNames[i], figure)
	}

	return out.close()
}

// UnmarshalJSON reads the output of MarshalJSON. A null becomes NaN, and a missing figure becomes 0.
func (r *TransferSummary) UnmarshalJSON(data []byte) error {
	return readJSON("reduced transfers", data, r, func(figures map[string]*float64) (read TransferSummary, err error) {
		for i, v := range read.numbers() {
			switch figure, known := figures[summaryNames[i]]; {
			case figure != nil:
				*v = *figure
			case known:
				*v = math.NaN()
			}
		}
		return read, nil
	})
}
