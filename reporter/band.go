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

// Fold combines every k neighboring points into one with their least minimum, their greatest maximum, and the mean of
// their means, in which point i has the weight weight(i). A nil weight means equal weights. Unmeasured points are
// ignored. The result shares no memory with b.
func (b Band) Fold(k int, weight func(i int) float64) Band {
	out := Band{
		Min: fold(b.Min, k, func(i, j int) float64 { return extreme(b.Min[i:j], math.Min) }),
		Max: fold(b.Max, k, b.MaxOf),
	}
	if k == 1 { // unchanged, to the last bit
		out.Mean = slices.Clone(b.Mean)
	} else {
		out.Mean = fold(b.Mean, k, func(i, j int) float64 {
			return clamped(b.MeanOf(i, j, weight), out.Min[i/k], out.Max[i/k])
		})
	}
	return out
}

// MeanOf returns the mean of points i…j−1, in which point i has the weight weight(i); NaN if none was
// measured. A nil weight means equal weights.
func (b Band) MeanOf(i, j int, weight func(i int) float64) float64 {
	if weight == nil {
		each := 1 / float64(j-i) // so that no sum overflows
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

// clamped returns the value nearest to mean from least to greatest, because rounding may have moved mean out of that
// range. If the bounds are NaN, it returns mean.
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

// fold replaces every k neighboring items i…j−1 of list with value(i, j).
func fold(list Numbers, k int, value func(i, j int) float64) Numbers {
	out := make(Numbers, 0, (len(list)+k-1)/k)
	for i := 0; i < len(list); i += k {
		out = append(out, value(i, min(i+k, len(list))))
	}
	return out
}
