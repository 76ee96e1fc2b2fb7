// Package table has tables: rows of named things with a number or a text in each cell. A Table knows nothing of
// terminals, Markdown or HTML; a writer for each turns it into that form.
package table

import (
	"slices"

	"github.com/perfagent/perfagent/internal/text"
)

// A Table has columns, and rows with a cell for each of them.
type Table struct {
	Columns   []Column
	Rows      []Row
	HeadStyle Style // of the headings
}

// A Column says how a column looks. The heading may be any text.
type Column struct {
	Head     string
	LongHead string // a heading for Markdown and HTML; "" = Head
	// GroupHead is a heading above those of some columns, of which this is the last.
	GroupHead string
	Right     bool // aligned to the right, as numbers are
	// Min and Most bound the width in lines of text, in cells; 0 = no bound. A text that is wider than Most is cut. In
	// the first column it has a line of its own instead.
	Min, Max int
	Fit      bool // the first column is no wider than what the others leave
	Optional bool // the column is left out of lines of text if no row has anything in it
	// Wrap is for the last column: a text for which there is no room goes on in lines of its own.
	Wrap bool
}

// Left returns columns with some headings that are aligned to the left.
func Left(heads ...string) []Column {
	columns := make([]Column, len(heads))
	for i, head := range heads {
		columns[i].Head = head
	}
	return columns
}

// A Style is how a terminal shows a line: the parameters of SGR (ECMA-48). Other forms have no styles.
type Style string

// The styles.
const (
	Plain  Style = ""
	Strong Style = "1"
	Faint  Style = "2"
	Bad    Style = "31"
	Alarm  Style = "1;31"
)

// Color returns a line in the style.
func (s Style) Color(line string) string {
	if s == Plain || line == "" {
		return line
	}
	return "\x1b[" + string(s) + "m" + line + "\x1b[0m"
}

// A Row is a row of a table. Cells at its end may be left out: they are empty.
type Row struct {
	Cells []Cell
	Style Style
}

// A Cell has a number or a text, or both. The zero Cell is empty.
type Cell struct {
	text.Quantity
	Sign      string // of the accuracy, before the number: "≥ ", "≤ ", "~"
	Text      string // perfagent's own text
	Untrusted string // text from a report, which may be anything
	Strong    bool   // stands out in Markdown and HTML
}

// Number returns a cell with a number.
func Number(q text.Quantity) Cell { return Cell{Quantity: q.Normalize()} }

// Bare returns a cell with a number that has no unit.
func Bare(number string) Cell { return Cell{Quantity: text.Quantity{Number: number}} }

// Absent returns the cell of what is not known.
func Absent() Cell { return Bare(text.Absent) }

// Texts returns cells with perfagent's own texts.
func Texts(words ...string) []Cell {
	cells := make([]Cell, len(words))
	for i, w := range words {
		cells[i].Text = w
	}
	return cells
}

// Untrusted returns a cell with a text from a report.
func Untrusted(s string) Cell { return Cell{Untrusted: s} }

// Add adds a row.
func (t *Table) Add(cells ...Cell) { t.Rows = append(t.Rows, Row{Cells: cells}) }

// ownText returns what perfagent itself says in the cell.
func (c Cell) ownText() string {
	if c.Number == "" {
		return c.Text
	}
	return spaced(c.Sign+c.Quantity.String(), c.Text)
}

// String returns the cell as visible text.
func (c Cell) String() string { return text.Printable(spaced(c.ownText(), c.Untrusted)) }

// spaced returns two texts with a blank between them, unless one is empty.
func spaced(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " " + b
}

// cell returns the cell of a row in a column.
func (r *Row) cell(column int) Cell {
	if column < len(r.Cells) {
		return r.Cells[column]
	}
	return Cell{}
}

// shown returns the columns that lines of text have, by their numbers.
func (t *Table) shown() []int {
	var out []int
	for i, c := range t.Columns {
		known := func(r Row) bool { s := r.cell(i).String(); return s != "" && s != text.Absent }
		if !c.Optional || slices.ContainsFunc(t.Rows, known) {
			out = append(out, i)
		}
	}
	return out
}
