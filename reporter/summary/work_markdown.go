package summary

import (
	"strings"

	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/reporter"
)

// work writes the job's operations as a table, its other series as a second one, and what of them was lost. Names are
// from the report.
func (m *markdown) work(r *reporter.Report) {
	w := r.Work()
	if w == nil {
		return
	}

	others := &table.Table{Columns: table.Left("kind", "series", "value")}
	var more []string
	for _, part := range workParts() {
		series, left := part.series(w)
		if left > 0 {
			more = append(more, part.more(left)+".")
		}
		if part.kind == reporter.OpKind {
			m.workTable(part.table(w, series), more)
			more = nil
			continue
		}
		for _, name := range series {
			row := part.row(w, name)
			others.Add(table.Cell{Words: part.kind.Noun()}, table.Quote(name), row.value())
		}
	}
	m.workTable(others, more)

	p := &layout{width: markdownWidth}
	p.losses(r, w)
	m.fence(p.lines(), markdownWidth)
}

// workTable writes a table unless it is empty, and what it leaves out.
func (m *markdown) workTable(t *table.Table, more []string) {
	if len(t.Rows) == 0 {
		return
	}
	m.table(t)
	if len(more) > 0 {
		m.line(strings.Join(more, "\n") + "\n")
	}
}
