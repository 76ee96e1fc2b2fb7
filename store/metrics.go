package store

import (
	"maps"
	"time"

	"github.com/perfagent/perfagent/opstats"
)

// maxMetrics bounds what is kept of a store's metrics: some ten thousand objects.
const maxMetrics = 1 << 17

// A recorder counts what a Store does.
type recorder struct {
	ledger *opstats.Ledger
	last   map[string]any // attributes
}

func newRecorder() *recorder {
	return &recorder{ledger: opstats.NewLedger(maxMetrics), last: make(map[string]any)}
}

// time notes how long an operation on an object took.
func (s *Store) time(op, name string, took time.Duration, at time.Time) {
	if s.metrics == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.metrics.ledger.AddTime(op, s.key(name), took.Seconds()*1e3, at) // refused when the ledger is full
}

// count adds one to a counter of an object.
func (s *Store) count(counter, name string) {
	if s.metrics == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.metrics.ledger.AddCounter(counter, s.key(name), 1)
}

// size notes how many bytes the connector had of an object.
func (s *Store) size(attribute, name string, bytes int) {
	if s.metrics == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.metrics.last[attribute] = float64(bytes)
	_ = s.metrics.ledger.AddAttribute(attribute, s.key(name), float64(bytes))
}

// Metrics returns what the store has done; nil if it was opened without Metrics. The names are those of ProxyStore but for
// store.list and the counters store.OP.errors and store.OP.retries.
func (s *Store) Metrics() *opstats.StoreMetrics {
	if s.metrics == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	ledger := s.metrics.ledger
	m := &opstats.StoreMetrics{
		Attributes: maps.Clone(s.metrics.last), Counters: make(map[string]float64), Times: ledger.AggregateTimes(),
		Keys: make(map[string]opstats.Metrics),
	}
	for _, key := range ledger.Keys() {
		of, _ := ledger.Get(key)
		m.Keys[key] = of
		for name, v := range of.Counters {
			m.Counters[name] += v
		}
	}
	return m
}
