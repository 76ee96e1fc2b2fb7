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

// A WorkLineKind is a time line that each series of a kind can have.
type WorkLineKind struct {
	Kind    WorkKind
	Number  string
	Unit    collector.Unit // "" if only the job knows it
	Meaning string
	Weight  string // the number that has the events per second, which weigh the values of this one; "" if only time does
}

// WorkLineKinds returns the time lines that series can have, in the order of output.
func WorkLineKinds() []WorkLineKind { return workLines }

var workLines = []WorkLineKind{
	{OpKind, LineRate, perSecond, "operations of the job", ""},
	{OpKind, LineTime, collector.Milliseconds, "time that an operation of the job took, mean over operations", LineRate},
	{CounterKind, LineRate, perSecond, "growth of a counter of the job", ""},
	{GaugeKind, "", noUnit, "value of a gauge of the job", ""},
	{TransferKind, LineThroughput, collector.MebibytesPerSecond, "bytes that the job transferred", ""},
	{TransferKind, LineTime, collector.Milliseconds, "time that a transfer of the job took", ""},
}

// Key returns the key of the envelope: op:SERIES:time_ms, gauge:SERIES.
func (l WorkLine) Key() string { return book.LineKey(l.Kind, l.Series, l.Number) }

// Unit returns the unit of the values, or "" if only the job knows it.
func (l WorkLine) Unit() collector.Unit {
	if place := l.place(); place >= 0 {
		return workLines[place].Unit
	}
	return noUnit
}

// Signed reports whether values may be below 0: those of gauges, and of StatsD's counters, which may fall.
func (l WorkLine) Signed() bool { return l.Kind == GaugeKind || l.Kind == CounterKind }

// place returns the index of the line's row in the table, or -1.
func (l WorkLine) place() int {
	return slices.IndexFunc(workLines, func(row WorkLineKind) bool { return row.Kind == l.Kind && row.Number == l.Number })
}

// WorkLineOf returns the time line that a key of the envelope names: see [WorkLine.Key]. It reports false if the key
// names none. A series may have colons.
func WorkLineOf(key string) (l WorkLine, ok bool) {
	kind, rest, named := strings.Cut(key, ":")
	if !named { // most keys are of columns
		return WorkLine{}, false
	}
	for _, row := range workLines {
		if series, found := seriesIn(rest, ":", row.Number); found && string(row.Kind) == kind {
			return WorkLine{row.Kind, series, row.Number}, true
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
