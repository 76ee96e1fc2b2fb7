package summary

import (
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// work writes what the job said of its operations and transfers, and what of it was lost.
func (p *layout) work(r *reporter.Report) {
	w := r.Work()
	if w == nil {
		return
	}

	for _, part := range workParts() {
		series, left := part.series(w)
		var rows []workRow
		for _, name := range series {
			rows = append(rows, part.row(w, name))
		}
		if part.kind == reporter.TransferKind {
			p.transfers(rows)
		} else {
			p.workRows(part.label(), rows)
		}
		if left > 0 {
			p.line(plain, text.PadRight("", labelWidth)+part.more(left))
		}
	}
	p.losses(r, w)
}

// transfers writes the transfers. Their numbers are words, which are not aligned in columns.
func (p *layout) transfers(rows []workRow) {
	label := "transfers"
	for _, row := range rows {
		p.workRows(label, []workRow{row})
		label = ""
	}
}

// workRows writes rows of series under a label: names and numbers in columns. A name for which there is no room beside
// its numbers has a line of its own.
func (p *layout) workRows(label string, rows []workRow) {
	numbers, width := joinedCells(rows)
	column := 0
	for _, r := range rows {
		if w := text.Width(text.Printable(r.name)); labelWidth+w+2+width <= p.width {
			column = max(column, w)
		}
	}

	for i, r := range rows {
		for _, line := range r.lines(numbers[i], column, p.width-labelWidth) {
			p.line(plain, text.PadRight(label, labelWidth)+line)
			label = ""
		}
	}
}

// joinedCells returns the numbers of each row in columns, and the width of the widest.
func joinedCells(rows []workRow) (lines []string, width int) {
	var widths []int
	for _, r := range rows {
		widths = append(widths, make([]int, max(0, len(r.cells)-len(widths)))...)
		for i, cell := range r.cells {
			widths[i] = max(widths[i], text.Width(cell))
		}
	}

	for _, r := range rows {
		var cells []string
		for i, cell := range r.cells {
			if widths[i] > 0 {
				cells = append(cells, text.PadLeft(cell, widths[i]))
			}
		}
		line := strings.TrimRight(strings.Join(cells, "  "), " ")
		lines, width = append(lines, line), max(width, text.Width(line))
	}

	return lines, width
}

// lines returns the lines of a row: its numbers begin behind the column of names. The note follows the numbers, or a
// name that has a line of its own; where there is no room, it has a line, too.
func (r *workRow) lines(numbers string, column, width int) []string {
	name, indent := text.Printable(r.name), strings.Repeat(" ", column+2)
	var lines []string
	if text.Width(name) > column {
		lines, name = append(lines, text.Clip(name, width)), ""
	}
	for _, part := range text.Wrap(numbers, max(20, width-column-2), 2) {
		lines, name = append(lines, text.PadRight(name, column)+"  "+part), ""
	}

	note := text.Printable(strings.TrimSpace(r.note + " " + r.of))
	if note == "" {
		return lines
	}
	for i := range slices.Backward(lines) {
		if text.Width(lines[i])+2+text.Width(note) <= width {
			lines[i] += "  " + note
			return lines
		}
	}

	return append(lines, indent+note)
}
