package reporter

import (
	"bytes"
	"strings"
)

// page lays lines out.
type page struct {
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
func (p *page) line(s style, text string) {
	text = clip(strings.TrimRight(text, " "), p.width)
	if p.color && s != plain && text != "" {
		text = "\x1b[" + string(s) + "m" + text + "\x1b[0m"
	}
	p.out.WriteString(text + "\n")
}

// text writes a label and words, on two lines at most.
func (p *page) text(s style, label, words string) {
	for _, part := range wrap(words, max(20, p.width-labelWidth), 2) {
		p.line(s, padRight(label, labelWidth)+part)
		label = ""
	}
}

// row writes a label, a value and what it is. The last word of the value is its
// unit; numbers end and units begin in the same column on every row.
func (p *page) row(label, value, note string) {
	number, unit := value, ""
	if at := strings.LastIndexByte(value, ' '); at >= 0 {
		number, unit = value[:at], value[at+1:]
	}
	if number == none {
		unit = ""
	}
	p.line(plain, padRight(label, labelWidth)+padLeft(number, numberWidth)+" "+padRight(unit, unitWidth)+" "+note)
}

// path writes where the report is, last and whole.
func (p *page) path(path string) {
	if path == "" {
		return
	}
	path = Printable(path)
	if labelWidth+textWidth(path) > p.width {
		p.line(plain, "report")
		p.out.WriteString(path + "\n")
		return
	}
	p.out.WriteString(padRight("report", labelWidth) + path + "\n")
}
