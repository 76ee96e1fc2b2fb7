package aggregate

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/perfagent/perfagent/opstats"
)

// A Source is a socket that receives events or an endpoint that is scraped.
type Source struct {
	Kind             string   `json:"kind"`    // statsd, dogstatsd, unix or scrape
	Address          string   `json:"address"` // without a user name and password
	Events           int64    `json:"events"`  // accepted lines or samples
	Datagrams        *int64   `json:"datagrams,omitempty"`
	Scrapes          *int64   `json:"scrapes,omitempty"` // including failed ones
	Failures         int64    `json:"failures,omitzero"`
	First            float64  `json:"first,omitzero"` // time of the first event, in Unix seconds
	Last             float64  `json:"last,omitzero"`
	SecondsBeforeEnd *float64 `json:"seconds_before_end,omitempty"` // from the last scrape to the end
	Why              string   `json:"why,omitempty"`                // reason for the last failure
}

// Operations is the section of a report about the job's operations. The keys of its maps are series; empty maps are
// omitted.
type Operations struct {
	Sources    []Source                                `json:"sources"`
	Times      map[string]Timing                       `json:"times,omitempty"`
	Counters   map[string]float64                      `json:"counters,omitempty"`
	Gauges     map[string]Gauge                        `json:"gauges,omitempty"`
	Values     map[string]Value                        `json:"values,omitempty"`
	Sets       map[string]Set                          `json:"sets,omitempty"`
	Attributes map[string]any                          `json:"attributes,omitempty"` // a string, a float64 or a bool
	Keys       map[string]map[string]opstats.TimeStats `json:"keys,omitempty"`       // by series and key
	Dropped    Dropped                                 `json:"dropped,omitzero"`
	Examples   []Example                               `json:"examples,omitempty"`
}

// A Timing is a series of times in milliseconds. Unknown values are nil. Estimated lists the fields that were estimated
// from the buckets of a histogram.
type Timing struct {
	Count      float64  `json:"count"`
	Avg        *float64 `json:"avg_time_ms,omitempty"` // nil if the operation only failed
	Min        *float64 `json:"min_time_ms,omitempty"`
	Max        *float64 `json:"max_time_ms,omitempty"`
	Last       *float64 `json:"last_time_ms,omitempty"`
	LastAt     float64  `json:"last_timestamp,omitzero"` // Unix seconds
	Total      float64  `json:"total_time_ms"`
	Std        *float64 `json:"std_time_ms,omitempty"` // standard deviation, for at least two single records
	P50        *float64 `json:"p50_time_ms,omitempty"`
	P90        *float64 `json:"p90_time_ms,omitempty"`
	P99        *float64 `json:"p99_time_ms,omitempty"`
	SizeBytes  *float64 `json:"size_bytes,omitempty"` // of the last object
	TotalBytes *float64 `json:"total_bytes,omitempty"`
	Errors     float64  `json:"errors,omitzero"`
	Estimated  []string `json:"estimated,omitempty"`
}

// A Gauge is a series of a gauge. Mean is weighted by time, from the first value to the end.
type Gauge struct {
	Last  float64 `json:"last"`
	Min   float64 `json:"min"`
	Mean  float64 `json:"mean"`
	Max   float64 `json:"max"`
	Count int64   `json:"count"`
}

// A Value is a series of observed values. Unknown values are nil.
type Value struct {
	Count     float64  `json:"count"`
	Avg       float64  `json:"avg"`
	Min       *float64 `json:"min,omitempty"`
	Max       *float64 `json:"max,omitempty"`
	Last      *float64 `json:"last,omitempty"`
	P50       *float64 `json:"p50,omitempty"`
	P90       *float64 `json:"p90,omitempty"`
	P99       *float64 `json:"p99,omitempty"`
	Unit      string   `json:"unit,omitempty"`
	Estimated []string `json:"estimated,omitempty"`
}

// A Set is the number of different members of a set. AtLeast reports whether there may be more.
type Set struct {
	Count   int  `json:"count"`
	AtLeast bool `json:"at_least,omitzero"`
}

// A TransferList is the length and the sum of a list that vLLM's class has in addition to the known ones.
type TransferList struct {
	Count int64   `json:"count"`
	Sum   float64 `json:"sum"`
}

// A Transfer describes the transfers of one name in a report.
type Transfer struct {
	Summary             opstats.TransferSummary `json:"reduced"`
	TotalMB             float64                 `json:"total_mb"` // MiB
	Seconds             float64                 `json:"-"`        // exact sum over all transfers; not written to a report
	WallThroughput      *float64                `json:"wall_throughput_mb_per_second,omitempty"`
	FailedTransfers     float64                 `json:"failed_transfers"`
	FailedNotifications float64                 `json:"failed_notifications"`
	KVExpired           float64                 `json:"kv_expired_reqs"`
	Other               map[string]TransferList `json:"other,omitempty"`
	Ranks               int                     `json:"ranks,omitzero"`
	First               float64                 `json:"first,omitzero"` // Unix seconds
	Last                float64                 `json:"last,omitzero"`
	Source              string                  `json:"source"` // records or scrape
	Estimated           []string                `json:"estimated,omitempty"`
}

// Operations returns the operations recorded until end. It does not change the Aggregator.
func (b *Aggregator) Operations(end time.Time) Operations {
	seconds := unixSeconds(end)
	return Operations{
		Sources:    b.sourcesAt(seconds),
		Times:      each(b.Times, func(t *timing) Timing { return t.report() }),
		Counters:   each(b.Counters, (*counter).total),
		Gauges:     each(b.Gauges, func(g *gauge) Gauge { return Gauge{g.Last, g.Min, g.mean(seconds), g.Max, g.Count} }),
		Values:     each(b.Values, (*valueSeries).report),
		Sets:       each(b.Sets, func(s *set) Set { return Set{len(s.Members), s.AtLeast} }),
		Attributes: each(b.Attributes, func(a *attribute) any { return a.Value }),
		Keys:       b.keyTimes(),
		Dropped:    b.Dropped,
		Examples:   slices.Clone(b.Examples),
	}
}

// each returns the result of report for each entry, or nil if there are no entries.
func each[E, R any](entries map[string]*E, report func(*E) R) map[string]R {
	if len(entries) == 0 {
		return nil
	}
	reports := make(map[string]R, len(entries))
	for name, e := range entries {
		reports[name] = report(e)
	}
	return reports
}

// sourcesAt returns the sources, with SecondsBeforeEnd relative to the given end in Unix seconds.
func (b *Aggregator) sourcesAt(end float64) []Source {
	sources := append([]Source{}, b.Sources...)
	for i, s := range sources {
		if s.Scrapes != nil && s.Last > 0 {
			sources[i].SecondsBeforeEnd = new(max(0, end-s.Last))
		}
	}
	return sources
}

// keyTimes returns the times by operation and key.
func (b *Aggregator) keyTimes() map[string]map[string]opstats.TimeStats {
	var keys map[string]map[string]opstats.TimeStats
	for _, k := range b.Keys {
		for series, s := range k.Metrics.Times {
			stats, of := *s, keys[series]
			stats.Count = math.Round(stats.Count)
			put(&of, k.Key, stats)
			put(&keys, series, of)
		}
	}
	return keys
}

// total returns the value of a counter.
func (c *counter) total() float64 {
	sum := c.Sum
	for _, id := range slices.Sorted(maps.Keys(c.ProxyStore)) {
		sum += c.ProxyStore[id]
	}
	return sum
}

// report returns the report of the series. If the times have several origins (records, ProxyStore, scrapes), the report
// contains only the fields that are known for all of them.
func (t *timing) report() Timing {
	stats := t.Stats
	for _, id := range slices.Sorted(maps.Keys(t.ProxyStore)) {
		stats = stats.Merge(t.ProxyStore[id])
	}
	r := Timing{Count: math.Round(stats.Count), Total: stats.Total(), Errors: t.Errors, LastAt: stats.LastAt}
	if !stats.Empty() {
		r.Avg, r.Min, r.Max, r.Last = new(stats.Avg), new(stats.Min), new(stats.Max), new(stats.Last)
	}
	if r.Count > 1 && len(t.ProxyStore) == 0 {
		std := math.Sqrt(max(0, t.Squares) / stats.Count)
		if std < 1e-12*stats.Avg { // equal times
			std = 0
		}
		r.Std = &std
	}
	if stats.HasSize {
		r.SizeBytes = new(stats.SizeBytes)
	}
	if t.TotalBytes > 0 || t.Stats.HasSize {
		r.TotalBytes = new(t.TotalBytes)
	}

	if d := t.Scraped; d != nil && d.Count > 0 {
		r.Min, r.Max, r.Last, r.LastAt, r.Std = nil, nil, nil, 0, nil
		count := stats.Count + d.Count
		r.Total += d.Sum
		r.Count, r.Avg = math.Round(count), new(r.Total/count)
	}
	r.P50, r.P90, r.P99, r.Estimated = quantilesOf(&t.Quantiles, t.Scraped, !t.Stats.Empty(), len(t.ProxyStore) > 0,
		"_time_ms")

	return r
}

// quantilesOf returns the quantiles of a series that came entirely from records or entirely from a histogram. For other
// series, it returns nil. The quantiles of a histogram are estimates, so it also returns their names, which end in
// suffix.
func quantilesOf(q *quantiles, d *distribution, records, sums bool, suffix string) (
	p50, p90, p99 *float64, estimated []string,
) {
	quantile := q.Sketch.Quantile
	switch scraped := d != nil && d.Count > 0; {
	case sums || records && scraped:
		return nil, nil, nil, nil
	case scraped:
		quantile, estimated = d.quantile, []string{"p50" + suffix, "p90" + suffix, "p99" + suffix}
	}
	median, known := quantile(0.5)
	if !known {
		return nil, nil, nil, nil
	}
	most, _ := quantile(0.9)
	nearlyAll, _ := quantile(0.99)

	return &median, &most, &nearlyAll, estimated
}

// report returns the report of the series.
func (o *valueSeries) report() Value {
	r := Value{Count: math.Round(o.Count), Avg: o.Avg, Unit: o.Unit}
	if o.Count > 0 {
		r.Min, r.Max, r.Last = new(o.Min), new(o.Max), new(o.Last)
	}
	if d := o.Scraped; d != nil && d.Count > 0 {
		r.Min, r.Max, r.Last = nil, nil, nil
		count := o.Count + d.Count
		r.Count, r.Avg = math.Round(count), (o.Avg*o.Count+d.Sum)/count
	}
	r.P50, r.P90, r.P99, r.Estimated = quantilesOf(&o.Quantiles, o.Scraped, o.Count > 0, false, "")

	return r
}

// Transfers returns the recorded transfers by name. It does not change the Aggregator.
func (b *Aggregator) Transfers() map[string]Transfer {
	all := map[string]Transfer{}
	if len(b.Engines) > 0 {
		all[nixlName] = b.pooledEngines().report()
	}
	for label, n := range b.Engines {
		if len(b.Engines) > 1 {
			all[engineName(label)] = n.report()
		}
	}

	for name, t := range b.Records {
		if !t.Records.Empty() { // records replace scraped transfers of the same name
			all[name] = t.report()
		}
	}

	return all
}

// report returns the report of the transfers.
func (t *transfer) report() Transfer {
	_, bytes := t.Records.Sum(opstats.BytesTransferred)
	_, seconds := t.Records.Sum(opstats.TransferDuration)
	r := Transfer{Summary: t.Records.Reduce(), TotalMB: bytes / (1 << 20), Seconds: seconds, Ranks: len(t.Ranks),
		Source: "records", First: t.First, Last: t.Last, Estimated: t.Records.Estimated()}
	_, r.FailedTransfers = t.Records.Sum(opstats.NumFailedTransfers)
	_, r.FailedNotifications = t.Records.Sum(opstats.NumFailedNotifications)
	_, r.KVExpired = t.Records.Sum(opstats.NumKVExpiredReqs)

	if first, last, ok := t.Records.Span(); ok {
		r.First, r.Last = min(unixSeconds(first), r.First), max(unixSeconds(last), r.Last)
	}
	if v, ok := t.Records.WallThroughput(); ok {
		r.WallThroughput = new(v)
	}
	for _, name := range t.Records.UnknownLists() {
		n, sum := t.Records.Sum(name)
		put(&r.Other, strings.Clone(name), TransferList{n, sum})
	}

	return r
}

// report returns the report of the transfers. Sums are exact, and both P90 values are estimated from the buckets.
func (n *nixl) report() Transfer {
	p90Xfer, ok1 := n.Parts[xferPart].quantile(0.9)
	p90Post, ok2 := n.Parts[postPart].quantile(0.9)
	r := Transfer{
		Summary: opstats.Sums{
			Count: n.Parts[xferPart].Count, Xfer: n.Parts[xferPart].Sum, Post: n.Parts[postPart].Sum,
			Bytes: n.Parts[bytesPart].Sum, Descriptors: n.Parts[descriptorsPart].Sum,
			P90Xfer: p90Xfer, P90Post: p90Post,
		}.Reduce(),
		TotalMB: n.Parts[bytesPart].Sum / (1 << 20), Seconds: n.Parts[xferPart].Sum,
		FailedTransfers: n.Failures[failedPart], FailedNotifications: n.Failures[notificationsPart],
		KVExpired: n.Failures[expiredPart], First: n.First, Last: n.Last, Source: "scrape",
	}
	if ok1 {
		r.Estimated = append(r.Estimated, opstats.P90XferName)
	}
	if ok2 {
		r.Estimated = append(r.Estimated, opstats.P90PostName)
	}

	return r
}
