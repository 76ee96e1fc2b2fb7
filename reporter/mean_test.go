package reporter_test

import (
	"math"
	"testing"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// With any distribution of samples over buckets, a rounded mean stays between the exact minimum and maximum.
func TestNew_MeansAreBetweenMinAndMax(t *testing.T) {
	t.Parallel()
	for seed := range uint64(testenv.Rounds(20, 6)) {
		w := reportertest.NewWideStream(seed, 3, 2)
		rec := w.Recording(64)
		for range 1 + 37*seed {
			w.Next(rec)
		}
		reportertest.WantMeansInside(t, reporter.New(reporter.Input{Recording: rec}))
	}

	for _, reports := range []map[string]*reporter.Report{reportertest.Golden(), reportertest.JobReports(), reportertest.HostileReports("x")} {
		for _, r := range reports {
			reportertest.WantMeansInside(t, r)
		}
	}
}

// The smallest amount that a disk counts is a sector, 1/2048 MiB, which needs more than six decimals.
func TestNew_MeanOfSingleValueIsExact(t *testing.T) {
	t.Parallel()
	w := reportertest.NewStream(1)
	rec := w.Recording(10)
	var s collector.Sample
	for c := range s.Values {
		s.Values[c], s.Weights[c] = math.NaN(), 1
	}
	s.Values[collector.DiskRead] = 8. / 2048
	rec.Add(&s)

	r := reporter.New(reporter.Input{Recording: rec})
	reportertest.WantMeansInside(t, r)
	if band := r.Nodes["0"].Envelope["disk_io_read_mb"]; band.Mean[0] != 0.00390625 {
		t.Errorf("band %+v, want a mean of 0.00390625", band)
	}
}

// The mean of equal means is exactly the same number.
func TestBand_FoldKeepsTheMeanOfEqualMeans(t *testing.T) {
	t.Parallel()
	for n := 2; n < 60; n++ {
		b := reporter.Band{}
		for range n {
			b.Min, b.Mean, b.Max = append(b.Min, 0.1), append(b.Mean, 0.1), append(b.Max, 0.1)
		}
		got := b.Fold(n, func(i int) float64 { return 1 + float64(i)/7 })
		check.Equal(t, got.Mean[0], 0.1, "mean of %d means of 0.1", n)
	}
}
