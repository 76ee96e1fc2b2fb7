package pusher

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"path"
	"slices"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/intake/book"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// maxOperations is how many operations of a node are pushed: those that took most time in all.
const maxOperations = 16

// A workNumber is a number of an operation or a transfer.
type workNumber[T any] struct {
	name  string
	value func(T) *float64
}

// operationNumbers and transferNumbers return what is pushed of each at the end.
func operationNumbers() []workNumber[book.Time] {
	return []workNumber[book.Time]{
		{"count", func(t book.Time) *float64 { return &t.Count }},
		{"avg_time_ms", func(t book.Time) *float64 { return t.Avg }},
		{book.P90TimeName, func(t book.Time) *float64 { return t.P90 }},
		{"max_time_ms", func(t book.Time) *float64 { return t.Max }},
	}
}

func transferNumbers() []workNumber[book.Transfer] {
	return []workNumber[book.Transfer]{
		{"num_successful_transfers", func(t book.Transfer) *float64 { return &t.Reduced.Transfers }},
		{"avg_xfer_time_ms", func(t book.Transfer) *float64 { return &t.Reduced.AvgXfer }},
		{"p90_xfer_time_ms", func(t book.Transfer) *float64 { return &t.Reduced.P90Xfer }},
		{"avg_post_time_ms", func(t book.Transfer) *float64 { return &t.Reduced.AvgPost }},
		{"p90_post_time_ms", func(t book.Transfer) *float64 { return &t.Reduced.P90Post }},
		{"avg_mb_per_transfer", func(t book.Transfer) *float64 { return &t.Reduced.AvgMB }},
		{"throughput_mb_per_second", func(t book.Transfer) *float64 { return &t.Reduced.Throughput }},
		{"avg_number_of_descriptors", func(t book.Transfer) *float64 { return &t.Reduced.AvgDescriptors }},
		{"failed", func(t book.Transfer) *float64 { return &t.FailedTransfers }},
	}
}

// workMetrics returns the numbers of a node's operations and transfers that are pushed, as op/NAME/count and so on.
func workMetrics(n *reporter.Node) []mlflow.Metric {
	w := n.Work()
	if w == nil {
		return nil
	}

	operations := w.Series(reporter.OpKind)
	operations = operations[:min(len(operations), maxOperations)]

	return append(numbersOf("op/", w.Times, operations, operationNumbers()),
		numbersOf("transfer/", w.Transfers, w.Series(reporter.TransferKind), transferNumbers())...)
}

// numbersOf returns the numbers of some of the series. Each has the key that it has if all are pushed, which is the
// same on all nodes with the same series.
func numbersOf[T any](folder string, all map[string]T, some []string, table []workNumber[T]) (out []mlflow.Metric) {
	var numbers []string
	for _, row := range table {
		numbers = append(numbers, row.name)
	}
	keys, names := make(map[string]string), newNames()
	for _, series := range slices.Sorted(maps.Keys(all)) {
		keys[series] = names.take(folder, series, numbers...)
	}

	for _, series := range some {
		for _, row := range table {
			if v := row.value(all[series]); v != nil && !math.IsNaN(*v) && !math.IsInf(*v, 0) {
				out = append(out, mlflow.Metric{Key: keys[series] + "/" + row.name, Value: *v})
			}
		}
	}

	return out
}

// A workSeries is a time line that each operation, counter, gauge or transfer of the job has. {name} in its Name stands
// for the name of that.
type workSeries struct {
	Series
	kind   reporter.WorkKind
	number string
	rate   string // the number that has the events per second, which weigh the values of this one; "" if only time does
}

// line returns the time line of a series of the job.
func (row *workSeries) line(series string) reporter.WorkLine {
	return reporter.WorkLine{Kind: row.kind, Series: series, Number: row.number}
}

func workTable() []workSeries {
	return []workSeries{
		{Series{
			Name: "op/{name}/time_ms", Unit: "ms",
			Meaning: "time that an operation of the job took, mean over operations",
		},
			reporter.OpKind, reporter.LineTime, reporter.LineRate},
		{Series{Name: "op/{name}/per_second", Unit: "1/s", Meaning: "operations of the job"},
			reporter.OpKind, reporter.LineRate, ""},
		{Series{Name: "counter/{name}/per_second", Unit: "1/s", Meaning: "growth of a counter of the job"},
			reporter.CounterKind, reporter.LineRate, ""},
		{Series{Name: "gauge/{name}", Unit: "the job's", Meaning: "value of a gauge of the job"},
			reporter.GaugeKind, "", ""},
		{Series{Name: "transfer/{name}/mb_per_second", Unit: "MiB/s", Meaning: "bytes that the job transferred"},
			reporter.TransferKind, reporter.LineThroughput, ""},
		{Series{Name: "transfer/{name}/time_ms", Unit: "ms", Meaning: "time that a transfer of the job took"},
			reporter.TransferKind, reporter.LineTime, ""},
	}
}

// WorkSeries returns the series of what a job says of its work.
func WorkSeries() []Series {
	var out []Series
	for _, row := range workTable() {
		out = append(out, row.Series)
	}
	return out
}

// A jobSeries is an operation, counter, gauge or transfer that has time lines.
type jobSeries struct {
	kind reporter.WorkKind
	name string
}

// drawn returns the series of the job among the keys of an envelope in the order in which they began, so that none gets
// another name in MLflow when more of them begin. began returns the first sample that has something of a key.
func drawn(keys iter.Seq[string], began func(key string) int) []jobSeries {
	first := make(map[jobSeries]int)
	for key := range keys {
		l, ok := reporter.WorkLineOf(key)
		if !ok {
			continue
		}
		s := jobSeries{l.Kind, l.Series}
		before, there := first[s]
		if now := began(key); !there || now < before {
			first[s] = now
		}
	}

	all := slices.SortedFunc(maps.Keys(first), func(a, b jobSeries) int {
		return cmp.Or(cmp.Compare(first[a], first[b]), cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})

	return all[:min(len(all), book.MaxCharts)]
}

// drawnInReport returns the series of the job that a report has time lines of.
func drawnInReport(e reporter.Envelope) []jobSeries {
	return drawn(maps.Keys(e), func(key string) int {
		values := e[key].Mean
		i := slices.IndexFunc(values, func(v float64) bool { return !math.IsNaN(v) })
		if i < 0 {
			return len(values)
		}
		return i
	})
}

// drawnInRecording returns the series of the job that a Recording has time lines of.
func drawnInRecording(rec *collector.Recording) []jobSeries {
	if rec.Work == nil || rec.Work.Lines == nil {
		return nil
	}
	keys, lines := rec.Work.Keys, rec.Work.Lines
	return drawn(slices.Values(keys), func(key string) int {
		place := slices.Index(keys, key)
		i := 0
		for i < lines.Len() && lines.Bucket(i).Stats[place].Count == 0 {
			i++
		}
		return i
	})
}

// workSources returns the sources of the job's time lines.
func (s nodeSeries) workSources() []source {
	var out []source
	names := newNames()
	for _, of := range s.job {
		rows := slices.DeleteFunc(workTable(), func(row workSeries) bool { return row.kind != of.kind })
		var numbers []string
		for _, row := range rows {
			numbers = append(numbers, row.number)
		}

		key := names.take(folder(s.node)+string(of.kind)+"/", of.name, numbers...)
		for _, row := range rows {
			l := row.line(of.name)
			band, ok := s.envelope[l.Key()]
			if !ok {
				continue
			}
			src := source{Series: row.Series, key: path.Join(key, row.number), job: true,
				values: []values{{mean: band.Mean, max: band.Max}}}
			if l.Number = row.rate; row.rate != "" {
				src.rate = s.envelope[l.Key()].Mean
			}
			out = append(out, src)
		}
	}

	return out
}
