// Package table lays out tables with a number or a text in each cell. A Table is independent of terminals, Markdown and
// HTML. Each output format has a separate writer.
package table

import (
	"slices"

	"github.com/perfagent/perfagent/internal/text"
)

// Table is a table of columns, and of rows with one cell for each column.
type Table struct {
	Columns   []Column
	Rows      []Row
	HeadStyle Style // style of the headings
}

// Column is the look of a column. The heading may be any text.
type Column struct {
	Head     string
	LongHead string // the heading in Markdown and HTML; "" = Head
	// GroupHead is a heading above this column and some of the preceding columns.
	GroupHead string
	Right     bool // right-aligned, as numbers are
	// Min and Max bound the width in lines of text, in cells; 0 = no bound. A text wider than Max is truncated. In the
	// first column, it is on a separate line instead.
	Min, Max int
	Fit      bool // limit the first column to the space that the other columns leave
	Optional bool // omit the column from lines of text if no row has a value in it
	// Wrap continues text that is too long for the last column on further lines.
	Wrap bool
}

// Left returns left-aligned columns with the given headings.
func Left(heads ...string) []Column {
	columns := make([]Column, len(heads))
	for i, head := range heads {
		columns[i].Head = head
	}
	return columns
}

// Style is the look of a line in a terminal: the parameters of SGR (ECMA-48). Other formats have no styles.
type Style string

// The styles.
const (
	Plain  Style = ""
	Strong Style = "1"
	Faint  Style = "2"
	Bad    Style = "31"
	Alarm  Style = "1;31"
)

// Color returns line wrapped in the escape sequences for s.
func (s Style) Color(line string) string {
	if s == Plain || line == "" {
		return line
	}
	return "\x1b[" + string(s) + "m" + line + "\x1b[0m"
}

// Row is a row of a table. Empty cells at its end may be omitted.
type Row struct {
	Cells []Cell
	Style Style
}

// Cell has a number or a text, or both. The zero Cell is empty.
type Cell struct {
	text.Quantity
	Sign      string // accuracy mark before the number: "≥ ", "≤ ", "~"
	Text      string // perfagent's own text
	Untrusted string // text from a report, which may contain anything
	Strong    bool   // emphasized in Markdown and HTML
}

// Number returns a cell with the quantity q.
func Number(q text.Quantity) Cell { return Cell{Quantity: q.Normalize()} }

// Bare returns a cell with the given number and no unit.
func Bare(number string) Cell { return Cell{Quantity: text.Quantity{Number: number}} }

// Absent returns the cell of an unknown value.
func Absent() Cell { return Bare(text.Absent) }

// Texts returns cells with perfagent's own texts.
func Texts(words ...string) []Cell {
	cells := make([]Cell, len(words))
	for i, w := range words {
		cells[i].Text = w
	}
	return cells
}

// Untrusted returns a cell with s, a text from a report.
func Untrusted(s string) Cell { return Cell{Untrusted: s} }

// Add adds a row of cells.
func (t *Table) Add(cells ...Cell) { t.Rows = append(t.Rows, Row{Cells: cells}) }

// ownText returns the cell's number and perfagent's own text.
func (c Cell) ownText() string {
	if c.Number == "" {
		return c.Text
	}
	return spaced(c.Sign+c.Quantity.String(), c.Text)
}

// String returns the cell as visible text.
func (c Cell) String() string { return text.Printable(spaced(c.ownText(), c.Untrusted)) }

// spaced joins two texts with a space, unless one is empty.
func spaced(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " " + b
}

// cell returns the row's cell in the given column. Cells after the end of the row are empty.
func (r *Row) cell(column int) Cell {
	if column < len(r.Cells) {
		return r.Cells[column]
	}
	return Cell{}
}

// shown returns the indexes of the columns that appear in lines of text.
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
