package aggregate

import (
	"encoding/json"
	"slices"

	"github.com/perfagent/perfagent/collector/intake/wire"
	"github.com/perfagent/perfagent/opstats"
)

// addProxyStore adds a Metrics record of ProxyStore, which replaces an earlier record with the same id.
func (b *Aggregator) addProxyStore(e *wire.Event) bool {
	var m opstats.Metrics
	if json.Unmarshal(e.Data, &m) != nil {
		return b.refuse(e.Data, wire.Malformed)
	}
	id := string(e.Text)
	b.dropProxyStore(id)

	for name, stats := range m.Times {
		if t := proxyStoreSeries(b, name, b.timing); t != nil && b.reserveProxyStore() {
			put(&t.ProxyStore, id, scaled(stats, unitOf(e.Version, name)))
		}
	}
	for name, v := range m.Counters {
		if c := proxyStoreSeries(b, name, b.counter); c != nil && b.reserveProxyStore() {
			put(&c.ProxyStore, id, v)
		}
	}
	for name, v := range m.Attributes {
		if s, is := v.(string); is && len(s) > wire.MaxText {
			b.refuse([]byte(name), wire.TooLong)
			continue
		}
		if a := proxyStoreSeries(b, name, b.attribute); a != nil {
			a.Value = v
		}
	}

	return true
}

// put sets a map entry, and creates the map if it is nil.
func put[V any](m *map[string]V, key string, v V) {
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[key] = v
}

// proxyStoreSeries returns the series for a name in a ProxyStore record, or nil if the name is invalid or there is no
// room.
func proxyStoreSeries[E any](b *Aggregator, name string, find func(series []byte) *E) *E {
	switch {
	case name == "":
		b.refuse(nil, wire.Malformed)
		return nil
	case len(name) > wire.MaxText:
		b.refuse([]byte(name), wire.TooLong)
		return nil
	}
	return find(wire.AppendName(nil, []byte(name)))
}

// reserveProxyStore reserves room for one more pair of a series and an id. It reports false if there is no room.
func (b *Aggregator) reserveProxyStore() bool {
	if b.used.proxyStoreValues >= MaxProxyStoreValues {
		b.Dropped.Keys++
		return false
	}
	b.used.proxyStoreValues++
	return true
}

// dropProxyStore removes the record with the given id.
func (b *Aggregator) dropProxyStore(id string) {
	for _, t := range b.Times {
		b.used.proxyStoreValues -= remove(t.ProxyStore, id)
	}
	for _, c := range b.Counters {
		b.used.proxyStoreValues -= remove(c.ProxyStore, id)
	}
}

// remove removes a map entry. It returns 1 if the entry existed, and 0 otherwise.
func remove[V any](m map[string]V, key string) int {
	had := len(m)
	delete(m, key)
	return had - len(m)
}

// unitOf returns the divisor that converts the times of an operation to milliseconds. From 0.5.0 to 0.6.4, ProxyStore
// wrote microseconds into fields named _ms. Since 0.6.5, three operations of factories are in nanoseconds.
func unitOf(v wire.Version, name string) float64 {
	switch {
	case slices.Compare(v[:], []int{0, 5, 0}) < 0:
		return 1
	case slices.Compare(v[:], []int{0, 6, 5}) < 0:
		return 1e3
	case slices.Contains(inNanoseconds, name):
		return 1e6
	}
	return 1
}

// inNanoseconds lists the operations with times that are in nanoseconds since 0.6.5.
var inNanoseconds = []string{"factory.call", "factory.resolve", "factory.polling_resolve"}

// scaled returns s with its times divided by unit.
func scaled(s opstats.TimeStats, unit float64) opstats.TimeStats {
	s.Avg /= unit
	s.Min /= unit
	s.Max /= unit
	s.Last /= unit
	return s
}
