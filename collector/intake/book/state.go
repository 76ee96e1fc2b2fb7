package book

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/opstats"
)

// maxState is the largest state that is read, unpacked. That of a Book at all its bounds is half as large.
const maxState = 64 << 20

// Clone returns an independent copy, for a reader in another goroutine. It has no time lines.
func (b *Book) Clone() *Book {
	c := *b
	c.charts = nil
	c.keys = b.keys.Clone()
	c.sources = b.cloneSources()
	c.examples = slices.Clone(b.examples)

	c.times = cloneAll(b.times, func(t *timing) {
		t.Quantiles, t.Scraped, t.Handed = t.Quantiles.clone(), t.Scraped.clone(), maps.Clone(t.Handed)
		t.interval = nil
	})
	c.counters = cloneAll(b.counters, func(n *counter) { n.Handed, n.interval = maps.Clone(n.Handed), nil })
	c.gauges = cloneAll(b.gauges, func(g *gauge) { g.interval = nil })
	c.values = cloneAll(b.values, func(o *observed) { o.Quantiles, o.Scraped = o.Quantiles.clone(), o.Scraped.clone() })
	c.sets = cloneAll(b.sets, func(s *set) { s.Members = slices.Clone(s.Members) })
	c.attributes = cloneAll(b.attributes, func(*attribute) {})
	c.transfers = cloneAll(b.transfers, func(t *transfer) {
		t.Records, t.Ranks, t.interval = *t.Records.Clone(), slices.Clone(t.Ranks), nil
	})
	c.engines = cloneAll(b.engines, func(n *nixl) {
		for i := range n.Parts {
			n.Parts[i] = *n.Parts[i].clone()
		}
	})

	return &c
}

// cloneAll returns copies of entries; deepen replaces what they share with the originals.
func cloneAll[E any](entries map[string]*E, deepen func(*E)) map[string]*E {
	all := make(map[string]*E, len(entries))
	for name, e := range entries {
		c := *e
		deepen(&c)
		all[name] = &c
	}
	return all
}

// stateJSON is the state of a Book.
type stateJSON struct {
	Times      map[string]*timing    `json:"times,omitempty"`
	Counters   map[string]*counter   `json:"counters,omitempty"`
	Gauges     map[string]*gauge     `json:"gauges,omitempty"`
	Values     map[string]*observed  `json:"values,omitempty"`
	Sets       map[string]*set       `json:"sets,omitempty"`
	Attributes map[string]*attribute `json:"attributes,omitempty"`
	Transfers  map[string]*transfer  `json:"transfers,omitempty"`
	Engines    map[string]*nixl      `json:"engines,omitempty"`
	Keys       *opstats.Ledger       `json:"keys,omitempty"`
	Sources    []Source              `json:"sources,omitempty"`
	Dropped    Dropped               `json:"dropped,omitzero"`
	Examples   []Example             `json:"examples,omitempty"`
}

// WriteState writes the state of the Book, without loss: a Book that is restored from it gives the same report. It is
// JSON, with gzip if it is large: at most 3 MiB at all bounds.
func (b *Book) WriteState(w io.Writer) error {
	state := &stateJSON{b.times, b.counters, b.gauges, b.values, b.sets, b.attributes, b.transfers, b.engines, b.keys,
		b.sources, b.dropped, b.examples}
	if b.isSmall() {
		return stateError("write", text.WriteJSON(w, state))
	}
	packed, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err == nil {
		err = errors.Join(text.WriteJSON(packed, state), packed.Close())
	}
	return stateError("write", err)
}

// stateError says what failed with a state; nil if nothing did.
func stateError(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s state of operations: %w", what, err)
	}
	return nil
}

// isSmall reports whether the state is not worth packing: the tables for it take 0.8 MB and half a millisecond.
func (b *Book) isSmall() bool {
	return b.used.series+b.keys.Len()+len(b.transfers)+len(b.engines) < 16 && b.used.members+b.used.held < 256
}

// Restore returns the Book whose state WriteState wrote. It has no time lines. An error says that the state is not one
// that WriteState can have written.
func Restore(state []byte) (*Book, error) {
	w := stateJSON{Keys: opstats.NewLedger(MaxKeys)}
	if err := unpack(state, &w); err != nil {
		return nil, stateError("read", err)
	}

	b := New(Options{}, time.Time{})
	b.sources, b.dropped, b.examples, b.keys = w.Sources, w.Dropped, w.Examples, w.Keys
	err := errors.Join(
		restore(b.times, w.Times, (*timing).check), restore(b.counters, w.Counters, (*counter).check),
		restore(b.gauges, w.Gauges, (*gauge).check), restore(b.values, w.Values, (*observed).check),
		restore(b.sets, w.Sets, (*set).check), restore(b.attributes, w.Attributes, (*attribute).check),
		restore(b.transfers, w.Transfers, (*transfer).check), restore(b.engines, w.Engines, (*nixl).check),
		b.checkSources())
	if err != nil {
		return nil, stateError("read", err)
	}
	for name, t := range b.times {
		t.name = name
	}
	b.recount()

	return b, nil
}

// unpack reads a state of a limited size.
func unpack(state []byte, w *stateJSON) error {
	if len(state) > 0 && state[0] == '{' {
		return json.Unmarshal(state, w)
	}
	packed, err := gzip.NewReader(bytes.NewReader(state))
	if err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(packed, maxState+1))
	if err != nil {
		return err
	}
	if len(data) > maxState {
		return errors.New("it is too large")
	}

	return json.Unmarshal(data, w)
}

// restore puts checked entries into a Book.
func restore[E any](to, from map[string]*E, check func(*E) bool) error {
	for name, e := range from {
		if e == nil || !check(e) {
			return fmt.Errorf("the state of series %q is not possible", name)
		}
		to[name] = e
	}
	if len(to) > MaxSeries {
		return errors.New("there are too many series")
	}
	return nil
}

// checkSources returns an error if a source is neither a socket nor an endpoint.
func (b *Book) checkSources() error {
	for _, s := range b.sources {
		if (s.Datagrams == nil) == (s.Scrapes == nil) {
			return fmt.Errorf("source %q is neither a socket nor an endpoint", s.Address)
		}
	}
	return nil
}

func (t *timing) check() bool {
	return t.Scraped.check() && isFinite(t.TotalBytes, t.Errors) && t.TotalBytes >= 0 && t.Errors >= 0
}

func (c *counter) check() bool {
	return isFinite(c.Sum) && isFinite(slices.Collect(maps.Values(c.Handed))...)
}

func (g *gauge) check() bool {
	return g.Count > 0 && isFinite(g.Last, g.Min, g.Max, g.First, g.Since) && g.Min <= g.Last && g.Last <= g.Max &&
		g.First <= g.Since
}

func (o *observed) check() bool {
	return o.Scraped.check() && isFinite(o.Count, o.Avg, o.Min, o.Max, o.Last) && o.Count >= 0 && o.Min <= o.Max
}

func (s *set) check() bool { return len(s.Members) <= MaxMembers && slices.IsSorted(s.Members) }

func (a *attribute) check() bool {
	switch v := a.Value.(type) {
	case string, bool:
		return true
	case float64:
		return isFinite(v)
	}
	return false
}

func (t *transfer) check() bool { return isFinite(t.First, t.Last) && slices.IsSorted(t.Ranks) }

func (n *nixl) check() bool {
	for i := range n.Parts {
		if !n.Parts[i].check() {
			return false
		}
	}
	return isFinite(n.Failures[:]...) && isFinite(n.First, n.Last)
}

func (d *distribution) check() bool {
	if d == nil {
		return true
	}
	rightSize := len(d.Buckets) == 0 && len(d.Bounds) == 0 || len(d.Buckets) == len(d.Bounds)+1
	return rightSize && slices.IsSorted(d.Bounds) && isFinite(d.Count, d.Sum) && d.Count >= 0 && isFinite(d.Buckets...)
}

// recount finds out how much of the bounds is used.
func (b *Book) recount() {
	u := usage{series: len(b.times) + len(b.counters) + len(b.gauges) + len(b.values) + len(b.sets) + len(b.attributes)}
	for _, t := range b.times {
		u.sketchBytes += t.Quantiles.Sketch.Bytes()
		u.handOvers += len(t.Handed)
	}
	for _, o := range b.values {
		u.sketchBytes += o.Quantiles.Sketch.Bytes()
	}
	for _, c := range b.counters {
		u.handOvers += len(c.Handed)
	}
	for _, s := range b.sets {
		u.members += len(s.Members)
	}
	for _, t := range b.transfers {
		u.held += t.Records.Held()
		u.ranks += len(t.Ranks)
	}
	b.used = u
}
