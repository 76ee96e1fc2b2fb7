package series

import (
	"math"
	"testing"
)

func TestDelta_WrapsAndResets(t *testing.T) {
	const net, disk = 1, 512
	tests := map[string]struct{ prev, cur, unit, want uint64 }{
		"forward":                        {100, 1100, net, 1000},
		"still":                          {100, 100, net, 0},
		"net wraps at 32 bits":           {4294967000, 704, net, 1000},
		"net wraps at 64 bits":           {math.MaxUint64 - 295, 704, net, 1000},
		"net wraps onto 0":               {math.MaxUint32, 0, net, 1},
		"disk wraps at 32 bits":          {4294967290, 6, disk, 12},
		"disk wraps at 64 bits":          {math.MaxUint64 - 5, 6, disk, 12},
		"reset":                          {5000, 10, net, 0},
		"reset from far above 32 bits":   {1 << 40, 10, net, 0},
		"reset beyond the reach of wrap": {math.MaxUint32 - wrapReach, 10, net, 0},
		"a fall of a little":             {math.MaxUint32, math.MaxUint32 - 1, net, 0},
		"a disk's fall from afar":        {math.MaxUint32 - wrapReach/disk, 10, disk, 0},
		"a leap":                         {0, maxDelta + 1, net, 0},
		"a disk's leap":                  {0, maxDelta/disk + 1, disk, 0},
		"a leap over half the range":     {1, math.MaxUint64, net, 0},
		"no unit":                        {1, 3, 0, 2},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Delta(tt.prev, tt.cur, tt.unit); got != tt.want {
				t.Errorf("Delta(%d, %d, %d) = %d, want %d", tt.prev, tt.cur, tt.unit, got, tt.want)
			}
		})
	}
}

// A saturated counter does not wrap.
func TestResetDelta(t *testing.T) {
	const unit = 4
	tests := map[string]struct{ prev, cur, want uint64 }{
		"forward":                 {100, 1100, 1000},
		"still":                   {100, 100, 0},
		"to the end of 32 bits":   {4000000000, math.MaxUint32, 294967295},
		"reset":                   {5000, 10, 10},
		"reset to 0 near 32 bits": {4100000000, 0, 0},
		"reset near 32 bits":      {4100000000, 200000000, 200000000},
		"reset at the end":        {math.MaxUint32, 7, 7},
		"reset near 64 bits":      {math.MaxUint64 - 5, 6, 6},
		"a leap":                  {5, 5 + maxDelta/unit + 1, 0},
		"a fall to nonsense":      {math.MaxUint64, math.MaxUint64 - 1, 0},
	}

	for name, tt := range tests {
		if got := ResetDelta(tt.prev, tt.cur, unit); got != tt.want {
			t.Errorf("%s: ResetDelta(%d, %d, %d) = %d, want %d", name, tt.prev, tt.cur, unit, got, tt.want)
		}
	}
	if got := ResetDelta(1, 3, 0); got != 2 {
		t.Errorf("no unit: ResetDelta(1, 3, 0) = %d, want 2", got)
	}
}

// A sum over processes that falls for a moment does not count twice when it recovers; after a lasting fall it continues
// from there.
func TestSumCounter_CountsDipsOnce(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		name string
		in   []float64
		want float64
	}{
		{"grows", []float64{0, 1, 2, 3}, 3},
		{"begins above 0", []float64{5, 6}, 1},
		{"a dip", []float64{0, 10, 4, 11}, 11},
		{"falls for good", []float64{0, 10, 0.1, 1.1, 2.1}, 12},
		{"falls twice", []float64{0, 10, 0, 1, 0, 1}, 11},
		{"unknown in between", []float64{0, nan, 2, nan}, 2},
	} {
		var c SumCounter
		for _, v := range tt.in {
			c.Add(v)
		}
		if math.Abs(c.Total()-tt.want) > 1e-9 {
			t.Errorf("%s: Total %v, want %v", tt.name, c.Total(), tt.want)
		}
	}
}

// A counter is relative to its first known reading, regardless of unknown ones before and after.
func TestCounter_Increase(t *testing.T) {
	nan := math.NaN()
	for name, tt := range map[string]struct{ in, want []float64 }{
		"from 0":            {[]float64{0, 1, 3}, []float64{0, 1, 3}},
		"with a past":       {[]float64{7, 7, 9}, []float64{0, 0, 2}},
		"known late":        {[]float64{nan, nan, 5, 6}, []float64{nan, nan, 0, 1}},
		"unknown at times":  {[]float64{5, nan, 8, nan}, []float64{0, nan, 3, nan}},
		"below its first":   {[]float64{5, 3, 6}, []float64{0, 0, 1}},
		"back and up again": {[]float64{5, 9, 7, 10}, []float64{0, 4, 2, 5}},
	} {
		var c Counter
		for i, v := range tt.in {
			got, want := c.Increase(v), Optional(tt.want[i])
			if got != want && (got.Known() || want.Known()) {
				t.Errorf("%s: Increase is %v after %v, want %v", name, got, tt.in[:i+1], want)
			}
		}
	}
}

// When another counter replaces one, the increase so far stays, and its own past does not count.
func TestCounter_Rebase(t *testing.T) {
	var c Counter
	c.Increase(100)
	c.Rebase(c.Increase(110), 9000)
	if got := c.Increase(9005); got != 15 {
		t.Errorf("Increase is %v after 10 of one counter and 5 of another, want 15", got)
	}
	c.Rebase(Unknown(), 3)
	if got := c.Increase(4); got != 1 {
		t.Errorf("Increase is %v after an unknown increase and 1, want 1", got)
	}
	c.Rebase(4, math.NaN())
	if got := c.Increase(math.NaN()); got.Known() {
		t.Errorf("Increase is %v after unknown readings only, want unknown", got)
	}
}

func TestCorrectedDelta(t *testing.T) {
	const slack, most = 3, 10
	for name, tt := range map[string]struct{ reached, cur, delta, now float64 }{
		"up":                   {5, 7, 2, 7},
		"still":                {5, 5, 0, 5},
		"as far as may be":     {5, 15, 10, 15},
		"a leap":               {5, 15.5, 0, 15.5},
		"corrected":            {5, 4, 0, 5},
		"corrected by so much": {5, 2, 0, 5},
		"reset":                {5, 1.5, 0, 1.5},
	} {
		if delta, now := CorrectedDelta(tt.reached, tt.cur, slack, most); delta != tt.delta || now != tt.now {
			t.Errorf("%s: delta %v, reached %v; want %v, %v", name, delta, now, tt.delta, tt.now)
		}
	}
}

func TestRangeDelta(t *testing.T) {
	for _, c := range []struct{ prev, cur, span, most, want uint64 }{
		{5, 9, 100, 50, 4}, {5, 5, 100, 50, 0}, {90, 10, 100, 50, 20}, {100, 0, 100, 50, 0}, {100, 7, 100, 50, 7},
		{90, 41, 100, 50, 0}, {90, 40, 100, 50, 50}, // more than most
		{40, 10, 100, 50, 0}, {90, 10, 0, 50, 0}, {90, 10, 80, 50, 0}, // no range, or beyond it
		{0, math.MaxUint64, 100, 50, math.MaxUint64}, {math.MaxUint64, 0, math.MaxUint64, 50, 0},
		{math.MaxUint64 - 1, 3, math.MaxUint64, 50, 4}, {10, 9, math.MaxUint64, math.MaxUint64, math.MaxUint64 - 1},
	} {
		if got := RangeDelta(c.prev, c.cur, c.span, c.most); got != c.want {
			t.Errorf("RangeDelta(%d, %d, %d, %d) = %d, want %d", c.prev, c.cur, c.span, c.most, got, c.want)
		}
	}
}
