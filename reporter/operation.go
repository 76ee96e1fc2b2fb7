package reporter

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/perfagent/perfagent/collector/intake/book"
	"github.com/perfagent/perfagent/opstats"
)

// Work is what a job said of its operations and transfers, on one node or pooled over several. What nodes cannot tell
// together is absent.
type Work struct {
	book.Operations

	Transfers map[string]book.Transfer
	// Nodes is how many nodes recorded operations. Of several nodes, a quantile is that of the worst node: that of
	// all is at most as large.
	Nodes int
	// Slowest names the node with the greatest average time of each operation that several nodes had.
	Slowest map[string]string
}

// Work returns what the job said of its operations. It is nil if they were not recorded on any node.
//
// Over nodes counts, sums and errors add up, averages are weighted by their counts, and least and greatest values are
// those of all nodes.
func (r *Report) Work() *Work {
	w := &Work{Slowest: make(map[string]string), Transfers: make(map[string]book.Transfer)}
	slowest := make(map[string]float64)
	for _, name := range r.NodeNames() {
		n := r.Nodes[name]
		if n == nil || n.Operations == nil && n.Transfers == nil {
			continue
		}

		w.Nodes++
		if ops := n.Operations; ops != nil {
			w.addOperations(ops)
			for series, t := range ops.Times {
				if t.Avg != nil && (w.Slowest[series] == "" || *t.Avg > slowest[series]) {
					w.Slowest[series], slowest[series] = name, *t.Avg
				}
			}
		}
		w.Transfers = pooled(w.Transfers, n.Transfers, poolTransfers)
	}

	switch w.Nodes {
	case 0:
		return nil
	case 1:
		w.Slowest = nil
	}

	return w
}

// addOperations adds the operations of a node.
func (w *Work) addOperations(o *book.Operations) {
	w.Sources = append(w.Sources, o.Sources...)
	w.Times = pooled(w.Times, o.Times, poolTimes)
	w.Counters = pooled(w.Counters, o.Counters, func(a, b float64) float64 { return a + b })
	w.Gauges = pooled(w.Gauges, o.Gauges, poolGauges)
	w.Values = pooled(w.Values, o.Values, poolValues)
	w.Sets = pooled(w.Sets, o.Sets, poolSets)
	w.Attributes = pooled(w.Attributes, o.Attributes, func(_, b any) any { return b })
	w.Keys = pooled(w.Keys, o.Keys, func(a, b map[string]opstats.TimeStats) map[string]opstats.TimeStats {
		return pooled(a, b, opstats.TimeStats.Merge)
	})

	w.Dropped = w.Dropped.Plus(o.Dropped)
	if room := book.MaxExamples - len(w.Examples); room > 0 {
		w.Examples = append(w.Examples, o.Examples[:min(room, len(o.Examples))]...)
	}
}

// pooled returns the entries of two nodes. Those that both have are joined.
func pooled[E any](a, b map[string]E, join func(a, b E) E) map[string]E {
	if len(b) == 0 {
		return a
	}

	out := maps.Clone(a)
	if out == nil {
		out = make(map[string]E, len(b))
	}
	for name, e := range b {
		if have, ok := out[name]; ok {
			e = join(have, e)
		}
		out[name] = e
	}

	return out
}

func poolTimes(a, b book.Time) book.Time {
	out := book.Time{
		Count: a.Count + b.Count, Total: a.Total + b.Total, Errors: a.Errors + b.Errors,
		Avg: weighted(a.Avg, a.Count, b.Avg, b.Count),
		P50: greater(a.P50, b.P50), P90: greater(a.P90, b.P90), P99: greater(a.P99, b.P99),
		TotalBytes: either(a.TotalBytes, b.TotalBytes, func(x, y float64) float64 { return x + y }),
		Estimated:  union(a.Estimated, b.Estimated),
	}
	switch {
	case b.Count == 0:
		out.Min, out.Max = a.Min, a.Max
	case a.Count == 0:
		out.Min, out.Max = b.Min, b.Max
	default:
		out.Min, out.Max = both(a.Min, b.Min, math.Min), both(a.Max, b.Max, math.Max)
	}
	last := a
	if b.LastAt >= a.LastAt {
		last = b
	}
	out.Last, out.LastAt, out.SizeBytes = last.Last, last.LastAt, last.SizeBytes

	return out
}

func poolGauges(a, b book.Gauge) book.Gauge {
	return book.Gauge{
		Last: b.Last, Min: min(a.Min, b.Min), Max: max(a.Max, b.Max), Count: a.Count + b.Count,
		Mean: *weighted(&a.Mean, float64(a.Count), &b.Mean, float64(b.Count)),
	}
}

func poolValues(a, b book.Value) book.Value {
	out := book.Value{
		Count: a.Count + b.Count, Min: both(a.Min, b.Min, math.Min), Max: both(a.Max, b.Max, math.Max), Last: b.Last,
		P50: greater(a.P50, b.P50), P90: greater(a.P90, b.P90), P99: greater(a.P99, b.P99),
		Unit: cmp.Or(b.Unit, a.Unit), Estimated: union(a.Estimated, b.Estimated),
	}
	out.Avg = *weighted(&a.Avg, a.Count, &b.Avg, b.Count)

	return out
}

// poolSets returns the larger set: which members two nodes share is not known.
func poolSets(a, b book.Set) book.Set { return book.Set{Count: max(a.Count, b.Count), AtLeast: true} }

func poolTransfers(a, b book.Transfer) book.Transfer {
	x, y := a.Reduced, b.Reduced
	n, m := x.Transfers, y.Transfers
	mean := func(v, w float64) float64 { return *weighted(&v, n, &w, m) }

	out := book.Transfer{
		Reduced: opstats.Reduced{
			Transfers: n + m,
			AvgXfer:   mean(x.AvgXfer, y.AvgXfer), P90Xfer: max(x.P90Xfer, y.P90Xfer),
			AvgPost: mean(x.AvgPost, y.AvgPost), P90Post: max(x.P90Post, y.P90Post),
			AvgMB:          mean(x.AvgMB, y.AvgMB),
			Throughput:     (a.TotalMB + b.TotalMB) / (n*x.AvgXfer + m*y.AvgXfer) * 1000, // per second of transfer time
			AvgDescriptors: mean(x.AvgDescriptors, y.AvgDescriptors),
		},
		TotalMB:             a.TotalMB + b.TotalMB,
		FailedTransfers:     a.FailedTransfers + b.FailedTransfers,
		FailedNotifications: a.FailedNotifications + b.FailedNotifications,
		KVExpired:           a.KVExpired + b.KVExpired,
		Ranks:               a.Ranks + b.Ranks,
		First:               earliest(a.First, b.First), Last: max(a.Last, b.Last),
		Source: a.Source, Estimated: union(a.Estimated, b.Estimated),
	}
	out.Other = pooled(a.Other, b.Other, func(a, b book.TransferList) book.TransferList {
		return book.TransferList{Count: a.Count + b.Count, Sum: a.Sum + b.Sum}
	})

	return out
}

// weighted returns the mean of two averages of so many values: that of a if b has no values. It is nil if neither
// average is known.
func weighted(a *float64, n float64, b *float64, m float64) *float64 {
	switch {
	case b == nil || !(m > 0):
		return a
	case a == nil || !(n > 0):
		return b
	}
	return new(clamped((*a*n+*b*m)/(n+m), min(*a, *b), max(*a, *b)))
}

// both joins two values; nil if one is not known.
func both(a, b *float64, join func(a, b float64) float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	return new(join(*a, *b))
}

// either joins two values, or returns the one that is known.
func either(a, b *float64, join func(a, b float64) float64) *float64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return new(join(*a, *b))
}

func greater(a, b *float64) *float64 { return either(a, b, math.Max) }

// earliest returns the earlier of two times; 0 is not known.
func earliest(a, b float64) float64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// union returns the names that are in one of two lists.
func union(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}
