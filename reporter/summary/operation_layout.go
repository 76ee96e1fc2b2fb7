package summary

import (
	"cmp"
	"strings"

	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// operations writes the job's operations and transfers, and their losses.
func (p *terminalWriter) operations(r *reporter.Report) {
	ops := r.PooledOperations()
	if ops == nil {
		return
	}

	for _, section := range operationSections {
		series, left := section.series(ops)
		p.table(section.label(), section.table(ops, series), 2)
		if left > 0 {
			p.line(plain, text.PadRight("", p.label)+section.more(left))
		}
	}
	p.operationProblems(r, ops)
}

// table returns a table of the given series of the section, with their names, numbers and notes. A name that does not
// fit next to its numbers gets a separate line.
func (p *operationSection) table(ops *reporter.Operations, series []string) *table.Table {
	t := &table.Table{Columns: []table.Column{{LongHead: p.kind.Noun(), Fit: true}}}
	for _, name := range series {
		row := p.row(ops, name)
		if len(t.Rows) == 0 {
			for i := range row.cells {
				t.Columns = append(t.Columns, table.Column{Right: true, Optional: true})
				if p.kind == reporter.OpKind {
					t.Columns[i+1].LongHead = p.numbers()[i].Heading
				}
			}
			t.Columns = append(t.Columns, table.Column{LongHead: "note", Wrap: true, Optional: true})
		}
		cells := []table.Cell{table.Untrusted(name)}
		for _, words := range row.cells {
			cells = append(cells, table.Bare(cmp.Or(words, text.Absent)))
		}
		t.Add(append(cells, row.note)...)
	}

	return t
}

// operations writes the job's operations as a table, its other series as a second table, and their losses. Names are
// from the report.
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
