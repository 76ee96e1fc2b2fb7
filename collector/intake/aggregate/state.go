package aggregate

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/opstats"
)

// maxState is the maximum size, in bytes, of an uncompressed state. The state of an Aggregator at all of its limits is
// half as large.
const maxState = 64 << 20

// Clone returns an independent copy without timelines, for a reader in another goroutine.
func (b *Aggregator) Clone() *Aggregator {
	c := *b
	c.charts, c.timelineKeys = nil, nil
	c.Keys = slices.Clone(b.Keys)
	for i := range c.Keys {
		times := &c.Keys[i].Metrics.Times
		*times = cloneAll(*times, func(*opstats.TimeStats) {})
	}
	c.Sources = slices.Clone(b.Sources)
	c.Examples = slices.Clone(b.Examples)

	c.Times = cloneAll(b.Times, func(t *timing) {
		t.Quantiles.Sketch, t.Scraped, t.ProxyStore = *t.Quantiles.Sketch.Clone(), t.Scraped.clone(), maps.Clone(t.ProxyStore)
		t.interval = &c.discard
	})
	c.Counters = cloneAll(b.Counters, func(n *counter) { n.ProxyStore, n.interval = maps.Clone(n.ProxyStore), &c.discard })
	c.Gauges = cloneAll(b.Gauges, func(g *gauge) { g.interval = &c.discard })
	c.Values = cloneAll(b.Values, func(o *valueSeries) {
		o.Quantiles.Sketch, o.Scraped = *o.Quantiles.Sketch.Clone(), o.Scraped.clone()
	})
	c.Sets = cloneAll(b.Sets, func(s *set) { s.Members = slices.Clone(s.Members) })
	c.Attributes = cloneAll(b.Attributes, func(*attribute) {})
	c.Records = cloneAll(b.Records, func(t *transfer) {
		t.Records, t.Ranks, t.interval = *t.Records.Clone(), slices.Clone(t.Ranks), &c.discard
	})
	c.Engines = cloneAll(b.Engines, func(n *nixl) {
		for i := range n.Parts {
			n.Parts[i] = *n.Parts[i].clone()
		}
	})

	return &c
}

// cloneAll returns copies of the entries. deepen replaces the memory that a copy shares with its original.
func cloneAll[E any](entries map[string]*E, deepen func(*E)) map[string]*E {
	all := make(map[string]*E, len(entries))
	for name, e := range entries {
		c := *e
		deepen(&c)
		all[name] = &c
	}
	return all
}

// A state is the stored state of an Aggregator.
type state struct {
	Times      map[string]*timing      `json:"times,omitempty"`
	Counters   map[string]*counter     `json:"counters,omitempty"`
	Gauges     map[string]*gauge       `json:"gauges,omitempty"`
	Values     map[string]*valueSeries `json:"values,omitempty"`
	Sets       map[string]*set         `json:"sets,omitempty"`
	Attributes map[string]*attribute   `json:"attributes,omitempty"`
	Records    map[string]*transfer    `json:"transfers,omitempty"`
	Engines    map[string]*nixl        `json:"engines,omitempty"` // by vLLM's label engine
	Keys       []keyed                 `json:"keys"`              // in order of first use
	Sources    []Source                `json:"sources,omitempty"`
	Dropped    Dropped                 `json:"dropped,omitzero"`
	Examples   []Example               `json:"examples,omitempty"`
}

// WriteState writes the state without loss, so an Aggregator restored from it has the same report. The state is JSON. A
// large state is compressed with gzip, to at most 3 MiB at all limits.
func (b *Aggregator) WriteState(w io.Writer) (err error) {
	if b.isSmall() {
		err = text.WriteJSON(w, &b.state)
	} else {
		packed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is valid
		err = errors.Join(text.WriteJSON(packed, &b.state), packed.Close())
	}
	if err != nil {
		return fmt.Errorf("write state of operations: %w", err)
	}
	return nil
}

// isSmall reports whether the state is too small to be worth compressing: the tables of gzip take 0.8 MB and half a
// millisecond.
func (b *Aggregator) isSmall() bool {
	return b.used.series+b.used.keys+len(b.Records)+len(b.Engines) < 16 && b.used.members+b.used.uncondensed < 256
}

// Restore returns the Aggregator that WriteState wrote. The result is only for reports: it has no timelines and no
// record of how much of its limits is used, so nothing may be added to it. Restore returns an error if the state cannot
// have a report, because a number is too large or has the wrong sign, or a series is null.
func Restore(packed []byte) (*Aggregator, error) {
	b := New(Options{}, time.Time{})
	err := unpack(packed, &b.state)
	if err == nil {
		err = errors.Join(
			checkAll(b.Times, (*timing).possible), checkAll(b.Counters, (*counter).possible),
			checkAll(b.Gauges, (*gauge).possible), checkAll(b.Values, (*valueSeries).possible), checkAll(b.Sets, nil),
			checkAll(b.Attributes, nil), checkAll(b.Records, nil), checkAll(b.Engines, (*nixl).possible))
	}
	for _, k := range b.Keys {
		err = errors.Join(err, checkAll(k.Metrics.Times, nil))
	}
	if err != nil {
		return nil, fmt.Errorf("read state of operations: %w", err)
	}
	return b, nil
}

// unpack decodes a state that may be compressed. It decompresses at most maxState bytes.
func unpack(data []byte, s *state) error {
	if len(data) == 0 || data[0] != '{' {
		packed, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return err
		}
		if data, err = io.ReadAll(io.LimitReader(packed, maxState)); err != nil {
			return err
		}
	}
	return json.Unmarshal(data, s)
}

// checkAll returns an error if an entry is null or impossible. A nil possible accepts every entry.
func checkAll[E any](entries map[string]*E, possible func(*E) bool) error {
	for name, e := range entries {
		if e == nil || possible != nil && !possible(e) {
			return fmt.Errorf("the state of series %q is impossible", name)
		}
	}
	return nil
}

func (t *timing) possible() bool {
	return t.Scraped.possible() && isFinite(t.Squares) && areCounts(t.TotalBytes, t.Errors)
}

func (c *counter) possible() bool {
	return isFinite(c.Sum) && isFinite(slices.Collect(maps.Values(c.ProxyStore))...)
}

func (g *gauge) possible() bool {
	return g.Count >= 0 && isFinite(g.Last, g.Min, g.Max, g.First, g.Since, g.Area)
}

func (o *valueSeries) possible() bool {
	return o.Scraped.possible() && isCount(o.Count) && isFinite(o.Avg, o.Min, o.Max, o.Last)
}

func (n *nixl) possible() bool {
	for i := range n.Parts {
		if !n.Parts[i].possible() {
			return false
		}
	}
	return areCounts(n.Failures[:]...)
}

// possible reports whether the distribution has finite quantiles and a finite mean. A nil distribution is possible.
func (d *distribution) possible() bool {
	return d == nil || areCounts(d.Count) && d.Count == math.Trunc(d.Count) && isFinite(d.Sum) &&
		isFinite(d.Bounds...) && areCounts(d.Buckets...)
}
