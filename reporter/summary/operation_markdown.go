package summary

import (
	"strings"

	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/reporter"
)

// operations writes the job's operations as a table, its other series as a second one, and their losses. Names are from
// the report.
func (m *markdownWriter) operations(r *reporter.Report) {
	w := r.PooledOperations()
	if w == nil {
		return
	}

	others := &table.Table{Columns: table.Left("kind", "series", "value")}
	var more []string
	for _, part := range operationSections {
		series, left := part.series(w)
		if left > 0 {
			more = append(more, part.more(left)+".")
		}
		if part.kind == reporter.OpKind {
			m.table(part.table(w, series), strings.Join(more, "\n"))
			more = nil
			continue
		}
		for _, name := range series {
			row := part.row(w, name)
			others.Add(table.Cell{Text: part.kind.Noun()}, table.Untrusted(name), row.value())
		}
	}
	m.table(others, strings.Join(more, "\n"))

	p := &terminalWriter{width: markdownWidth}
	p.operationProblems(r, w)
	m.fence(p.lines(), markdownWidth)
}
