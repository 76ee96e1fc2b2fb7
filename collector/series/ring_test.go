package series

import (
	"math"
	"strings"
	"testing"
	"unsafe"
)

// The test checks each number of samples below 5000, at capacities that reveal off-by-one errors.
func TestRing_MatchesContractAfterEverySample(t *testing.T) {
	rows := samples(1, 5000, 1, 5)
	if testing.Short() {
		rows = rows[:500]
	}
	want := newOracle(rows)
	for capacity := 2; capacity <= 10; capacity++ {
		r := NewRing(capacity, 1)
		must(t, want.check(r, 0))
		for n, s := range rows {
			r.Add(s.values, s.weights)
			if err := want.check(r, n+1); err != nil {
				t.Fatalf("capacity %d: %v", capacity, err)
			}
		}
	}
}

// The expected sample numbers were computed by hand.
func TestRing_KeepsFirstSampleOfEachBucket(t *testing.T) {
	for _, c := range []struct {
		capacity, n int
		stride      int64
		kept        []float64
	}{
		{4, 0, 1, nil},
		{4, 1, 1, []float64{0}},
		{4, 4, 1, []float64{0, 1, 2, 3}},
		{4, 5, 2, []float64{0, 2, 4}},
		{4, 6, 2, []float64{0, 2, 4}},
		{4, 7, 2, []float64{0, 2, 4, 6}},
		{4, 8, 2, []float64{0, 2, 4, 6}},
		{4, 9, 4, []float64{0, 4, 8}},
		{4, 16, 4, []float64{0, 4, 8, 12}},
		{4, 17, 8, []float64{0, 8, 16}},
		{3, 5, 2, []float64{0, 2, 4}}, // 3 is rounded up to 4
		{1, 3, 2, []float64{0, 2}},    // 1 is raised to 2
		{-7, 5, 4, []float64{0, 4}},   // so is a negative capacity
		{6, 13, 4, []float64{0, 4, 8, 12}},
	} {
		r := NewRing(c.capacity, 1)
		for i := range c.n {
			r.Add([]float64{float64(i)}, []float64{1})
		}
		var kept []float64
		for i := range r.Len() {
			kept = append(kept, r.Bucket(i).Values[0])
		}
		if r.Stride() != c.stride || len(kept) != len(c.kept) {
			t.Errorf("capacity %d, %d samples: stride %d, kept %v; want %d, %v", c.capacity, c.n, r.Stride(), kept, c.stride, c.kept)
			continue
		}
		for i := range kept {
			if kept[i] != c.kept[i] {
				t.Errorf("capacity %d, %d samples: kept %v, want %v", c.capacity, c.n, kept, c.kept)
			}
		}
	}
}

func TestRing_CapacityIsEven(t *testing.T) {
	for given, want := range map[int]int{
		math.MinInt: 2, -1: 2, 0: 2, 1: 2, 2: 2, 3: 4, 7: 8, 10: 10, 999: 1000, 1000: 1000,
		MaxCapacity - 1: MaxCapacity, math.MaxInt: MaxCapacity,
	} {
		if got := NewRing(given, 1).Capacity(); got != want {
			t.Errorf("NewRing(%d, 1).Capacity() = %d, want %d", given, got, want)
		}
	}
}

// A peak of one sample in a week is the max of exactly one bucket, and the mean of every bucket is correct.
func TestRing_OneSamplePeakSurvivesAWeek(t *testing.T) {
	const week, peak = 604800, 301234
	r := NewRing(1000, 1)
	quiet, burst := row(1, 30), row(1, 100)
	for n := range week {
		s := quiet
		if n == peak {
			s = burst
		}
		r.Add(s.values, s.weights)
	}

	if r.Stride() != 1024 || r.Len() != 591 {
		t.Fatalf("stride = %d, len = %d; want 1024, 591", r.Stride(), r.Len())
	}

	for i := range r.Len() {
		st, max, mean := r.Bucket(i).Stats[0], 30.0, 30.0
		if i == peak/1024 {
			max, mean = 100, 30+70.0/1024
		}
		if st.Max != max || math.Abs(st.Mean()-mean) > 1e-12 {
			t.Errorf("bucket %d: max %v, mean %v; want %v, %v", i, st.Max, st.Mean(), max, mean)
		}
	}
}

// At any capacity, merging all buckets gives the same statistics as the Summaries of the whole stream.
func TestRing_MergedBucketsEqualSummaries(t *testing.T) {
	rows := samples(3, 30000, 4, 10)
	for _, capacity := range []int{2, 10, 1000, 40000} {
		r := NewRing(capacity, 4)
		for _, s := range rows {
			r.Add(s.values, s.weights)
		}
		for c := range 4 {
			sum := NewPercentSummary(20, 80)
			for _, s := range rows {
				sum.Add(s.values[c], s.weights[c])
			}
			total := empty()
			for i := range r.Len() {
				total.Merge(r.Bucket(i).Stats[c])
			}
			must(t, near(total, naive(rows, c)))
			must(t, near(total, sum.Stat()))
		}
	}
}

func TestRing_MissingIsNeverZero(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	r := NewRing(2, 5)
	r.Add([]float64{nan, inf, 5, 5, 7}, []float64{1, 1, nan, -1, 0})
	b := r.Bucket(0)
	for c, want := range []float64{nan, nan, 5, 5, 7} {
		if !sameFloat(b.Values[c], want) {
			t.Errorf("column %d: value %v, want %v", c, b.Values[c], want)
		}
	}

	for c, st := range b.Stats[:4] {
		if st.Count != 0 || !math.IsNaN(st.Min) || !math.IsNaN(st.Max) || !math.IsNaN(st.Mean()) {
			t.Errorf("column %d: Stat %+v, want count 0 and NaN because nothing was measured", c, st)
		}
	}

	if st := b.Stats[4]; st.Count != 1 || st.Min != 7 || st.Max != 7 || st.Mean() != 7 || st.Weight != 0 {
		t.Errorf("Stat of a value 7 with weight 0 = %+v, want count 1, min, max and mean 7, weight 0", st)
	}
}

// A ring that was saved at any sample, restored and continued has the same bits as one that was never saved.
func TestRing_RestoredContinuesBitForBit(t *testing.T) {
	rows := samples(5, 400, 3, 20)
	for _, capacity := range []int{2, 6, 10, 64, 500} {
		for at := 0; at <= len(rows); at += 7 {
			r := NewRing(capacity, 3)
			for _, s := range rows[:at] {
				r.Add(s.values, s.weights)
			}
			restored, err := RestoreRing(r.Capacity(), 3, r.Stride(), r.Count(), saved(r))
			must(t, err)
			clone := r.Clone()
			must(t, identical(r, restored))
			for _, s := range rows[at:] {
				r.Add(s.values, s.weights)
				restored.Add(s.values, s.weights)
				clone.Add(s.values, s.weights)
			}
			must(t, identical(r, restored))
			must(t, identical(r, clone))
		}
	}
}

func TestRing_CloneIsIndependent(t *testing.T) {
	r, s := NewRing(4, 2), row(2, 1)
	r.Add(s.values, s.weights)
	c := r.Clone()
	s = row(2, 9)
	for range 9 {
		r.Add(s.values, s.weights)
	}
	if c.Count() != 1 || c.Bucket(0).Values[0] != 1 || c.Bucket(0).Stats[0].Max != 1 {
		t.Errorf("clone after a change of the original: count %d, bucket 0 %+v; want count 1, value and max 1", c.Count(),
			c.Bucket(0))
	}
}

func TestRing_AppendToBucketDoesNotReachNext(t *testing.T) {
	r := NewRing(4, 1)
	r.Add([]float64{1}, []float64{1})
	r.Add([]float64{2}, []float64{1})
	b := r.Bucket(0)
	_, _ = append(b.Values, 99), append(b.Stats, Stat{})
	if next := r.Bucket(1); next.Values[0] != 2 || next.Stats[0].Count != 1 {
		t.Errorf("bucket 1 after an append to bucket 0 = %+v, want value 2, count 1", next)
	}
}

func TestRestoreRing_RefusesImpossibleState(t *testing.T) {
	good := func() []Bucket {
		r := NewRing(4, 1)
		for i := range 5 { // stride 2 and 3 buckets; the last has one sample
			r.Add([]float64{float64(i)}, []float64{1})
		}
		return saved(r)
	}

	with := func(change func(b []Bucket)) []Bucket {
		b := good()
		change(b)
		return b
	}

	for _, c := range []struct {
		why             string
		capacity, width int
		stride, count   int64
		buckets         []Bucket
	}{
		{"is not an even", 5, 1, 2, 5, good()},
		{"is not an even", 0, 1, 2, 5, good()},
		{"is not an even", math.MaxInt, 1, 2, 5, good()},
		{"columns", 4, 0, 2, 5, good()},
		{"columns", 4, math.MaxInt, 2, 5, good()},
		{"values and", 4, 2, 2, 5, good()},
		{"power of two", 4, 1, 3, 5, good()},
		{"power of two", 4, 1, 0, 5, good()},
		{"power of two", 4, 1, math.MinInt64, 5, good()},
		{"stride 4 for 5", 4, 1, 4, 5, good()},
		{"stride 1 for 5", 4, 1, 1, 5, good()},
		{"out of range", 4, 1, 2, -5, good()},
		{"out of range", 4, 1, 2, math.MaxInt64, good()},
		{"3 buckets", 4, 1, 2, 7, good()},
		{"2 buckets", 4, 1, 2, 5, good()[:2]},
		{"4 buckets", 4, 1, 2, 5, append(good(), good()[0])},
		{"1 values and 0 stats", 4, 1, 2, 5, with(func(b []Bucket) { b[0].Stats = nil })},
		{"value +Inf", 4, 1, 2, 5, with(func(b []Bucket) { b[0].Values[0] = math.Inf(1) })},
		{"not a range", 4, 1, 2, 5, with(func(b []Bucket) { b[1].Stats[0].Min = 99 })},
		{"not a range", 4, 1, 2, 5, with(func(b []Bucket) { b[1].Stats[0].Max = math.NaN() })},
		{"sum", 4, 1, 2, 5, with(func(b []Bucket) { b[1].Stats[0].Sum = 1e9 })},
		{"sum", 4, 1, 2, 5, with(func(b []Bucket) { b[1].Stats[0].Sum = math.NaN() })},
		{"weight", 4, 1, 2, 5, with(func(b []Bucket) { b[1].Stats[0].Weight = -1 })},
		{"weight", 4, 1, 2, 5, with(func(b []Bucket) { b[1].Stats[0].Weight = math.Inf(1) })},
		{"count -1", 4, 1, 2, 5, with(func(b []Bucket) { b[1].Stats[0].Count = -1 })},
		{"but there are numbers", 4, 1, 2, 5, with(func(b []Bucket) { b[1].Stats[0].Count = 0 })},
		{"3 values counted in 2", 4, 1, 2, 5, with(func(b []Bucket) { b[1].Stats[0].Count = 3 })},
		{"2 values counted in 1", 4, 1, 2, 5, with(func(b []Bucket) { b[2].Stats[0].Count = 2 })},
	} {
		_, err := RestoreRing(c.capacity, c.width, c.stride, c.count, c.buckets)
		if err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("error = %v, want one with %q", err, c.why)
		}
	}

	_, err := RestoreRing(4, 1, 2, 5, good())
	must(t, err)
	zero := []Bucket{{Values: []float64{math.NaN()}, Stats: make([]Stat, 1)}}
	r, err := RestoreRing(4, 1, 1, 1, zero)
	must(t, err)
	if !math.IsNaN(r.Bucket(0).Stats[0].Max) {
		t.Errorf("Max of a restored zero Stat = %v, want NaN", r.Bucket(0).Stats[0].Max)
	}
}

// A huge capacity from a file does not cause a huge allocation, and a large ring grows as it fills.
func TestRing_GrowsAsItFills(t *testing.T) {
	const width = 1000
	r, err := RestoreRing(MaxCapacity, width, 1, 0, nil)
	must(t, err)
	if len(r.values) > firstCells {
		t.Fatalf("empty ring has %d cells, want at most %d", len(r.values), firstCells)
	}
	var rows []sample
	for i := range 200 {
		s := row(width, float64(i))
		rows = append(rows, s)
		r.Add(s.values, s.weights)
	}
	must(t, newOracle(rows).check(r, len(rows)))
}

func TestRing_PanicsOnMisuse(t *testing.T) {
	r := NewRing(4, 2)
	s := row(2, 1)
	r.Add(s.values, s.weights)
	for name, f := range map[string]func(){
		"no columns":       func() { NewRing(4, 0) },
		"too many columns": func() { NewRing(4, MaxWidth+1) },
		"short values":     func() { r.Add(s.values[:1], s.weights) },
		"short weights":    func() { r.Add(s.values, s.weights[:1]) },
		"bucket -1":        func() { r.Bucket(-1) },
		"bucket Len":       func() { r.Bucket(1) }, // allocated but not in use
	} {
		if !panics(f) {
			t.Errorf("%s: did not panic", name)
		}
	}

	if r.Count() != 1 {
		t.Errorf("Count() after misuse = %d, want 1", r.Count())
	}
}

func TestRing_FitsItsMemoryBudget(t *testing.T) {
	r := NewRing(1000, 18)
	size := cap(r.values)*int(unsafe.Sizeof(r.values[0])) + cap(r.stats)*int(unsafe.Sizeof(r.stats[0]))
	if size > 1_500_000 {
		t.Errorf("size of 1000×18 cells = %d bytes, want at most 1,500,000", size)
	}
	t.Logf("1000×18 cells: %d bytes", size)
}

func TestRing_HalvedEqualsRingOfHalfCapacity(t *testing.T) {
	for _, capacity := range []int{2, 4, 6, 10, 100} {
		for n := range 330 {
			whole, want := NewRing(capacity, 2), NewRing(max(capacity/2, 2)+max(capacity/2, 2)%2, 2)
			for i := range n {
				v := float64(i*i%97) / 7
				whole.Add([]float64{v, -v}, []float64{1, 0.5})
				want.Add([]float64{v, -v}, []float64{1, 0.5})
			}
			got := whole.Halved()
			if got.Capacity() != want.Capacity() || got.Stride() != want.Stride() || got.Len() != want.Len() || got.Count() != want.Count() {
				t.Fatalf("%d samples, half of capacity %d: capacity %d, stride %d, %d buckets; want %d, %d, %d", n, capacity,
					got.Capacity(), got.Stride(), got.Len(), want.Capacity(), want.Stride(), want.Len())
			}
			for i := range got.Len() {
				g, w := got.Bucket(i), want.Bucket(i)
				if g.Values[0] != w.Values[0] || g.Stats[0].Count != w.Stats[0].Count || g.Stats[1].Min != w.Stats[1].Min ||
					g.Stats[1].Max != w.Stats[1].Max || math.Abs(g.Stats[0].Sum-w.Stats[0].Sum) > 1e-9 {
					t.Fatalf("%d samples, half of capacity %d: bucket %d = %+v, want %+v", n, capacity, i, g, w)
				}
			}
		}
	}
}
