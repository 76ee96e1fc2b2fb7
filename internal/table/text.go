package table

import (
	"io"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
)

// Line is a line of a table as text.
type Line struct {
	Text  string
	Style Style
}

// Lines returns the headings and the rows as lines of text in aligned columns, gap cells apart. If all headings are
// empty, it omits them. Only columns with Wrap or Fit respect width; 0 = any width.
func (t *Table) Lines(width, gap int) []Line {
	l := layout{table: t, width: width, gap: strings.Repeat(" ", gap), shown: t.shown()}
	groups, heads, cells := make([]string, len(t.Columns)), make([]string, len(t.Columns)), make([][]string, len(t.Rows))
	for i, c := range t.Columns {
		groups[i], heads[i] = c.GroupHead, text.Printable(c.Head)
	}
	for i, row := range t.Rows {
		for column := range t.Columns {
			cells[i] = append(cells[i], row.cell(column).String())
		}
	}
	l.measure(append(cells, heads))

	var out []Line
	for _, head := range [][]string{groups, heads} {
		if strings.Join(head, "") != "" {
			out = append(out, l.lines(head, t.HeadStyle)...)
		}
	}
	for i, row := range t.Rows {
		out = append(out, l.lines(cells[i], row.Style)...)
	}

	return out
}

// WriteText writes the table as lines of text of at most width cells; 0 = any width. Columns are two cells apart.
func (t *Table) WriteText(w io.Writer, width int, color bool) error {
	var out strings.Builder
	for _, line := range t.Lines(width, 2) {
		if width > 0 {
			line.Text = text.Clip(line.Text, width)
		}
		if color {
			line.Text = line.Style.Color(line.Text)
		}
		out.WriteString(line.Text + "\n")
	}
	_, err := io.WriteString(w, out.String())

	return err
}

// layout is the arrangement of a table's columns.
type layout struct {
	table  *Table
	width  int
	gap    string
	shown  []int // indexes of columns
	widths []int // widths of all columns, in cells
}

// measure sets the widths of the columns from the texts of rows. It goes from right to left, because a column with Fit
// gets the room that the columns after it leave.
func (l *layout) measure(rows [][]string) {
	l.widths = make([]int, len(l.table.Columns))
	room := l.width - len(l.gap)*(len(l.shown)-1)
	for _, i := range slices.Backward(l.shown) {
		c := l.table.Columns[i]
		width, most := c.Min, c.Max
		if c.Fit {
			most = max(1, room)
		}
		for _, row := range rows {
			if w := text.Width(row[i]); most == 0 || w <= most {
				width = max(width, w)
			} else if i > 0 { // in the first column, such a text is on a separate line
				width = most
			}
		}
		l.widths[i] = width
		if !c.Wrap {
			room -= width
		}
	}
}

// lines returns a row of cells as a single line, or as several lines if a text does not fit into its column.
func (l *layout) lines(cells []string, style Style) []Line {
	var lines []string
	line := ""
	for at, i := range l.shown {
		c, cell, width := &l.table.Columns[i], cells[i], l.widths[i]
		if at > 0 {
			line += l.gap
		}
		switch {
		case c.Wrap:
			lines, line = l.wrap(lines, line, cell), ""
		case at == 0 && text.Width(cell) > width:
			lines, line = append(lines, cell), strings.Repeat(" ", width)
		case c.GroupHead != "" && cell == c.GroupHead: // the heading begins above the preceding columns
			line = text.PadRight(strings.TrimRight(line, " "), text.Width(line)+width-text.Width(cell)) + cell
		case c.Right:
			line += text.PadLeft(text.Clip(cell, width), width)
		default:
			line += text.PadRight(text.Clip(cell, width), width)
		}
	}

	var out []Line
	for _, words := range append(lines, line) {
		if words = strings.TrimRight(words, " "); words != "" {
			out = append(out, Line{words, style})
		}
	}
	return out
}

// wrap adds cell, the text of the last column, to the lines of a row. above is empty, or has the first column's text if
// that is too long for line. cell follows line, or else the text in above. If there is no room, wrap breaks cell into
// several lines.
func (l *layout) wrap(above []string, line, cell string) []string {
	const minRoom, maxLines = 40, 20
	indent := text.Width(line)
	switch fits := func(s string) bool { return l.width == 0 || text.Width(s) <= l.width }; {
	case cell == "" || fits(line+cell):
		return append(above, line+cell)
	case len(above) > 0 && fits(above[0]+l.gap+cell):
		above[0] += l.gap + cell
		return append(above, line)
	case l.width-indent < minRoom:
		above, line, indent = append(above, line), "", len(l.gap)
	}
	for _, part := range text.Wrap(cell, max(1, l.width-indent), maxLines) {
		above, line = append(above, text.PadRight(line, indent)+part), ""
	}

	return above
}
