package summary

import (
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector/intake/book"
	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// A workPart is how a summary shows a kind of series: the first few of them, with a row for each.
type workPart struct {
	kind  reporter.WorkKind
	shown int // at most
	row   func(w *reporter.Work, series string) workRow
}

// workParts returns the parts of a summary in their order. WriteWork writes all series.
func workParts() []workPart {
	return []workPart{
		{reporter.OpKind, 8, operationRow},
		{reporter.CounterKind, 4, counterRow},
		{reporter.GaugeKind, 4, gaugeRow},
		{reporter.ValueKind, 4, valueRow},
		{reporter.TransferKind, 8, transferRow},
	}
}

// series returns the series that are shown, and how many are left out.
func (p *workPart) series(w *reporter.Work) (shown []string, left int) {
	all := w.Series(p.kind)
	n := min(len(all), p.shown)
	return all[:n], len(all) - n
}

// label returns the word before the series of the part.
func (p *workPart) label() string { return p.kind.Noun() + "s" }

// more says how many series are left out.
func (p *workPart) more(left int) string {
	return text.Count(left, "more "+p.kind.Noun(), "more "+p.label()) + seeOperations
}

// seeOperations says where people find what a summary leaves out.
const seeOperations = ", see perfagent show --ops"

// A workRow is a series in words.
type workRow struct {
	cells []string // numbers in words, for columns; "" = not known
	note  table.Cell
}

// value returns the row as one cell.
func (r *workRow) value() table.Cell {
	known := slices.DeleteFunc(r.cells, func(cell string) bool { return cell == "" })
	r.note.Words = strings.TrimSpace(strings.Join(known, ", ") + " " + r.note.Words)
	return r.note
}

// operationRow returns an operation in words. Of several nodes it names the slowest.
func operationRow(w *reporter.Work, series string) workRow {
	t := w.Times[series]
	row := workRow{cells: []string{
		text.Number(t.Count) + " ×", timeWords("avg ", t.Avg), p90Words(w, t.P90, t.Estimated, text.Milliseconds),
		timeWords("max ", t.Max), "",
	}}
	if t.Count > 0 {
		row.cells[4] = text.Milliseconds(t.Total) + " in all"
	}

	var notes []string
	if t.Errors > 0 {
		notes = append(notes, text.Number(t.Errors)+" failed")
	}
	if node, ok := w.Slowest[series]; ok {
		notes, row.note.Quote = append(notes, "slowest on node"), node
	}
	row.note.Words = strings.Join(notes, ", ")

	return row
}

// timeWords returns a time with a word before it, or "" if it is not known.
func timeWords(word string, ms *float64) string {
	if ms == nil {
		return ""
	}
	return word + text.Milliseconds(*ms)
}

// p90Words returns what 90 % were within: an upper bound for several nodes, and with a tilde if it was estimated from
// the buckets of a histogram.
func p90Words(w *reporter.Work, p90 *float64, estimated []string, words func(float64) string) string {
	switch {
	case p90 == nil:
		return ""
	case w.Nodes > 1:
		return "p90 at most " + words(*p90)
	case len(estimated) > 0:
		return "p90 ~" + words(*p90)
	}
	return "p90 " + words(*p90)
}

func counterRow(w *reporter.Work, series string) workRow {
	return workRow{cells: []string{text.Number(w.Counters[series])}}
}

func gaugeRow(w *reporter.Work, series string) workRow {
	g := w.Gauges[series]
	row := workRow{cells: []string{"mean " + text.Number(g.Mean), "max " + text.Number(g.Max), ""}}
	if w.Nodes == 1 {
		row.cells[2] = "last " + text.Number(g.Last)
	}
	return row
}

func valueRow(w *reporter.Work, series string) workRow {
	v := w.Values[series]
	row := workRow{note: table.Quote(v.Unit), cells: []string{
		text.Number(v.Count) + " ×", "avg " + text.Number(v.Avg), p90Words(w, v.P90, v.Estimated, text.Number), "",
	}}
	if v.Max != nil {
		row.cells[3] = "max " + text.Number(*v.Max)
	}
	return row
}

// transferRow returns the transfers of one name in words, with commas.
func transferRow(w *reporter.Work, series string) workRow {
	t := w.Transfers[series]
	n := t.Reduced.Transfers
	words := []string{text.Number(n) + " " + text.Plural(n, "transfer", "transfers")}
	if n > 0 {
		words = append(words, text.SizeText(t.TotalMB), "avg "+text.Milliseconds(t.Reduced.AvgXfer))
		if p90 := t.Reduced.P90Xfer; p90 > 0 {
			words = append(words, p90Words(w, &p90, t.Estimated, text.Milliseconds))
		}
		if rate := transferRate(&t); rate != "" {
			words = append(words, rate)
		}
	}
	if t.FailedTransfers > 0 {
		words = append(words, text.Number(t.FailedTransfers)+" failed")
	}

	return workRow{note: table.Cell{Words: strings.Join(words, ", ")}}
}

// transferRate returns the rate from the first transfer to the last or, if that is not known, the rate while one went
// on; "" if neither is known. A MB is a MiB here, as in vLLM.
func transferRate(t *book.Transfer) string {
	rate, when := t.Reduced.Throughput, " MB/s while transferring"
	if t.WallThroughput != nil {
		rate, when = *t.WallThroughput, " MB/s"
	}
	if math.IsNaN(rate) || math.IsInf(rate, 0) {
		return ""
	}
	if rate >= 100 {
		rate = math.Round(rate)
	}
	return text.Number(rate) + when
}
