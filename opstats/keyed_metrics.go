package opstats

import (
	"maps"
	"math"
	"slices"
	"time"
	"unicode/utf8"
)

// KeyedMetrics keeps Metrics for each key, like ProxyStore's class StoreMetrics. There are two differences: its size is
// limited, and different keys never share an entry, whereas StoreMetrics compares hashes.
//
// An entry is one name of one kind for one key, such as the time store.get of the key k1. At the limit, known entries
// are still updated, and a new entry is rejected with [ErrFull].
type KeyedMetrics struct {
	limit, entries int
	keys           []string // in order of first use
	byKey          map[string]Metrics
}

// NewKeyedMetrics returns an empty KeyedMetrics for at most limit entries.
func NewKeyedMetrics(limit int) *KeyedMetrics {
	return &KeyedMetrics{limit: limit, byKey: make(map[string]Metrics)}
}

// Keys returns the keys in order of first use.
func (l *KeyedMetrics) Keys() []string { return slices.Clone(l.keys) }

// AddAttribute sets the named attribute of a key: a string, a float64 or a bool. It returns [ErrMalformed] for other
// types and for text that is not UTF-8, [ErrNotFinite] for a number that is not finite, and [ErrFull] at the limit.
func (l *KeyedMetrics) AddAttribute(name, key string, value any) error {
	err := checkAttribute(value)
	if err != nil {
		return err
	}

	m, err := enter(l, name, key, func(m Metrics) map[string]any { return m.Attributes })
	if err == nil {
		m[name] = value
	}
	return err
}

// AddCounter adds v, which may be negative, to a counter of a key. It returns [ErrNotFinite] if v is not finite, and
// [ErrFull] at the limit.
func (l *KeyedMetrics) AddCounter(name, key string, v float64) error {
	if !inRange(v) {
		return ErrNotFinite
	}

	m, err := enter(l, name, key, func(m Metrics) map[string]float64 { return m.Counters })
	if err == nil {
		m[name] = bounded(m[name] + v)
	}
	return err
}

// AddTime counts a time in milliseconds of an operation on a key, recorded at the given moment. It returns the errors
// of [TimeStats.Add], and [ErrFull] at the limit.
func (l *KeyedMetrics) AddTime(name, key string, ms float64, at time.Time) error {
	if !isSize(ms) {
		return ErrNotFinite // before a new entry is created
	}

	m, err := enter(l, name, key, func(m Metrics) map[string]TimeStats { return m.Times })
	if err == nil {
		s := m[name]
		err = s.Add(ms, at)
		m[name] = s
	}
	return err
}

// Get returns a copy of the Metrics of the given key. It reports false if the key is unknown.
func (l *KeyedMetrics) Get(key string) (Metrics, bool) {
	m, ok := l.byKey[key]
	return Metrics{maps.Clone(m.Attributes), maps.Clone(m.Counters), maps.Clone(m.Times)}, ok
}

// AggregateTimes returns the times of each operation, merged over all keys in order of first use.
func (l *KeyedMetrics) AggregateTimes() map[string]TimeStats {
	times := make(map[string]TimeStats)
	for _, key := range l.keys {
		for name, s := range l.byKey[key].Times {
			times[name] = times[name].Merge(s)
		}
	}

	return times
}

// enter returns the entries of one kind for a key, with room for an entry with the given name. It rejects text that is
// not UTF-8, which JSON cannot represent.
func enter[E any](l *KeyedMetrics, name, key string, kind func(Metrics) map[string]E) (map[string]E, error) {
	m, hasKey := l.byKey[key]
	if _, known := kind(m)[name]; known {
		return kind(m), nil
	}
	switch {
	case !utf8.ValidString(key) || !utf8.ValidString(name):
		return nil, ErrMalformed
	case l.entries >= l.limit:
		return nil, ErrFull
	}

	if !hasKey {
		m = Metrics{make(map[string]any), make(map[string]float64), make(map[string]TimeStats)}
		l.byKey[key], l.keys = m, append(l.keys, key)
	}
	l.entries++

	return kind(m), nil
}

// Metrics holds the attributes, counters and times of one key or one program, by name. It corresponds to ProxyStore's
// class Metrics, and its JSON is the result of the class's method as_dict.
type Metrics struct {
	Attributes map[string]any       `json:"attributes"` // last value: a string, a float64 or a bool
	Counters   map[string]float64   `json:"counters"`   // sums
	Times      map[string]TimeStats `json:"times"`
}

// StoreMetrics holds the metrics of a ProxyStore Store, with the names of ProxyStore's class StoreMetrics.
type StoreMetrics struct {
	// The first three fields are for all objects together. Attributes holds the last value of each attribute.
	Attributes map[string]any       `json:"attributes"`
	Counters   map[string]float64   `json:"counters"`
	Times      map[string]TimeStats `json:"times"` // milliseconds

	Keys map[string]Metrics `json:"keys"` // by key in the store
}

// UnmarshalJSON reads the JSON of Metrics. Each of the three members may be missing. Empty times are dropped, and
// unknown keys are ignored. It returns an error for an attribute that is a list, an object or null, and for a number
// out of range.
func (m *Metrics) UnmarshalJSON(data []byte) error {
	type plain Metrics // without this method
	return readJSON("metrics", data, m, func(read plain) (Metrics, error) {
		for _, value := range read.Attributes {
			if err := checkAttribute(value); err != nil {
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

// checkAttribute returns an error if value is not a valid attribute.
func checkAttribute(value any) error {
	switch v := value.(type) {
	case bool:
		return nil
	case float64:
		if !inRange(v) {
			return ErrNotFinite
		}
		return nil
	case string:
		if utf8.ValidString(v) {
			return nil
		}
	}
	return ErrMalformed
}
