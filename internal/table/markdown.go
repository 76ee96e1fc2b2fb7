package table

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
)

// WriteMarkdown writes the table as GitHub's Markdown, with all text escaped.
func (t *Table) WriteMarkdown(out *bytes.Buffer) {
	heads, rules := "|", "|"
	for _, c := range t.Columns {
		heads += strings.TrimRight(" "+EscapeMarkdown(cmp.Or(c.LongHead, c.Head)), " ") + " |"
		if c.Right {
			rules += "---:|"
		} else {
			rules += "---|"
		}
	}
	out.WriteString(heads + "\n" + rules + "\n")
	for _, row := range t.Rows {
		out.WriteString("|")
		for i := range t.Columns {
			out.WriteString(" " + row.cell(i).markdown() + " |")
		}
		out.WriteString("\n")
	}
}

// markdown returns the cell as Markdown, with untrusted text in a code span.
func (c Cell) markdown() string {
	words := EscapeMarkdown(c.ownText())
	if c.Strong && words != "" {
		words = "**" + words + "**"
	}
	if c.Untrusted != "" {
		words = spaced(words, CodeSpan(c.Untrusted))
	}
	return words
}

// EscapeMarkdown escapes s so that Markdown shows it literally: no character begins markup, HTML (CommonMark 2.4) or a
// mention, and no address becomes a link (GFM 6.9).
func EscapeMarkdown(s string) string {
	var out strings.Builder
	for _, r := range s {
		if strings.ContainsRune("\\`*_{}[]<>#|~&!@$", r) {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return strings.NewReplacer("://", `\://`, "www.", `www\.`).Replace(out.String())
}

// codeCells is the maximum width of a code span, in cells.
const codeCells = 100

// CodeSpan returns untrusted text as a code span for a table cell. A bar would end the cell, and a backtick would end
// the span. Programs disagree on how to escape them, so CodeSpan escapes both as Printable escapes invisible
// characters.
func CodeSpan(s string) string {
	s = strings.NewReplacer("|", `\x7c`, "`", `\x60`).Replace(text.Clip(text.Printable(s), codeCells))
	if strings.TrimSpace(s) == "" || s == text.Absent {
		return text.Absent
	}
	return "`" + s + "`"
}
