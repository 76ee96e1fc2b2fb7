package plotter

import (
	"bufio"
	_ "embed" // the page's parts
	"fmt"
	"html/template"
	"io"
	"math"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter/comparer"
	"github.com/perfagent/perfagent/reporter/summary"
)

// The parts of a comparison's page that a report's page does not have.
var (
	//go:embed diff.html
	diffHTML string
	//go:embed diff.css
	diffCSS string
)

// A diffPage is what the template of a comparison gets. All of it is printable text.
type diffPage struct {
	Title, Commands          string
	Sides, Remarks, Absences []string
	Gates                    []summary.Message
	Changed, Rest            []diffRow
	Version                  string
}

// A diffRow is a metric with the bar of its change.
type diffRow struct {
	comparer.Row
	Side  string  // "up" or "down"
	Width float64 // of the bar, in percent of its column; 0 = none
}

// WriteDiffPage writes the HTML page of a comparison: one file that needs no network and no script.
// version is that of the program.
func WriteDiffPage(w io.Writer, c *comparer.Comparison, version string) error {
	page := diffPage{
		Title: text.Printable(c.Sentence()), Commands: text.Printable(c.Commands()),
		Sides: c.Sides(), Remarks: c.Remarks(), Absences: c.Absences(), Version: version,
	}
	for _, v := range c.Gates {
		page.Gates = append(page.Gates, summary.Message{
			Text: text.Printable(v.String()), Bad: v.Fired == nil || *v.Fired,
		})
	}
	changed, rest := c.Rows()
	page.Changed, page.Rest = diffRows(changed), diffRows(rest)

	// Parsed here, because a package variable would be made at each start of the program.
	t, err := template.New("diff").Parse(topHTML + diffHTML)
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	out := bufio.NewWriter(w)
	if err := t.ExecuteTemplate(out, "top", page); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	ours(out, "<style>\n", pageCSS, diffCSS, "</style>")
	if err := t.ExecuteTemplate(out, "body", page); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write page: %w", err)
	}

	return nil
}

// diffRows gives each metric the bar of its change: from the middle of the column to one side of it,
// which a change of 100 % reaches.
func diffRows(rows []comparer.Row) []diffRow {
	out := make([]diffRow, len(rows))
	for i, r := range rows {
		out[i] = diffRow{Row: r, Side: "up", Width: math.Min(50, math.Ceil(math.Abs(r.Pct)*5)/10)}
		if r.Pct < 0 {
			out[i].Side = "down"
		}
	}

	return out
}
