package reporter

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
)

// WriteCSV writes the kept samples as a table with one row per sample, one node after the other. The columns have the
// same order in every report. First come "node", if there are several nodes, "rank", if any node has ranks, and
// "timestamp [s]", in seconds since 1970. Each sample key then has "KEY [unit]", the sample's value, and "KEY.min
// [unit]", "KEY.mean [unit]" and "KEY.max [unit]" over all samples that it represents; a rate has only the last three.
// Then come, sorted, the timelines of operations and transfers, in ms, 1/s and MiB/s, and keys unknown to this
// perfagent, without a unit. The last column is "phase", the phase at the sample's time, if any node has phases. The
// rank is empty in the rows of the node; the rows of its ranks, with the columns of their jobs, follow. MiB are 2^20
// bytes. Unmeasured values are empty fields; numbers have the same digits as in the JSON.
//
// The format is CSV as in RFC 4180, except that lines end in LF. A key that a spreadsheet would treat as a formula gets
// a leading apostrophe, and control characters in it are escaped as by text.Printable. WriteCSV writes row by row, and
// never holds the whole text.
func WriteCSV(w io.Writer, r *Report) error {
	out := csv.NewWriter(w)
	t := newCSVTable(r)
	_ = out.Write(t.header()) // Error returns the first error
	for name, n := range r.EachNode() {
		t.writeNode(out, name, "", n)
		for _, rank := range n.RankList() {
			t.writeNode(out, name, strconv.Itoa(rank.Rank), n.ofRank(rank))
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

// csvTable is the layout of the table.
type csvTable struct {
	named   bool // the first column is the node
	ranked  bool // the next column is the rank
	phased  bool // the last column is the phase
	columns []csvColumn
}

// csvColumn is one column. values returns its numbers for n; nil if n has none.
type csvColumn struct {
	name, unit string
	values     func(n *Node) []float64
}

func newCSVTable(r *Report) *csvTable {
	t := &csvTable{named: len(r.Nodes) > 1}
	samples, envelope := make(map[string]bool), make(map[string]bool) // keys of any node
	for _, n := range r.EachNode() {
		t.ranked, t.phased = t.ranked || len(n.Ranks) > 0, t.phased || len(n.Phases) > 0
		for _, key := range n.Samples.Keys {
			samples[key] = true
		}
		for key, band := range n.Envelope {
			_, known := collector.ColumnByKey(key)
			envelope[key] = envelope[key] || !known || band.Mean != nil
		}
	}

	t.addSample(collector.Timestamp.Key(), collector.Timestamp.Info().Unit) // its envelope would add nothing
	for c := range collector.Column(collector.MaxColumns) {
		row := c.Info()
		if c == collector.Timestamp || row.Scope == collector.ScopeDevice && !samples[row.Key] && !envelope[row.Key] {
			continue // a device that is not in the report
		}
		if !row.EnvelopeOnly {
			t.addSample(row.Key, row.Unit)
		}
		t.addBand(row.Key, row.Unit)
	}

	all := maps.Clone(samples)
	maps.Copy(all, envelope)
	maps.DeleteFunc(all, func(key string, _ bool) bool { _, known := collector.ColumnByKey(key); return known })
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if samples[key] {
			t.addSample(key, "")
		}
		if envelope[key] {
			line, _ := ParseTimelineKey(key)
			t.addBand(key, line.Unit())
		}
	}
	return t
}

// addSample adds the column with the samples of key.
func (t *csvTable) addSample(key string, unit collector.Unit) {
	t.add(key, unit, func(n *Node) []float64 { return n.Samples.Column(key) })
}

// addBand adds the columns with the envelope of key.
func (t *csvTable) addBand(key string, unit collector.Unit) {
	t.add(key+".min", unit, func(n *Node) []float64 { return n.Envelope[key].Min })
	t.add(key+".mean", unit, func(n *Node) []float64 { return n.Envelope[key].Mean })
	t.add(key+".max", unit, func(n *Node) []float64 { return n.Envelope[key].Max })
}

func (t *csvTable) add(name string, unit collector.Unit, values func(n *Node) []float64) {
	t.columns = append(t.columns, csvColumn{name, unit.Symbol(), values})
}

func (t *csvTable) header() []string {
	var out []string
	if t.named {
		out = append(out, "node")
	}
	if t.ranked {
		out = append(out, "rank")
	}
	for _, c := range t.columns {
		name := c.name
		if c.unit != "" {
			name += " [" + c.unit + "]"
		}
		out = append(out, csvText(name))
	}
	if t.phased {
		out = append(out, "phase")
	}
	return out
}

// csvText makes text from a report harmless on a terminal and in a spreadsheet, which would treat a field that begins
// with =, +, -, @ or ' (or with a full-width form) as a formula.
func csvText(s string) string {
	s = text.Printable(s)
	if s != "" && strings.ContainsRune("=+-@'＝＋－＠", []rune(s)[0]) {
		return "'" + s
	}
	return s
}

// ofRank returns a node with the series of r, a rank of n.
func (n *Node) ofRank(r *Rank) *Node {
	times := n.Samples.Column(collector.Timestamp.Key())
	return &Node{
		Samples:  Samples{Keys: []string{collector.Timestamp.Key()}, Columns: [][]float64{times}},
		Envelope: r.Envelope, Phases: n.Phases,
	}
}

// writeNode writes the rows of n, a node or (from ofRank) one of its ranks. The numbers of a row are slices of one
// string, which takes one allocation per row instead of one per number.
func (t *csvTable) writeNode(out *csv.Writer, name, rank string, n *Node) {
	columns := make([][]float64, len(t.columns))
	for i, c := range t.columns {
		columns[i] = c.values(n)
	}

	var first []string
	if t.named {
		first = []string{csvText(name)}
	}
	if t.ranked {
		first = append(first, rank)
	}

	fields, ends := make([]string, len(first)+len(columns)), make([]int, len(columns))
	copy(fields, first)
	if t.phased {
		fields = append(fields, "")
	}
	times := n.Samples.Column(collector.Timestamp.Key())
	var buf []byte
	for row := range n.Samples.Len() {
		buf = buf[:0]
		for i, values := range columns {
			if row < len(values) && !math.IsNaN(values[row]) && !math.IsInf(values[row], 0) {
				buf = text.AppendFloat(buf, values[row])
			}
			ends[i] = len(buf)
		}
		words, from := string(buf), 0
		for i, end := range ends {
			fields[len(first)+i] = words[from:end]
			from = end
		}
		if t.phased && row < len(times) {
			fields[len(fields)-1] = csvText(n.PhaseAt(times[row]))
		}
		_ = out.Write(fields)
	}
}
