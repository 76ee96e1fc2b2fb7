package aggregate

import (
	"math"
	"slices"
	"time"
	"unsafe"

	"github.com/perfagent/perfagent/collector/intake/wire"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/opstats"
)

// An Aggregator is the account of one job. Create one with [New].
type Aggregator struct {
	state
	options      Options
	charts       []chart
	timelineKeys []string // of the charts
	discard      interval // of all series without a time line

	used    usage
	took    time.Time // when Take was called last
	changes uint64
}

// usage is how much of the bounds is used.
type usage struct {
	series, nameBytes, sketchBytes, members, buckets, ranks, proxyStoreValues, uncondensed int
}

// Dropped is how much was not taken, by reason. Kernel and Rate count datagrams, the others lines, or samples of a
// scrape.
type Dropped struct {
	Kernel      int64 `json:"kernel,omitzero"`     // the kernel had no room for it
	RateLimited int64 `json:"rate,omitzero"`       // more came than may be read
	Malformed   int64 `json:"malformed,omitzero"`  // no grammar fits
	TooLong     int64 `json:"too_long,omitzero"`   // a line, a name, a text, or too many tags
	Series      int64 `json:"series,omitzero"`     // of a series for which there was no room
	Keys        int64 `json:"keys,omitzero"`       // of a key for which there was no room; counts in its operation
	NotFinite   int64 `json:"not_finite,omitzero"` // NaN, infinite, beyond 1e100, a negative time
	Ignored     int64 `json:"ignored,omitzero"`    // a client's own telemetry, a service check
}

// A DropReason is a reason for which something was not taken, and how much that was.
type DropReason struct {
	Name  string // as in a report
	Count int64
}

// Reasons returns all reasons, in the order of a report.
func (d Dropped) Reasons() []DropReason {
	return []DropReason{
		{"kernel", d.Kernel}, {"rate", d.RateLimited}, {"malformed", d.Malformed}, {"too_long", d.TooLong},
		{"series", d.Series}, {"keys", d.Keys}, {"not_finite", d.NotFinite}, {"ignored", d.Ignored},
	}
}

// Datagrams returns how many datagrams were lost. If there are any, counts and sums are lower bounds.
func (d Dropped) Datagrams() int64 { return d.Kernel + d.RateLimited }

// Plus returns the sum of two.
func (d Dropped) Plus(o Dropped) Dropped {
	return Dropped{
		Kernel: d.Kernel + o.Kernel, RateLimited: d.RateLimited + o.RateLimited, Malformed: d.Malformed + o.Malformed,
		TooLong: d.TooLong + o.TooLong, Series: d.Series + o.Series, Keys: d.Keys + o.Keys,
		NotFinite: d.NotFinite + o.NotFinite, Ignored: d.Ignored + o.Ignored,
	}
}

// An Example is something that was not taken, at most 64 bytes of it, and why.
type Example struct {
	Line string `json:"line"`
	Why  string `json:"why"`
}

// New returns an empty Book at the moment at which the run starts.
func New(o Options, start time.Time) *Aggregator {
	return &Aggregator{options: o, took: start, state: state{
		Times: map[string]*timing{}, Counters: map[string]*counter{}, Gauges: map[string]*gauge{},
		Values: map[string]*valueSeries{}, Sets: map[string]*set{}, Attributes: map[string]*attribute{},
		Records: map[string]*transfer{}, Engines: map[string]*nixl{}, Keys: *opstats.NewKeyedMetrics(MaxKeys),
	}}
}

// Add takes what a line said; at is when the line arrived. It reports whether it was taken; if not, it is counted.
// An event of a known series allocates nothing, apart from attributes and what ProxyStore hands over.
func (b *Aggregator) Add(e *wire.Event, at time.Time) bool {
	b.changes++
	if e.At > 0 {
		at = unixTime(e.At)
	}

	switch e.Kind {
	case wire.Timing:
		return b.addTime(e, at)
	case wire.Counter:
		return b.addCounter(e)
	case wire.Gauge, wire.GaugeDelta:
		return b.addGauge(e, at)
	case wire.Value:
		return b.addValue(e)
	case wire.Set:
		return b.addMember(e)
	case wire.Attribute:
		return b.addAttribute(e)
	case wire.Transfer, wire.TransferFailure, wire.TransferData:
		return b.addTransfer(e, at)
	case wire.ProxyStore:
		return b.addProxyStore(e)
	}

	return true // nothing to account for: an empty line, a mark
}

// Drop counts a line that was not taken, and keeps it as an example if there is room.
func (b *Aggregator) Drop(r wire.Reason, line []byte) {
	b.changes++
	switch r {
	case wire.Malformed:
		b.Dropped.Malformed++
	case wire.TooLong:
		b.Dropped.TooLong++
	case wire.NotFinite:
		b.Dropped.NotFinite++
	case wire.Ignored:
		b.Dropped.Ignored++
		return // as it should be
	}
	b.example(line, r.String())
}

// DropDatagrams counts datagrams that were not read: those that the kernel had no room for, and those that came too
// fast.
func (b *Aggregator) DropDatagrams(kernel, rate int64) {
	b.changes += uint64(kernel + rate)
	b.Dropped.Kernel += kernel
	b.Dropped.RateLimited += rate
}

// Changes returns a number that grows whenever the Book changes.
func (b *Aggregator) Changes() uint64 { return b.changes }

// refuse counts an event that package opstats refused, or that there is no room for. It returns false.
func (b *Aggregator) refuse(series []byte, r wire.Reason) bool {
	b.Drop(r, series)
	return false
}

// example keeps a line, if there is room and the line is not there yet.
func (b *Aggregator) example(line []byte, why string) {
	const most = 64
	if len(b.Examples) >= MaxExamples {
		return
	}

	e := Example{text.Prefix(text.Printable(string(line[:min(len(line), most)])), most), why}
	if !slices.Contains(b.Examples, e) {
		b.Examples = append(b.Examples, e)
	}
}

// findOrAdd returns the entry of a series, or nil if there is no room for a new one. It reports the name of a new one.
func findOrAdd[E any](b *Aggregator, entries map[string]*E, series []byte) (e *E, name string) {
	if e := entries[string(series)]; e != nil {
		return e, ""
	}
	if !b.reserve(series) {
		return nil, ""
	}

	name = string(series)
	e = new(E)
	entries[name] = e

	return e, name
}

// reserve reports whether there is room for one more series, and takes it.
func (b *Aggregator) reserve(series []byte) bool {
	if b.used.series >= MaxSeries || b.used.nameBytes+len(series) > maxNameBytes {
		b.Dropped.Series++
		b.example(series, "no room for another series")
		return false
	}
	b.used.series++
	b.used.nameBytes += len(series)

	return true
}

// unixTime returns Unix seconds as a time.
func unixTime(seconds float64) time.Time {
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(math.Round(part*1e9))).UTC()
}

// unixSeconds returns a time in Unix seconds.
func unixSeconds(at time.Time) float64 { return float64(at.Unix()) + float64(at.Nanosecond())/1e9 }

// unsafeString returns bytes as a string without copying them. The string must not be kept: it is for a Ledger, which
// copies what it keeps.
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// AddSource adds a source of a kind (statsd, dogstatsd, unix or scrape) and returns its number.
func (b *Aggregator) AddSource(kind, address string) int {
	s := Source{Kind: kind, Address: address}
	if kind == "scrape" {
		s.Scrapes = new(int64)
	} else {
		s.Datagrams = new(int64)
	}
	b.Sources = append(b.Sources, s)

	return len(b.Sources) - 1
}

// AddReceived counts datagrams of a source and the events that were taken from them.
func (b *Aggregator) AddReceived(source int, datagrams, events int64, at time.Time) {
	s := &b.Sources[source]
	s.Datagrams = new(*s.Datagrams + datagrams) // copies of the Source share what it was
	b.changes++
	s.seen(events, at)
}

// AddScrape counts a scrape of a source, and the events that were taken from it or why it failed.
func (b *Aggregator) AddScrape(source int, events int64, why string, at time.Time) {
	s := &b.Sources[source]
	s.Scrapes = new(*s.Scrapes + 1)
	b.changes++
	if why != "" {
		b.AddFailure(source, why)
		return
	}
	s.seen(events, at)
}

// AddFailure counts a failure of a source, and says why.
func (b *Aggregator) AddFailure(source int, why string) {
	b.changes++
	b.Sources[source].Failures++
	b.Sources[source].Why = why
}

// seen counts events.
func (s *Source) seen(events int64, at time.Time) {
	s.Events += events
	if events == 0 {
		return
	}
	if s.First == 0 {
		s.First = unixSeconds(at)
	}
	s.Last = unixSeconds(at)
}
