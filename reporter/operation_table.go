package reporter

import (
	"cmp"
	"math"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/opstats"
)

// The families of /metrics. jobValue is a gauge because StatsD counters may fall. The poolings (sum, worst, weighted,
// endOf) in the tables below are defined in operation.go.
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
	fields: func(t *aggregate.Timing) []any {
		return []any{
			&t.Count, &t.Errors, &t.Avg, &t.Min, &t.Std, &t.P50, &t.P90, &t.P99, &t.Max, &t.Last, &t.Total,
			&t.SizeBytes, &t.TotalBytes,
		}
	},
	rows: []OperationNumber{
		{Name: "count", Heading: "calls", SummaryFormat: "%s ×", Unit: collector.Times, Outputs: allOutputs,
			Meaning: "calls that succeeded", Metric: &opSeconds, Suffix: "_count", pool: sum},
		{Name: "errors", Heading: "failed", Unit: collector.Times, Outputs: OutputPage, OmitZero: true,
			Metric: &opErrors, pool: sum},
		{Name: "avg_time_ms", Heading: "avg", SummaryFormat: "avg %s", Unit: ms, Outputs: allOutputs,
			Meaning: "average time", pool: weighted},
		{Name: "min_time_ms", Heading: "min", Unit: ms, pool: endOf(math.Min)},
		{Name: "std_time_ms", Heading: "std", Unit: ms},
		{Name: "p50_time_ms", Heading: "p50", Unit: ms, Quantile: "0.5", Metric: &opSeconds,
			Label: `operation="%s",quantile="0.5"`, pool: worst},
		{Name: "p90_time_ms", Heading: "p90", SummaryFormat: "p90 %s", Unit: ms, Outputs: allOutputs,
			Quantile: "0.9", Meaning: "time within which 90 % of the calls ended", Metric: &opSeconds,
			Label: `operation="%s",quantile="0.9"`, pool: worst},
		{Name: "p99_time_ms", Heading: "p99", Unit: ms, Quantile: "0.99", Metric: &opSeconds,
			Label: `operation="%s",quantile="0.99"`, pool: worst},
		{Name: "max_time_ms", Heading: "max", SummaryFormat: "max %s", Unit: ms, Outputs: allOutputs,
			Meaning: "longest time", pool: endOf(math.Max)},
		{Name: "last_time_ms", Heading: "last", Unit: ms},
		{Name: "total_time_ms", Heading: "total", Unit: ms, Outputs: OutputPage, SummaryFormat: "%s in all",
			Metric: &opSeconds, Suffix: "_sum", pool: sum},
		{Name: "size_bytes", Heading: "size", Unit: bytesUnit},
		{Name: "total_bytes", Heading: "total", Unit: bytesUnit, pool: sum},
	},
}

var counters = kind[float64]{
	name:   CounterKind,
	all:    func(w *Operations) *map[string]float64 { return &w.Counters },
	fields: func(v *float64) []any { return []any{v} },
	rows: []OperationNumber{
		{Heading: "sum", SummaryFormat: "%s", Outputs: allOutputs, Meaning: "sum", Metric: &jobValue,
			Label: `kind="counter",series="%s"`, pool: sum},
	},
}

var gauges = kind[aggregate.Gauge]{
	name:   GaugeKind,
	all:    func(w *Operations) *map[string]aggregate.Gauge { return &w.Gauges },
	fields: func(g *aggregate.Gauge) []any { return []any{&g.Count, &g.Min, &g.Mean, &g.Max, &g.Last} },
	rows: []OperationNumber{
		{Name: "count", Heading: "count", Unit: collector.Times, pool: sum},
		{Name: "min", Heading: "min", Outputs: OutputPage, pool: endOf(math.Min)},
		{Name: "mean", SummaryFormat: "mean %s", Heading: "mean", Outputs: allOutputs, Meaning: "mean over time",
			pool: weighted},
		{Name: "max", SummaryFormat: "max %s", Heading: "max", Outputs: allOutputs, Meaning: "greatest value",
			pool: endOf(math.Max)},
		{Name: "last", Heading: "last", SummaryFormat: "last %s", Outputs: OutputPage, PerNode: true,
			Metric: &jobValue, Label: `kind="gauge",series="%s"`},
	},
}

var values = kind[aggregate.Value]{
	name:      ValueKind,
	all:       func(w *Operations) *map[string]aggregate.Value { return &w.Values },
	estimated: func(v *aggregate.Value) *[]string { return &v.Estimated },
	rest:      func(out, a, _ *aggregate.Value) { out.Unit = cmp.Or(out.Unit, a.Unit) },
	fields: func(v *aggregate.Value) []any {
		return []any{&v.Count, &v.Avg, &v.Min, &v.P50, &v.P90, &v.P99, &v.Max, &v.Last}
	},
	rows: []OperationNumber{
		{Name: "count", Heading: "count", SummaryFormat: "%s ×", Unit: collector.Times, Outputs: allOutputs,
			Meaning: "number of values", pool: sum},
		{Name: "avg", SummaryFormat: "avg %s", Heading: "avg", Outputs: allOutputs, Meaning: "average",
			pool: weighted},
		{Name: "min", Heading: "min", pool: endOf(math.Min)},
		{Name: "p50", Heading: "p50", Quantile: "0.5", pool: worst},
		{Name: "p90", Heading: "p90", SummaryFormat: "p90 %s", Outputs: allOutputs, Quantile: "0.9",
			Meaning: "value that 90 % of the values do not exceed", pool: worst},
		{Name: "p99", Heading: "p99", Quantile: "0.99", pool: worst},
		{Name: "max", SummaryFormat: "max %s", Heading: "max", Outputs: allOutputs, Meaning: "greatest value",
			pool: endOf(math.Max)},
		{Name: "last", Heading: "last"},
	},
}

var transfers = kind[aggregate.Transfer]{
	name:      TransferKind,
	all:       func(w *Operations) *map[string]aggregate.Transfer { return &w.Transfers },
	estimated: func(t *aggregate.Transfer) *[]string { return &t.Estimated },
	rest:      poolTransfers,
	fields: func(t *aggregate.Transfer) []any {
		return []any{
			&t.Summary.Transfers, &t.Summary.AvgXfer, &t.Summary.P90Xfer, &t.Summary.AvgPost, &t.Summary.P90Post,
			&t.Summary.AvgMB, finite(&t.Summary.Throughput), &t.Summary.AvgDescriptors, &t.TotalMB, &t.Seconds,
			&t.WallThroughput, &t.FailedTransfers, &t.FailedNotifications, &t.KVExpired,
		}
	},
	rows: []OperationNumber{
		{Name: "num_successful_transfers", Heading: "count", Unit: collector.Times, Outputs: allOutputs,
			Meaning: "transfers that succeeded", Metric: &xferTimes, Suffix: "_count",
			VLLMName: opstats.TransfersName, pool: sum},
		{Name: "avg_xfer_time_ms", Heading: "avg", SummaryFormat: "avg %s", Unit: ms, Outputs: allOutputs,
			Meaning: "average time of a transfer", VLLMName: opstats.AvgXferName, pool: weighted},
		{Name: "p90_xfer_time_ms", Heading: "p90", SummaryFormat: "p90 %s", Unit: ms, Outputs: allOutputs,
			Quantile: "0.9", Meaning: "time within which 90 % of the transfers ended",
			VLLMName: opstats.P90XferName, pool: worst},
		{Name: "avg_post_time_ms", Unit: ms, Outputs: OutputPush, VLLMName: opstats.AvgPostName, pool: weighted},
		{Name: "p90_post_time_ms", Unit: ms, Outputs: OutputPush, Quantile: "0.9", VLLMName: opstats.P90PostName,
			pool: worst},
		{Name: "avg_mb_per_transfer", Unit: collector.Mebibytes, Outputs: OutputPush, VLLMName: opstats.AvgMBName,
			pool: weighted},
		{Name: "throughput_mb_per_second", Heading: "MiB/s", Unit: collector.MebibytesPerSecond,
			Outputs: allOutputs, Meaning: "amount per second of transfer time", VLLMName: opstats.ThroughputName},
		{Name: "avg_number_of_descriptors", Outputs: OutputPush, VLLMName: opstats.AvgDescriptorsName,
			pool: weighted},
		{Heading: "total MiB", Unit: collector.Mebibytes, Outputs: OutputPage, Metric: &xferBytes, pool: sum},
		{Unit: collector.Seconds, Metric: &xferTimes, Suffix: "_sum", pool: sum},
		{Heading: "throughput from first to last (MB/s)", Unit: collector.MebibytesPerSecond},
		{Name: "failed", Heading: "failed transfers", Unit: collector.Times, Outputs: allOutputs,
			Meaning: "transfers that failed", Metric: &xferFails, Label: `transfer="%s",kind="transfer"`,
			pool: sum},
		{Heading: "failed notifications", Unit: collector.Times, Outputs: OutputPage, Metric: &xferFails,
			Label: `transfer="%s",kind="notification"`, pool: sum},
		{Heading: "expired KV requests", Unit: collector.Times, Outputs: OutputPage, Metric: &xferFails,
			Label: `transfer="%s",kind="kv_expired"`, pool: sum},
	},
}

// finite returns v, or nil if *v is not finite. The throughput of transfers without a duration is not finite.
func finite(v *float64) *float64 {
	if math.IsNaN(*v) || math.IsInf(*v, 0) {
		return nil
	}
	return v
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
	if !(all >= 0) { // the counts are impossible
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
