package series

import (
	"slices"
	"testing"
)

// The expected samples were computed with PerformanceMetricsCollector of perf.py.
func TestDecimator_KeepsSameSamplesAsPerfPy(t *testing.T) {
	upto10 := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for _, c := range []struct {
		maxLength, n int
		kept         []int
		freq         int64
	}{
		{10, 10, upto10, 1}, {10, 11, []int{1, 3, 5, 7, 9}, 2}, {10, 12, []int{1, 3, 5, 7, 9, 12}, 2},
		{10, 13, []int{1, 3, 5, 7, 9, 12}, 2}, {10, 15, []int{1, 3, 5, 7, 9, 12, 14}, 2},
		{10, 20, []int{1, 3, 5, 7, 9, 12, 14, 16, 18, 20}, 2}, {10, 21, []int{1, 3, 5, 7, 9, 12, 14, 16, 18, 20}, 2},
		{10, 22, []int{1, 5, 9, 14, 18}, 4}, {10, 23, []int{1, 5, 9, 14, 18}, 4},
		{10, 24, []int{1, 5, 9, 14, 18, 24}, 4}, {10, 28, []int{1, 5, 9, 14, 18, 24, 28}, 4},
		{10, 44, []int{1, 9, 18, 28, 36}, 8}, {10, 45, []int{1, 9, 18, 28, 36}, 8},
		{10, 48, []int{1, 9, 18, 28, 36, 48}, 8}, {10, 60, []int{1, 9, 18, 28, 36, 48, 56}, 8},
		{1, 20, []int{1, 16}, 8}, {2, 20, []int{1, 16}, 8}, {3, 20, []int{1, 12}, 8},
		{7, 20, []int{1, 5, 10, 14, 20}, 4},
	} {
		d := NewDecimator[int](c.maxLength)
		for i := range c.n {
			d.Add(i + 1)
		}
		if !slices.Equal(d.Items(), c.kept) || d.Freq() != c.freq {
			t.Errorf("maxLength %d, %d samples: kept %v, freq %d; want %v, freq %d", c.maxLength, c.n, d.Items(), d.Freq(), c.kept,
				c.freq)
		}
	}
}

// With perf.py's default length of 1000, a week of samples has the same rows as in perf.py, and is thinned at the same
// samples.
func TestDecimator_KeepsSameSamplesAsPerfPyForAWeek(t *testing.T) {
	type state struct {
		length, last int
		freq         int64
	}

	want := map[int]state{
		1000:   {1000, 1000, 1},
		1001:   {500, 999, 2},
		1002:   {501, 1002, 2},
		2002:   {500, 1998, 4},
		3600:   {900, 3600, 4},
		604800: {590, 604160, 1024},
	}

	d := NewDecimator[int](1000)
	var trims []int
	for n := 1; n <= 604800; n++ {
		before := d.Freq()
		d.Add(n)
		if d.Freq() != before {
			trims = append(trims, n)
		}
		if w, ok := want[n]; ok {
			if got := (state{len(d.Items()), d.Items()[len(d.Items())-1], d.Freq()}); got != w {
				t.Errorf("state after %d samples = %+v, want %+v", n, got, w)
			}
		}
		if d.Items()[0] != 1 || len(d.Items()) > 1000 {
			t.Fatalf("after %d samples: first sample %d, length %d; want first sample 1, length at most 1000", n, d.Items()[0], len(d.Items()))
		}
	}

	if !slices.Equal(trims, []int{1001, 2002, 4004, 8008, 16016, 32032, 64064, 128128, 256256, 512512}) {
		t.Errorf("Freq doubled at samples %v, want 1001 times the powers of 2 up to 512512", trims)
	}
}

func TestDecimator_KeepsNothingWithLengthZero(t *testing.T) {
	for _, maxLength := range []int{0, -1, -1000} {
		d := NewDecimator[int](maxLength)
		var doubled []int
		for n := 1; n <= 20; n++ {
			before := d.Freq()
			d.Add(n)
			if d.Freq() != before {
				doubled = append(doubled, n)
			}
		}
		if len(d.Items()) != 0 || !slices.Equal(doubled, []int{1, 2, 4, 8, 16}) {
			t.Errorf("maxLength %d: kept %v, Freq doubled at %v; want no samples, [1 2 4 8 16]", maxLength, d.Items(), doubled)
		}
	}
}

func TestDecimator_ReleasesDroppedSamples(t *testing.T) {
	d := NewDecimator[*int](4)
	for n := range 5 {
		d.Add(&n)
	}
	for i, p := range d.items[:cap(d.items)][len(d.items):] {
		if p != nil {
			t.Errorf("slot %d still points to a dropped sample", i)
		}
	}
}

func TestDecimator_CloneIsIndependent(t *testing.T) {
	d := NewDecimator[int](4)
	for i := range 4 {
		d.Add(i)
	}
	c := d.Clone()
	d.Add(4) // overflows, so items move in place
	if got := c.Items(); len(got) != 4 || got[1] != 1 || c.Freq() != 1 {
		t.Errorf("clone after a change of the original: %v, freq %d; want [0 1 2 3], freq 1", got, c.Freq())
	}
}
