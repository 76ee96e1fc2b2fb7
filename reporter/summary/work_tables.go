package summary

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/perfagent/perfagent/collector/intake/book"
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

	tables := []*table{
		operationTable(work), counterTable(work), gaugeTable(work), valueTable(work), setTable(work),
		attributeTable(work),
	}
	tables = append(tables, transferTables(work)...)
	tables = append(tables, sourceTable(r), droppedTable(work), exampleTable(work))

	out := new(bytes.Buffer)
	for _, t := range tables {
		if len(t.rows) > 0 {
			t.write(out)
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

	return writeAll(w, out.Bytes())
}

// WriteKey writes what each operation did with a key. A key that no operation had is an empty table.
func WriteKey(w io.Writer, r *reporter.Report, key string) error {
	t := &table{heads: []string{"operation", "calls", "avg ms", "min ms", "max ms", "size B"}, whole: true}
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
			t.add(series, text.Number(s.Count), text.Number(s.Avg), text.Number(s.Min), text.Number(s.Max), size)
		}
	}

	out := new(bytes.Buffer)
	t.write(out)

	return writeAll(w, out.Bytes())
}

func writeAll(w io.Writer, data []byte) error {
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("write operations: %w", err)
	}
	return nil
}

// workRemarks returns what a reader must know of the numbers.
func workRemarks(work *reporter.Work) []string {
	var out []string
	if work.Dropped.Datagrams() > 0 {
		out = append(out, "dropped "+droppedWords(work.Dropped))
	}
	if work.Nodes > 1 {
		const pooled = "%d nodes pooled; p50, p90 and p99 are at most these, of the worst node"
		out = append(out, fmt.Sprintf(pooled, work.Nodes))
	}
	if hasEstimates(work) {
		out = append(out, "~ estimated from the buckets of a histogram")
	}
	if len(work.Transfers) > 0 {
		out = append(out, "a MB is 2^20 bytes, as in vLLM")
	}
	return out
}

// hasEstimates reports whether some number was estimated.
func hasEstimates(work *reporter.Work) bool {
	for _, t := range work.Times {
		if len(t.Estimated) > 0 {
			return true
		}
	}
	for _, v := range work.Values {
		if len(v.Estimated) > 0 {
			return true
		}
	}
	for _, t := range work.Transfers {
		if len(t.Estimated) > 0 {
			return true
		}
	}
	return false
}

// known returns a number, or a dash if it is not known.
func known(v *float64) string {
	if v == nil {
		return text.Absent
	}
	return text.Number(*v)
}

// guess returns a number, with a tilde if its name is among the estimated ones.
func guess(v *float64, name string, estimated []string) string {
	if v != nil && slices.Contains(estimated, name) {
		return "~" + text.Number(*v)
	}
	return known(v)
}

// amount returns a number, or a dash if there is nothing of it.
func amount[N int | int64 | float64](n N) string {
	if n == 0 {
		return text.Absent
	}
	return text.Number(float64(n))
}

func operationTable(work *reporter.Work) *table {
	t := &table{heads: []string{
		"operation", "calls", "failed", "avg ms", "min ms", "max ms", "last ms", "p50 ms", "p90 ms", "p99 ms",
		"total ms", "size B", "total B", "keys", "slowest node",
	}}
	for _, series := range work.Series(reporter.OpKind) {
		o := work.Times[series]
		t.add(
			series, text.Number(o.Count), amount(o.Errors), known(o.Avg), known(o.Min), known(o.Max), known(o.Last),
			guess(o.P50, book.P50TimeName, o.Estimated), guess(o.P90, book.P90TimeName, o.Estimated),
			guess(o.P99, book.P99TimeName, o.Estimated), text.Number(o.Total), known(o.SizeBytes), known(o.TotalBytes),
			amount(len(work.Keys[series])), work.Slowest[series],
		)
	}
	return t
}

func counterTable(work *reporter.Work) *table {
	t := &table{heads: []string{"counter", "sum"}}
	for _, series := range work.Series(reporter.CounterKind) {
		t.add(series, text.Number(work.Counters[series]))
	}
	return t
}

func gaugeTable(work *reporter.Work) *table {
	t := &table{heads: []string{"gauge", "last", "min", "mean", "max", "count"}}
	for _, series := range work.Series(reporter.GaugeKind) {
		g := work.Gauges[series]
		t.add(series, text.Number(g.Last), text.Number(g.Min), text.Number(g.Mean), text.Number(g.Max),
			text.Number(float64(g.Count)))
	}
	return t
}

func valueTable(work *reporter.Work) *table {
	t := &table{
		heads: []string{"value", "count", "avg", "min", "max", "last", "p50", "p90", "p99", "unit"},
		words: true,
	}
	for _, series := range work.Series(reporter.ValueKind) {
		v := work.Values[series]
		t.add(
			series, text.Number(v.Count), text.Number(v.Avg), known(v.Min), known(v.Max), known(v.Last),
			guess(v.P50, book.P50Name, v.Estimated), guess(v.P90, book.P90Name, v.Estimated), guess(v.P99, book.P99Name, v.Estimated),
			v.Unit,
		)
	}
	return t
}

func setTable(work *reporter.Work) *table {
	t := &table{heads: []string{"set", "members"}}
	for _, series := range slices.Sorted(maps.Keys(work.Sets)) {
		s := work.Sets[series]
		members := text.Number(float64(s.Count))
		if s.AtLeast {
			members = "≥ " + members
		}
		t.add(series, members)
	}
	return t
}

func attributeTable(work *reporter.Work) *table {
	t := &table{heads: []string{"attribute", "value"}, words: true}
	for _, series := range slices.Sorted(maps.Keys(work.Attributes)) {
		t.add(series, fmt.Sprint(work.Attributes[series]))
	}
	return t
}

// transferTables returns a table for each name: the figures of vLLM's class, and what is known besides.
func transferTables(work *reporter.Work) []*table {
	var all []*table
	for _, name := range work.Series(reporter.TransferKind) {
		tr := work.Transfers[name]
		t := &table{heads: []string{"transfer " + name, ""}}
		for figure, v := range tr.Reduced.All() {
			t.add(figure, guess(&v, figure, tr.Estimated))
		}

		t.add("total MB", text.Number(tr.TotalMB))
		if tr.WallThroughput != nil {
			t.add("throughput from first to last (MB/s)", text.Number(*tr.WallThroughput))
		}
		t.add("failed transfers", text.Number(tr.FailedTransfers))
		t.add("failed notifications", text.Number(tr.FailedNotifications))
		t.add("expired KV requests", text.Number(tr.KVExpired))
		for _, list := range slices.Sorted(maps.Keys(tr.Other)) {
			t.add(list+", entries", text.Number(float64(tr.Other[list].Count)))
			t.add(list+", sum", text.Number(tr.Other[list].Sum))
		}
		if tr.Ranks > 0 {
			t.add("ranks", text.Number(float64(tr.Ranks)))
		}
		t.add("from", tr.Source)
		all = append(all, t)
	}
	return all
}

// sourceTable returns the sources of all nodes.
func sourceTable(r *reporter.Report) *table {
	t := &table{
		heads: []string{
			"source", "kind", "node", "events", "datagrams", "scrapes", "failures", "s before end", "last failure",
		},
		words: true,
	}
	for _, name := range r.NodeNames() {
		n := r.Nodes[name]
		if n == nil || n.Operations == nil {
			continue
		}
		node := name
		if len(r.Nodes) == 1 {
			node = ""
		}
		for _, s := range n.Operations.Sources {
			t.add(s.Address, s.Kind, node, text.Number(float64(s.Events)), whole(s.Datagrams), whole(s.Scrapes),
				amount(s.Failures), known(s.SecondsBeforeEnd), s.Why)
		}
	}
	return t
}

// whole returns a whole number, or a dash if it is not known.
func whole(n *int64) string {
	if n == nil {
		return text.Absent
	}
	return text.Number(float64(*n))
}

func droppedTable(work *reporter.Work) *table {
	t := &table{heads: []string{"dropped", "count"}}
	for _, reason := range work.Dropped.Reasons() {
		if reason.Count != 0 {
			t.add(reason.Name, text.Number(float64(reason.Count)))
		}
	}
	return t
}

func exampleTable(work *reporter.Work) *table {
	t := &table{heads: []string{"example of what was dropped", "why"}, words: true}
	for _, e := range work.Examples {
		t.add(e.Line, e.Why)
	}
	return t
}
