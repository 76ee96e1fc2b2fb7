package aggregate

import (
	"math"
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector/intake/wire"
	"github.com/perfagent/perfagent/internal/text"
)

// An Aggregator collects the operations of one job. Create one with [New].
type Aggregator struct {
	state
	options      Options
	charts       []chart
	timelineKeys []string       // keys of the charts' timelines
	discard      interval       // shared by all series without a timeline
	byKey        map[string]int // index in Keys, by key

	used    usage
	took    time.Time // time of the last Collect
	changes uint64
}

// usage is how much of each limit is used.
type usage struct {
	series, keys, nameBytes, sketchBytes, members, buckets, ranks, proxyStoreValues, uncondensed int
}

// Dropped counts rejected data by reason. Kernel and RateLimited count datagrams, the other fields count lines, or
// samples of a scrape.
type Dropped struct {
	Kernel      int64 `json:"kernel,omitzero"`     // no room in the kernel's buffer
	RateLimited int64 `json:"rate,omitzero"`       // over budget
	Malformed   int64 `json:"malformed,omitzero"`  // does not match any grammar
	TooLong     int64 `json:"too_long,omitzero"`   // a line, a name or a text is too long, or there are too many tags
	Series      int64 `json:"series,omitzero"`     // no room for the series
	Keys        int64 `json:"keys,omitzero"`       // no room for the key; the operation itself is counted
	NotFinite   int64 `json:"not_finite,omitzero"` // NaN, infinite, beyond 1e100, or a negative time
	Ignored     int64 `json:"ignored,omitzero"`    // telemetry of a client about itself, or a service check
}

// A DropReason is a reason for rejections, with their number.
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

// Datagrams returns the number of lost datagrams. If there are any, counts and sums are lower bounds.
func (d Dropped) Datagrams() int64 { return d.Kernel + d.RateLimited }

// Plus returns d + o.
func (d Dropped) Plus(o Dropped) Dropped {
	return Dropped{
		Kernel: d.Kernel + o.Kernel, RateLimited: d.RateLimited + o.RateLimited, Malformed: d.Malformed + o.Malformed,
		TooLong: d.TooLong + o.TooLong, Series: d.Series + o.Series, Keys: d.Keys + o.Keys,
		NotFinite: d.NotFinite + o.NotFinite, Ignored: d.Ignored + o.Ignored,
	}
}

// An Example is a rejected line, truncated to 64 bytes, with the reason.
type Example struct {
	Line string `json:"line"`
	Why  string `json:"why"`
}

// New returns an empty Aggregator for a run that begins at start.
func New(o Options, start time.Time) *Aggregator {
	return &Aggregator{options: o, took: start, state: state{Keys: []keyed{}}}
}

// Add adds an event that arrived at the time at. It reports whether the event was accepted; a rejected event is counted
// as dropped. For a known series, Add does not allocate, except for attributes and ProxyStore records.
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

	return true // an empty line or a mark, which is not counted
}

// Drop counts a line that was rejected for the reason r, and keeps it as an example if there is room.
func (b *Aggregator) Drop(r wire.Reason, line []byte) {
	b.changes++
	*[...]*int64{
		wire.Malformed: &b.Dropped.Malformed, wire.TooLong: &b.Dropped.TooLong, wire.NotFinite: &b.Dropped.NotFinite,
		wire.Ignored: &b.Dropped.Ignored,
	}[r]++
	if r == wire.Ignored {
		return // expected, so no example is needed
	}
	b.example(line, r.String())
}

// DropDatagrams counts unread datagrams. kernel is the number dropped by the kernel, and rate is the number discarded
// over budget.
func (b *Aggregator) DropDatagrams(kernel, rate int64) {
	b.changes += uint64(kernel + rate)
	b.Dropped.Kernel += kernel
	b.Dropped.RateLimited += rate
}

// Changes returns a number that grows whenever the Aggregator changes.
func (b *Aggregator) Changes() uint64 { return b.changes }

// refuse counts an event as rejected for the reason r, with the series as the example. It always returns false.
func (b *Aggregator) refuse(series []byte, r wire.Reason) bool {
	b.Drop(r, series)
	return false
}

// example keeps a line as an example, if there is room and no equal example.
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

// findOrAdd returns the entry of the series. It adds an entry if there is none, and returns nil if there is no room.
// begin, which may be nil, is called with a new entry.
func findOrAdd[E any](b *Aggregator, entries *map[string]*E, series []byte, begin func(e *E, name string)) *E {
	if e := (*entries)[string(series)]; e != nil {
		return e
	}
	if !b.reserve(series) {
		return nil
	}

	name, e := string(series), new(E)
	put(entries, name, e)
	if begin != nil {
		begin(e, name)
	}

	return e
}

// reserve reserves room for a new series with the given name. It reports false if there is no room.
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

// unixTime converts Unix seconds to a time.
func unixTime(seconds float64) time.Time {
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(math.Round(part*1e9))).UTC()
}

// unixSeconds converts a time to Unix seconds.
func unixSeconds(at time.Time) float64 { return float64(at.Unix()) + float64(at.Nanosecond())/1e9 }

// AddSource adds a source of the given kind (statsd, dogstatsd, unix or scrape) and returns its index.
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

// AddReceived counts datagrams that the given source received at the time at, and the accepted events in them.
func (b *Aggregator) AddReceived(source int, datagrams, events int64, at time.Time) {
	s := &b.Sources[source]
	s.Datagrams = new(*s.Datagrams + datagrams) // a new variable, because copies of the Source share the old one
	b.changes++
	s.seen(events, at)
}

// AddScrape counts a scrape of the given source and its accepted events. If why is not "", it counts a failure instead
// of the events.
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

// AddFailure counts a failure of the given source, and stores the reason why.
func (b *Aggregator) AddFailure(source int, why string) {
	b.changes++
	b.Sources[source].Failures++
	b.Sources[source].Why = why
}

// seen counts events that arrived at the time at, and updates First and Last.
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
