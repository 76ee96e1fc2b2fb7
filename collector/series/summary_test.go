package series

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
)

// golden is a vector of five CPU means from perf.py, for which perf.py's results are known.
var golden = []float64{10, 20, 40, 79.9, 100}

func TestSummary_EqualsPerfPy(t *testing.T) {
	s := NewPercentSummary(99.95, 80, 40, 20)
	addAll(s, 1, golden...)
	if mean, _ := s.Mean(); math.Abs(mean-49.98) > 1e-9 {
		t.Errorf("mean = %v, want 49.98", mean)
	}

	for threshold, want := range map[float64]float64{99.95: 20, 80: 20, 40: 60, 20: 80} {
		if got, ok := s.Share(threshold); got != want || !ok {
			t.Errorf("Share(%v) = %v, %v; want %v, true", threshold, got, ok, want)
		}
	}

	if v, ok := s.Max(); v != 100 || !ok {
		t.Errorf("Max() = %v, %v; want 100, true", v, ok)
	}
	if v, ok := s.Min(); v != 10 || !ok {
		t.Errorf("Min() = %v, %v; want 10, true", v, ok)
	}
	if v, ok := s.Quantile(0.5); v != 40 || !ok {
		t.Errorf("Quantile(0.5) = %v, %v; want 40, true", v, ok)
	}
	if s.Count() != 5 || s.Weight() != 5 {
		t.Errorf("count = %d, weight = %v; want 5, 5", s.Count(), s.Weight())
	}
}

func TestSummary_ReturnsNaNWithoutMeasurements(t *testing.T) {
	for _, s := range []*Summary{NewSummary(50), NewPercentSummary(50), {}} {
		s.Add(math.NaN(), 1)
		s.Add(math.Inf(1), 1)
		s.Add(-1e101, 1)
		s.Add(1, math.NaN())
		s.Add(1, -1)
		s.Add(1, math.Inf(1))
		checks := map[string]func() (float64, bool){
			"mean": s.Mean, "min": s.Min, "max": s.Max,
			"share":    func() (float64, bool) { return s.Share(50) },
			"quantile": func() (float64, bool) { return s.Quantile(0.5) },
		}
		for name, f := range checks {
			if v, ok := f(); ok || !math.IsNaN(v) {
				t.Errorf("%s without measurements = %v, %v; want NaN, false", name, v, ok)
			}
		}
		if s.Count() != 0 || s.Weight() != 0 {
			t.Errorf("without measurements: count = %d, weight = %v; want 0, 0", s.Count(), s.Weight())
		}
		check.Must(t, near(s.Stat(), empty()))
	}
}

func TestSummary_ReturnsFalseForUnknownNumbers(t *testing.T) {
	s, p := NewSummary(50), NewPercentSummary()
	s.Add(1, 1)
	p.Add(1, 1)
	if _, ok := s.Quantile(0.5); ok {
		t.Error("Quantile(0.5) returned true without a histogram, want false")
	}

	for _, threshold := range []float64{49, 51, math.NaN()} {
		if _, ok := s.Share(threshold); ok {
			t.Errorf("Share(%v) returned true without that threshold, want false", threshold)
		}
	}

	for _, q := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1)} {
		if v, ok := p.Quantile(q); ok {
			t.Errorf("Quantile(%v) = %v, true; want false", q, v)
		}
	}
}

func TestNewSummary_SortsThresholds(t *testing.T) {
	given := []float64{80, 20, math.NaN(), 80, math.Inf(1), 40}
	s := NewSummary(given...)
	if !slices.Equal(s.thresholds, []float64{20, 40, 80}) {
		t.Errorf("thresholds = %v, want [20 40 80]", s.thresholds)
	}
	if given[0] != 80 {
		t.Errorf("NewSummary changed the caller's slice to %v", given)
	}
}

// Values of weight 0 count for count, min and max. For the other statistics they count only if there are no other
// values, in whatever order values are added.
func TestSummary_WeightZeroCountsOnlyWithoutPositiveWeights(t *testing.T) {
	only := NewPercentSummary(50)
	only.Add(40, 0)
	only.Add(60, 0)
	only.Add(80, 0)
	mean, _ := only.Mean()
	share, _ := only.Share(50)
	median, _ := only.Quantile(0.5)
	if mean != 60 || math.Abs(share-200.0/3) > 1e-12 || median != 60 || only.Weight() != 0 {
		t.Errorf("values of weight 0 only: mean %v, share %v, median %v, weight %v; want 60, 66.7, 60, 0", mean, share,
			median, only.Weight())
	}
	type pair struct{ v, w float64 }
	for _, order := range [][]pair{
		{{99, 0}, {1, 0}, {50, 2}},
		{{50, 2}, {99, 0}, {1, 0}},
		{{1, 0}, {50, 1}, {99, 0}, {50, 1}},
	} {
		s, st := NewPercentSummary(50), Stat{}
		for _, p := range order {
			s.Add(p.v, p.w)
			st.Add(p.v, p.w)
		}
		mean, _ := s.Mean()
		share, _ := s.Share(50)
		if q, _ := s.Quantile(0.99); mean != 50 || share != 100 || q != 50 || s.Weight() != 2 {
			t.Errorf("%v: mean %v, share %v, p99 %v, weight %v; want 50, 100, 50, 2", order, mean, share, q, s.Weight())
		}
		if st.Mean() != 50 || st.Min != 1 || st.Max != 99 || st.Count != int64(len(order)) {
			t.Errorf("%v: Stat %+v, want mean 50, min 1, max 99, count %d", order, st, len(order))
		}
	}
}

// The mean of a constant is that constant, although 0.1+0.1+… is not a multiple of 0.1, and no share exceeds 100.
func TestSummary_StaysInRangeDespiteRounding(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	parts := []*Summary{NewPercentSummary(0.1), NewPercentSummary(0.1), NewPercentSummary(0.1)}
	for range 100000 {
		parts[rng.IntN(3)].Add(0.1, rng.Float64())
	}
	s := NewPercentSummary(0.1)
	for _, p := range parts {
		check.Must(t, s.Merge(p))
		mean, _ := s.Mean()
		share, _ := s.Share(0.1)
		if p50, _ := s.Quantile(0.5); mean != 0.1 || share != 100 || p50 != 0.1 {
			t.Errorf("constant 0.1: mean %v, share %v, p50 %v; want 0.1, 100, 0.1", mean, share, p50)
		}
	}
}

func TestSummary_MatchesNaiveComputation(t *testing.T) {
	for seed := range uint64(20) {
		rows := samples(seed, 3000, 1, int(seed))
		s := NewPercentSummary(20, 40, 80, 99.95)
		for _, r := range rows {
			s.Add(r.values[0], r.weights[0])
		}
		check.Must(t, near(s.Stat(), naive(rows, 0)))
		for _, threshold := range []float64{20, 40, 80, 99.95} {
			var above, total float64
			for _, r := range rows {
				if isMeasured(r.values[0], r.weights[0]) {
					total += r.weights[0]
					if r.values[0] >= threshold {
						above += r.weights[0]
					}
				}
			}
			if got, ok := s.Share(threshold); math.Abs(got-100*above/total) > 1e-9 || !ok {
				t.Errorf("seed %d: Share(%v) = %v, want %v", seed, threshold, got, 100*above/total)
			}
		}
	}
}

// Every quantile is within half a bin of the quantile found by sorting. Weights are whole seconds, so sums are exact.
func TestSummary_QuantilesAreWithinATenth(t *testing.T) {
	type pair struct{ v, w float64 }
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var pairs []pair
		var total float64
		s := NewPercentSummary()
		for range 1 + rng.IntN(2000) {
			p := pair{rng.Float64() * 100, float64(1 + rng.IntN(5))}
			if seed%2 == 0 {
				p.v = 100 * math.Pow(p.v/100, 8) // most values are near 0
			}
			pairs, total = append(pairs, p), total+p.w
			s.Add(p.v, p.w)
		}
		slices.SortFunc(pairs, func(a, b pair) int {
			if a.v < b.v {
				return -1
			}
			return 1
		})
		for _, q := range []float64{0, 0.001, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999, 1} {
			var sum, want float64
			for _, p := range pairs {
				sum, want = sum+p.w, p.v
				if sum >= q*total {
					break
				}
			}
			if got, ok := s.Quantile(q); !ok || math.Abs(got-want) > 0.05+1e-9 {
				t.Errorf("seed %d: Quantile(%v) of %d values = %v, want %v", seed, q, len(pairs), got, want)
			}
		}
	}
}

func TestSummary_BinsHoldNearestTenth(t *testing.T) {
	for value, want := range map[float64]int{
		0: 0, -5: 0, -1e100: 0, 0.04: 0, 0.05: 1, 0.1: 1, 49.94: 499, 49.98: 500, 50: 500, 50.04: 500,
		99.94: 999, 99.95: 1000, 99.99: 1000, 100: 1000, 100.1: 1000, 1e100: 1000,
	} {
		if got := bin(value); got != want {
			t.Errorf("bin(%v) = %d, want %d", value, got, want)
		}
	}

	for i := range lastBin + 1 { // psutil's values have one decimal, so each has its own bin
		if got := bin(float64(i) / 10); got != i {
			t.Errorf("bin(%v) = %d, want %d", float64(i)/10, got, i)
		}
	}

	s := NewPercentSummary()
	s.Add(49.98, 1)
	if p, _ := s.Quantile(0.99); p != 49.98 {
		t.Errorf("p99 of 49.98 = %v, want 49.98", p)
	}
	s.Add(300, 1)
	s.Add(-2, 1)
	if lo, _ := s.Quantile(0); lo != -2 {
		t.Errorf("Quantile(0) = %v, want the minimum -2", lo)
	}
	if hi, _ := s.Quantile(1); hi != 300 {
		t.Errorf("Quantile(1) = %v, want the maximum 300", hi)
	}
	if p, _ := s.Quantile(0.99); p != 100 {
		t.Errorf("p99 of values above 100 = %v, want 100", p)
	}
}

// alike fails the test unless a and b are equal as Merge promises: count, min and max exactly, sums up to rounding.
func alike(t *testing.T, law string, a, b *Summary) {
	t.Helper()
	if err := near(a.Stat(), b.Stat()); err != nil {
		t.Errorf("merge law %s: %v", law, err)
	}

	for i := range a.above {
		if math.Abs(a.above[i]-b.above[i]) > 1e-9*b.all.divisor() {
			t.Errorf("merge law %s: weights above thresholds = %v, want %v", law, a.above, b.above)
		}
	}

	for i := range a.bins {
		if math.Abs(a.bins[i]-b.bins[i]) > 1e-9*b.all.divisor() {
			t.Errorf("merge law %s: bin %d has weight %v, want %v", law, i, a.bins[i], b.bins[i])
		}
	}
}

func merged(t *testing.T, parts ...*Summary) *Summary {
	t.Helper()
	s := NewPercentSummary(20, 80)
	for _, p := range parts {
		check.Must(t, s.Merge(p))
	}
	return s
}

func TestSummary_MergeIsCommutativeAndAssociative(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 11))
		all := NewPercentSummary(20, 80)
		var parts []*Summary
		var rows []sample
		for part := range 3 {
			s := NewPercentSummary(20, 80)
			for _, r := range samples(seed*10+uint64(part), rng.IntN(200), 1, 30) {
				if rng.IntN(3) == part && seed%3 == 0 || seed%5 == uint64(part) {
					r.weights[0] = 0 // a value that covers no time
				}
				rows = append(rows, r)
				s.Add(r.values[0], r.weights[0])
				all.Add(r.values[0], r.weights[0])
			}
			parts = append(parts, s)
		}
		a, b, c := parts[0], parts[1], parts[2]
		alike(t, "whole", merged(t, a, b, c), all)
		alike(t, "commutative", merged(t, a, b), merged(t, b, a))
		alike(t, "associative", merged(t, merged(t, a, b), c), merged(t, a, merged(t, b, c)))
		if !sameSummary(merged(t, a, NewPercentSummary(20, 80)), merged(t, NewPercentSummary(20, 80), a)) ||
			!sameSummary(merged(t, a), a) {
			t.Errorf("seed %d: merging %+v with an empty Summary changed it", seed, a.Stat())
		}
		check.Must(t, near(all.Stat(), naive(rows, 0)))
	}
}

func TestSummary_MergeRefusesIncompatibleSummaries(t *testing.T) {
	s := NewPercentSummary(20, 80)
	s.Add(50, 1)
	before := s.Clone()
	big, bigger := NewPercentSummary(20, 80), NewPercentSummary(20, 80)
	big.Add(1, 1)
	big.all.Count = countLimit
	bigger.all = Stat{Count: 1, Weight: 1.1e150}
	for name, o := range map[string]*Summary{
		"other threshold":  NewPercentSummary(20, 81),
		"fewer thresholds": NewPercentSummary(20),
		"no histogram":     NewSummary(20, 80),
		"count too large":  big,
		"weight too large": bigger,
	} {
		if err := s.Merge(o); err == nil {
			t.Errorf("%s: Merge returned nil, want an error", name)
		}
	}

	check.Must(t, s.Merge(nil))
	if !sameSummary(s, before) {
		t.Errorf("refused merges changed the Summary from %+v to %+v", before.Stat(), s.Stat())
	}
	check.Must(t, s.Merge(s))
	if mean, _ := s.Mean(); s.Count() != 2 || mean != 50 {
		t.Errorf("merged with itself: count = %d, mean = %v; want 2, 50", s.Count(), mean)
	}
}

func TestSummary_CloneIsIndependent(t *testing.T) {
	s := NewPercentSummary(20)
	s.Add(50, 1)
	c := s.Clone()
	before := c.Clone()
	s.Add(90, 1)
	s.Add(10, 5)
	if !sameSummary(c, before) {
		t.Errorf("a change of the original changed the clone from %+v to %+v", before.Stat(), c.Stat())
	}
}

// Extreme values add up without overflow, and the result can be written and read back.
func TestSummary_SumsOfExtremeValuesStayFinite(t *testing.T) {
	s, r := NewPercentSummary(0), NewRing(2, 1)
	for _, v := range []float64{1e100, -1e100, 1e-300, 5e-324, 0, math.Copysign(0, -1), 1e100} {
		for _, w := range []float64{0, 5e-324, 1e-300, 1, 1e100} {
			s.Add(v, w)
			r.Add([]float64{v}, []float64{w})
			checkReopens(t, s)
			_ = check.Value(RestoreRing(2, 1, r.Stride(), r.Count(), saved(r)))(t)
		}
	}
}
