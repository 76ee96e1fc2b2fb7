package aggregate

import (
	"math"
	"slices"
	"sort"
)

// A distribution is the growth of a Prometheus histogram or summary.
type distribution struct {
	Count   float64   `json:"count"`
	Sum     float64   `json:"sum"`
	Bounds  []float64 `json:"bounds,omitempty"`  // ascending; without the bound of the last bucket, which is infinite
	Buckets []float64 `json:"buckets,omitempty"` // cumulative; one more than Bounds
	// Mixed reports whether quantiles are unknown because the buckets changed or exceed the limit.
	Mixed bool `json:"mixed,omitzero"`
}

// grow adds the growth of a histogram. It multiplies observations and bounds by scale.
func (d *distribution) grow(g *metricValue, bounds []float64, scale float64, used *usage) {
	had := len(d.Buckets)
	if had == 0 && used.buckets+len(g.buckets) > maxBuckets {
		d.Mixed = true
	}
	scaled := make([]float64, len(bounds))
	for i, bound := range bounds {
		scaled[i] = bound * scale
	}
	d.merge(&distribution{
		Count: g.count, Sum: g.sum * scale, Bounds: scaled, Buckets: g.buckets, Mixed: len(g.buckets) < len(bounds),
	})
	used.buckets += len(d.Buckets) - had
}

// clone returns an independent copy, or nil if d is nil.
func (d *distribution) clone() *distribution {
	if d == nil {
		return nil
	}
	c := *d
	c.Buckets = slices.Clone(d.Buckets) // bounds never change
	return &c
}

// merge adds o to d.
func (d *distribution) merge(o *distribution) {
	d.Count = min(d.Count+o.Count, maxSum)
	d.Sum = min(max(d.Sum+o.Sum, -maxSum), maxSum)
	switch {
	case o.Count == 0:
	case d.Mixed || o.Mixed:
		d.Bounds, d.Buckets, d.Mixed = nil, nil, true
	case d.Buckets == nil && d.Count == o.Count:
		d.Bounds, d.Buckets = o.Bounds, slices.Clone(o.Buckets)
	case len(d.Buckets) != len(o.Buckets) || !slices.Equal(d.Bounds, o.Bounds):
		d.Bounds, d.Buckets, d.Mixed = nil, nil, true
	default:
		for i, n := range o.Buckets {
			d.Buckets[i] = min(d.Buckets[i]+n, maxSum)
		}
	}
}

// quantile returns the quantile q by the rule of Prometheus' histogram_quantile. Within a bucket, it interpolates
// linearly; the lowest bucket begins at 0 if its bound is above 0. For the last bucket, it returns the highest finite
// bound. It reports false if there are no observations or no buckets.
func (d *distribution) quantile(q float64) (float64, bool) {
	last := min(len(d.Buckets)-1, len(d.Bounds))
	if last < 1 {
		return math.NaN(), false
	}

	counts := slices.Clone(d.Buckets)
	for i := 1; i <= last; i++ {
		counts[i] = max(counts[i], counts[i-1]) // a scrape while the server counts may be inconsistent
	}
	if counts[last] < 1 {
		return math.NaN(), false
	}

	rank := q * counts[last]
	i := sort.Search(last, func(i int) bool { return counts[i] >= rank })
	switch {
	case i == last:
		return d.Bounds[last-1], true
	case i == 0 && d.Bounds[0] <= 0:
		return d.Bounds[0], true
	case i == 0:
		return d.Bounds[0] * (rank / counts[0]), true
	}
	low, count := d.Bounds[i-1], counts[i]-counts[i-1]

	return low + (d.Bounds[i]-low)*((rank-counts[i-1])/count), true
}
