package reporter

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/opstats"
)

// Operations holds the operations and transfers that a job reported, on one node or pooled over several. Values that
// cannot be pooled are absent.
type Operations struct {
	aggregate.Operations

	Transfers map[string]aggregate.Transfer
	// Nodes is the number of nodes that recorded operations. With several nodes, a quantile is taken from the worst
	// node, and is at least the quantile over all nodes.
	Nodes int
	// SlowestNode maps each operation to the node with the greatest average time; nil for a single node.
	SlowestNode map[string]string
}

// PooledOperations returns the operations of the job, pooled over its nodes by the table of kinds. It is nil if no node
// recorded any.
func (r *Report) PooledOperations() *Operations {
	w := &Operations{SlowestNode: make(map[string]string)}
	slowest := make(map[string]float64)
	for name, n := range r.EachNode() {
		if n.Operations == nil && n.Transfers == nil {
			continue
		}

		own := &Operations{Transfers: n.Transfers}
		if n.Operations != nil {
			own.Operations = *n.Operations
		}
		w.add(own)
		for series, t := range own.Times {
			if t.Avg != nil && (w.SlowestNode[series] == "" || *t.Avg > slowest[series]) {
				w.SlowestNode[series], slowest[series] = name, *t.Avg
			}
		}
	}

	switch w.Nodes {
	case 0:
		return nil
	case 1:
		w.SlowestNode = nil
	}

	return w
}

// PooledOperations returns the operations of the job on this node. It is nil if they were not recorded.
func (n *Node) PooledOperations() *Operations {
	return (&Report{Nodes: map[string]*Node{"0": n}}).PooledOperations()
}

// add pools o, the operations of another node, into w.
func (w *Operations) add(o *Operations) {
	w.Nodes++
	for _, k := range operationKinds {
		k.add(w, o)
	}
	w.Sources = append(w.Sources, o.Sources...)
	w.Sets = pooled(w.Sets, o.Sets, func(a, b aggregate.Set) aggregate.Set { // the number of common members is unknown
		return aggregate.Set{Count: max(a.Count, b.Count), AtLeast: true}
	})
	w.Attributes = pooled(w.Attributes, o.Attributes, func(_, b any) any { return b })
	w.Keys = pooled(w.Keys, o.Keys, func(a, b map[string]opstats.TimeStats) map[string]opstats.TimeStats {
		return pooled(a, b, opstats.TimeStats.Merge)
	})

	w.Dropped = w.Dropped.Plus(o.Dropped)
	if room := aggregate.MaxExamples - len(w.Examples); room > 0 {
		w.Examples = append(w.Examples, o.Examples[:min(room, len(o.Examples))]...)
	}
}

// pooled merges the entries of two nodes. It joins the entries that both nodes have.
func pooled[E any](a, b map[string]E, join func(a, b E) E) map[string]E {
	if len(b) == 0 {
		return a
	}

	out := maps.Clone(a)
	if out == nil {
		out = make(map[string]E, len(b))
	}
	for name, e := range b {
		if have, ok := out[name]; ok {
			e = join(have, e)
		}
		out[name] = e
	}

	return out
}

// A pooling combines x and y, the same number on two nodes, which have n and m values. nil means unknown.
type pooling func(x *float64, n float64, y *float64, m float64) *float64

// sum returns the sum of two numbers, or the one that is known.
func sum(x *float64, _ float64, y *float64, _ float64) *float64 {
	return either(x, y, plus)
}

func plus(x, y float64) float64 { return x + y }

// worst returns the greater of two numbers, or the one that is known.
func worst(x *float64, _ float64, y *float64, _ float64) *float64 { return either(x, y, math.Max) }

// endOf returns a pooling for a minimum or a maximum. The pooled number is unknown if a node that has values lacks the
// number.
func endOf(join func(x, y float64) float64) pooling {
	return func(x *float64, n float64, y *float64, m float64) *float64 {
		if x == nil && n != 0 || y == nil && m != 0 {
			return nil
		}
		return either(x, y, join)
	}
}

// weighted returns the mean of x and y, which are averages over n and m values. If one is unknown or has no values, it
// returns the other, and nil if both are unknown.
func weighted(x *float64, n float64, y *float64, m float64) *float64 {
	switch {
	case y == nil || !(m > 0):
		return x
	case x == nil || !(n > 0):
		return y
	}
	return new(clamped((*x*n+*y*m)/(n+m), min(*x, *y), max(*x, *y)))
}

// either joins two values, or returns the one that is known.
func either(a, b *float64, join func(a, b float64) float64) *float64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return new(join(*a, *b))
}

// union returns the names of both lists, sorted.
func union(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

// An OperationTimeline identifies a timeline of a series in the envelope of a node.
type OperationTimeline struct {
	Kind   OperationKind
	Series string
	Number string // LineRate, LineTime or LineThroughput; "" for a gauge, which has one number
}

// Numbers of a series that have a timeline.
const (
	LineRate       = aggregate.TimelineRate
	LineTime       = aggregate.TimelineTime
	LineThroughput = aggregate.TimelineThroughput
)

// A TimelineKind is a timeline that each series of a kind can have.
type TimelineKind struct {
	Kind    OperationKind
	Number  string
	Unit    collector.Unit // "" if only the job knows it
	Meaning string
	Weight  string // the number with the events per second, used as weights; "" for weights by time only
}

// TimelineKinds returns the timelines that series can have, in the order of output.
func TimelineKinds() []TimelineKind { return timelineKinds }

var timelineKinds = []TimelineKind{
	{OpKind, LineRate, perSecond, "operations of the job", ""},
	{OpKind, LineTime, collector.Milliseconds, "mean time per operation of the job", LineRate},
	{CounterKind, LineRate, perSecond, "growth of one of the job's counters", ""},
	{GaugeKind, "", noUnit, "value of one of the job's gauges", ""},
	{TransferKind, LineThroughput, collector.MebibytesPerSecond, "bytes transferred by the job", ""},
	{TransferKind, LineTime, collector.Milliseconds, "time per transfer of the job", ""},
}

// Key returns the key in the envelope: op:SERIES:time_ms, gauge:SERIES.
func (l OperationTimeline) Key() string { return aggregate.TimelineKey(l.Kind, l.Series, l.Number) }

// Unit returns the unit of the values, or "" if only the job knows it.
func (l OperationTimeline) Unit() collector.Unit {
	if place := l.place(); place >= 0 {
		return timelineKinds[place].Unit
	}
	return noUnit
}

// Signed reports whether values may be negative. Gauges may be negative, and so may the growth of StatsD counters,
// which may fall.
func (l OperationTimeline) Signed() bool { return l.Kind == GaugeKind || l.Kind == CounterKind }

// place returns the index of the timeline's row in timelineKinds, or -1.
func (l OperationTimeline) place() int {
	return slices.IndexFunc(timelineKinds, func(row TimelineKind) bool {
		return row.Kind == l.Kind &&
			row.Number == l.Number
	})
}

// ParseTimelineKey is the inverse of [OperationTimeline.Key]. It returns false for other keys of the envelope. A
// series may contain colons.
func ParseTimelineKey(key string) (l OperationTimeline, ok bool) {
	kind, rest, named := strings.Cut(key, ":")
	if !named { // most keys are names of columns
		return OperationTimeline{}, false
	}
	for _, row := range timelineKinds {
		if series, found := seriesIn(rest, ":", row.Number); found && string(row.Kind) == kind {
			return OperationTimeline{row.Kind, series, row.Number}, true
		}
	}
	return OperationTimeline{}, false
}

// Timelines returns the timelines of the node's series, ordered by kind, then by name.
func (n *Node) Timelines() []OperationTimeline {
	var out []OperationTimeline
	for key := range n.Envelope {
		if l, ok := ParseTimelineKey(key); ok {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b OperationTimeline) int {
		return cmp.Or(cmp.Compare(a.place(), b.place()), cmp.Compare(a.Series, b.Series))
	})
	return out
}
