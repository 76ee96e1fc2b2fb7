package summary

import (
	"bytes"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
)

// layout arranges lines on a terminal.
type layout struct {
	out   bytes.Buffer
	width int
	color bool
}

// The layout of a row: label, number, unit, note.
const (
	labelWidth  = 11
	numberWidth = 9
	unitWidth   = 6
)

// style is how a line stands out where colours are allowed (ECMA-48, SGR).
type style string

const (
	plain style = ""
	bold  style = "1"
	dim   style = "2"
	alarm style = "1;31" // bold red
)

// line writes one line, cut to the page.
func (p *layout) line(s style, words string) {
	words = text.Clip(strings.TrimRight(words, " "), p.width)
	if p.color && s != plain && words != "" {
		words = "\x1b[" + string(s) + "m" + words + "\x1b[0m"
	}
	p.out.WriteString(words + "\n")
}

// text writes a label and words, on two lines at most.
func (p *layout) text(s style, label, words string) { p.words(s, label, words, 2) }

// words is text on so many lines at most.
func (p *layout) words(s style, label, words string, lines int) {
	for _, part := range text.Wrap(words, max(20, p.width-labelWidth), lines) {
		p.line(s, text.PadRight(label, labelWidth)+part)
		label = ""
	}
}

// row is a number for people: what it is of, the number with its unit, what it
// means, and of an amount its mean rate ("" = none). A row without a label belongs to
// the one above.
type row struct {
	label      string
	value      text.Quantity
	note, rate string
	// of ends the note: printable text from the report, such as a group's path.
	of string
}

// row writes a row. Numbers end and units begin in the same column on every row, and so do rates.
func (p *layout) row(r row) {
	q := r.value.Known()
	note := strings.TrimRight(r.note+" "+r.of, " ")
	if r.rate != "" {
		note = text.PadRight(note, len("received")) + "  " + text.PadLeft(r.rate, 13)
	}
	value := text.PadLeft(q.Number, numberWidth) + " " + text.PadRight(q.Unit, unitWidth)
	p.line(plain, text.PadRight(r.label, labelWidth)+value+" "+note)
}

// pictures writes lines that were drawn elsewhere, apart from what stands around them.
func (p *layout) pictures(lines []string) {
	if len(lines) == 0 {
		return
	}
	p.gap()
	for _, line := range lines {
		p.line(plain, text.Printable(line))
	}
	p.gap()
}

// gap leaves a line empty, unless the last one is.
func (p *layout) gap() {
	if out := p.out.Bytes(); !bytes.HasSuffix(out, []byte("\n\n")) {
		p.line(plain, "")
	}
}

// path writes where a file is, whole.
func (p *layout) path(label, path string) {
	if path == "" {
		return
	}
	path = text.Printable(path)
	if labelWidth+text.Width(path) > p.width {
		p.line(plain, label)
		p.out.WriteString(path + "\n")
		return
	}
	p.out.WriteString(text.PadRight(label, labelWidth) + path + "\n")
}
