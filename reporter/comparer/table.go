package comparer

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
)

// maxName is the maximum length of a metric's name in a table, in characters. Only names that contain a phase or a
// series can be longer.
const maxName = 60

// lineWidth is the maximum width of the text lines above and below the table, in characters.
const lineWidth = 80

// Row is a metric for tables and pages, in printable text.
type Row struct {
	Name       string // the key of the metric
	Label      string // the name for people
	Meaning    string
	A, ASpread string // the median and its noise: "3.2 s", "±2%"
	B, BSpread string
	Change, P  string
	Runs       string  // numbers of runs with the metric, "3+10"; "" if all runs have it
	Changed    bool    // whether the change is significant
	ChangePct  float64 // change in percent; 0 if it is unknown, or may be noise
}

// rows returns a row for each metric that at least one side has.
func (c *Comparison) rows(list []Metric) []Row {
	var out []Row
	for _, m := range list {
		if m.A == nil && m.B == nil {
			continue
		}

		r := Row{
			Name: text.Printable(m.Name), Label: text.Printable(m.label()), Meaning: text.Printable(m.definition.Meaning),
			A: m.amountOrNone(m.A), ASpread: spread(m.A, m.ALow, m.AHigh, m.NA),
			B: m.amountOrNone(m.B), BSpread: spread(m.B, m.BLow, m.BHigh, m.NB),
			Change: m.Change(), Changed: m.Changed != nil && *m.Changed,
		}
		if m.isUntested() && c.Noise() == "" {
			r.Change += " ?"
		}
		if m.P != nil {
			r.P = pValueCell(*m.P)
		}
		if m.NA != c.A.Runs || m.NB != c.B.Runs {
			r.Runs = fmt.Sprintf("%d+%d", m.NA, m.NB)
		}
		if m.ChangePct != nil && m.hasNotableChange() && !math.IsNaN(*m.ChangePct) {
			r.ChangePct = *m.ChangePct
		}
		out = append(out, r)
	}

	return out
}

func (m *Metric) amountOrNone(v *float64) string {
	if v == nil {
		return text.Absent
	}
	return shownAmount(*v, m.Unit)
}

// isUntested reports whether both sides have m, but in too few runs for a test.
func (m *Metric) isUntested() bool { return m.Changed == nil && m.A != nil && m.B != nil }

// textTable returns a table of rows, with the headings a and b for the two sides. Lines have at most width cells; 0 =
// any width. If there is no room, textTable omits first the number of runs, then the p-value, then the noise. At last,
// it writes long names on separate lines.
func textTable(rows []Row, a, b string, width int) []table.Line {
	t := &table.Table{HeadStyle: table.Faint, Columns: []table.Column{
		{Min: 22}, {Head: a, Right: true, Min: 11}, {Right: true, Optional: true},
		{Head: b, Right: true, Min: 11}, {Right: true, Optional: true}, {Head: "change", Right: true, Min: 8},
		{Head: "p", Right: true, Optional: true}, {Head: "runs", Right: true, Optional: true},
	}}
	for _, r := range rows {
		t.Add(table.Texts(r.Label, r.A, r.ASpread, r.B, r.BSpread, r.Change, r.P, r.Runs)...)
		if r.Changed {
			t.Rows[len(t.Rows)-1].Style = table.Strong
		}
	}

	tooWide := func(l table.Line) bool { return width > 0 && text.Width(l.Text) > width }
	lines := t.Lines(0, 1)
	for _, omitted := range [][]int{nil, {7}, {6}, {2, 4}} {
		if !slices.ContainsFunc(lines, tooWide) {
			return lines
		}
		for i := range t.Columns {
			t.Columns[i].Min = 0
		}
		for _, row := range t.Rows {
			for _, column := range omitted {
				row.Cells[column] = table.Cell{}
			}
		}
		lines = t.Lines(0, 1)
	}
	t.Columns[0].Fit = true
	return t.Lines(width, 1)
}

// Change formats the change: +20 %, or ~ if it may be noise.
func (m Metric) Change() string {
	switch {
	case m.A == nil || m.B == nil:
		return text.Absent
	case m.Changed != nil && !*m.Changed:
		return "~"
	case *m.A == *m.B:
		return "0 %" // includes a change from 0 to 0
	case m.ChangePct != nil:
		return changeText(*m.A, *m.B, *m.ChangePct)
	case *m.A != 0:
		return "huge" // too large for a number
	}
	return "from 0"
}

// heads returns the headings for A and B. If each side is a single run with a name that is short enough for lines of
// the given width, the headings contain the names, and named is true. A width of 0 means any width.
func (c *Comparison) heads(width int) (a, b string, named bool) {
	a, b = "A "+text.Printable(c.A.Name), "B "+text.Printable(c.B.Name)
	most := (min(lineWidth, cmp.Or(width, lineWidth)) - 32) / 2 // the rest is for the other columns
	if c.A.Runs != 1 || c.B.Runs != 1 || max(text.Width(a), text.Width(b)) > most {
		return "A", "B", false
	}
	return a, b, true
}

// Sides describes A and B in one line each.
func (c *Comparison) Sides() []string {
	var out []string
	for _, s := range []struct {
		label string
		SideSummary
	}{{"A", c.A}, {"B", c.B}} {
		files := ""
		if s.Reports != s.Runs {
			files = fmt.Sprintf(" in %s", text.Count(s.Reports, "report", "reports"))
		}

		name := text.Printable(text.Clip(s.Name, maxText))
		out = append(out, fmt.Sprintf("%s: %s%s, %s", s.label, text.Count(s.Runs, "run", "runs"), files, name))
	}

	return out
}

// remarks returns the lines below the table: the legend, the results of the gates, and the notes. If all is set, there
// are also lines about the missing metrics, and otherwise lines about the metrics that the short table omits.
func (c *Comparison) remarks(list []Metric, all bool) []string {
	out := c.legend(list)
	if all {
		out = append(out, c.missingLines()...)
	} else {
		out = append(out, c.otherLines(list)...)
	}
	for _, v := range c.Gates {
		out = append(out, "gate "+v.String())
	}

	return printable(append(out, c.notes()...))
}

// notes returns the notes as lines below the table.
func (c *Comparison) notes() []string {
	var out []string
	for _, note := range c.Notes {
		out = append(out, "note: "+note)
	}

	return out
}

// printable truncates and escapes lines that may contain text from reports.
func printable(lines []string) []string {
	for i := range lines {
		lines[i] = text.Printable(text.Clip(lines[i], 4*maxText))
	}

	return lines
}

// legend explains the signs that occur in the rows of list.
func (c *Comparison) legend(list []Metric) []string {
	alike, few, bare := false, false, false
	for _, m := range list {
		alike = alike || m.Changed != nil && !*m.Changed
		few = few || m.isUntested() && c.Noise() == ""
		bare = bare || m.NA > 1 && m.ALow == nil || m.NB > 1 && m.BLow == nil
	}

	changed, tested := 0, 0
	for _, m := range c.visibleMetrics() {
		if m.Changed != nil {
			tested++
			if *m.Changed {
				changed++
			}
		}
	}

	var out []string
	if len(list) > 0 && (c.A.Runs > 1 || c.B.Runs > 1) {
		out = append(out, "A, B: medians; ±: 95 % confidence interval")
	}
	if bare {
		out = append(out, "±? fewer than six runs have no confidence interval")
	}
	if alike {
		out = append(out, fmt.Sprintf("~ no significant change (p > %v)", Alpha))
	}
	if few {
		const enough = "? too few runs to know the noise, so the plain difference; %d runs per side are enough"
		out = append(out, fmt.Sprintf(enough, RunsNeeded()))
	}
	if changed > 0 {
		out = append(out, fmt.Sprintf("changed: %d of %d; one in 20 unchanged metrics appears changed by chance",
			changed, tested))
	}

	return out
}

// String returns the result in one line.
func (v GateResult) String() string {
	state := "cannot be judged"
	if v.Fired != nil {
		state = "passed"
		if *v.Fired {
			state = "FAILED"
		}
	}
	return fmt.Sprintf("'%s' %s: %s", v.Gate, state, v.Reason)
}

// missingLines returns the metrics that runs lack, with one line for each reason.
func (c *Comparison) missingLines() []string {
	var reasons []string
	names := make(map[string]*labels)
	for _, m := range c.visibleMetrics() {
		if m.Why == "" {
			continue
		}
		if names[m.Why] == nil {
			reasons, names[m.Why] = append(reasons, m.Why), new(labels)
		}
		names[m.Why].add(&m, nil)
	}

	out := make([]string, len(reasons))
	for i, reason := range reasons {
		out[i] = fmt.Sprintf("%s %s: %s", text.Absent, strings.Join(*names[reason], ", "), reason)
	}

	return out
}

// Options configures the writing of a comparison.
type Options struct {
	All   bool // include unchanged metrics
	Color bool // use the colors of a terminal
	Width int  // width of the terminal in cells; 0 = the table may have any width
}

// WriteTable writes the comparison for people: a sentence, and aligned columns. Only words without a space, such as
// paths, can be wider than Options.Width. Text from reports is escaped, so it cannot add control characters.
func WriteTable(w io.Writer, c *Comparison, o Options) error {
	var out strings.Builder
	width := min(lineWidth, cmp.Or(o.Width, lineWidth))
	write := func(look table.Style, line string) {
		if o.Color {
			line = look.Color(line)
		}
		out.WriteString(line + "\n")
	}

	wrap := func(look table.Style, words string) {
		if words == "" {
			return
		}
		for _, line := range text.Wrap(words, width, 8) {
			write(look, line)
		}
	}

	wrap(table.Strong, c.Sentence())
	wrap(table.Plain, c.Noise())
	wrap(table.Plain, c.Commands())
	write(table.Plain, "")
	a, b, named := c.heads(o.Width)
	if !named {
		for _, words := range append(c.Sides(), "") {
			for _, line := range wrapped(words, width) {
				write(table.Plain, line)
			}
		}
	}

	list := c.listedMetrics(o.All)
	if rows := c.rows(list); len(rows) > 0 {
		for _, line := range textTable(rows, a, b, o.Width) {
			write(line.Style, line.Text)
		}
		write(table.Plain, "")
	}

	for _, words := range c.remarks(list, o.All) {
		for _, line := range wrapped(words, width) {
			write(table.Plain, line)
		}
	}

	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}

	return nil
}

// wrapped breaks words at spaces into lines of at most width characters, and indents all lines except the first. It
// does not split a word that is longer than a line, so that paths can be copied.
func wrapped(words string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(words) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = "  " + word
		}
	}

	return append(lines, line)
}
