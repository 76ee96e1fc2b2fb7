package summary

import (
	"strings"

	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/reporter"
)

// operations writes the job's operations as a table, its other series as a second one, and their losses. Names are from
// the report.
func (m *markdownWriter) operations(r *reporter.Report) {
	ops := r.PooledOperations()
	if ops == nil {
		return
	}

	others := &table.Table{Columns: table.Left("kind", "series", "value")}
	var more []string
	for _, section := range operationSections {
		series, left := section.series(ops)
		if left > 0 {
			more = append(more, section.more(left)+".")
		}
		if section.kind == reporter.OpKind {
			m.table(section.table(ops, series), strings.Join(more, "\n"))
			more = nil
			continue
		}
		for _, name := range series {
			row := section.row(ops, name)
			others.Add(table.Cell{Text: section.kind.Noun()}, table.Untrusted(name), row.value())
		}
	}
	m.table(others, strings.Join(more, "\n"))

	p := &terminalWriter{width: markdownWidth}
	p.operationProblems(r, ops)
	m.fence(p.lines(), markdownWidth)
}
