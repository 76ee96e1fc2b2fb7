package reporter

import (
	"cmp"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/intake/book"
)

// A WorkLine names a time line of a series in the envelope of a node.
type WorkLine struct {
	Kind   WorkKind
	Series string
	Number string // LineRate, LineTime or LineThroughput; "" for a gauge, which is one number
}

// The numbers of a series that have a time line.
const (
	LineRate       = book.LineRate
	LineTime       = book.LineTime
	LineThroughput = book.LineThroughput
)

// perSecond is the unit of what is counted per second.
const perSecond collector.Unit = "1/s"

// workLines are the time lines that a series can have, in the order of output.
var workLines = []struct {
	kind   WorkKind
	number string
	unit   collector.Unit
}{
	{OpKind, LineRate, perSecond},
	{OpKind, LineTime, collector.Milliseconds},
	{CounterKind, LineRate, perSecond},
	{GaugeKind, "", noUnit},
	{TransferKind, LineThroughput, collector.MebibytesPerSecond},
	{TransferKind, LineTime, collector.Milliseconds},
}

// Key returns the key of the envelope: op:SERIES:time_ms, gauge:SERIES.
func (l WorkLine) Key() string { return book.LineKey(l.Kind, l.Series, l.Number) }

// Unit returns the unit of the values, or "" if only the job knows it.
func (l WorkLine) Unit() collector.Unit {
	if place := l.place(); place >= 0 {
		return workLines[place].unit
	}
	return noUnit
}

// Signed reports whether values may be below 0: those of gauges, and of StatsD's counters, which may fall.
func (l WorkLine) Signed() bool { return l.Kind == GaugeKind || l.Kind == CounterKind }

// place returns the index of the line's row in the table, or -1.
func (l WorkLine) place() int {
	for i, row := range workLines {
		if row.kind == l.Kind && row.number == l.Number {
			return i
		}
	}
	return -1
}

// WorkLineOf returns the time line that a key of the envelope names: see [WorkLine.Key]. It reports false if the key
// names none. A series may have colons.
func WorkLineOf(key string) (l WorkLine, ok bool) {
	kind, rest, named := strings.Cut(key, ":")
	if !named { // most keys are of columns
		return WorkLine{}, false
	}
	for _, row := range workLines {
		series, found := rest, row.number == ""
		if !found {
			series, found = strings.CutSuffix(rest, ":"+row.number)
		}
		if found && series != "" && string(row.kind) == kind {
			return WorkLine{row.kind, series, row.number}, true
		}
	}
	return WorkLine{}, false
}

// WorkLines returns the time lines of the node's series: those of a kind one after the other, by name.
func (n *Node) WorkLines() []WorkLine {
	var out []WorkLine
	for key := range n.Envelope {
		if l, ok := WorkLineOf(key); ok {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b WorkLine) int {
		return cmp.Or(cmp.Compare(a.place(), b.place()), cmp.Compare(a.Series, b.Series))
	})
	return out
}
