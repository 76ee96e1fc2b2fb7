package summary

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
)

// terminalWriter arranges lines for a terminal.
type terminalWriter struct {
	out   bytes.Buffer
	width int
	color bool
	label int // width of a label
}

// The layout of a row: label, number, unit, note.
const (
	headWidth   = 11 // of the labels of the job's few rows
	labelWidth  = 12
	numberWidth = 9
	unitWidth   = 5
)

// style is the style of a line, shown where colors are allowed.
type style = table.Style

const (
	plain = table.Plain
	bold  = table.Strong
	dim   = table.Faint
	alarm = table.Alarm
)

// lines returns the lines written.
func (p *terminalWriter) lines() []string {
	if p.out.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimRight(p.out.String(), "\n"), "\n")
}

// line writes one line, cut to the width.
func (p *terminalWriter) line(s style, words string) {
	words = text.Clip(strings.TrimRight(words, " "), p.width)
	if p.color {
		words = s.Color(words)
	}
	p.out.WriteString(words + "\n")
}

// span is a part of a line with its own style.
type span struct {
	style
	words string
}

// spans writes one line, cut to the width.
func (p *terminalWriter) spans(list ...span) {
	whole := text.Clip(strings.TrimRight(wordsOf(list), " "), p.width)
	for _, s := range list {
		part := whole[:min(len(whole), len(s.words))]
		whole = whole[len(part):]
		if p.color && strings.HasPrefix(s.words, part) { // otherwise it was cut
			part = s.style.Color(part)
		}
		p.out.WriteString(part)
	}
	p.out.WriteString(whole + "\n")
}

// text writes a label and words on at most two lines.
func (p *terminalWriter) text(s style, label, words string) { p.wrapped(s, label, words, 2) }

// wrapped writes a label and words on at most lines lines.
func (p *terminalWriter) wrapped(s style, label, words string, lines int) {
	for _, part := range text.Wrap(words, max(20, p.width-p.label), lines) {
		p.line(s, text.PadRight(label, p.label)+part)
		label = ""
	}
}

// table writes a table after label. If label is "", the table begins in the first cell of the line.
func (p *terminalWriter) table(label string, t *table.Table, gap int) {
	indent := min(len(label), 1) * p.label
	for _, line := range t.Lines(p.width-indent, gap) {
		p.line(line.Style, text.PadRight(label, indent)+line.Text)
		label = ""
	}
}

// numberRow is a row with a number: a label, the number with its unit, a note on its meaning, and the mean rate of an
// amount ("" = none). A row without a label continues the row above.
type numberRow struct {
	label      string
	value      text.Quantity
	note, rate string
	// of is appended to the note: printable text from the report, such as the path of a group.
	of string
}

// rows writes rows one below the other. Numbers, units and rates are aligned in columns.
func (p *terminalWriter) rows(rows []numberRow) {
	for _, r := range rows {
		q, label := r.value.Normalize(), text.PadRight(r.label, labelWidth)
		if q.Number == "" { // only a note
			p.line(plain, label+r.note)
			continue
		}
		note := strings.TrimRight(r.note+" "+r.of, " ")
		if r.rate != "" {
			note = text.PadRight(note, len("received")) + "  " + text.PadLeft(r.rate, 13)
		}
		p.line(plain, label+text.PadLeft(q.Number, numberWidth)+" "+text.PadRight(q.Unit, unitWidth)+" "+note)
	}
}

// sparklines writes finished lines, with an empty line before and after them.
func (p *terminalWriter) sparklines(lines []string) {
	if len(lines) == 0 {
		return
	}
	p.gap()
	for _, line := range lines {
		p.line(plain, text.Printable(line))
	}
	p.gap()
}

// gap writes an empty line, unless the last line is empty.
func (p *terminalWriter) gap() {
	if out := p.out.Bytes(); !bytes.HasSuffix(out, []byte("\n\n")) {
		p.line(plain, "")
	}
}

// path writes the given path without cutting it.
func (p *terminalWriter) path(label, path string) {
	path = text.Printable(path)
	if path == "" {
		return
	}
	if p.label+text.Width(path) > p.width {
		p.line(dim, label)
		p.out.WriteString(path + "\n")
		return
	}
	label = text.PadRight(label, p.label)
	if p.color {
		label = dim.Color(label)
	}
	p.out.WriteString(label + path + "\n")
}

// numberRows is a list of rows.
type numberRows []numberRow

// add adds r if its number is known.
func (l *numberRows) add(known bool, r numberRow) {
	if known {
		*l = append(*l, r)
	}
}

// wordsOf returns the words of a line.
func wordsOf(line []span) (words string) {
	for _, s := range line {
		words += s.words
	}
	return words
}

// listed writes the first most texts of list after label, each on at most lines lines. If it omits texts, it adds their
// number, followed by where.
func (p *terminalWriter) listed(label string, list []string, most, lines int, where string) {
	for _, words := range list[:min(len(list), most)] {
		p.wrapped(plain, label, words, lines)
		label = ""
	}
	if left := len(list) - most; left > 0 {
		p.text(plain, label, fmt.Sprintf("and %d more%s", left, where))
	}
}
