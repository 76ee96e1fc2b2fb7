package reporter_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/reporter"
)

func TestBand_Fold(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	b := reporter.Band{
		Min:  reporter.Numbers{1, 0, nan, 4, nan},
		Mean: reporter.Numbers{2, 4, nan, 5, nan},
		Max:  reporter.Numbers{3, 9, nan, 6, nan},
	}
	heavy := func(i int) float64 { return float64(1 + 2*i) } // 1, 3, 5, 7, 9
	for _, c := range []struct {
		name   string
		k      int
		weight func(int) float64
		want   reporter.Band
	}{
		{"no folding", 1, heavy, b},
		{"pairs", 2, nil, reporter.Band{Min: reporter.Numbers{0, 4, nan}, Mean: reporter.Numbers{3, 5, nan}, Max: reporter.Numbers{9, 6, nan}}},
		{"weighted pairs", 2, heavy, reporter.Band{Min: reporter.Numbers{0, 4, nan}, Mean: reporter.Numbers{3.5, 5, nan}, Max: reporter.Numbers{9, 6, nan}}},
		{"remainder", 3, heavy, reporter.Band{Min: reporter.Numbers{0, 4}, Mean: reporter.Numbers{3.5, 5}, Max: reporter.Numbers{9, 6}}},
		{"all points", 9, heavy, reporter.Band{Min: reporter.Numbers{0}, Mean: reporter.Numbers{49.0 / 11}, Max: reporter.Numbers{9}}},
	} {
		got := b.Fold(c.k, c.weight)
		if d := cmp.Diff(c.want, got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(1e-15, 0)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
		for _, list := range []reporter.Numbers{got.Min, got.Mean, got.Max} {
			list[0] = 77
		}
	}
	wantValues(t, "band, with which Fold's result may not share memory", "1 2 3", b.Min[0], b.Mean[0], b.Max[0])
}

// The mean of representable numbers does not overflow.
func TestBand_MeanOfHugeNumbersIsFinite(t *testing.T) {
	t.Parallel()
	b := reporter.Band{Mean: reporter.Numbers{math.MaxFloat64, math.MaxFloat64}}
	check.Equal(t, b.MeanOf(0, 2, nil), math.MaxFloat64, "mean of MaxFloat64 and MaxFloat64")
	if got := b.MeanOf(1, 1, nil); !math.IsNaN(got) {
		t.Errorf("mean of no points = %v, want NaN", got)
	}
}
