package series

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/perfagent/perfagent/internal/check"
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
		check.Must(t, want.check(r, 0))
		for n, s := range rows {
			r.Add(s.values, s.weights)
			if err := want.check(r, n+1); err != nil {
				t.Fatalf("capacity %d: %v", capacity, err)
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
	fill(slices.Repeat([]sample{quiet}, peak), r)
	fill([]sample{burst}, r)
	fill(slices.Repeat([]sample{quiet}, week-peak-1), r)

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
		fill(rows, r)
		for c := range 4 {
			sum := NewPercentSummary(20, 80)
			for _, s := range rows {
				sum.Add(s.values[c], s.weights[c])
			}
			total := empty()
			for i := range r.Len() {
				total.Merge(r.Bucket(i).Stats[c])
			}
			check.Must(t, near(total, naive(rows, c)))
			check.Must(t, near(total, sum.Stat()))
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
			fill(rows[:at], r)
			restored := check.Value(RestoreRing(r.Capacity(), 3, r.Stride(), r.Count(), saved(r)))(t)
			clone := r.Clone()
			check.Must(t, identical(r, restored))
			fill(rows[at:], r, restored, clone)
			check.Must(t, identical(r, restored))
			check.Must(t, identical(r, clone))
		}
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

	check.Value(RestoreRing(4, 1, 2, 5, good()))(t)
	zero := []Bucket{{Values: []float64{math.NaN()}, Stats: make([]Stat, 1)}}
	if r := check.Value(RestoreRing(4, 1, 1, 1, zero))(t); !math.IsNaN(r.Bucket(0).Stats[0].Max) {
		t.Errorf("Max of a restored zero Stat = %v, want NaN", r.Bucket(0).Stats[0].Max)
	}
}

// A huge capacity from a file does not cause a huge allocation, and a large ring grows as it fills.
func TestRing_GrowsAsItFills(t *testing.T) {
	const width = 1000
	r := check.Value(RestoreRing(MaxCapacity, width, 1, 0, nil))(t)
	if len(r.values) > firstCells {
		t.Fatalf("empty ring has %d cells, want at most %d", len(r.values), firstCells)
	}
	var rows []sample
	for i := range 200 {
		rows = append(rows, row(width, float64(i)))
	}
	fill(rows, r)
	check.Must(t, newOracle(rows).check(r, len(rows)))
}

func TestRing_PanicsOnMisuse(t *testing.T) {
	r, s := NewRing(4, 2), row(2, 1)
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

// widthOf returns the number of columns in rows, or 3 if there are no rows.
func widthOf(rows []sample) int {
	if len(rows) == 0 {
		return 3
	}
	return len(rows[0].values)
}

// wideRow returns s with additional columns that have the given value; NaN means not measured.
func wideRow(s sample, more int, value float64) sample {
	out := sample{append([]float64{}, s.values...), append([]float64{}, s.weights...)}
	for range more {
		out.values, out.weights = append(out.values, value), append(out.weights, 1)
	}
	return out
}

// wideRing returns a ring of rows that was widened before row at.
func wideRing(capacity int, rows []sample, at, more int) *Ring {
	r := NewRing(capacity, widthOf(rows))
	for i, s := range rows {
		if i == at {
			r.Widen(r.Width() + more)
		}
		if i >= at {
			s = wideRow(s, more, float64(i))
		}
		r.Add(s.values, s.weights)
	}
	r.Widen(widthOf(rows) + more) // changes nothing if the ring has been widened already
	return r
}

// wideFromStart returns a ring that had the additional columns from the start, without values before row at.
func wideFromStart(capacity int, rows []sample, at, more int) *Ring {
	r := NewRing(capacity, widthOf(rows)+more)
	for i, s := range rows {
		v := float64(i)
		if i < at {
			v = math.NaN()
		}
		s = wideRow(s, more, v)
		r.Add(s.values, s.weights)
	}
	return r
}

// A widened ring equals, bit for bit, a ring that had the columns from the start without values. This holds wherever
// the ring is widened, saved and restored.
func TestRing_WidenedEqualsRingThatWasAlwaysWide(t *testing.T) {
	for _, capacity := range []int{2, 4, 10, 1000} {
		for _, n := range []int{0, 1, 2, 3, 9, 10, 11, 40, 321, 2500} {
			rows := samples(uint64(n), n, 3, 10)
			for _, at := range []int{0, 1, 2, n / 3, n / 2, n - 1, n} {
				if at < 0 || at > n {
					continue
				}
				got, want := wideRing(capacity, rows, at, 4), wideFromStart(capacity, rows, at, 4)
				if err := identical(got, want); err != nil {
					t.Fatalf("capacity %d, %d rows, widened before %d: %v", capacity, n, at, err)
				}
				back := check.Value(RestoreRing(got.Capacity(), got.Width(), got.Stride(), got.Count(), saved(got)))(t)
				fill([]sample{wideRow(samples(1, 1, 3, 0)[0], 4, 5)}, back, want)
				check.Must(t, identical(back, want))
			}
		}
	}
}

// Widen leaves earlier clones unchanged, and does nothing unless the new width is greater.
func TestRing_WidenDoesNotChangeClones(t *testing.T) {
	rows, r := samples(3, 30, 3, 10), NewRing(10, 3)
	fill(rows, r)
	clone, want := r.Clone(), saved(r)
	for _, width := range []int{-1, 0, 2, 3} {
		if r.Widen(width); r.Width() != 3 {
			t.Errorf("width after Widen(%d) = %d, want 3 as before", width, r.Width())
		}
	}

	r.Widen(5)
	r.Add(make([]float64, 5), make([]float64, 5))
	if clone.Width() != 3 || clone.Count() != 30 {
		t.Errorf("clone after a change of the original: %d columns, %d samples; want 3, 30", clone.Width(), clone.Count())
	}
	for i, b := range want {
		check.Must(t, identicalBuckets(clone.Bucket(i), b))
	}
	if r.Widen(MaxWidth + 1); r.Width() != MaxWidth {
		t.Errorf("width after Widen(MaxWidth+1) = %d, want %d", r.Width(), MaxWidth)
	}
}

// A ring of ordinary capacity takes 48 bytes per cell. It allocates the cells for the columns of a host and its job at
// the start, and exactly the additional cells when GPUs are found.
func TestRing_WidenedFitsItsMemoryBudget(t *testing.T) {
	const host, gpus = 52, 52 + 16*4
	r := NewRing(1000, host)
	if cells, size := len(r.values), unsafe.Sizeof(r.values[0])+unsafe.Sizeof(r.stats[0]); cells != 1000*host || size != 48 {
		t.Errorf("new ring has %d cells of %d bytes, want %d of 48", cells, size, 1000*host)
	}
	for range 1500 {
		r.Add(make([]float64, host), make([]float64, host))
	}
	r.Widen(gpus)
	if cells := len(r.stats); cells != 1000*gpus {
		t.Errorf("widened ring has %d cells, want %d", cells, 1000*gpus)
	}
	row := make([]float64, gpus)
	if n := testing.AllocsPerRun(5000, func() { r.Add(row, row) }); n != 0 {
		t.Errorf("Add made %v allocations, want 0", n)
	}
}
