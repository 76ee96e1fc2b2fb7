package summary

import (
	"cmp"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// work writes the job's operations as a table, its other series as a second one, and what of them was lost. Names are
// from the report.
func (m *markdown) work(r *reporter.Report) {
	w := r.Work()
	if w == nil {
		return
	}

	parts := workParts()
	m.workTable(w, parts[:1], "| operation | calls | avg | p90 | max | total | note |", "|---|---:|---:|---:|---:|---:|---|")
	m.workTable(w, parts[1:], "| kind | series | value |", "|---|---|---|")

	p := &layout{width: markdownWidth}
	p.losses(r, w)
	if p.out.Len() > 0 {
		m.fence(strings.Split(strings.TrimRight(p.out.String(), "\n"), "\n"), markdownWidth)
	}
}

// workTable writes parts of the work as a table: operations with a column for each number, all others with their kind
// and one column. It writes nothing if there is no series.
func (m *markdown) workTable(w *reporter.Work, parts []workPart, heads ...string) {
	var rows, more []string
	for _, part := range parts {
		series, left := part.series(w)
		for _, name := range series {
			rows = append(rows, part.markdown(w, name))
		}
		if left > 0 {
			more = append(more, part.more(left)+".")
		}
	}
	if len(rows) == 0 {
		return
	}

	for _, line := range append(heads, rows...) {
		m.line(line)
	}
	m.line("")
	if len(more) > 0 {
		m.line(strings.Join(more, "\n"))
		m.line("")
	}
}

// markdown returns the row of a table for a series.
func (p *workPart) markdown(w *reporter.Work, series string) string {
	row := p.row(w, series)
	cells := []string{codeSpan(row.name)}
	note := markdownText(row.note)
	if row.of != "" {
		note = strings.TrimSpace(note + " " + codeSpan(row.of))
	}

	if p.kind != reporter.OpKind {
		known := slices.DeleteFunc(row.cells, func(cell string) bool { return cell == "" })
		value := strings.TrimSpace(markdownText(strings.Join(known, ", ")) + " " + note)
		return "| " + p.kind.Noun() + " | " + cells[0] + " | " + value + " |"
	}
	for _, cell := range row.cells {
		cells = append(cells, markdownText(cmp.Or(cell, text.Absent)))
	}
	return "| " + strings.Join(append(cells, note), " | ") + " |"
}
