package summary

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// The limits of a Markdown summary. GitHub Actions accepts 1 MiB for the summary of a step. These limits keep a summary
// below half of that size, no matter which characters it contains.
const (
	markdownNodes = 50 // rows of the table of nodes
	// markdownPhases is the maximum number of rows of the table of phases.
	markdownPhases = 50
	markdownLines  = 60   // lines of a block
	markdownAbout  = 2000 // cells of a line about the run: a command may be long
	markdownWidth  = 300  // cells of any other line of a block
	markdownProse  = 1000 // cells of a paragraph
)

// WriteMarkdown writes how a run ended and what it used for the job summary of a CI system, an issue or a page: the
// conclusion, the most important numbers, the sparklines, missing metrics, and a collapsed table of all metrics with
// their units. Up to 50 nodes get a row each. Of the options, only the sparklines are used.
//
// The output is GitHub's Markdown and loads nothing. Text from the report is escaped, or in fenced blocks and code
// spans, so that it opens no tag, link, mention, table or heading. The output is shorter than 512 KiB: cut texts end in
// an ellipsis, and omitted lines are counted.
func WriteMarkdown(w io.Writer, r *reporter.Report, o Options) error {
	m, n, several := &markdownWriter{}, onlyNode(r), len(r.Nodes) > 1
	m.head(r)
	p := &terminalWriter{width: markdownAbout, label: labelWidth}
	p.about(r)
	p.push(r)
	m.fence(p.lines(), markdownAbout)
	if several {
		_, all := nodeRows(r)
		m.numbers("job", allRows(r, &all))
	} else {
		m.numbers("job", jobNumbers(n, &r.Run))
	}
	m.phases(r)
	m.operations(r)
	m.fence(o.JobSparklines, markdownWidth)

	if several {
		m.nodes(r)
	}
	m.ranks(r)
	if !several {
		m.numbers("node", append(hostRows(n), nodeNumbers(n, &r.Run)...))
	}
	m.fence(o.NodeSparklines, markdownWidth)
	m.missing(r)
	if cost := costOf(r); cost != "" {
		m.paragraph(table.EscapeMarkdown("perfagent: " + cost + "."))
	}
	if !several {
		m.metrics(n.Metrics)
	}
	return write(w, m.out.Bytes(), "Markdown")
}

// markdownWriter writes a summary.
type markdownWriter struct{ out bytes.Buffer }

func (m *markdownWriter) line(words string) { m.out.WriteString(words + "\n") }

// paragraph writes words as a line, with an empty line after it.
func (m *markdownWriter) paragraph(words string) { m.line(words + "\n") }

// head writes how the run ended, what to do about it, and how much of its capacity it used.
func (m *markdownWriter) head(r *reporter.Report) {
	c := Conclude(r)
	m.paragraph("### perfagent: " + m.prose(c.Cause))
	if lead, rest, ok := strings.Cut(c.Action, ": "); ok {
		m.paragraph("**" + m.prose(lead) + "**: " + m.prose(rest))
	} else if c.Action != "" {
		m.paragraph(m.prose(c.Action))
	}
	if c.Paste != "" {
		m.fence([]string{c.Paste}, markdownWidth)
	}
	if c.How != "" {
		m.paragraph(m.prose(c.How))
	}

	p := &terminalWriter{width: markdownWidth}
	p.jobRows(barRows(r, &c), Options{})
	m.fence(slices.DeleteFunc(p.lines(), func(line string) bool { return line == "" }), markdownWidth)
	m.further(&c)
	m.log(r)
}

// prose returns any text as Markdown in which nothing begins a list or other markup. Words with an address, which
// GitHub would link even if they are escaped, become code.
func (m *markdownWriter) prose(words string) string {
	list := strings.Split(text.Clip(strings.TrimSpace(words), markdownProse), " ")
	for i, word := range list {
		if strings.Contains(word, "@") || strings.Contains(word, "://") || strings.Contains(word, "www.") {
			list[i] = table.CodeSpan(word)
		} else {
			list[i] = table.EscapeMarkdown(word)
		}
	}
	words = strings.Join(list, " ")
	digits := len(words) - len(strings.TrimLeft(words, "0123456789"))
	if rest := words[digits:]; rest != "" && strings.Contains("-+=.)", rest[:1]) {
		return words[:digits] + `\` + rest
	}
	return words
}

// further lists the findings that are not in the action.
func (m *markdownWriter) further(c *Conclusion) {
	list := slices.Concat(c.Notes, c.Other)
	for _, words := range list[:min(len(list), furtherShown)] {
		m.line("- " + m.prose(words))
	}
	if left := len(list) - furtherShown; left > 0 {
		m.line(fmt.Sprintf("- and %d more, see the report", left))
	}
	if len(list) > 0 {
		m.line("")
	}
}

// numbers writes rows as a table, if there are any. A row without a label continues the row above.
func (m *markdownWriter) numbers(head string, rows []numberRow) {
	t := &table.Table{Columns: []table.Column{{Head: head}, {Head: "value", Right: true}, {}}}
	for _, r := range rows {
		t.Add(table.Cell{Text: r.label}, table.Number(r.value), table.Cell{Text: joined(r.note, r.rate), Untrusted: r.of})
	}
	m.table(t, "")
}

// table writes t and the remark on it, unless t has no rows.
func (m *markdownWriter) table(t *table.Table, remark string) {
	if len(t.Rows) == 0 {
		return
	}
	t.WriteMarkdown(&m.out)
	m.line("")
	if remark != "" {
		m.paragraph(remark)
	}
}

// nodes writes a row for each node, and one for all nodes together. If there are too many, it prefers failed nodes.
func (m *markdownWriter) nodes(r *reporter.Report) {
	rows, all := nodeRows(r)
	shown := chosenRows(rows)
	remark := ""
	if left := len(rows) - len(shown); left > 0 {
		remark = fmt.Sprintf("%d more nodes are in the report; failed ones are listed first.", left)
	}
	m.table(nodeTable(shown, &all), remark)
	m.paragraph("Network without loopback; not used in CPU hours.")
}

// chosenRows returns the rows that a summary shows, in their order. It prefers the rows of failed nodes, then the first
// rows.
func chosenRows(rows []nodeRow) []nodeRow {
	if len(rows) <= markdownNodes {
		return rows
	}

	failed := 0
	for _, r := range rows {
		if r.failed {
			failed++
		}
	}
	left := map[bool]int{true: min(failed, markdownNodes), false: markdownNodes - min(failed, markdownNodes)}
	return slices.DeleteFunc(slices.Clone(rows), func(r nodeRow) bool {
		left[r.failed]--
		return left[r.failed] < 0
	})
}

// missing writes the missing metrics and the reasons.
func (m *markdownWriter) missing(r *reporter.Report) {
	if lines := textsOf(missingGroups(r), r); len(lines) > 0 {
		m.paragraph("Missing:")
		m.fence(lines, markdownWidth)
	}
}

// metrics writes all metrics in values as a collapsed table, with the metrics of the job first. Numbers are rounded.
// Known metrics have their meaning, unknown ones only their name.
func (m *markdownWriter) metrics(values reporter.Values) {
	if len(values) == 0 {
		return
	}

	m.paragraph("<details><summary>All metrics</summary>")
	t := &table.Table{Columns: table.Left("name", "value", "unit", "meaning")}
	t.Columns[1].Right = true
	var unknown []string
	var known []reporter.Metric
	for _, name := range values.Names() {
		if metric, ok := reporter.MetricByName(name); ok {
			known = append(known, metric)
		} else {
			unknown = append(unknown, text.Printable(name)+" = "+text.Number(values[name]))
		}
	}
	slices.SortStableFunc(known, reporter.ByGroup)
	for _, metric := range known {
		t.Add(table.Untrusted(metric.Name), table.Bare(text.Number(values[metric.Name])),
			table.Cell{Text: string(metric.Unit)}, table.Cell{Text: metric.Meaning})
	}
	t.WriteMarkdown(&m.out)
	m.line("")
	if len(unknown) > 0 {
		m.paragraph("Not known to this perfagent:")
		m.fence(unknown, markdownWidth)
	}

	m.paragraph("</details>")
}

// fence writes lines of any text as a block that the text cannot end, and the number of omitted lines. It cuts each
// line to width cells.
func (m *markdownWriter) fence(lines []string, width int) {
	if len(lines) == 0 {
		return
	}
	left := max(0, len(lines)-markdownLines)
	lines = lines[:len(lines)-left]
	words := make([]string, len(lines))
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			line = "    " + line // GitHub ends any block at 255 backticks, unless they are indented
		}
		words[i] = text.Clip(text.Printable(line), width)
	}

	fence := "```"
	for all := strings.Join(words, "\n"); strings.Contains(all, fence); {
		fence += "`"
	}
	m.line(fence + "text")
	for _, line := range words {
		m.line(line)
	}
	if left > 0 {
		m.line(fmt.Sprintf("and %d more, see the report", left))
	}
	m.line(fence)
	m.line("")
}

// hostRows returns a row on the host of a node, if it is known.
func hostRows(n *reporter.Node) (rows numberRows) {
	if n.Host != nil {
		rows.add(true, numberRow{label: "node", of: cmp.Or(HostLine(n.HostName(), n.Host), text.Absent)})
	}
	return rows
}
