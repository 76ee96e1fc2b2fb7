package reporter

import (
	"math"
	"slices"
)

// Band is the envelope of one key. NaN (null in JSON) means not measured.
type Band struct {
	Min  Numbers `json:"min"`
	Mean Numbers `json:"mean"`
	Max  Numbers `json:"max"`
}

// Fold combines each group of k neighboring points into one point with the least minimum, the greatest maximum, and the
// weighted mean of the means. weight(i) is the weight of point i; a nil weight means equal weights. Unmeasured points
// are ignored. The result shares no memory with b.
func (b Band) Fold(k int, weight func(i int) float64) Band {
	out := Band{
		Min: fold(b.Min, k, func(i, j int) float64 { return extreme(b.Min[i:j], math.Min) }),
		Max: fold(b.Max, k, b.MaxOf),
	}
	if k == 1 { // the means stay exact
		out.Mean = slices.Clone(b.Mean)
	} else {
		out.Mean = fold(b.Mean, k, func(i, j int) float64 {
			return clamped(b.MeanOf(i, j, weight), out.Min[i/k], out.Max[i/k])
		})
	}
	return out
}

// MeanOf returns the weighted mean of points i…j−1; NaN if none was measured. weight(i) is the weight of point i; a nil
// weight means equal weights.
func (b Band) MeanOf(i, j int, weight func(i int) float64) float64 {
	if weight == nil {
		each := 1 / float64(j-i) // keeps the sum from overflowing
		weight = func(int) float64 { return each }
	}
	sum, total := 0.0, 0.0
	for ; i < j; i++ {
		if v := b.Mean[i]; !math.IsNaN(v) {
			w := weight(i)
			sum, total = sum+w*v, total+w
		}
	}
	return sum / total // NaN if nothing was measured
}

// clamped limits mean, which rounding may have moved out of its range, to the range from least to greatest. Bounds that
// are NaN do not limit it.
func clamped(mean, least, greatest float64) float64 {
	if mean < least {
		return least
	}
	if mean > greatest {
		return greatest
	}
	return mean
}

// MaxOf returns the greatest maximum of points i…j−1; NaN if none was measured.
func (b Band) MaxOf(i, j int) float64 { return extreme(b.Max[i:j], math.Max) }

// extreme combines the measured values of list with join. It returns NaN if there are none.
func extreme(list []float64, join func(a, b float64) float64) float64 {
	out := math.NaN()
	for _, v := range list {
		switch {
		case math.IsNaN(v):
		case math.IsNaN(out):
			out = v
		default:
			out = join(out, v)
		}
	}
	return out
}

// fold returns list with each group of k neighboring items i…j−1 replaced by value(i, j).
func fold(list Numbers, k int, value func(i, j int) float64) Numbers {
	out := make(Numbers, 0, (len(list)+k-1)/k)
	for i := 0; i < len(list); i += k {
		out = append(out, value(i, min(i+k, len(list))))
	}
	return out
}
