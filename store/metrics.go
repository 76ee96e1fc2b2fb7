package store

import (
	"maps"
	"time"

	"github.com/perfagent/perfagent/opstats"
)

// maxMetrics bounds what is kept of a store's metrics: some ten thousand objects.
const maxMetrics = 1 << 17

// note notes something of an object, unless nothing is counted.
func (s *Store) note(name string, add func(l *opstats.Ledger, key string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ledger != nil {
		_ = add(s.ledger, s.key(name)) // refused when the ledger is full
	}
}

// time notes how long an operation on an object took, and when it ended.
func (s *Store) time(op, name string, took time.Duration, at time.Time) {
	s.note(name, func(l *opstats.Ledger, key string) error { return l.AddTime(op, key, took.Seconds()*1e3, at) })
}

// count adds one to a counter of an object.
func (s *Store) count(counter, name string) {
	s.note(name, func(l *opstats.Ledger, key string) error { return l.AddCounter(counter, key, 1) })
}

// size notes how many bytes the connector had of an object.
func (s *Store) size(attribute, name string, bytes int) {
	s.note(name, func(l *opstats.Ledger, key string) error {
		s.last[attribute] = float64(bytes)
		return l.AddAttribute(attribute, key, float64(bytes))
	})
}

// Metrics returns what the store has done; nil if it was opened without Metrics. The names are those of ProxyStore but
// for store.list and the counters store.OP.errors and store.OP.retries.
func (s *Store) Metrics() *opstats.StoreMetrics {
	if s.ledger == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	m := &opstats.StoreMetrics{
		Attributes: maps.Clone(s.last), Counters: make(map[string]float64), Times: s.ledger.AggregateTimes(),
		Keys: make(map[string]opstats.Metrics),
	}
	for _, key := range s.ledger.Keys() {
		of, _ := s.ledger.Get(key)
		m.Keys[key] = of
		for name, v := range of.Counters {
			m.Counters[name] += v
		}
	}
	return m
}
