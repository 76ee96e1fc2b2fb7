package comparer

import (
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes the comparison as a sentence, a GitHub Markdown table and a list, for a comment
// or a job summary. Text from reports is escaped, so that it cannot become markup.
func WriteMarkdown(w io.Writer, c *Comparison, layout Layout) error {
	var out strings.Builder
	out.WriteString("**" + escaped(c.Sentence()) + "**\n\n")
	if words := c.Commands(); words != "" {
		out.WriteString("- " + escaped(words) + "\n")
	}
	for _, line := range c.sides() {
		out.WriteString("- " + escaped(line) + "\n")
	}

	// In a code span of a table nothing can be escaped, so what would end it is written as Printable writes what is
	// invisible.
	spanned := strings.NewReplacer("|", `\x7c`, "`", `\x60`)
	list := c.listed(layout.All)
	rows := c.rows(list)
	if len(rows) > 0 {
		out.WriteString("\n| metric | unit | A | B | change | p |\n|---|---|--:|--:|--:|--:|\n")
	}
	for _, r := range rows {
		change := r.cells[changeColumn]
		if r.changed {
			change = "**" + change + "**"
		} else {
			change = escaped(change)
		}

		p := r.cells[pColumn]
		if runs := r.cells[runsColumn]; runs != "" {
			p = strings.TrimSpace(p + " (" + runs + " runs)")
		}

		a := withSpread(r.cells[aColumn], r.cells[aSpreadColumn])
		b := withSpread(r.cells[bColumn], r.cells[bSpreadColumn])
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s | %s |\n",
			spanned.Replace(r.cells[nameColumn]), r.cells[unitColumn], a, b, change, escaped(p))
	}

	out.WriteString("\n")
	for _, text := range c.remarks(list, layout.All) {
		out.WriteString("- " + escaped(text) + "\n")
	}

	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}

	return nil
}

func withSpread(figure, spread string) string {
	return escaped(strings.TrimSpace(figure + " " + spread))
}

// escaped escapes text for Markdown. It puts a backslash before all that could begin markup or HTML
// (CommonMark 2.4) or turn an address into a link (GFM 6.9).
func escaped(text string) string {
	var out strings.Builder
	for _, r := range text {
		if strings.ContainsRune("\\`*_{}[]<>#|~&!@$^", r) {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return strings.NewReplacer("://", `\://`, "www.", `www\.`).Replace(out.String())
}
