package summary

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// WriteOperations writes all operations and transfers of the job, and the amounts of dropped data, as tables. The
// numbers of several nodes are pooled by [reporter.Report.PooledOperations]. No name is cut, and none can make it write
// control characters.
func WriteOperations(w io.Writer, r *reporter.Report) error {
	ops := r.PooledOperations()
	if ops == nil {
		return nil
	}

	var tables []*table.Table
	for _, kind := range reporter.OperationKinds() {
		if kind != reporter.TransferKind {
			tables = append(tables, kindTable(ops, kind))
		}
	}
	sets, attributes, dropped, examples := otherTables(ops)
	tables = append(append(tables, sets, attributes), transferTables(ops)...)
	tables = append(tables, sourceTable(r), dropped, examples)

	out := new(bytes.Buffer)
	for _, t := range tables {
		if len(t.Rows) > 0 {
			if out.Len() > 0 {
				out.WriteByte('\n')
			}
			_ = t.WriteText(out, 0, false) // a buffer accepts everything
		}
	}
	if out.Len() == 0 {
		out.WriteString("nothing was received\n")
	}
	for i, remark := range operationRemarks(ops) {
		if i == 0 {
			out.WriteByte('\n')
		}
		out.WriteString(remark + "\n")
	}

	return write(w, out.Bytes(), "operations")
}

// WriteOperationKey writes a table of the numbers of each operation for the given key. The table is empty if no
// operation had that key.
func WriteOperationKey(w io.Writer, r *reporter.Report, key string) error {
	t := seriesTable("operation", "calls", "avg ms", "min ms", "max ms", "size B")
	for i := range t.Columns {
		t.Columns[i].Optional = false
	}
	if ops := r.PooledOperations(); ops != nil {
		for _, series := range slices.Sorted(maps.Keys(ops.Keys)) {
			s, ok := ops.Keys[series][key]
			if !ok {
				continue
			}
			size := text.Absent
			if s.HasSize {
				size = text.Number(s.SizeBytes)
			}
			addRow(t, series, text.Number(s.Count), text.Number(s.Avg), text.Number(s.Min), text.Number(s.Max), size)
		}
	}

	out := new(bytes.Buffer)
	_ = t.WriteText(out, 0, false) // a buffer accepts everything
	return write(w, out.Bytes(), "operations")
}

// nameWidth is the maximum width of a name that shares a line with its numbers, in cells.
const nameWidth = 40

// seriesTable returns a table of names and their numbers. Columns without a number are omitted.
func seriesTable(heads ...string) *table.Table {
	t := &table.Table{Columns: table.Left(heads...)}
	t.Columns[0].Max = nameWidth
	for i := range t.Columns[1:] {
		t.Columns[i+1].Right, t.Columns[i+1].Optional = true, true
	}
	return t
}

// textTable returns a seriesTable with text in the last column.
func textTable(heads ...string) *table.Table {
	t := seriesTable(heads...)
	t.Columns[len(heads)-1].Right = false
	return t
}

// addRow adds a row of numbers and of texts from the report to t.
func addRow(t *table.Table, cells ...string) {
	row := make([]table.Cell, len(cells))
	for i, cell := range cells {
		row[i] = table.Untrusted(cell)
	}
	t.Add(row...)
}

// operationRemarks returns remarks that are needed to interpret the numbers.
func operationRemarks(ops *reporter.Operations) []string {
	var out text.Parts
	out.Add(ops.Dropped.Datagrams() > 0, "dropped %s", droppedWords(ops.Dropped))
	out.Add(ops.Nodes > 1, "%d nodes pooled; p50, p90 and p99 are at most these, of the worst node", ops.Nodes)
	out.Add(hasEstimates(ops), "~ estimated from the buckets of a histogram")
	out.Add(len(ops.Transfers) > 0, "a MB is 2^20 bytes, as in vLLM")
	return out
}

// hasEstimates reports whether any number was estimated.
func hasEstimates(ops *reporter.Operations) bool {
	for _, kind := range reporter.OperationKinds() {
		for _, n := range reporter.OperationNumbers(kind, 0) {
			for _, series := range ops.Series(kind) {
				if _, estimated := n.Value(ops, series); estimated {
					return true
				}
			}
		}
	}
	return false
}

// numberOrDash formats a number, or returns a dash if it is unknown.
func numberOrDash[N int64 | float64](v *N) string {
	if v == nil {
		return text.Absent
	}
	return text.Number(float64(*v))
}

// nonzeroOrDash formats a number, or returns a dash if it is 0.
func nonzeroOrDash[N int | int64 | float64](n N) string {
	if n == 0 {
		return text.Absent
	}
	return text.Number(float64(n))
}

// kindTable returns a table of all numbers of the series of the given kind.
func kindTable(ops *reporter.Operations, kind reporter.OperationKind) *table.Table {
	heads, rows := ops.Table(kind, 0)
	t := seriesTable(heads...)
	switch kind {
	case reporter.OpKind:
		t = seriesTable(append(heads, "keys")...)
	case reporter.ValueKind:
		t = textTable(heads...)
	}
	for _, row := range rows {
		if kind == reporter.OpKind {
			row = append(row, nonzeroOrDash(len(ops.Keys[row[0]])))
		}
		addRow(t, row...)
	}

	return t
}

// otherTables returns tables of the sets, the attributes, the amounts of dropped data, and examples of dropped data.
func otherTables(ops *reporter.Operations) (sets, attributes, dropped, examples *table.Table) {
	sets, attributes = seriesTable("set", "members"), textTable("attribute", "value")
	for _, series := range slices.Sorted(maps.Keys(ops.Sets)) {
		members := text.Number(float64(ops.Sets[series].Count))
		if ops.Sets[series].AtLeast {
			members = "≥ " + members
		}
		addRow(sets, series, members)
	}
	for _, series := range slices.Sorted(maps.Keys(ops.Attributes)) {
		addRow(attributes, series, fmt.Sprint(ops.Attributes[series]))
	}
	dropped, examples = seriesTable("dropped", "count"), textTable("example of what was dropped", "why")
	for _, reason := range ops.Dropped.Reasons() {
		if reason.Count != 0 {
			addRow(dropped, reason.Name, text.Number(float64(reason.Count)))
		}
	}
	for _, e := range ops.Examples {
		addRow(examples, e.Line, e.Why)
	}
	return sets, attributes, dropped, examples
}

// transferTables returns a table for each name: the figures of vLLM's class, and all other known figures.
func transferTables(ops *reporter.Operations) []*table.Table {
	var all []*table.Table
	for _, name := range ops.Series(reporter.TransferKind) {
		tr := ops.Transfers[name]
		t := seriesTable("transfer "+name, "")
		for _, n := range reporter.OperationNumbers(reporter.TransferKind, 0) {
			label := cmp.Or(n.VLLMName, n.Heading)
			if v, _ := n.Value(ops, name); label != "" && (v != nil || n.VLLMName != "") {
				addRow(t, label, n.Text(ops, name))
			}
		}
		for _, list := range slices.Sorted(maps.Keys(tr.Other)) {
			addRow(t, list+", entries", text.Number(float64(tr.Other[list].Count)))
			addRow(t, list+", sum", text.Number(tr.Other[list].Sum))
		}
		if tr.Ranks > 0 {
			addRow(t, "ranks", text.Number(float64(tr.Ranks)))
		}
		addRow(t, "from", tr.Source)
		all = append(all, t)
	}
	return all
}

// sourceTable returns a table of the sources of all nodes.
func sourceTable(r *reporter.Report) *table.Table {
	t := textTable("source", "kind", "node", "events", "datagrams", "scrapes", "failures", "s before end", "last failure")
	for node, n := range r.EachNode() {
		if n.Operations == nil {
			continue
		}
		if len(r.Nodes) == 1 {
			node = ""
		}
		for _, s := range n.Operations.Sources {
			addRow(t, s.Address, s.Kind, node, text.Number(float64(s.Events)), numberOrDash(s.Datagrams),
				numberOrDash(s.Scrapes),
				nonzeroOrDash(s.Failures), numberOrDash(s.SecondsBeforeEnd), s.Why)
		}
	}
	return t
}
