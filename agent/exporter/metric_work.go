package exporter

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/intake/book"
)

// maxWorkAge is how old a copy of the job's operations may be. No copy is made before, however many clients ask.
const maxWorkAge = 500 * time.Millisecond

// A work has the job's operations and transfers at one moment.
type work struct {
	made       time.Time
	operations book.Operations
	transfers  map[string]book.Transfer
}

// A newestWork caches a copy of the job's operations and transfers.
type newestWork struct {
	mu   sync.Mutex
	copy *work // nil before the first request
}

// get returns a copy that is at most maxWorkAge old. It is nil if operations are not recorded.
func (n *newestWork) get(ask func() *book.Book) *work {
	if ask == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()

	if now := time.Now(); n.copy == nil || now.Sub(n.copy.made) >= maxWorkAge {
		b := ask()
		n.copy = &work{made: now, operations: b.Operations(now), transfers: b.Transfers()}
	}

	return n.copy
}

// workMetrics returns the metrics of what the job says of its work.
func workMetrics() []Metric {
	return []Metric{
		{
			Name: "perfagent_operation_seconds", Type: summary, Label: "operation",
			Help:  "time that operations of the job took" + sinceThen,
			write: ofOperations(operationSeconds),
		},
		{
			Name: "perfagent_operation_errors_total", Type: counter, Label: "operation",
			Help: "operations of the job that failed" + sinceThen,
			write: ofOperations(func(x *exposition, m *Metric, labels string, t book.Time) {
				x.line(m, "", labels, t.Errors)
			}),
		},
		{
			Name: "perfagent_job_value", Type: gauge, Label: "kind, series",
			Help:  "the job's own counters and gauges",
			write: jobValues,
		},
		{
			Name: "perfagent_transfer_seconds", Type: summary, Label: "transfer",
			Help: "time that transfers of the job took" + sinceThen,
			write: ofTransfers(func(x *exposition, m *Metric, labels string, t book.Transfer) {
				x.line(m, "_sum", labels, tidy(t.Seconds))
				x.line(m, "_count", labels, t.Reduced.Transfers)
			}),
		},
		{
			Name: "perfagent_transfer_bytes_total", Type: counter, Label: "transfer",
			Help: "bytes that the job transferred" + sinceThen,
			write: ofTransfers(func(x *exposition, m *Metric, labels string, t book.Transfer) {
				x.line(m, "", labels, t.TotalMB*collector.MiB)
			}),
		},
		{
			Name: "perfagent_transfer_failures_total", Type: counter, Label: "transfer, kind",
			Help:  "transfers, notifications and requests of the job that failed" + sinceThen,
			write: ofTransfers(transferFailures),
		},
		{
			Name: "perfagent_intake_events_total", Type: counter, Label: "source",
			Help:  "lines of the job and samples of its endpoints that were taken" + sinceThen,
			write: intakeEvents,
		},
		{
			Name: "perfagent_intake_dropped_total", Type: counter, Label: "reason",
			Help:  "datagrams (kernel, rate) and lines of the job that were not taken" + sinceThen,
			write: intakeDropped,
		},
	}
}

// ofOperations returns the lineWriter of a metric that each operation has.
func ofOperations(write func(x *exposition, m *Metric, labels string, t book.Time)) lineWriter {
	return func(x *exposition, m *Metric, f *metricInput) {
		for _, name := range slices.Sorted(maps.Keys(f.work.operations.Times)) {
			write(x, m, `,operation="`+escaped(name)+`"`, f.work.operations.Times[name])
		}
	}
}

// ofTransfers returns the lineWriter of a metric that the transfers of each name have.
func ofTransfers(write func(x *exposition, m *Metric, labels string, t book.Transfer)) lineWriter {
	return func(x *exposition, m *Metric, f *metricInput) {
		for _, name := range slices.Sorted(maps.Keys(f.work.transfers)) {
			write(x, m, `,transfer="`+escaped(name)+`"`, f.work.transfers[name])
		}
	}
}

// operationSeconds writes the summary of an operation. Quantiles are not known of every operation.
func operationSeconds(x *exposition, m *Metric, labels string, t book.Time) {
	for _, q := range []struct {
		share string
		ms    *float64
	}{{"0.5", t.P50}, {"0.9", t.P90}, {"0.99", t.P99}} {
		if q.ms != nil {
			x.line(m, "", labels+`,quantile="`+q.share+`"`, tidy(*q.ms/1000))
		}
	}
	x.line(m, "_sum", labels, tidy(t.Total/1000))
	x.line(m, "_count", labels, t.Count)
}

// jobValues writes counters and gauges in the unit of the job. A counter of StatsD may fall, so it is no counter here.
func jobValues(x *exposition, m *Metric, f *metricInput) {
	counters, gauges := f.work.operations.Counters, f.work.operations.Gauges
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		x.line(m, "", `,kind="counter",series="`+escaped(name)+`"`, counters[name])
	}
	for _, name := range slices.Sorted(maps.Keys(gauges)) {
		x.line(m, "", `,kind="gauge",series="`+escaped(name)+`"`, gauges[name].Last)
	}
}

func transferFailures(x *exposition, m *Metric, labels string, t book.Transfer) {
	for _, kind := range []struct {
		name  string
		count float64
	}{{"transfer", t.FailedTransfers}, {"notification", t.FailedNotifications}, {"kv_expired", t.KVExpired}} {
		x.line(m, "", labels+`,kind="`+kind.name+`"`, kind.count)
	}
}

// intakeEvents writes how much came from each kind of source: several endpoints are one.
func intakeEvents(x *exposition, m *Metric, f *metricInput) {
	events := make(map[string]int64)
	for _, s := range f.work.operations.Sources {
		events[s.Kind] += s.Events
	}
	for _, kind := range slices.Sorted(maps.Keys(events)) {
		x.series(m, kind, float64(events[kind]))
	}
}

func intakeDropped(x *exposition, m *Metric, f *metricInput) {
	for _, r := range f.work.operations.Dropped.Reasons() {
		x.series(m, r.Name, float64(r.Count))
	}
}
