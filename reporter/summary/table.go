package summary

import (
	"bytes"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
)

// nameWidth is the width of the widest name that shares a line of a table with its numbers, in cells.
const nameWidth = 40

// A table has a name and numbers in each row, in words. Names and words may be any text.
type table struct {
	heads []string // of the names, and of the numbers
	rows  [][]string
	words bool // the last column is text: it is aligned left
	whole bool // a column without a number stays
}

// add adds a row.
func (t *table) add(name string, cells ...string) {
	t.rows = append(t.rows, append([]string{name}, cells...))
}

// write writes the table in aligned columns, with an empty line before it if it is not the first. A name that is wider
// than its column has a line of its own. A column without a number is left out, unless there are no rows or the table
// is to be whole.
func (t *table) write(out *bytes.Buffer) {
	if out.Len() > 0 {
		out.WriteByte('\n')
	}

	widths := t.widths()
	for _, row := range append([][]string{t.heads}, t.rows...) {
		name := text.Printable(row[0])
		if text.Width(name) > widths[0] {
			out.WriteString(name + "\n")
			name = ""
		}
		line := text.PadRight(name, widths[0])
		for i, width := range widths[1:] {
			cell := text.Printable(row[i+1])
			switch {
			case width == 0:
			case t.words && i == len(widths)-2:
				line += "  " + cell
			default:
				line += "  " + text.PadLeft(cell, width)
			}
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// widths returns the widths of the columns; 0 for one that is left out.
func (t *table) widths() []int {
	widths := make([]int, len(t.heads))
	for i, head := range t.heads {
		known := func(row []string) bool { return row[i] != "" && row[i] != text.Absent }
		if !t.whole && len(t.rows) > 0 && !slices.ContainsFunc(t.rows, known) {
			continue
		}
		widths[i] = text.Width(text.Printable(head))
		for _, row := range t.rows {
			if w := text.Width(text.Printable(row[i])); i > 0 || w <= nameWidth {
				widths[i] = max(widths[i], w)
			}
		}
	}
	widths[0] = min(widths[0], nameWidth)

	return widths
}
