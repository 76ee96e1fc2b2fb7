package series

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// sample is a row that a test generates, independent of the code under test.
type sample struct{ values, weights []float64 }

// samples returns n reproducible rows. About missing of a hundred values are NaN, and some weights are unusual: 0, NaN,
// or an hour.
func samples(seed uint64, n, width, missing int) []sample {
	rng, rows := rand.New(rand.NewPCG(seed, 7)), make([]sample, n)
	for i := range rows {
		row := sample{make([]float64, width), make([]float64, width)}
		for c := range width {
			row.values[c] = math.Round(rng.Float64()*1000) / 10
			row.weights[c] = 1 + rng.Float64()/1000
			if rng.IntN(100) < missing {
				row.values[c] = math.NaN()
			}
			switch rng.IntN(40) {
			case 0:
				row.weights[c] = 0
			case 1:
				row.weights[c] = math.NaN()
			case 2:
				row.weights[c] = 3600
			case 3:
				row.values[c] = -row.values[c] * 1e9
			}
		}
		rows[i] = row
	}

	return rows
}

// naive computes the Stat of one column over some rows in two passes, in a slow but simple way.
func naive(rows []sample, column int) Stat {
	want := empty()
	var plain float64
	for _, r := range rows {
		v, w := r.values[column], r.weights[column]
		if math.IsNaN(v) || math.IsInf(v, 0) || math.IsNaN(w) || math.IsInf(w, 0) || w < 0 {
			continue
		}
		if want.Count == 0 {
			want.Min, want.Max = v, v
		}
		want.Count++
		want.Min, want.Max = math.Min(want.Min, v), math.Max(want.Max, v)
		want.Weight += w
		want.Sum += v * w
		plain += v
	}

	if want.Weight == 0 {
		want.Sum = plain
	}
	return want
}

// near returns an error unless two Stats are equal: count, min and max exactly, sums to 1e-9 of their terms.
func near(got, want Stat) error {
	if got.Count == 0 && want.Count == 0 && got.Sum == 0 && got.Weight == 0 {
		if !math.IsNaN(got.Min) || !math.IsNaN(got.Max) || !math.IsNaN(got.Mean()) {
			return fmt.Errorf("got %+v, want NaN because nothing was measured", got)
		}
		return nil
	}

	size := math.Max(math.Abs(want.Min), math.Abs(want.Max)) * want.divisor()
	switch {
	case got.Count != want.Count || got.Min != want.Min || got.Max != want.Max,
		math.Abs(got.Weight-want.Weight) > 1e-9*want.Weight, math.Abs(got.Sum-want.Sum) > 1e-9*size:
		return fmt.Errorf("got %+v, want %+v", got, want)
	case got.Mean() < got.Min || got.Mean() > got.Max:
		return fmt.Errorf("mean %v is outside %v..%v", got.Mean(), got.Min, got.Max)
	}
	return nil
}

// oracle computes the expected contents of a ring from all rows of a stream. It caches results.
type oracle struct {
	rows  []sample
	known map[[3]int]Stat
}

func newOracle(rows []sample) *oracle { return &oracle{rows, map[[3]int]Stat{}} }

// stat returns the naive Stat of a column over the rows from…to−1.
func (o *oracle) stat(from, to, column int) Stat {
	key := [3]int{from, to, column}
	st, ok := o.known[key]
	if !ok {
		st = naive(o.rows[from:to], column)
		o.known[key] = st
	}
	return st
}

// check returns an error if a ring with the first n rows breaks the contract of Ring.
func (o *oracle) check(r *Ring, n int) error {
	stride := 1
	for (n+stride-1)/stride > r.Capacity() {
		stride *= 2
	}
	length := (n + stride - 1) / stride
	if r.Count() != int64(n) || r.Stride() != int64(stride) || r.Len() != length {
		return fmt.Errorf("after %d samples: count %d, stride %d, len %d; want stride %d, len %d",
			n, r.Count(), r.Stride(), r.Len(), stride, length)
	}

	for i := range length {
		b, from, to := r.Bucket(i), i*stride, min((i+1)*stride, n)
		for c := range r.Width() {
			if want := o.rows[from].values[c]; !sameFloat(b.Values[c], want) {
				return fmt.Errorf("after %d samples: bucket %d, column %d: value %v, want %v", n, i, c, b.Values[c], want)
			}
			if err := near(b.Stats[c], o.stat(from, to, c)); err != nil {
				return fmt.Errorf("after %d samples: bucket %d, column %d: %w", n, i, c, err)
			}
		}
	}
	return nil
}

// identical returns an error unless two rings are equal bit for bit.
func identical(a, b *Ring) error {
	if a.Capacity() != b.Capacity() || a.Width() != b.Width() || a.Count() != b.Count() ||
		a.Stride() != b.Stride() || a.Len() != b.Len() {
		return fmt.Errorf("capacity/width/count/stride/len %d/%d/%d/%d/%d, want %d/%d/%d/%d/%d",
			a.Capacity(), a.Width(), a.Count(), a.Stride(), a.Len(), b.Capacity(), b.Width(), b.Count(), b.Stride(), b.Len())
	}
	for i := range a.Len() {
		if err := identicalBuckets(a.Bucket(i), b.Bucket(i)); err != nil {
			return fmt.Errorf("bucket %d: %w", i, err)
		}
	}
	return nil
}

// identicalBuckets returns an error unless two buckets are equal bit for bit. Different numbers have different texts.
func identicalBuckets(a, b Bucket) error {
	if got, want := fmt.Sprint(a), fmt.Sprint(b); got != want {
		return fmt.Errorf("got %s, want %s", got, want)
	}
	return nil
}

// sameFloat reports whether a and b have the same bits, or are both NaN.
func sameFloat(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
}

// sameSummary reports whether two Summaries are equal bit for bit.
func sameSummary(a, b *Summary) bool {
	return fmt.Sprint(a.all, a.thresholds, a.above, a.bins) == fmt.Sprint(b.all, b.thresholds, b.above, b.bins)
}

// fill adds rows to rings.
func fill(rows []sample, rings ...*Ring) {
	for _, s := range rows {
		for _, r := range rings {
			r.Add(s.values, s.weights)
		}
	}
}

// addAll adds values of the same weight to a Summary.
func addAll(s *Summary, weight float64, values ...float64) {
	for _, v := range values {
		s.Add(v, weight)
	}
}

// saved returns copies of a ring's buckets, as a file would have them.
func saved(r *Ring) []Bucket {
	var out []Bucket
	for i := range r.Len() {
		b := r.Bucket(i)
		out = append(out, Bucket{append([]float64{}, b.Values...), append([]Stat{}, b.Stats...)})
	}
	return out
}

// row returns a row with the same value, of one second, in all columns.
func row(width int, value float64) sample {
	s := sample{make([]float64, width), make([]float64, width)}
	for c := range width {
		s.values[c], s.weights[c] = value, 1
	}
	return s
}

// panics reports whether f panics.
func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}
