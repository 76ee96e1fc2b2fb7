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

// WriteWork writes all that the job said of its operations and transfers as tables, and what was not taken. Of several
// nodes the numbers are pooled, as [reporter.Report.Work] says. No name is cut, and none can make it write control
// characters.
func WriteWork(w io.Writer, r *reporter.Report) error {
	work := r.Work()
	if work == nil {
		return nil
	}

	var tables []*table.Table
	for _, kind := range reporter.WorkKinds() {
		if kind != reporter.TransferKind {
			tables = append(tables, kindTable(work, kind))
		}
	}
	sets, attributes, dropped, examples := otherTables(work)
	tables = append(append(tables, sets, attributes), transferTables(work)...)
	tables = append(tables, sourceTable(r), dropped, examples)

	out := new(bytes.Buffer)
	for _, t := range tables {
		if len(t.Rows) > 0 {
			if out.Len() > 0 {
				out.WriteByte('\n')
			}
			_ = t.WriteText(out, 0, false) // a buffer takes everything
		}
	}
	if out.Len() == 0 {
		out.WriteString("nothing was received\n")
	}
	for i, remark := range workRemarks(work) {
		if i == 0 {
			out.WriteByte('\n')
		}
		out.WriteString(remark + "\n")
	}

	return write(w, out.Bytes(), "operations")
}

// WriteKey writes what each operation did with a key. A key that no operation had is an empty table.
func WriteKey(w io.Writer, r *reporter.Report, key string) error {
	t := seriesTable("operation", "calls", "avg ms", "min ms", "max ms", "size B")
	for i := range t.Columns {
		t.Columns[i].Optional = false
	}
	if work := r.Work(); work != nil {
		for _, series := range slices.Sorted(maps.Keys(work.Keys)) {
			s, ok := work.Keys[series][key]
			if !ok {
				continue
			}
			size := text.Absent
			if s.Sized {
				size = text.Number(s.SizeBytes)
			}
			add(t, series, text.Number(s.Count), text.Number(s.Avg), text.Number(s.Min), text.Number(s.Max), size)
		}
	}

	out := new(bytes.Buffer)
	_ = t.WriteText(out, 0, false) // a buffer takes everything
	return write(w, out.Bytes(), "operations")
}

// nameWidth is the width of the widest name that shares a line of a table with its numbers, in cells.
const nameWidth = 40

// seriesTable returns a table of names and their numbers. A column without a number is left out.
func seriesTable(heads ...string) *table.Table {
	t := &table.Table{Columns: table.Left(heads...)}
	t.Columns[0].Most = nameWidth
	for i := range t.Columns[1:] {
		t.Columns[i+1].Right, t.Columns[i+1].Optional = true, true
	}
	return t
}

// textTable returns a table like seriesTable, of which the last column is text.
func textTable(heads ...string) *table.Table {
	t := seriesTable(heads...)
	t.Columns[len(heads)-1].Right = false
	return t
}

// add adds a row to a table: texts from the report and numbers.
func add(t *table.Table, cells ...string) {
	row := make([]table.Cell, len(cells))
	for i, cell := range cells {
		row[i] = table.Quote(cell)
	}
	t.Add(row...)
}

// workRemarks returns what a reader must know of the numbers.
func workRemarks(work *reporter.Work) []string {
	var out text.Parts
	out.Add(work.Dropped.Datagrams() > 0, "dropped %s", droppedWords(work.Dropped))
	out.Add(work.Nodes > 1, "%d nodes pooled; p50, p90 and p99 are at most these, of the worst node", work.Nodes)
	out.Add(hasEstimates(work), "~ estimated from the buckets of a histogram")
	out.Add(len(work.Transfers) > 0, "a MB is 2^20 bytes, as in vLLM")
	return out
}

// hasEstimates reports whether some number was estimated.
func hasEstimates(work *reporter.Work) bool {
	for _, kind := range reporter.WorkKinds() {
		for _, n := range reporter.WorkNumbers(kind, 0) {
			for _, series := range work.Series(kind) {
				if _, estimated := n.Of(work, series); estimated {
					return true
				}
			}
		}
	}
	return false
}

// known returns a number, or a dash if it is not known.
func known[N int64 | float64](v *N) string {
	if v == nil {
		return text.Absent
	}
	return text.Number(float64(*v))
}

// amount returns a number, or a dash if there is nothing of it.
func amount[N int | int64 | float64](n N) string {
	if n == 0 {
		return text.Absent
	}
	return text.Number(float64(n))
}

// kindTable returns all numbers of the series of a kind.
func kindTable(work *reporter.Work, kind reporter.WorkKind) *table.Table {
	heads, rows := work.Table(kind, 0)
	t := seriesTable(heads...)
	switch kind {
	case reporter.OpKind:
		t = seriesTable(append(heads, "keys")...)
	case reporter.ValueKind:
		t = textTable(heads...)
	}
	for _, row := range rows {
		if kind == reporter.OpKind {
			row = append(row, amount(len(work.Keys[row[0]])))
		}
		add(t, row...)
	}

	return t
}

// otherTables returns the sets, the attributes, what was dropped, and examples of that.
func otherTables(work *reporter.Work) (sets, attributes, dropped, examples *table.Table) {
	sets, attributes = seriesTable("set", "members"), textTable("attribute", "value")
	for _, series := range slices.Sorted(maps.Keys(work.Sets)) {
		members := text.Number(float64(work.Sets[series].Count))
		if work.Sets[series].AtLeast {
			members = "≥ " + members
		}
		add(sets, series, members)
	}
	for _, series := range slices.Sorted(maps.Keys(work.Attributes)) {
		add(attributes, series, fmt.Sprint(work.Attributes[series]))
	}
	dropped, examples = seriesTable("dropped", "count"), textTable("example of what was dropped", "why")
	for _, reason := range work.Dropped.Reasons() {
		if reason.Count != 0 {
			add(dropped, reason.Name, text.Number(float64(reason.Count)))
		}
	}
	for _, e := range work.Examples {
		add(examples, e.Line, e.Why)
	}
	return sets, attributes, dropped, examples
}

// transferTables returns a table for each name: the figures of vLLM's class, and what is known besides.
func transferTables(work *reporter.Work) []*table.Table {
	var all []*table.Table
	for _, name := range work.Series(reporter.TransferKind) {
		tr := work.Transfers[name]
		t := seriesTable("transfer "+name, "")
		for _, n := range reporter.WorkNumbers(reporter.TransferKind, 0) {
			label := cmp.Or(n.Figure, n.Head)
			if v, _ := n.Of(work, name); label != "" && (v != nil || n.Figure != "") {
				add(t, label, n.Text(work, name))
			}
		}
		for _, list := range slices.Sorted(maps.Keys(tr.Other)) {
			add(t, list+", entries", text.Number(float64(tr.Other[list].Count)))
			add(t, list+", sum", text.Number(tr.Other[list].Sum))
		}
		if tr.Ranks > 0 {
			add(t, "ranks", text.Number(float64(tr.Ranks)))
		}
		add(t, "from", tr.Source)
		all = append(all, t)
	}
	return all
}

// sourceTable returns the sources of all nodes.
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
			add(t, s.Address, s.Kind, node, text.Number(float64(s.Events)), known(s.Datagrams), known(s.Scrapes),
				amount(s.Failures), known(s.SecondsBeforeEnd), s.Why)
		}
	}
	return t
}
