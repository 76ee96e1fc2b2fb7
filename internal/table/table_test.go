package table_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
)

func nodes() *table.Table {
	t := &table.Table{HeadStyle: table.Faint, Columns: []table.Column{
		{Head: "node", LongHead: "name of the node", Max: 12}, {Head: "CPU", Right: true},
		{Head: "memory", GroupHead: "the peak", Right: true}, {Head: "free", Right: true, Optional: true}, {Head: "note"},
	}}
	t.Add(table.Untrusted("日本語"), table.Bare("1.5"), table.Number(text.Size(312)), table.Absent(), table.Cell{Text: "busy", Untrusted: "x|y"})
	t.Add(table.Untrusted("a\x1b[31m"), table.Absent(), table.Cell{Sign: "≤ ", Quantity: text.Size(2048), Strong: true})
	t.Add(table.Untrusted("a name that is longer"), table.Bare("12.4"), table.Number(text.Percentage(nan())))
	t.Rows[1].Style = table.Alarm
	return t
}

func nan() float64 { zero := 0.0; return zero / zero }

func TestWriteText_AlignsByCells(t *testing.T) {
	t.Parallel()
	const want = `
                  the peak
node        CPU     memory  note
日本語      1.5    312 MiB  busy x|y
a\x1b[31m     –  ≤ 2.0 GiB
a name that is longer
           12.4          –
`
	var out strings.Builder
	if err := nodes().WriteText(&out, 0, false); err != nil || "\n"+out.String() != want {
		t.Errorf("error %v, table\n%swant%s", err, out.String(), want)
	}
	for _, line := range strings.Split(out.String(), "\n")[2:4] {
		if at := text.Width(line[:strings.Index(line, "iB")]); at != 24 {
			t.Errorf("unit begins in cell %d, want 24: %s", at, line)
		}
	}
}

func TestWriteText_ColorsAndTruncatesLines(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := nodes().WriteText(&out, 20, true); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if lines[1] != "\x1b[2mnode        CPU    …\x1b[0m" || !strings.HasPrefix(lines[3], "\x1b[1;31ma\\x1b[31m     –") {
		t.Errorf("lines %q, want a faint truncated heading, and an escaped row in the color of alarms", lines)
	}
}

func TestLines_TruncateTextInNarrowColumns(t *testing.T) {
	t.Parallel()
	tab := &table.Table{Columns: []table.Column{{Min: 5, Max: 5, Right: true}, {Min: 3, Max: 3}, {Right: true}}}
	tab.Add(table.Texts("1", "abcdef", "7")...)
	tab.Add(table.Texts("123456", "", "12")...)
	got := fmt.Sprint(tab.Lines(0, 1))
	if want := "[{    1 ab…  7 } {123456 } {          12 }]"; got != want {
		t.Errorf("lines %s, want %s", got, want)
	}
}

func TestLines_WrapLongText(t *testing.T) {
	t.Parallel()
	const long = "one two three four five six seven eight nine ten"
	tab := &table.Table{Columns: []table.Column{{Fit: true}, {Right: true, Optional: true}, {Wrap: true}}}
	tab.Add(table.Texts("x", "12", long)...)
	tab.Add(table.Texts(strings.Repeat("n", 60), "3", "short")...)
	tab.Add(table.Texts("y")...)
	for _, c := range []struct {
		width int
		want  string
	}{
		{70, strings.Repeat("n", 60)}, // fits in front of the number
		{60, "x  12  one two three four five six seven eight nine ten|" + strings.Repeat("n", 60) + "|    3  short|y"},
		{50, "x  12  one two three four five six seven eight|       nine ten|" + strings.Repeat("n", 60) + "|    3  short|y"},
		{40, "x  12|  one two three four five six seven|  eight nine ten|" + strings.Repeat("n", 60) + "|    3  short|y"},
		{0, strings.Repeat("n", 60)},
	} {
		var lines []string
		for _, l := range tab.Lines(c.width, 2) {
			lines = append(lines, l.Text)
		}
		if got := strings.Join(lines, "|"); c.width%70 != 0 && got != c.want || !strings.Contains(got, c.want) {
			t.Errorf("%d cells: lines %s\nwant %s", c.width, got, c.want)
		}
	}
}

func TestLines_HaveHeadingsWithoutRows(t *testing.T) {
	t.Parallel()
	if got := (&table.Table{Columns: table.Left("a", "b")}).Lines(0, 2); len(got) != 1 || got[0].Text != "a  b" {
		t.Errorf("lines %q, want only the headings a and b", got)
	}
	if got := (&table.Table{Columns: table.Left("", "")}).Lines(0, 2); len(got) != 0 {
		t.Errorf("lines without headings %q, want none", got)
	}
}

func TestWriteMarkdown(t *testing.T) {
	t.Parallel()
	const want = "| name of the node | CPU | memory | free | note |\n|---|---:|---:|---:|---|\n" +
		"| `日本語` | 1.5 | 312 MiB | – | busy `x\\x7cy` |\n" +
		"| `a\\x1b[31m` | – | **≤ 2.0 GiB** |  |  |\n" +
		"| `a name that is longer` | 12.4 | – |  |  |\n"
	var out bytes.Buffer
	nodes().WriteMarkdown(&out)
	if out.String() != want {
		t.Errorf("Markdown\n%swant\n%s", out.String(), want)
	}
}

func TestEscapeMarkdown_KeepsTextLiteral(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a_b *c* `d`": "a\\_b \\*c\\* \\`d\\`", "<b> & @me #1": `\<b\> \& \@me \#1`, "http://x www.y": `http\://x www\.y`,
		"|~| $x$ ![a](b)": `\|\~\| \$x\$ \!\[a\](b)`, "2.0 GiB, 61 %": "2.0 GiB, 61 %",
	} {
		if got := table.EscapeMarkdown(in); got != want {
			t.Errorf("EscapeMarkdown(%s) = %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{"a`b|c": "`a\\x60b\\x7cc`", "  ": "–", "–": "–", "": "–"} {
		if got := table.CodeSpan(in); got != want {
			t.Errorf("CodeSpan(%q) = %s, want %s", in, got, want)
		}
	}
}
