package series

import (
	"math"
	"testing"
)

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
				back, err := RestoreRing(got.Capacity(), got.Width(), got.Stride(), got.Count(), saved(got))
				must(t, err)
				s := wideRow(samples(1, 1, 3, 0)[0], 4, 5)
				back.Add(s.values, s.weights)
				want.Add(s.values, s.weights)
				must(t, identical(back, want))
			}
		}
	}
}

// Widen leaves earlier clones unchanged, and does nothing unless the new width is greater.
func TestRing_WidenDoesNotChangeClones(t *testing.T) {
	rows := samples(3, 30, 3, 10)
	r := NewRing(10, 3)
	for _, s := range rows {
		r.Add(s.values, s.weights)
	}
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
		must(t, identicalBuckets(clone.Bucket(i), b))
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
	if cells := len(r.values); cells != 1000*host {
		t.Errorf("new ring has %d cells, want %d", cells, 1000*host)
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
