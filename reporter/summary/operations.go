package summary

import (
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// operationSection lists the first few series of one kind, with a row for each.
type operationSection struct {
	kind  reporter.OperationKind
	shown int // at most
}

// operationSections are the sections of a summary in their order. WriteOperations writes all series.
var operationSections = []operationSection{
	{reporter.OpKind, 8}, {reporter.CounterKind, 4}, {reporter.GaugeKind, 4}, {reporter.ValueKind, 4},
	{reporter.TransferKind, 8},
}

// series returns the shown series, and the number of omitted ones.
func (p *operationSection) series(ops *reporter.Operations) (shown []string, left int) {
	all := ops.Series(p.kind)
	n := min(len(all), p.shown)
	return all[:n], len(all) - n
}

// label returns the word before the section's series.
func (p *operationSection) label() string { return p.kind.Noun() + "s" }

// more returns the number of omitted series in words.
func (p *operationSection) more(left int) string {
	return text.Count(left, "more "+p.kind.Noun(), "more "+p.label()) + seeOperations
}

// seeOperations names the command that shows what a summary omits.
const seeOperations = ", see perfagent show --ops"

// operationRow is the text of one series: its numbers, and a note.
type operationRow struct {
	cells []string // numbers in words, for columns; "" = unknown
	note  table.Cell
}

// value returns the row as one cell.
func (r *operationRow) value() table.Cell {
	known := slices.DeleteFunc(r.cells, func(cell string) bool { return cell == "" })
	r.note.Text = strings.TrimSpace(strings.Join(known, ", ") + " " + r.note.Text)
	return r.note
}

// row returns the text of one series, with its known numbers. For an operation on several nodes, the note names the
// slowest node.
func (p *operationSection) row(ops *reporter.Operations, series string) operationRow {
	if p.kind == reporter.TransferKind {
		return p.transferRow(ops, series)
	}

	var row operationRow
	for _, n := range p.numbers() {
		row.cells = append(row.cells, numberWords(&n, ops, series))
	}
	switch t := ops.Times[series]; p.kind {
	case reporter.ValueKind:
		row.note.Untrusted = ops.Values[series].Unit
	case reporter.OpKind:
		if t.Count == 0 {
			row.cells[len(row.cells)-1] = "" // the total
		}
		if t.Errors > 0 {
			row.note.Text = text.Number(t.Errors) + " failed"
		}
		if row.note.Untrusted = ops.SlowestNode[series]; row.note.Untrusted != "" {
			row.note.Text = strings.TrimPrefix(row.note.Text+", slowest on node", ", ")
		}
	}

	return row
}

// numbers returns the numbers that a summary shows for each series.
func (p *operationSection) numbers() []reporter.OperationNumber {
	return slices.DeleteFunc(reporter.OperationNumbers(p.kind, 0),
		func(n reporter.OperationNumber) bool { return n.SummaryFormat == "" })
}

// numberWords returns n as text, or "" if it is unknown. For several nodes, a quantile is an upper bound. Otherwise it
// has a tilde if it was estimated from the buckets of a histogram.
func numberWords(n *reporter.OperationNumber, ops *reporter.Operations, series string) string {
	v, estimated := n.Value(ops, series)
	if v == nil || n.PerNode && ops.Nodes > 1 {
		return ""
	}
	words := text.Number(*v)
	if n.Unit == collector.Milliseconds {
		words = text.Milliseconds(*v)
	}
	switch {
	case n.Quantile == "":
	case ops.Nodes > 1:
		words = "at most " + words
	case estimated:
		words = "~" + words
	}
	return strings.Replace(n.SummaryFormat, "%s", words, 1)
}

// transferRow returns the text of the transfers of one name, separated by commas.
func (p *operationSection) transferRow(ops *reporter.Operations, series string) operationRow {
	t := ops.Transfers[series]
	n := t.Summary.Transfers
	words := text.Parts{text.Number(n) + " " + text.Plural(n, "transfer", "transfers")}
	if n > 0 {
		words = append(words, text.SizeText(t.TotalMB))
		for _, n := range p.numbers() {
			words.Add(n.Quantile == "" || t.Summary.P90Xfer > 0, "%s", numberWords(&n, ops, series))
		}
		rate := transferRate(&t)
		words.Add(rate != "", "%s", rate)
	}
	words.Add(t.FailedTransfers > 0, "%s failed", text.Number(t.FailedTransfers))
	return operationRow{note: table.Cell{Text: words.String()}}
}

// transferRate returns the rate from the first transfer to the last or, if that is unknown, the rate during transfers;
// "" if neither is known. As in vLLM, MB means MiB here.
func transferRate(t *aggregate.Transfer) string {
	rate, when := t.Summary.Throughput, " MB/s while transferring"
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
