package comparer

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/perfagent/perfagent/internal/table"
)

// WriteMarkdown writes the comparison as a sentence, a GitHub Markdown table and a list, for a comment or a job
// summary. It escapes text from reports, so that such text cannot become markup.
func WriteMarkdown(w io.Writer, c *Comparison, o Options) error {
	var out bytes.Buffer
	list := func(lines ...string) {
		for _, line := range lines {
			out.WriteString("- " + table.EscapeMarkdown(line) + "\n")
		}
	}
	out.WriteString("**" + table.EscapeMarkdown(c.Sentence()) + "**\n\n")
	for _, words := range []string{c.Noise(), c.Commands()} {
		if words != "" {
			list(words)
		}
	}
	list(c.Sides()...)

	shown := c.listedMetrics(o.All)
	if rows := c.rows(shown); len(rows) > 0 {
		out.WriteByte('\n')
		markdownTable(rows).WriteMarkdown(&out)
	}
	out.WriteByte('\n')
	list(c.remarks(shown, o.All)...)

	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}

	return nil
}

// markdownTable returns rows as a table, with fewer columns than textTable.
func markdownTable(rows []Row) *table.Table {
	t := &table.Table{Columns: []table.Column{
		{Head: "metric"}, {Head: "A", Right: true}, {Head: "B", Right: true},
		{Head: "change", Right: true}, {Head: "p", Right: true},
	}}
	for _, r := range rows {
		cells := table.Texts(r.Label, strings.TrimSpace(r.A+" "+r.ASpread), strings.TrimSpace(r.B+" "+r.BSpread),
			r.Change, r.P)
		cells[3].Strong = r.Changed
		if r.Runs != "" {
			cells[4].Text = strings.TrimSpace(r.P + " (" + r.Runs + " runs)")
		}
		t.Add(cells...)
	}

	return t
}
