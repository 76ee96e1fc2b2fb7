package reporter

import (
	"cmp"
	"math"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/intake/book"
	"github.com/perfagent/perfagent/opstats"
)

// The metrics of /metrics. A counter of StatsD may fall, so that the metric of both is a gauge.
var (
	opSeconds = WorkFamily{"perfagent_operation_seconds", "summary", "operation", "time that operations of the job took"}
	opErrors  = WorkFamily{"perfagent_operation_errors_total", "counter", "operation", "operations of the job that failed"}
	jobValue  = WorkFamily{"perfagent_job_value", "gauge", "kind, series", "the job's own counters and gauges"}
	xferTimes = WorkFamily{"perfagent_transfer_seconds", "summary", "transfer", "time that transfers of the job took"}
	xferBytes = WorkFamily{"perfagent_transfer_bytes_total", "counter", "transfer", "bytes that the job transferred"}
	xferFails = WorkFamily{"perfagent_transfer_failures_total", "counter", "transfer, kind",
		"transfers, notifications and requests of the job that failed"}
)

var times = kind[book.Time]{
	name:      OpKind,
	all:       func(w *Work) *map[string]book.Time { return &w.Times },
	total:     func(t *book.Time) float64 { return t.Total },
	estimated: func(t *book.Time) *[]string { return &t.Estimated },
	rest: func(out, a, b *book.Time) {
		if a.LastAt > b.LastAt {
			out.Last, out.LastAt, out.SizeBytes = a.Last, a.LastAt, a.SizeBytes
		}
		out.Std = pooledStd(a, b)
	},
	rows: []kindNumber[book.Time]{
		{WorkNumber{Name: "count", Head: "calls", Words: "%s ×", Unit: collector.Times, In: everywhere,
			Meaning: "calls that succeeded", Metric: &opSeconds, Suffix: "_count"},
			plain(func(t *book.Time) *float64 { return &t.Count }), sum},
		{WorkNumber{Name: "errors", Head: "failed", Unit: collector.Times, In: OnPage, Rare: true, Metric: &opErrors},
			plain(func(t *book.Time) *float64 { return &t.Errors }), sum},
		{WorkNumber{Name: "avg_time_ms", Head: "avg", Words: "avg %s", Unit: ms, In: everywhere, Meaning: "average time"},
			nilable(func(t *book.Time) **float64 { return &t.Avg }), weighted},
		{WorkNumber{Name: "min_time_ms", Head: "min", Unit: ms},
			nilable(func(t *book.Time) **float64 { return &t.Min }), endOf(math.Min)},
		{WorkNumber{Name: "std_time_ms", Head: "std", Unit: ms},
			nilable(func(t *book.Time) **float64 { return &t.Std }), nil},
		{WorkNumber{Name: book.P50TimeName, Head: "p50", Unit: ms, Quantile: "0.5", Metric: &opSeconds,
			Label: `operation="%s",quantile="0.5"`},
			nilable(func(t *book.Time) **float64 { return &t.P50 }), worst},
		{WorkNumber{Name: book.P90TimeName, Head: "p90", Words: "p90 %s", Unit: ms, In: everywhere, Quantile: "0.9",
			Meaning: "time that 90 % of the calls were within", Metric: &opSeconds, Label: `operation="%s",quantile="0.9"`},
			nilable(func(t *book.Time) **float64 { return &t.P90 }), worst},
		{WorkNumber{Name: book.P99TimeName, Head: "p99", Unit: ms, Quantile: "0.99", Metric: &opSeconds,
			Label: `operation="%s",quantile="0.99"`},
			nilable(func(t *book.Time) **float64 { return &t.P99 }), worst},
		{WorkNumber{Name: "max_time_ms", Head: "max", Words: "max %s", Unit: ms, In: everywhere, Meaning: "longest time"},
			nilable(func(t *book.Time) **float64 { return &t.Max }), endOf(math.Max)},
		{WorkNumber{Name: "last_time_ms", Head: "last", Unit: ms},
			nilable(func(t *book.Time) **float64 { return &t.Last }), nil},
		{WorkNumber{Name: "total_time_ms", Head: "total", Unit: ms, In: OnPage, Words: "%s in all", Metric: &opSeconds,
			Suffix: "_sum"},
			plain(func(t *book.Time) *float64 { return &t.Total }), sum},
		{WorkNumber{Name: "size_bytes", Head: "size", Unit: bytesUnit},
			nilable(func(t *book.Time) **float64 { return &t.SizeBytes }), nil},
		{WorkNumber{Name: "total_bytes", Head: "total", Unit: bytesUnit},
			nilable(func(t *book.Time) **float64 { return &t.TotalBytes }), sum},
	},
}

var counters = kind[float64]{
	name: CounterKind,
	all:  func(w *Work) *map[string]float64 { return &w.Counters },
	rows: []kindNumber[float64]{
		{WorkNumber{Head: "sum", Words: "%s", In: everywhere, Meaning: "sum", Metric: &jobValue,
			Label: `kind="counter",series="%s"`},
			plain(func(v *float64) *float64 { return v }), sum},
	},
}

var gauges = kind[book.Gauge]{
	name: GaugeKind,
	all:  func(w *Work) *map[string]book.Gauge { return &w.Gauges },
	rows: []kindNumber[book.Gauge]{
		{WorkNumber{Name: "count", Head: "count", Unit: collector.Times},
			field[book.Gauge]{
				func(g *book.Gauge) *float64 { return new(float64(g.Count)) },
				func(g *book.Gauge, v *float64) { g.Count = int64(*v) },
			}, sum},
		{WorkNumber{Name: "min", Head: "min", In: OnPage},
			plain(func(g *book.Gauge) *float64 { return &g.Min }), endOf(math.Min)},
		{WorkNumber{Name: "mean", Words: "mean %s", Head: "mean", In: everywhere, Meaning: "mean over time"},
			plain(func(g *book.Gauge) *float64 { return &g.Mean }), weighted},
		{WorkNumber{Name: "max", Words: "max %s", Head: "max", In: everywhere, Meaning: "greatest value"},
			plain(func(g *book.Gauge) *float64 { return &g.Max }), endOf(math.Max)},
		{WorkNumber{Name: "last", Head: "last", Words: "last %s", In: OnPage, OfNode: true, Metric: &jobValue,
			Label: `kind="gauge",series="%s"`},
			plain(func(g *book.Gauge) *float64 { return &g.Last }), nil},
	},
}

var values = kind[book.Value]{
	name:      ValueKind,
	all:       func(w *Work) *map[string]book.Value { return &w.Values },
	estimated: func(v *book.Value) *[]string { return &v.Estimated },
	rest:      func(out, a, _ *book.Value) { out.Unit = cmp.Or(out.Unit, a.Unit) },
	rows: []kindNumber[book.Value]{
		{WorkNumber{Name: "count", Head: "count", Words: "%s ×", Unit: collector.Times, In: everywhere,
			Meaning: "number of values"},
			plain(func(v *book.Value) *float64 { return &v.Count }), sum},
		{WorkNumber{Name: "avg", Words: "avg %s", Head: "avg", In: everywhere, Meaning: "average"},
			plain(func(v *book.Value) *float64 { return &v.Avg }), weighted},
		{WorkNumber{Name: "min", Head: "min"},
			nilable(func(v *book.Value) **float64 { return &v.Min }), endOf(math.Min)},
		{WorkNumber{Name: book.P50Name, Head: "p50", Quantile: "0.5"},
			nilable(func(v *book.Value) **float64 { return &v.P50 }), worst},
		{WorkNumber{Name: book.P90Name, Head: "p90", Words: "p90 %s", In: everywhere, Quantile: "0.9",
			Meaning: "what 90 % of the values were within"},
			nilable(func(v *book.Value) **float64 { return &v.P90 }), worst},
		{WorkNumber{Name: book.P99Name, Head: "p99", Quantile: "0.99"},
			nilable(func(v *book.Value) **float64 { return &v.P99 }), worst},
		{WorkNumber{Name: "max", Words: "max %s", Head: "max", In: everywhere, Meaning: "greatest value"},
			nilable(func(v *book.Value) **float64 { return &v.Max }), endOf(math.Max)},
		{WorkNumber{Name: "last", Head: "last"},
			nilable(func(v *book.Value) **float64 { return &v.Last }), nil},
	},
}

var transfers = kind[book.Transfer]{
	name:      TransferKind,
	all:       func(w *Work) *map[string]book.Transfer { return &w.Transfers },
	estimated: func(t *book.Transfer) *[]string { return &t.Estimated },
	rest:      poolTransfers,
	rows: []kindNumber[book.Transfer]{
		{WorkNumber{Name: "num_successful_transfers", Head: "count", Unit: collector.Times, In: everywhere,
			Meaning: "transfers that succeeded", Metric: &xferTimes, Suffix: "_count", Figure: opstats.TransfersName},
			plain(func(t *book.Transfer) *float64 { return &t.Reduced.Transfers }), sum},
		{WorkNumber{Name: "avg_xfer_time_ms", Head: "avg", Words: "avg %s", Unit: ms, In: everywhere,
			Meaning: "average time of a transfer", Figure: opstats.AvgXferName},
			plain(func(t *book.Transfer) *float64 { return &t.Reduced.AvgXfer }), weighted},
		{WorkNumber{Name: "p90_xfer_time_ms", Head: "p90", Words: "p90 %s", Unit: ms, In: everywhere, Quantile: "0.9",
			Meaning: "time that 90 % of the transfers were within", Figure: opstats.P90XferName},
			plain(func(t *book.Transfer) *float64 { return &t.Reduced.P90Xfer }), worst},
		{WorkNumber{Name: "avg_post_time_ms", Unit: ms, In: Pushed, Figure: opstats.AvgPostName},
			plain(func(t *book.Transfer) *float64 { return &t.Reduced.AvgPost }), weighted},
		{WorkNumber{Name: "p90_post_time_ms", Unit: ms, In: Pushed, Quantile: "0.9", Figure: opstats.P90PostName},
			plain(func(t *book.Transfer) *float64 { return &t.Reduced.P90Post }), worst},
		{WorkNumber{Name: "avg_mb_per_transfer", Unit: collector.Mebibytes, In: Pushed, Figure: opstats.AvgMBName},
			plain(func(t *book.Transfer) *float64 { return &t.Reduced.AvgMB }), weighted},
		{WorkNumber{Name: "throughput_mb_per_second", Head: "MiB/s", Unit: collector.MebibytesPerSecond, In: everywhere,
			Meaning: "amount per second of transfer time", Figure: opstats.ThroughputName},
			field[book.Transfer]{get: func(t *book.Transfer) *float64 {
				if v := &t.Reduced.Throughput; !math.IsNaN(*v) && !math.IsInf(*v, 0) {
					return v // transfers that took no time have none
				}
				return nil
			}}, nil},
		{WorkNumber{Name: "avg_number_of_descriptors", In: Pushed, Figure: opstats.AvgDescriptorsName},
			plain(func(t *book.Transfer) *float64 { return &t.Reduced.AvgDescriptors }), weighted},
		{WorkNumber{Head: "total MiB", Unit: collector.Mebibytes, In: OnPage, Metric: &xferBytes},
			plain(func(t *book.Transfer) *float64 { return &t.TotalMB }), sum},
		{WorkNumber{Unit: collector.Seconds, Metric: &xferTimes, Suffix: "_sum"},
			plain(func(t *book.Transfer) *float64 { return &t.Seconds }), sum},
		{WorkNumber{Head: "throughput from first to last (MB/s)", Unit: collector.MebibytesPerSecond},
			nilable(func(t *book.Transfer) **float64 { return &t.WallThroughput }), nil},
		{WorkNumber{Name: "failed", Head: "failed transfers", Unit: collector.Times, In: everywhere,
			Meaning: "transfers that failed", Metric: &xferFails, Label: `transfer="%s",kind="transfer"`},
			plain(func(t *book.Transfer) *float64 { return &t.FailedTransfers }), sum},
		{WorkNumber{Head: "failed notifications", Unit: collector.Times, In: OnPage, Metric: &xferFails,
			Label: `transfer="%s",kind="notification"`},
			plain(func(t *book.Transfer) *float64 { return &t.FailedNotifications }), sum},
		{WorkNumber{Head: "expired KV requests", Unit: collector.Times, In: OnPage, Metric: &xferFails,
			Label: `transfer="%s",kind="kv_expired"`},
			plain(func(t *book.Transfer) *float64 { return &t.KVExpired }), sum},
	},
}

// pooledStd returns the standard deviation of the times of two nodes together; nil if either has times and none.
func pooledStd(a, b *book.Time) *float64 {
	switch {
	case a.Avg == nil:
		return b.Std
	case b.Avg == nil:
		return a.Std
	case a.Std == nil && a.Count > 1 || b.Std == nil && b.Count > 1:
		return nil
	}

	variance := func(t *book.Time) float64 {
		if t.Std == nil { // of one time
			return 0
		}
		return *t.Std * *t.Std
	}
	between := *a.Avg - *b.Avg
	n, m := a.Count, b.Count
	all := math.Sqrt((n*variance(a)+m*variance(b))/(n+m) + n*m/((n+m)*(n+m))*between*between)
	if !(all >= 0) { // of impossible counts
		return nil
	}
	return &all
}

// poolTransfers pools what is no number of its own of the transfers of two nodes.
func poolTransfers(out, a, b *book.Transfer) {
	x, y := &a.Reduced, &b.Reduced
	time := x.Transfers*x.AvgXfer + y.Transfers*y.AvgXfer
	out.Reduced.Throughput = out.TotalMB / time * 1000 // per second of transfer time
	out.WallThroughput, out.Source, out.Ranks, out.Last = nil, a.Source, a.Ranks+b.Ranks, max(a.Last, b.Last)
	if a.First != 0 && (b.First == 0 || a.First < b.First) {
		out.First = a.First
	}
	out.Other = pooled(a.Other, b.Other, func(a, b book.TransferList) book.TransferList {
		return book.TransferList{Count: a.Count + b.Count, Sum: a.Sum + b.Sum}
	})
}
