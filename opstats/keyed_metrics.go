package opstats

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// KeyedMetrics keeps Metrics for each key, like ProxyStore's class StoreMetrics, with two differences: its size is
// limited, and different keys never share an entry (StoreMetrics compares hashes).
//
// An entry is one name of one kind under one key: store.get of the key k1. At the limit, known entries continue to
// count, and a new entry is rejected with [ErrFull]. KeyedMetrics copies the names, keys and texts that it keeps, so a
// caller may pass strings that share a buffer. A call for a known entry does not allocate, except for attributes.
type KeyedMetrics struct {
	limit, entries int
	keys           []string // in order of first use
	byKey          map[string]*keyMetrics
}

// A keyMetrics has the entries of a key.
type keyMetrics struct {
	attributes entries[any]
	counters   entries[float64]
	times      entries[TimeStats]
}

// entries are the entries of a kind.
type entries[E any] []entry[E]

type entry[E any] struct {
	name  string
	value E
}

// find returns the value of a known entry, or nil.
func (list entries[E]) find(name string) *E {
	for i := range list {
		if list[i].name == name {
			return &list[i].value
		}
	}
	return nil
}

// byName returns the values by name.
func (list entries[E]) byName() map[string]E {
	out := make(map[string]E, len(list))
	for _, e := range list {
		out[e.name] = e.value
	}
	return out
}

// NewKeyedMetrics returns an empty KeyedMetrics of at most limit entries.
func NewKeyedMetrics(limit int) *KeyedMetrics {
	return &KeyedMetrics{limit: limit, byKey: map[string]*keyMetrics{}}
}

// Len returns the number of entries.
func (l *KeyedMetrics) Len() int { return l.entries }

// Keys returns the keys, in order of first use.
func (l *KeyedMetrics) Keys() []string { return slices.Clone(l.keys) }

// AddAttribute sets the named attribute of a key: a string, a float64 or a bool. It returns [ErrMalformed] for other
// types and for text that is not UTF-8, [ErrNotFinite] for a number that is not finite, and [ErrFull] at the limit.
func (l *KeyedMetrics) AddAttribute(name, key string, value any) error {
	kept, err := attribute(value)
	if err != nil {
		return err
	}

	e, err := enter(l, attributesOf, name, key)
	if err == nil {
		*e = kept
	}
	return err
}

// AddCounter adds v, which may be negative, to a counter of a key. It returns [ErrNotFinite] if v is not finite, and
// [ErrFull] at the limit.
func (l *KeyedMetrics) AddCounter(name, key string, v float64) error {
	if !inRange(v) {
		return ErrNotFinite
	}

	e, err := enter(l, countersOf, name, key)
	if err == nil {
		*e = bounded(*e + v)
	}
	return err
}

// AddTime counts a time in milliseconds of an operation on a key, recorded at the given moment. It returns the errors
// of [TimeStats.Add], and [ErrFull] at the limit.
func (l *KeyedMetrics) AddTime(name, key string, ms float64, at time.Time) error {
	if !isSize(ms) {
		return ErrNotFinite // without a new entry
	}

	e, err := enter(l, timesOf, name, key)
	if err == nil {
		err = e.Add(ms, at)
	}
	return err
}

// SetSize sets the size of the object that an operation on a key last handled, like [TimeStats.SetSize]. It changes
// nothing before the first AddTime of that operation and key.
func (l *KeyedMetrics) SetSize(name, key string, bytes float64) error {
	if a := l.byKey[key]; a != nil && a.times.find(name) != nil {
		return a.times.find(name).SetSize(bytes)
	}
	return nil
}

// Get returns a copy of the Metrics of the given key. It reports false if the key is unknown.
func (l *KeyedMetrics) Get(key string) (Metrics, bool) {
	a := l.byKey[key]
	if a == nil {
		return Metrics{}, false
	}
	return a.metrics(), true
}

// AggregateTimes returns the times of each operation, merged over all keys in order of first use.
func (l *KeyedMetrics) AggregateTimes() map[string]TimeStats {
	times := make(map[string]TimeStats)
	for _, key := range l.keys {
		for _, e := range l.byKey[key].times {
			times[e.name] = times[e.name].Merge(e.value)
		}
	}

	return times
}

// Clone returns an independent copy.
func (l *KeyedMetrics) Clone() *KeyedMetrics {
	c := NewKeyedMetrics(l.limit)
	c.entries, c.keys = l.entries, slices.Clone(l.keys)
	for key, a := range l.byKey {
		c.byKey[key] = &keyMetrics{slices.Clone(a.attributes), slices.Clone(a.counters), slices.Clone(a.times)}
	}

	return c
}

func attributesOf(a *keyMetrics) *entries[any]   { return &a.attributes }
func countersOf(a *keyMetrics) *entries[float64] { return &a.counters }
func timesOf(a *keyMetrics) *entries[TimeStats]  { return &a.times }

// enter returns the value of an entry, and adds the entry if it is new. It rejects text that is not UTF-8, which JSON
// cannot represent.
func enter[E any](l *KeyedMetrics, kind func(*keyMetrics) *entries[E], name, key string) (*E, error) {
	a := l.byKey[key]
	if a != nil {
		if v := kind(a).find(name); v != nil {
			return v, nil
		}
	}
	switch {
	case !utf8.ValidString(key) || !utf8.ValidString(name):
		return nil, ErrMalformed
	case l.entries >= l.limit:
		return nil, ErrFull
	}

	if a == nil {
		a, key = new(keyMetrics), strings.Clone(key)
		l.byKey[key], l.keys = a, append(l.keys, key)
	}
	list := kind(a)
	*list = append(*list, entry[E]{name: strings.Clone(name)})
	l.entries++

	return &(*list)[len(*list)-1].value, nil
}

// metrics returns the entries as Metrics.
func (a *keyMetrics) metrics() Metrics {
	return Metrics{a.attributes.byName(), a.counters.byName(), a.times.byName()}
}

// keyMetricsJSON is the JSON form of a key with its entries.
type keyMetricsJSON struct {
	Key     string  `json:"key"`
	Metrics Metrics `json:"metrics"`
}

// MarshalJSON writes a list of {"key":KEY,"metrics":METRICS}, in order of first use.
func (l *KeyedMetrics) MarshalJSON() ([]byte, error) {
	list := make([]keyMetricsJSON, len(l.keys))
	for i, key := range l.keys {
		list[i] = keyMetricsJSON{key, l.byKey[key].metrics()}
	}

	return json.Marshal(list)
}

// UnmarshalJSON reads the output of MarshalJSON into a KeyedMetrics made by [NewKeyedMetrics], and keeps its limit.
// Impossible metrics, and more entries than the limit are errors.
func (l *KeyedMetrics) UnmarshalJSON(data []byte) error {
	return readJSON("ledger", data, l, func(list []keyMetricsJSON) (KeyedMetrics, error) {
		read := NewKeyedMetrics(l.limit)
		for _, a := range list {
			err := cmp.Or(put(read, attributesOf, a.Key, a.Metrics.Attributes),
				put(read, countersOf, a.Key, a.Metrics.Counters), put(read, timesOf, a.Key, a.Metrics.Times))
			if err != nil {
				return *read, err
			}
		}
		return *read, nil
	})
}

// put adds values to the entries of one kind of a key.
func put[E any](l *KeyedMetrics, kind func(*keyMetrics) *entries[E], key string, values map[string]E) error {
	for name, v := range values {
		e, err := enter(l, kind, name, key)
		if err != nil {
			return err
		}
		*e = v
	}
	return nil
}

// Metrics are the numbers of one key or of one program, by name. It is ProxyStore's class Metrics, and its JSON is the
// result of that class's as_dict.
type Metrics struct {
	Attributes map[string]any       `json:"attributes"` // last value: a string, a float64 or a bool
	Counters   map[string]float64   `json:"counters"`   // sums
	Times      map[string]TimeStats `json:"times"`
}

// StoreMetrics are the numbers of a ProxyStore Store, under the names of its class StoreMetrics.
type StoreMetrics struct {
	// The first three are over all objects. Attributes holds the last value of each attribute.
	Attributes map[string]any       `json:"attributes"`
	Counters   map[string]float64   `json:"counters"`
	Times      map[string]TimeStats `json:"times"` // milliseconds

	Keys map[string]Metrics `json:"keys"` // by key in the store
}

// UnmarshalJSON reads the JSON of Metrics. Each of the three parts may be missing. Empty times are dropped. An
// attribute that is a list, an object or null, and a number out of range are errors. Unknown keys are ignored.
func (m *Metrics) UnmarshalJSON(data []byte) error {
	type plain Metrics // without this method
	return readJSON("metrics", data, m, func(read plain) (Metrics, error) {
		for _, value := range read.Attributes {
			if _, err := attribute(value); err != nil {
				return Metrics{}, err
			}
		}
		for _, value := range read.Counters {
			if !(math.Abs(value) <= sumLimit) {
				return Metrics{}, ErrNotFinite
			}
		}
		maps.DeleteFunc(read.Times, func(_ string, s TimeStats) bool { return s.Empty() })
		return Metrics(read), nil
	})
}

// attribute checks the value of an attribute and returns it with a copy of its text.
func attribute(value any) (any, error) {
	switch v := value.(type) {
	case bool:
		return v, nil
	case float64:
		if !inRange(v) {
			return nil, ErrNotFinite
		}
		return v, nil
	case string:
		if !utf8.ValidString(v) {
			return nil, ErrMalformed
		}
		return strings.Clone(v), nil
	}

	return nil, ErrMalformed
}
