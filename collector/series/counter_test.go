package series

import (
	"math"
	"testing"
)

func TestDelta_DetectsWrapsAndResets(t *testing.T) {
	const net, disk = 1, 512
	tests := map[string]struct{ prev, cur, unit, want uint64 }{
		"forward": {100, 1100, net, 1000}, "unchanged": {100, 100, net, 0},
		"net wraps at 32 bits": {4294967000, 704, net, 1000},
		"net wraps at 64 bits": {math.MaxUint64 - 295, 704, net, 1000},
		"net wraps to 0":       {math.MaxUint32, 0, net, 1}, "disk wraps at 32 bits": {4294967290, 6, disk, 12},
		"disk wraps at 64 bits": {math.MaxUint64 - 5, 6, disk, 12},
		"reset":                 {5000, 10, net, 0}, "reset from far above 32 bits": {1 << 40, 10, net, 0},
		"reset far from the end of range": {math.MaxUint32 - wrapReach, 10, net, 0},
		"small fall":                      {math.MaxUint32, math.MaxUint32 - 1, net, 0},
		"disk reset far from the end":     {math.MaxUint32 - wrapReach/disk, 10, disk, 0},
		"net jump of more than 1 PiB":     {0, maxDelta + 1, net, 0},
		"disk jump of more than 1 PiB":    {0, maxDelta/disk + 1, disk, 0},
		"jump over almost the full range": {1, math.MaxUint64, net, 0},
		"unit 0":                          {1, 3, 0, 2},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Delta(tt.prev, tt.cur, tt.unit); got != tt.want {
				t.Errorf("Delta(%d, %d, %d) = %d, want %d", tt.prev, tt.cur, tt.unit, got, tt.want)
			}
		})
	}
}

// A saturated counter is reset instead of wrapping.
func TestResetDelta_TreatsEachFallAsReset(t *testing.T) {
	const unit = 4
	tests := map[string]struct{ prev, cur, want uint64 }{
		"forward": {100, 1100, 1000}, "unchanged": {100, 100, 0},
		"up to the 32-bit limit": {4000000000, math.MaxUint32, 294967295},
		"reset":                  {5000, 10, 10}, "reset to 0 near 32 bits": {4100000000, 0, 0},
		"reset near 32 bits":    {4100000000, 200000000, 200000000},
		"reset at 32-bit limit": {math.MaxUint32, 7, 7}, "reset near 64 bits": {math.MaxUint64 - 5, 6, 6},
		"jump of more than 1 PiB": {5, 5 + maxDelta/unit + 1, 0},
		"fall to a huge value":    {math.MaxUint64, math.MaxUint64 - 1, 0},
	}

	for name, tt := range tests {
		if got := ResetDelta(tt.prev, tt.cur, unit); got != tt.want {
			t.Errorf("%s: ResetDelta(%d, %d, %d) = %d, want %d", name, tt.prev, tt.cur, unit, got, tt.want)
		}
	}
	if got := ResetDelta(1, 3, 0); got != 2 {
		t.Errorf("ResetDelta(1, 3, 0) = %d, want 2", got)
	}
}

// If a sum over processes falls for a moment, its recovery does not count. After a lasting fall, increases count from
// the lower value.
func TestSumCounter_IgnoresRecoveryFromDip(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		name string
		in   []float64
		want float64
	}{
		{"grows", []float64{0, 1, 2, 3}, 3}, {"starts above 0", []float64{5, 6}, 1},
		{"falls for a moment", []float64{0, 10, 4, 11}, 11},
		{"falls permanently", []float64{0, 10, 0.1, 1.1, 2.1}, 12},
		{"falls twice", []float64{0, 10, 0, 1, 0, 1}, 11}, {"has unknown readings", []float64{0, nan, 2, nan}, 2},
	} {
		var c SumCounter
		for _, v := range tt.in {
			c.Add(v)
		}
		if math.Abs(c.Total()-tt.want) > 1e-9 {
			t.Errorf("%s: Total() = %v, want %v", tt.name, c.Total(), tt.want)
		}
	}
}

// The increase is relative to the first known reading, whether unknown readings come before or after it.
func TestCounter_IncreaseIsSinceFirstKnownReading(t *testing.T) {
	nan := math.NaN()
	for name, tt := range map[string]struct{ in, want []float64 }{
		"from 0":            {[]float64{0, 1, 3}, []float64{0, 1, 3}},
		"from above 0":      {[]float64{7, 7, 9}, []float64{0, 0, 2}},
		"unknown at first":  {[]float64{nan, nan, 5, 6}, []float64{nan, nan, 0, 1}},
		"unknown readings":  {[]float64{5, nan, 8, nan}, []float64{0, nan, 3, nan}},
		"below first value": {[]float64{5, 3, 6}, []float64{0, 0, 1}},
		"falls and rises":   {[]float64{5, 9, 7, 10}, []float64{0, 4, 2, 5}},
	} {
		var c Counter
		for i, v := range tt.in {
			if got, want := c.Increase(v), Optional(tt.want[i]); got != want && (got.Known() || want.Known()) {
				t.Errorf("%s: increase after readings %v = %v, want %v", name, tt.in[:i+1], got, want)
			}
		}
	}
}

// When a new counter replaces the old one, the increase so far is kept, and the earlier increase of the new counter
// does not count.
func TestCounter_RebaseKeepsIncrease(t *testing.T) {
	var c Counter
	c.Increase(100)
	c.Rebase(c.Increase(110), 9000)
	if got := c.Increase(9005); got != 15 {
		t.Errorf("increase after 10 of one counter and 5 of another = %v, want 15", got)
	}
	c.Rebase(Unknown(), 3)
	if got := c.Increase(4); got != 1 {
		t.Errorf("increase after an unknown increase and 1 = %v, want 1", got)
	}
	c.Rebase(4, math.NaN())
	if got := c.Increase(math.NaN()); got.Known() {
		t.Errorf("increase after only unknown readings = %v, want unknown", got)
	}
}

func TestCorrectedDelta_IgnoresCorrections(t *testing.T) {
	const slack, most = 3, 10
	for name, tt := range map[string]struct{ reached, cur, delta, now float64 }{
		"rise": {5, 7, 2, 7}, "unchanged": {5, 5, 0, 5}, "largest rise": {5, 15, 10, 15},
		"rise that is too large": {5, 15.5, 0, 15.5}, "correction": {5, 4, 0, 5}, "largest correction": {5, 2, 0, 5},
		"reset": {5, 1.5, 0, 1.5},
	} {
		if delta, now := CorrectedDelta(tt.reached, tt.cur, slack, most); delta != tt.delta || now != tt.now {
			t.Errorf("%s: delta = %v, reached = %v; want %v, %v", name, delta, now, tt.delta, tt.now)
		}
	}
}

func TestRangeDelta_WrapsAtSpan(t *testing.T) {
	for _, c := range []struct{ prev, cur, span, most, want uint64 }{
		{5, 9, 100, 50, 4}, {5, 5, 100, 50, 0}, {90, 10, 100, 50, 20}, {100, 0, 100, 50, 0}, {100, 7, 100, 50, 7},
		{90, 41, 100, 50, 0}, {90, 40, 100, 50, 50}, // more than most, and exactly most
		{40, 10, 100, 50, 0}, {90, 10, 0, 50, 0}, {90, 10, 80, 50, 0}, // increase too large, span unknown, and reading above the span
		{0, math.MaxUint64, 100, 50, math.MaxUint64}, {math.MaxUint64, 0, math.MaxUint64, 50, 0},
		{math.MaxUint64 - 1, 3, math.MaxUint64, 50, 4}, {10, 9, math.MaxUint64, math.MaxUint64, math.MaxUint64 - 1},
	} {
		if got := RangeDelta(c.prev, c.cur, c.span, c.most); got != c.want {
			t.Errorf("RangeDelta(%d, %d, %d, %d) = %d, want %d", c.prev, c.cur, c.span, c.most, got, c.want)
		}
	}
}

// The expected values are from Python: [round(x, 1) for x in …]
func TestRound1_EqualsPython(t *testing.T) {
	for x, want := range map[float64]float64{0.05: 0.1, 0.15: 0.1, 0.25: 0.2, 0.35: 0.3, 1.25: 1.2, 33.349999999999994: 33.3,
		99.95: 100, 99.94999999999999: 99.9, 0: 0, 100: 100} {
		if got := Round1(x); got != want {
			t.Errorf("Round1(%v) = %v, want %v", x, got, want)
		}
	}
}
