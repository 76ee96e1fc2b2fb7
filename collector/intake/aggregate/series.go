package aggregate

import (
	"hash/maphash"
	"math"
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector/intake/wire"
	"github.com/perfagent/perfagent/opstats"
)

// A timing is a series of times.
type timing struct {
	Stats      opstats.TimeStats            `json:"stats"`            // statistics of single records
	Squares    float64                      `json:"squares,omitzero"` // sum of squared distances from Avg
	Quantiles  quantiles                    `json:"quantiles"`
	TotalBytes float64                      `json:"total_bytes,omitzero"`
	Errors     float64                      `json:"errors,omitzero"`
	Scraped    *distribution                `json:"scraped,omitempty"` // in milliseconds
	ProxyStore map[string]opstats.TimeStats `json:"handed,omitempty"`  // by id of the ProxyStore record
	interval   *interval
}

// addTime adds times of an operation, or a failure.
func (b *Aggregator) addTime(e *wire.Event, at time.Time) bool {
	t := b.timing(e.Series)
	if t == nil {
		return false
	}
	if e.Failed {
		t.Errors++
		return true
	}

	for _, ms := range e.Values {
		if err := t.add(ms, 1/e.Rate, at, &b.used); err != nil {
			return b.refuse(e.Series, wire.NotFinite)
		}
	}
	if e.HasBytes {
		_ = t.Stats.SetSize(e.Bytes) // checked by package wire
		t.TotalBytes = min(t.TotalBytes+e.Bytes, maxSum)
	}
	if e.Key != nil {
		b.addKey(e, at)
	}

	return true
}

// timing returns the timing of a series, or nil if there is no room.
func (b *Aggregator) timing(series []byte) *timing {
	return findOrAdd(b, &b.Times, series, func(t *timing, name string) { t.interval = b.chartOf(OpKind, name) })
}

// add counts n operations that each took ms milliseconds.
func (t *timing) add(ms, n float64, at time.Time, used *usage) error {
	before := t.Stats
	if err := t.Stats.AddN(ms, n, at); err != nil {
		return err
	}
	if !before.Empty() { // Welford's sum; both factors have the same sign
		t.Squares = min(t.Squares+n*(ms-before.Avg)*(ms-t.Stats.Avg), maxSum)
	}
	t.Quantiles.add(ms, before.Count, t.Stats.Count, used)
	t.interval.add(ms, n)

	return nil
}

// A keyed holds the times of the operations on one key. Its JSON has the same form as ProxyStore's metrics of a key.
type keyed struct {
	Key     string `json:"key"`
	Metrics struct {
		Attributes struct{}                      `json:"attributes"`
		Counters   struct{}                      `json:"counters"`
		Times      map[string]*opstats.TimeStats `json:"times"` // by series
	} `json:"metrics"`
}

// addKey also counts the times of an operation for its key.
func (b *Aggregator) addKey(e *wire.Event, at time.Time) {
	s := b.keyStats(e.Series, e.Key)
	if s == nil {
		return
	}
	for _, ms := range e.Values {
		_ = s.Add(ms, at) // the series of the operation has already accepted the value
	}
	if e.HasBytes {
		_ = s.SetSize(e.Bytes) // checked by package wire
	}
}

// keyStats returns the times of a series for a key, or nil if there is no room.
func (b *Aggregator) keyStats(series, key []byte) *opstats.TimeStats {
	i, hasKey := b.byKey[string(key)]
	if hasKey {
		if s := b.Keys[i].Metrics.Times[string(series)]; s != nil {
			return s
		}
	}
	if b.used.keys >= MaxKeys {
		b.Dropped.Keys++
		return nil
	}

	if !hasKey {
		i = len(b.Keys)
		b.Keys = append(b.Keys, keyed{Key: string(key)})
		put(&b.byKey, string(key), i)
	}
	b.used.keys++
	s := new(opstats.TimeStats)
	put(&b.Keys[i].Metrics.Times, string(series), s)

	return s
}

// A counter is a series of a counter.
type counter struct {
	Sum        float64            `json:"sum"`
	ProxyStore map[string]float64 `json:"handed,omitempty"` // by id of the ProxyStore record
	interval   *interval
}

// addCounter adds the values of an event to a counter.
func (b *Aggregator) addCounter(e *wire.Event) bool {
	var by float64
	for _, v := range e.Values {
		by += v / e.Rate
	}
	return b.count(e.Series, by)
}

// count adds by to the counter of the series.
func (b *Aggregator) count(series []byte, by float64) bool {
	if !isFinite(by) {
		return b.refuse(series, wire.NotFinite)
	}
	c := b.counter(series)
	if c == nil {
		return false
	}
	if !isFinite(c.Sum + by) {
		return b.refuse(series, wire.NotFinite)
	}
	c.Sum += by
	c.interval.add(by, 1)

	return true
}

// counter returns the counter of a series, or nil if there is no room.
func (b *Aggregator) counter(series []byte) *counter {
	return findOrAdd(b, &b.Counters, series, func(c *counter, name string) { c.interval = b.chartOf(CounterKind, name) })
}

// A gauge is a series of a gauge. Times are Unix seconds.
type gauge struct {
	Last     float64 `json:"last"`
	Min      float64 `json:"min"`
	Max      float64 `json:"max"`
	Count    int64   `json:"count"`
	First    float64 `json:"first"` // time of the first value
	Since    float64 `json:"since"` // time of Last
	Area     float64 `json:"area"`  // value × seconds, from First to Since
	interval *interval
}

// addGauge sets or changes a gauge to the values of an event.
func (b *Aggregator) addGauge(e *wire.Event, at time.Time) bool {
	for _, v := range e.Values {
		if !b.setGauge(e.Series, v, e.Kind == wire.GaugeDelta, at) {
			return false
		}
	}
	return true
}

// setGauge sets a gauge to v or, if change is true, changes it by v. A new gauge starts at 0.
func (b *Aggregator) setGauge(series []byte, v float64, change bool, at time.Time) bool {
	g := findOrAdd(b, &b.Gauges, series, func(g *gauge, name string) { g.interval = b.chartOf(GaugeKind, name) })
	if g == nil {
		return false
	}
	if change {
		v += g.Last
	}
	if !isFinite(v) {
		return b.refuse(series, wire.NotFinite)
	}
	g.set(v, unixSeconds(at))

	return true
}

// set sets the gauge to v at the time at. If at is before the time of the last value, the time of the last value is
// used instead.
func (g *gauge) set(v, at float64) {
	if g.Count == 0 {
		g.First, g.Since, g.Min, g.Max = at, at, v, v
	} else {
		at = max(at, g.Since)
		g.interval.addConstant(g.Last, g.Since, at)
	}
	g.Area += g.Last * (at - g.Since)
	g.Last, g.Since = v, at
	g.Min, g.Max = min(g.Min, v), max(g.Max, v)
	g.Count++
	g.interval.touch(v)
}

// mean returns the mean weighted by time, from the first value to end.
func (g *gauge) mean(end float64) float64 {
	if end = max(end, g.Since); end > g.First {
		return (g.Area + g.Last*(end-g.Since)) / (end - g.First)
	}
	return g.Last
}

// A valueSeries is a series of observed values.
type valueSeries struct {
	Count     float64       `json:"count"`
	Avg       float64       `json:"avg"`
	Min       float64       `json:"min"`
	Max       float64       `json:"max"`
	Last      float64       `json:"last"`
	Unit      string        `json:"unit,omitempty"`
	Quantiles quantiles     `json:"quantiles"`
	Scraped   *distribution `json:"scraped,omitempty"`
}

// addValue adds the observed values of an event.
func (b *Aggregator) addValue(e *wire.Event) bool {
	o := findOrAdd(b, &b.Values, e.Series, nil)
	if o == nil {
		return false
	}
	if len(e.Text) > 0 && o.Unit != string(e.Text) {
		o.Unit = string(e.Text)
	}
	for _, v := range e.Values {
		o.add(v, 1/e.Rate, &b.used)
	}

	return true
}

// add counts a value n times.
func (o *valueSeries) add(v, n float64, used *usage) {
	before := o.Count
	if before == 0 {
		o.Min, o.Max = v, v
	}
	o.Avg = (o.Avg*o.Count + v*n) / (o.Count + n)
	o.Min, o.Max, o.Last = min(o.Min, v), max(o.Max, v), v
	o.Count = min(o.Count+n, maxSum)
	o.Quantiles.add(v, before, o.Count, used)
}

// isFinite reports whether all values are within ±maxSum.
func isFinite(values ...float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return !(math.Abs(v) <= maxSum) })
}

// A set is a series of a set. It keeps 64 bits of a hash of each member.
type set struct {
	Members []uint64 `json:"members"` // in ascending order
	AtLeast bool     `json:"at_least,omitzero"`
}

// seed is the seed for the hashes of set members.
var seed = maphash.MakeSeed()

// addMember adds a member of a set.
func (b *Aggregator) addMember(e *wire.Event) bool {
	s := findOrAdd(b, &b.Sets, e.Series, nil)
	if s == nil {
		return false
	}

	h := maphash.Bytes(seed, e.Text)
	i, known := slices.BinarySearch(s.Members, h)
	switch {
	case known:
	case len(s.Members) >= MaxMembers || b.used.members >= maxAllMembers:
		s.AtLeast = true
	default:
		s.Members = slices.Insert(s.Members, i, h)
		b.used.members++
	}

	return true
}

// An attribute is a series with a value that is a string, a float64 or a bool.
type attribute struct {
	Value any `json:"value"`
}

// addAttribute sets an attribute.
func (b *Aggregator) addAttribute(e *wire.Event) bool {
	a := b.attribute(e.Series)
	if a == nil {
		return false
	}
	a.Value = e.Attribute

	return true
}

// attribute returns the attribute of a series, or nil if there is no room.
func (b *Aggregator) attribute(series []byte) *attribute {
	return findOrAdd(b, &b.Attributes, series, nil)
}

// quantiles is a Sketch within the memory limit of the Aggregator. The Sketch is discarded if it exceeds the limit
// because its range of values widened.
type quantiles struct {
	Sketch    opstats.Sketch `json:"sketch,omitzero"`
	Discarded bool           `json:"lost,omitzero"`
}

// add counts v as many times as the rounded count of its series grew, from before to after.
func (q *quantiles) add(v, before, after float64, used *usage) {
	if q.Discarded {
		return
	}
	n := uint64(min(math.Round(after)-math.Round(before), 1<<62))

	bytes := q.Sketch.Bytes()
	err := q.Sketch.AddN(v, n)
	used.sketchBytes += q.Sketch.Bytes() - bytes
	if err != nil || used.sketchBytes > maxSketchBytes {
		used.sketchBytes -= q.Sketch.Bytes()
		*q = quantiles{Discarded: true}
	}
}
