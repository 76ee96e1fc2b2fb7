package opstats

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Ledger keeps Metrics for each key. It does what ProxyStore's class StoreMetrics does, with two differences: its size
// is limited, and different keys never share an entry (StoreMetrics compares hashes).
//
// An entry is one name of one kind under one key: store.get of the key k1. When the limit is reached, known entries
// count on, and a new one is refused with [ErrFull]. A Ledger copies the names, keys and texts that it keeps, so a
// caller may pass strings that share a buffer. A call for a known entry allocates nothing, but for attributes.
type Ledger struct {
	limit, entries int
	index          map[string]int // of accounts, by key
	accounts       []account      // in the order in which the keys were first seen
}

type account struct {
	key     string
	entries []entry
}

type kind uint8

const (
	attributeKind kind = iota
	counterKind
	timeKind
)

// An entry has one of the three values, as its kind says.
type entry struct {
	kind      kind
	name      string
	attribute any
	counter   float64
	time      TimeStats
}

// NewLedger returns an empty Ledger of at most limit entries.
func NewLedger(limit int) *Ledger { return &Ledger{limit: limit, index: map[string]int{}} }

// Len returns the number of entries.
func (l *Ledger) Len() int { return l.entries }

// Keys returns the keys, in the order in which they were first seen.
func (l *Ledger) Keys() []string {
	keys := make([]string, len(l.accounts))
	for i, a := range l.accounts {
		keys[i] = a.key
	}

	return keys
}

// AddAttribute sets an attribute of a key: a string, a float64 or a bool. It returns [ErrMalformed] for anything else
// and for text that is not UTF-8, [ErrNotFinite] for a number that is not finite, and [ErrFull].
func (l *Ledger) AddAttribute(name, key string, value any) error {
	kept, err := attribute(value)
	if err != nil {
		return err
	}

	e, err := l.entry(attributeKind, name, key)
	if err == nil {
		e.attribute = kept
	}
	return err
}

// AddCounter adds to a counter of a key; v may be negative. It returns [ErrNotFinite] if v is not finite, and
// [ErrFull].
func (l *Ledger) AddCounter(name, key string, v float64) error {
	if !inRange(v) {
		return ErrNotFinite
	}

	e, err := l.entry(counterKind, name, key)
	if err == nil {
		e.counter = bounded(e.counter + v)
	}
	return err
}

// AddTime counts a time in milliseconds of an operation on a key, recorded at the given moment. It returns the errors
// of [TimeStats.Add], and [ErrFull].
func (l *Ledger) AddTime(name, key string, ms float64, at time.Time) error {
	if !isSize(ms) {
		return ErrNotFinite // and no entry
	}

	e, err := l.entry(timeKind, name, key)
	if err == nil {
		err = e.time.Add(ms, at)
	}
	return err
}

// SetSize notes the size of the object that an operation on a key last handled, as [TimeStats.SetSize] does. It
// changes nothing if AddTime has not taken a time of that operation and key.
func (l *Ledger) SetSize(name, key string, bytes float64) error {
	if e := l.find(timeKind, name, key); e != nil {
		return e.time.SetSize(bytes)
	}
	return nil
}

// Get returns a copy of the Metrics of a key. It reports false if the key is unknown.
func (l *Ledger) Get(key string) (Metrics, bool) {
	i, known := l.index[key]
	if !known {
		return Metrics{}, false
	}
	return l.accounts[i].metrics(), true
}

// AggregateTimes returns the times of each operation, merged over all keys in the order in which the keys were first
// seen.
func (l *Ledger) AggregateTimes() map[string]TimeStats {
	times := make(map[string]TimeStats)
	for _, a := range l.accounts {
		for _, e := range a.entries {
			if e.kind == timeKind {
				times[e.name] = times[e.name].Merge(e.time)
			}
		}
	}

	return times
}

// Clone returns an independent copy.
func (l *Ledger) Clone() *Ledger {
	c := *l
	c.index, c.accounts = maps.Clone(l.index), slices.Clone(l.accounts)
	for i, a := range c.accounts {
		c.accounts[i].entries = slices.Clone(a.entries)
	}

	return &c
}

// find returns a known entry, or nil.
func (l *Ledger) find(k kind, name, key string) *entry {
	i, known := l.index[key]
	if !known {
		return nil
	}
	entries := l.accounts[i].entries
	for i := range entries {
		if e := &entries[i]; e.kind == k && e.name == name {
			return e
		}
	}
	return nil
}

// entry returns an entry, a new one if it is not known yet. Text that is not UTF-8 has no JSON of its own, so it is
// refused.
func (l *Ledger) entry(k kind, name, key string) (*entry, error) {
	if e := l.find(k, name, key); e != nil {
		return e, nil
	}
	switch {
	case !utf8.ValidString(key) || !utf8.ValidString(name):
		return nil, ErrMalformed
	case l.entries >= l.limit:
		return nil, ErrFull
	}

	i, known := l.index[key]
	if !known {
		i, key = len(l.accounts), strings.Clone(key)
		l.index[key] = i
		l.accounts = append(l.accounts, account{key: key})
	}
	a := &l.accounts[i]
	a.entries = append(a.entries, entry{kind: k, name: strings.Clone(name)})
	l.entries++

	return &a.entries[len(a.entries)-1], nil
}

// metrics returns the entries of an account as Metrics.
func (a account) metrics() Metrics {
	m := Metrics{map[string]any{}, map[string]float64{}, map[string]TimeStats{}}
	for _, e := range a.entries {
		switch e.kind {
		case attributeKind:
			m.Attributes[e.name] = e.attribute
		case counterKind:
			m.Counters[e.name] = e.counter
		case timeKind:
			m.Times[e.name] = e.time
		}
	}

	return m
}

// accountJSON is an account in a file.
type accountJSON struct {
	Key     string  `json:"key"`
	Metrics Metrics `json:"metrics"`
}

// MarshalJSON writes a list of {"key":KEY,"metrics":METRICS}, in the order in which the keys were first seen.
func (l *Ledger) MarshalJSON() ([]byte, error) {
	list := make([]accountJSON, len(l.accounts))
	for i, a := range l.accounts {
		list[i] = accountJSON{a.key, a.metrics()}
	}

	return json.Marshal(list)
}

// UnmarshalJSON reads what MarshalJSON wrote into a Ledger made by [NewLedger], whose limit stays. Impossible metrics,
// a key that is listed twice, and more entries than the limit are errors.
func (l *Ledger) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil // what encoding/json expects of a null
	}

	var list []accountJSON
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("read ledger: %w", err)
	}
	read := NewLedger(l.limit)
	for _, a := range list {
		if _, known := read.index[a.Key]; known {
			return fmt.Errorf("read ledger: key %q is there twice", a.Key)
		}
		if err := read.put(a.Key, a.Metrics); err != nil {
			return fmt.Errorf("read ledger: key %q: %w", a.Key, err)
		}
	}
	*l = *read

	return nil
}

// put inserts the Metrics of a new key.
func (l *Ledger) put(key string, m Metrics) error {
	var list []entry
	for name, v := range m.Attributes {
		list = append(list, entry{kind: attributeKind, name: name, attribute: v})
	}
	for name, v := range m.Counters {
		list = append(list, entry{kind: counterKind, name: name, counter: v})
	}
	for name, v := range m.Times {
		list = append(list, entry{kind: timeKind, name: name, time: v})
	}
	for _, v := range list {
		e, err := l.entry(v.kind, v.name, key)
		if err != nil {
			return err
		}
		*e = v
	}

	return nil
}
