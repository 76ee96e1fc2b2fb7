package plotter

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/perfagent/perfagent/collector/intake/book"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/opstats"
	"github.com/perfagent/perfagent/reporter"
)

// pageLines is how many lines a chart of operations may have on all nodes of a page together.
const pageLines = 4 * mostLines

// lines returns the lines of operations that the nodes draw, those of the first node first.
func (p *Page) lines() []reporter.WorkLine {
	var out []reporter.WorkLine
	seen, count := make(map[reporter.WorkLine]bool), make(map[reporter.WorkLine]int)
	for _, n := range p.nodes {
		for _, l := range n.lines {
			if kind := kindOf(l); !seen[l] && count[kind] < pageLines {
				out, seen[l] = append(out, l), true
				count[kind]++
			}
		}
	}
	return out
}

// workOf returns what the tables of operations need of a node; nil if operations were not recorded.
func workOf(n *reporter.Node) *reporter.Node {
	if n.Operations == nil && n.Transfers == nil {
		return nil
	}

	out := &reporter.Node{Transfers: n.Transfers}
	if n.Operations != nil {
		operations := *n.Operations
		operations.Keys = nil // these are many, and not shown
		out.Operations = &operations
	}

	return out
}

// A workView is what the page shows of the operations and transfers of all nodes.
type workView struct {
	Notes  []string
	Tables []workTable
}

// workTables returns the operations and transfers of all nodes; nil if none were recorded.
func (p *Page) workTables() *workView {
	all, unseen := &reporter.Report{Nodes: make(map[string]*reporter.Node)}, 0
	for _, n := range p.nodes {
		all.Nodes[n.name] = n.work
		unseen = max(unseen, n.unseen)
	}
	work := all.Work()
	if work == nil {
		return nil
	}

	return &workView{workNotes(work, unseen), []workTable{
		operationTable(work), counterTable(work), gaugeTable(work), valueTable(work), transferTable(work),
	}}
}

// workNotes returns what must be known of the tables and of the charts.
func workNotes(w *reporter.Work, unseen int) []string {
	var out []string
	if lost := w.Dropped.Datagrams(); lost > 0 {
		out = append(out, fmt.Sprintf("Counts and sums are at least what is shown: %s of the job could not be read.",
			text.Count(int(lost), "datagram", "datagrams")))
	}
	if len(w.Times)+len(w.Counters)+len(w.Gauges)+len(w.Values)+len(w.Transfers) == 0 {
		out = append(out, "The job has said nothing of its work.")
	}
	if unseen > 0 {
		out = append(
			out,
			fmt.Sprintf("A chart has the %d lines that reach highest; the report has %d more.", mostLines, unseen),
		)
	}
	return out
}

// A workTable is a table of one kind of series.
type workTable struct {
	Name  string
	Title string   // "" for the first
	Heads []string // of the columns; the first is the series
	Rows  [][]string
}

func operationTable(w *reporter.Work) workTable {
	t := workTable{
		Name:  "operations",
		Heads: []string{"operation", "calls", "avg, ms", "p90, ms", "max, ms", "total", "errors"},
	}
	if w.Nodes > 1 {
		t.Heads[3] = "p90 at most, ms"
		t.Heads = append(t.Heads, "slowest node")
	}

	for _, series := range w.Series(reporter.OpKind) {
		op := w.Times[series]
		row := []string{
			text.Printable(series), amount(op.Count), known(op.Avg), estimated(op.P90, op.Estimated, book.P90TimeName),
			known(op.Max), text.Seconds(op.Total / 1000), amount(op.Errors),
		}
		if w.Nodes > 1 {
			row = append(row, text.Printable(w.Slowest[series]))
		}
		t.Rows = append(t.Rows, row)
	}

	return t
}

func counterTable(w *reporter.Work) workTable {
	t := workTable{Name: "counters", Title: "Counters", Heads: []string{"counter", "sum"}}
	for _, series := range w.Series(reporter.CounterKind) {
		t.Rows = append(t.Rows, []string{text.Printable(series), amount(w.Counters[series])})
	}
	return t
}

func gaugeTable(w *reporter.Work) workTable {
	t := workTable{Name: "gauges", Title: "Gauges", Heads: []string{"gauge", "last", "min", "mean over time", "max"}}
	for _, series := range w.Series(reporter.GaugeKind) {
		g := w.Gauges[series]
		row := []string{text.Printable(series), amount(g.Last), amount(g.Min), amount(g.Mean), amount(g.Max)}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func valueTable(w *reporter.Work) workTable {
	t := workTable{Name: "values", Title: "Values", Heads: []string{"value", "count", "avg", "p90", "max", "unit"}}
	for _, series := range w.Series(reporter.ValueKind) {
		v := w.Values[series]
		t.Rows = append(t.Rows, []string{
			text.Printable(series), amount(v.Count), amount(v.Avg), estimated(v.P90, v.Estimated, book.P90Name), known(v.Max),
			text.Printable(v.Unit),
		})
	}
	return t
}

func transferTable(w *reporter.Work) workTable {
	t := workTable{Name: "transfers", Title: "Transfers", Heads: []string{
		"transfer", "count", "amount", "avg, ms", "p90, ms", "MiB/s", "failed", "failed notifications", "expired",
	}}
	for _, name := range w.Series(reporter.TransferKind) {
		of := w.Transfers[name]
		r := of.Reduced
		t.Rows = append(t.Rows, []string{
			text.Printable(name), amount(r.Transfers), text.SizeText(of.TotalMB), amount(r.AvgXfer),
			estimated(&r.P90Xfer, of.Estimated, opstats.P90XferName), amount(r.Throughput),
			amount(of.FailedTransfers), amount(of.FailedNotifications), amount(of.KVExpired),
		})
	}
	return t
}

// amount writes a number: a whole one and a large one to the last digit before the point, others in four digits.
func amount(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return text.Absent
	case a < 1e15 && (a >= 1000 || v == math.Trunc(v)):
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// known writes a number that may be absent.
func known(v *float64) string {
	if v == nil {
		return text.Absent
	}
	return amount(*v)
}

// estimated writes a number that may be absent, and says so if it is among those that were estimated.
func estimated(v *float64, names []string, name string) string {
	if v != nil && slices.Contains(names, name) {
		return "≈ " + amount(*v)
	}
	return known(v)
}
