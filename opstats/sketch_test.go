package opstats

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
)

// streams generate realistic and extreme values.
var streams = map[string]func(rng *rand.Rand) float64{
	"log-normal times": func(rng *rand.Rand) float64 { return math.Exp(rng.NormFloat64()*1.5 - 3) },
	"Pareto":           func(rng *rand.Rand) float64 { return math.Pow(rng.Float64(), -1.2) },
	"uniform":          func(rng *rand.Rand) float64 { return rng.Float64() * 100 },
	"two peaks":        func(rng *rand.Rand) float64 { return []float64{1e-6, 3e5}[rng.IntN(2)] * (1 + rng.Float64()) },
	"one value":        func(*rand.Rand) float64 { return 0.1 },
	"whole numbers":    func(rng *rand.Rand) float64 { return float64(rng.IntN(20)) },
	"both signs":       func(rng *rand.Rand) float64 { return rng.NormFloat64() },
	"mostly negative":  func(rng *rand.Rand) float64 { return 3 - math.Exp(rng.NormFloat64()*3) },
	"17 decades":       func(rng *rand.Rand) float64 { return math.Pow(10, 17*rng.Float64()-9) },
	"bytes":            func(rng *rand.Rand) float64 { return float64(uint64(1) << rng.IntN(50)) },
	"largest numbers":  func(rng *rand.Rand) float64 { return limit * rng.Float64() },
	"smallest numbers": func(rng *rand.Rand) float64 { return minSize * (1 + rng.Float64()) },
}

// nearestRank returns a quantile of sorted values by its definition. The share is in thousandths.
func nearestRank(sorted []float64, thousandths int) float64 {
	rank := max(1, (thousandths*len(sorted)+999)/1000)
	return sorted[rank-1]
}

// checkQuantiles fails the test unless the quantiles of a Sketch are within 1 % of the quantiles of its values.
func checkQuantiles(t *testing.T, s *Sketch, values []float64) {
	t.Helper()
	sorted, last := slices.Sorted(slices.Values(values)), math.Inf(-1)
	for q := range 1001 {
		got, ok := s.Quantile(float64(q) / 1000)
		if want := nearestRank(sorted, q); !ok || !(math.Abs(got-want) <= 0.01*math.Abs(want)) {
			t.Fatalf("quantile %d/1000 of %d values = %v, %v; want %v within 1 %%, true", q, len(values), got, ok, want)
		}
		if got < last {
			t.Fatalf("quantile %d/1000 = %v, want at least the previous quantile, %v", q, got, last)
		}
		last = got
	}
	if low, _ := s.Quantile(0); low != sorted[0] || last != sorted[len(sorted)-1] {
		t.Fatalf("quantiles 0 and 1 = %v and %v, want %v and %v", low, last, sorted[0], sorted[len(sorted)-1])
	}
}

func TestSketch_QuantilesAreWithinOnePercent(t *testing.T) {
	for name, value := range streams {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			for _, n := range []int{1, 2, 3, 10, 99, 1000, 20000} {
				var s Sketch
				values := make([]float64, n)
				for i := range values {
					values[i] = value(rng)
					check.Must(t, s.Add(values[i]))
				}
				if s.Count() != uint64(n) {
					t.Fatalf("Count() = %d, want %d", s.Count(), n)
				}
				checkQuantiles(t, &s, values)
				checkQuantiles(t, reread(t, &s, &Sketch{}), values)
			}
		})
	}
}

// The error is largest at the edges of a bin.
func TestSketch_ErrorAtBinEdgesIsWithinOnePercent(t *testing.T) {
	worst := 0.0
	for bin := binOf(minSize); bin < binOf(limit); bin++ {
		edge := math.Exp(float64(bin) * binWidth)
		for _, v := range []float64{math.Nextafter(edge, 0), edge, math.Nextafter(edge, math.Inf(1))} {
			if v < minSize {
				continue
			}
			worst = max(worst, math.Abs(middle(binOf(v))-v)/v)
		}
	}
	if worst > 0.01 || worst < 0.0099 {
		t.Errorf("largest error = %v, want 0.0099 to 0.01", worst)
	}
}

func TestSketch_FewValuesGiveExactQuantiles(t *testing.T) {
	var s Sketch
	if v, ok := s.Quantile(0.5); ok || !math.IsNaN(v) {
		t.Errorf("Quantile(0.5) of an empty Sketch = %v, %v; want NaN, false", v, ok)
	}
	for _, v := range []float64{-7, 0, math.Copysign(0, -1), 5e-324, 0, 12} {
		check.Must(t, s.Add(v))
	}
	for q, want := range map[float64]float64{
		0: -7, 0.01: -7, 1.0 / 6: -7, 0.2: 0, 0.5: 0, 0.8: 0, 5.0 / 6: 0, 0.84: 12, 1: 12,
	} {
		if v, ok := s.Quantile(q); v != want || !ok {
			t.Errorf("Quantile(%v) = %v, %v; want %v, true", q, v, ok, want)
		}
	}
	for _, q := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1)} {
		if v, ok := s.Quantile(q); ok {
			t.Errorf("Quantile(%v) = %v, true; want false", q, v)
		}
	}
}

func TestSketch_RefusesInvalidNumbersAndCounts(t *testing.T) {
	var s Sketch
	check.Must(t, s.AddN(1, maxCount-1))
	before, inf := jsonOf(t, &s), math.Inf(1)
	for v, n := range map[float64]uint64{math.NaN(): 1, 1.1e100: 1, inf: 1, -inf: 1, 5: 2, 6: math.MaxUint64} {
		if err := s.AddN(v, n); !errors.Is(err, ErrNotFinite) {
			t.Errorf("AddN(%v, %d): error %v, want %v", v, n, err, ErrNotFinite)
		}
	}
	var two Sketch
	check.Must(t, two.AddN(3, 2))
	if err := s.Merge(&two); !errors.Is(err, ErrNotFinite) {
		t.Errorf("Merge beyond 2^53: error %v, want %v", err, ErrNotFinite)
	}
	check.Must(t, s.AddN(9, 0))
	if after := jsonOf(t, &s); after != before {
		t.Errorf("refused values changed the Sketch from %s to %s", before, after)
	}
}

// The order and grouping of merges do not matter, even if small sizes were moved to the smallest bin.
func TestSketch_MergeIsExact(t *testing.T) {
	for name, value := range streams {
		rng := rand.New(rand.NewPCG(3, 4)) // the order of maps is random, so use a new generator for each stream
		var all Sketch
		parts := make([]Sketch, 3)
		for i := range 3000 {
			v := value(rng)
			if name == "17 decades" {
				v = math.Pow(v, 3) // 51 decades, more than the bins span
			}
			check.Must(t, all.Add(v))
			check.Must(t, parts[i%3].Add(v))
		}

		left, right := parts[0].Clone(), parts[2].Clone()
		check.Must(t, left.Merge(&parts[1]))
		check.Must(t, left.Merge(&parts[2]))
		check.Must(t, right.Merge(&parts[1]))
		check.Must(t, right.Merge(&parts[0]))
		check.Must(t, right.Merge(&Sketch{}))
		var empty Sketch
		check.Must(t, empty.Merge(&all))
		for _, s := range []*Sketch{left, right, &empty} {
			same(t, s, &all)
		}
	}
}

// Sizes far below the largest are counted in the smallest bin. Quantiles of the other values remain accurate, and the
// memory remains bounded.
func TestSketch_FarSmallerSizesShareSmallestBin(t *testing.T) {
	var s Sketch
	var large []float64
	rng := rand.New(rand.NewPCG(5, 6))
	for range 5000 {
		check.Must(t, s.Add(math.Pow(10, -99+80*rng.Float64())))
		large = append(large, math.Pow(10, 17*rng.Float64()))
	}
	for _, v := range large {
		check.Must(t, s.Add(v))
	}
	for range 5000 {
		check.Must(t, s.Add(math.Pow(10, -99+80*rng.Float64())))
	}

	slices.Sort(large)
	for _, q := range []float64{0.68, 0.75, 0.9, 0.99} {
		got, _ := s.Quantile(q)
		if want := large[int(math.Ceil(q*15000))-10001]; math.Abs(got-want) > 0.01*want {
			t.Errorf("Quantile(%v) = %v, want %v within 1 %%", q, got, want)
		}
	}
	if low, _ := s.Quantile(0.5); low > 1 {
		t.Errorf("median = %v, want at most 1, because it is among the smallest sizes", low)
	}
	if n := len(s.positive.counts); n != maxBins {
		t.Errorf("the Sketch has %d bins, want %d", n, maxBins)
	}
	read := reread(t, &s, &Sketch{})
	same(t, read, &s)
	if got, want := read.Bytes(), s.Bytes(); got != want {
		t.Errorf("Bytes() after reading = %d, want %d as before", got, want)
	}
}

// A Sketch takes no more memory than its documentation promises.
func TestSketch_FitsItsMemoryBudget(t *testing.T) {
	for _, c := range []struct {
		decades float64
		most    int64
	}{{0, 600}, {3, 3600}, {8, 8900}, {100, 17000}} {
		rng := rand.New(rand.NewPCG(7, 8))
		const sketches = 100 // so many that other data on the heap does not matter
		bytes := heapOf(t, func() any {
			list := make([]Sketch, sketches)
			for i := range list {
				for range 2000 {
					check.Must(t, list[i].Add(math.Pow(10, c.decades*rng.Float64()-c.decades/2)))
				}
			}
			return list
		}) / sketches
		t.Logf("Sketch over %v decades: %d bytes", c.decades, bytes)
		if bytes > c.most {
			t.Errorf("Sketch over %v decades takes %d bytes, want at most %d", c.decades, bytes, c.most)
		}
	}
}

func TestSketch_JSONRoundTrips(t *testing.T) {
	var s Sketch
	same(t, jsonOf(t, &s), `{}`)
	reread(t, &s, &Sketch{})
	for _, v := range []float64{1, 1, 1.05, -2, 0, 0} {
		check.Must(t, s.Add(v))
	}
	same(t, jsonOf(t, &s), `{"min":-2,"max":1.05,"zeros":2,"positive":[0,2,0,0,1],"negative":[35,1]}`)
	same(t, reread(t, &s, &Sketch{}), &s)
	check.Must(t, json.Unmarshal([]byte(`null`), &s))
	if s.Count() != 6 {
		t.Errorf("Sketch after reading null = %s, want 6 values as before", jsonOf(t, &s))
	}
}
