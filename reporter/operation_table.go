package reporter

import (
	"cmp"
	"math"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/opstats"
)

// The families of /metrics. jobValue is a gauge because StatsD counters may fall. In the tables below, the accessors
// (plain, nilable) are from operation_kind.go, and the poolings (sum, worst, weighted, endOf) from operation.go.
var (
	opSeconds = MetricFamily{"perfagent_operation_seconds", "summary", "operation", "time taken by the job's operations"}
	opErrors  = MetricFamily{"perfagent_operation_errors_total", "counter", "operation",
		"failed operations of the job"}
	jobValue  = MetricFamily{"perfagent_job_value", "gauge", "kind, series", "the job's own counters and gauges"}
	xferTimes = MetricFamily{"perfagent_transfer_seconds", "summary", "transfer", "time taken by the job's transfers"}
	xferBytes = MetricFamily{"perfagent_transfer_bytes_total", "counter", "transfer", "bytes transferred by the job"}
	xferFails = MetricFamily{"perfagent_transfer_failures_total", "counter", "transfer, kind",
		"failed transfers, notifications and requests of the job"}
)

var times = kind[aggregate.Timing]{
	name:      OpKind,
	all:       func(w *Operations) *map[string]aggregate.Timing { return &w.Times },
	total:     func(t *aggregate.Timing) float64 { return t.Total },
	estimated: func(t *aggregate.Timing) *[]string { return &t.Estimated },
	rest: func(out, a, b *aggregate.Timing) {
		if a.LastAt > b.LastAt {
			out.Last, out.LastAt, out.SizeBytes = a.Last, a.LastAt, a.SizeBytes
		}
		out.Std = pooledStd(a, b)
	},
	rows: []kindNumber[aggregate.Timing]{
		{OperationNumber{Name: "count", Heading: "calls", SummaryFormat: "%s ×", Unit: collector.Times, Outputs: allOutputs,
			Meaning: "calls that succeeded", Metric: &opSeconds, Suffix: "_count"},
			plain(func(t *aggregate.Timing) *float64 { return &t.Count }), sum},
		{OperationNumber{Name: "errors", Heading: "failed", Unit: collector.Times, Outputs: OutputPage, OmitZero: true,
			Metric: &opErrors},
			plain(func(t *aggregate.Timing) *float64 { return &t.Errors }), sum},
		{OperationNumber{Name: "avg_time_ms", Heading: "avg", SummaryFormat: "avg %s", Unit: ms, Outputs: allOutputs,
			Meaning: "average time"},
			nilable(func(t *aggregate.Timing) **float64 { return &t.Avg }), weighted},
		{OperationNumber{Name: "min_time_ms", Heading: "min", Unit: ms},
			nilable(func(t *aggregate.Timing) **float64 { return &t.Min }), endOf(math.Min)},
		{OperationNumber{Name: "std_time_ms", Heading: "std", Unit: ms},
			nilable(func(t *aggregate.Timing) **float64 { return &t.Std }), nil},
		{OperationNumber{Name: aggregate.P50TimeName, Heading: "p50", Unit: ms, Quantile: "0.5", Metric: &opSeconds,
			Label: `operation="%s",quantile="0.5"`},
			nilable(func(t *aggregate.Timing) **float64 { return &t.P50 }), worst},
		{OperationNumber{Name: aggregate.P90TimeName, Heading: "p90", SummaryFormat: "p90 %s", Unit: ms,
			Outputs: allOutputs, Quantile: "0.9",
			Meaning: "time within which 90 % of the calls ended", Metric: &opSeconds, Label: `operation="%s",quantile="0.9"`},
			nilable(func(t *aggregate.Timing) **float64 { return &t.P90 }), worst},
		{OperationNumber{Name: aggregate.P99TimeName, Heading: "p99", Unit: ms, Quantile: "0.99", Metric: &opSeconds,
			Label: `operation="%s",quantile="0.99"`},
			nilable(func(t *aggregate.Timing) **float64 { return &t.P99 }), worst},
		{OperationNumber{Name: "max_time_ms", Heading: "max", SummaryFormat: "max %s", Unit: ms, Outputs: allOutputs,
			Meaning: "longest time"},
			nilable(func(t *aggregate.Timing) **float64 { return &t.Max }), endOf(math.Max)},
		{OperationNumber{Name: "last_time_ms", Heading: "last", Unit: ms},
			nilable(func(t *aggregate.Timing) **float64 { return &t.Last }), nil},
		{OperationNumber{Name: "total_time_ms", Heading: "total", Unit: ms, Outputs: OutputPage,
			SummaryFormat: "%s in all", Metric: &opSeconds,
			Suffix: "_sum"},
			plain(func(t *aggregate.Timing) *float64 { return &t.Total }), sum},
		{OperationNumber{Name: "size_bytes", Heading: "size", Unit: bytesUnit},
			nilable(func(t *aggregate.Timing) **float64 { return &t.SizeBytes }), nil},
		{OperationNumber{Name: "total_bytes", Heading: "total", Unit: bytesUnit},
			nilable(func(t *aggregate.Timing) **float64 { return &t.TotalBytes }), sum},
	},
}

var counters = kind[float64]{
	name: CounterKind,
	all:  func(w *Operations) *map[string]float64 { return &w.Counters },
	rows: []kindNumber[float64]{
		{OperationNumber{Heading: "sum", SummaryFormat: "%s", Outputs: allOutputs, Meaning: "sum", Metric: &jobValue,
			Label: `kind="counter",series="%s"`},
			plain(func(v *float64) *float64 { return v }), sum},
	},
}

var gauges = kind[aggregate.Gauge]{
	name: GaugeKind,
	all:  func(w *Operations) *map[string]aggregate.Gauge { return &w.Gauges },
	rows: []kindNumber[aggregate.Gauge]{
		{OperationNumber{Name: "count", Heading: "count", Unit: collector.Times},
			field[aggregate.Gauge]{
				func(g *aggregate.Gauge) *float64 { return new(float64(g.Count)) },
				func(g *aggregate.Gauge, v *float64) { g.Count = int64(*v) },
			}, sum},
		{OperationNumber{Name: "min", Heading: "min", Outputs: OutputPage},
			plain(func(g *aggregate.Gauge) *float64 { return &g.Min }), endOf(math.Min)},
		{OperationNumber{Name: "mean", SummaryFormat: "mean %s", Heading: "mean", Outputs: allOutputs,
			Meaning: "mean over time"},
			plain(func(g *aggregate.Gauge) *float64 { return &g.Mean }), weighted},
		{OperationNumber{Name: "max", SummaryFormat: "max %s", Heading: "max", Outputs: allOutputs,
			Meaning: "greatest value"},
			plain(func(g *aggregate.Gauge) *float64 { return &g.Max }), endOf(math.Max)},
		{OperationNumber{Name: "last", Heading: "last", SummaryFormat: "last %s", Outputs: OutputPage, PerNode: true,
			Metric: &jobValue,
			Label:  `kind="gauge",series="%s"`},
			plain(func(g *aggregate.Gauge) *float64 { return &g.Last }), nil},
	},
}

var values = kind[aggregate.Value]{
	name:      ValueKind,
	all:       func(w *Operations) *map[string]aggregate.Value { return &w.Values },
	estimated: func(v *aggregate.Value) *[]string { return &v.Estimated },
	rest:      func(out, a, _ *aggregate.Value) { out.Unit = cmp.Or(out.Unit, a.Unit) },
	rows: []kindNumber[aggregate.Value]{
		{OperationNumber{Name: "count", Heading: "count", SummaryFormat: "%s ×", Unit: collector.Times, Outputs: allOutputs,
			Meaning: "number of values"},
			plain(func(v *aggregate.Value) *float64 { return &v.Count }), sum},
		{OperationNumber{Name: "avg", SummaryFormat: "avg %s", Heading: "avg", Outputs: allOutputs, Meaning: "average"},
			plain(func(v *aggregate.Value) *float64 { return &v.Avg }), weighted},
		{OperationNumber{Name: "min", Heading: "min"},
			nilable(func(v *aggregate.Value) **float64 { return &v.Min }), endOf(math.Min)},
		{OperationNumber{Name: aggregate.P50Name, Heading: "p50", Quantile: "0.5"},
			nilable(func(v *aggregate.Value) **float64 { return &v.P50 }), worst},
		{OperationNumber{Name: aggregate.P90Name, Heading: "p90", SummaryFormat: "p90 %s", Outputs: allOutputs,
			Quantile: "0.9",
			Meaning:  "value that 90 % of the values do not exceed"},
			nilable(func(v *aggregate.Value) **float64 { return &v.P90 }), worst},
		{OperationNumber{Name: aggregate.P99Name, Heading: "p99", Quantile: "0.99"},
			nilable(func(v *aggregate.Value) **float64 { return &v.P99 }), worst},
		{OperationNumber{Name: "max", SummaryFormat: "max %s", Heading: "max", Outputs: allOutputs,
			Meaning: "greatest value"},
			nilable(func(v *aggregate.Value) **float64 { return &v.Max }), endOf(math.Max)},
		{OperationNumber{Name: "last", Heading: "last"},
			nilable(func(v *aggregate.Value) **float64 { return &v.Last }), nil},
	},
}

var transfers = kind[aggregate.Transfer]{
	name:      TransferKind,
	all:       func(w *Operations) *map[string]aggregate.Transfer { return &w.Transfers },
	estimated: func(t *aggregate.Transfer) *[]string { return &t.Estimated },
	rest:      poolTransfers,
	rows: []kindNumber[aggregate.Transfer]{
		{OperationNumber{Name: "num_successful_transfers", Heading: "count", Unit: collector.Times, Outputs: allOutputs,
			Meaning: "transfers that succeeded", Metric: &xferTimes, Suffix: "_count", VLLMName: opstats.TransfersName},
			plain(func(t *aggregate.Transfer) *float64 { return &t.Summary.Transfers }), sum},
		{OperationNumber{Name: "avg_xfer_time_ms", Heading: "avg", SummaryFormat: "avg %s", Unit: ms, Outputs: allOutputs,
			Meaning: "average time of a transfer", VLLMName: opstats.AvgXferName},
			plain(func(t *aggregate.Transfer) *float64 { return &t.Summary.AvgXfer }), weighted},
		{OperationNumber{Name: "p90_xfer_time_ms", Heading: "p90", SummaryFormat: "p90 %s", Unit: ms,
			Outputs: allOutputs, Quantile: "0.9",
			Meaning: "time within which 90 % of the transfers ended", VLLMName: opstats.P90XferName},
			plain(func(t *aggregate.Transfer) *float64 { return &t.Summary.P90Xfer }), worst},
		{OperationNumber{Name: "avg_post_time_ms", Unit: ms, Outputs: OutputPush, VLLMName: opstats.AvgPostName},
			plain(func(t *aggregate.Transfer) *float64 { return &t.Summary.AvgPost }), weighted},
		{OperationNumber{Name: "p90_post_time_ms", Unit: ms, Outputs: OutputPush, Quantile: "0.9",
			VLLMName: opstats.P90PostName},
			plain(func(t *aggregate.Transfer) *float64 { return &t.Summary.P90Post }), worst},
		{OperationNumber{Name: "avg_mb_per_transfer", Unit: collector.Mebibytes, Outputs: OutputPush,
			VLLMName: opstats.AvgMBName},
			plain(func(t *aggregate.Transfer) *float64 { return &t.Summary.AvgMB }), weighted},
		{OperationNumber{Name: "throughput_mb_per_second", Heading: "MiB/s", Unit: collector.MebibytesPerSecond,
			Outputs: allOutputs,
			Meaning: "amount per second of transfer time", VLLMName: opstats.ThroughputName},
			field[aggregate.Transfer]{get: func(t *aggregate.Transfer) *float64 {
				if v := &t.Summary.Throughput; !math.IsNaN(*v) && !math.IsInf(*v, 0) {
					return v // transfers without a duration have none
				}
				return nil
			}}, nil},
		{OperationNumber{Name: "avg_number_of_descriptors", Outputs: OutputPush, VLLMName: opstats.AvgDescriptorsName},
			plain(func(t *aggregate.Transfer) *float64 { return &t.Summary.AvgDescriptors }), weighted},
		{OperationNumber{Heading: "total MiB", Unit: collector.Mebibytes, Outputs: OutputPage, Metric: &xferBytes},
			plain(func(t *aggregate.Transfer) *float64 { return &t.TotalMB }), sum},
		{OperationNumber{Unit: collector.Seconds, Metric: &xferTimes, Suffix: "_sum"},
			plain(func(t *aggregate.Transfer) *float64 { return &t.Seconds }), sum},
		{OperationNumber{Heading: "throughput from first to last (MB/s)", Unit: collector.MebibytesPerSecond},
			nilable(func(t *aggregate.Transfer) **float64 { return &t.WallThroughput }), nil},
		{OperationNumber{Name: "failed", Heading: "failed transfers", Unit: collector.Times, Outputs: allOutputs,
			Meaning: "transfers that failed", Metric: &xferFails, Label: `transfer="%s",kind="transfer"`},
			plain(func(t *aggregate.Transfer) *float64 { return &t.FailedTransfers }), sum},
		{OperationNumber{Heading: "failed notifications", Unit: collector.Times, Outputs: OutputPage, Metric: &xferFails,
			Label: `transfer="%s",kind="notification"`},
			plain(func(t *aggregate.Transfer) *float64 { return &t.FailedNotifications }), sum},
		{OperationNumber{Heading: "expired KV requests", Unit: collector.Times, Outputs: OutputPage, Metric: &xferFails,
			Label: `transfer="%s",kind="kv_expired"`},
			plain(func(t *aggregate.Transfer) *float64 { return &t.KVExpired }), sum},
	},
}

// pooledStd returns the standard deviation of the times of two nodes together; nil if a node with times lacks it.
func pooledStd(a, b *aggregate.Timing) *float64 {
	switch {
	case a.Avg == nil:
		return b.Std
	case b.Avg == nil:
		return a.Std
	case a.Std == nil && a.Count > 1 || b.Std == nil && b.Count > 1:
		return nil
	}

	variance := func(t *aggregate.Timing) float64 {
		if t.Std == nil { // a single time
			return 0
		}
		return *t.Std * *t.Std
	}
	between := *a.Avg - *b.Avg
	n, m := a.Count, b.Count
	all := math.Sqrt((n*variance(a)+m*variance(b))/(n+m) + n*m/((n+m)*(n+m))*between*between)
	if !(all >= 0) { // impossible counts
		return nil
	}
	return &all
}

// poolTransfers pools the fields of a and b, transfers of two nodes, that are not in rows.
func poolTransfers(out, a, b *aggregate.Transfer) {
	x, y := &a.Summary, &b.Summary
	time := x.Transfers*x.AvgXfer + y.Transfers*y.AvgXfer
	out.Summary.Throughput = out.TotalMB / time * 1000 // per second of transfer time
	out.WallThroughput, out.Source, out.Ranks, out.Last = nil, a.Source, a.Ranks+b.Ranks, max(a.Last, b.Last)
	if a.First != 0 && (b.First == 0 || a.First < b.First) {
		out.First = a.First
	}
	out.Other = pooled(a.Other, b.Other, func(a, b aggregate.TransferList) aggregate.TransferList {
		return aggregate.TransferList{Count: a.Count + b.Count, Sum: a.Sum + b.Sum}
	})
}
