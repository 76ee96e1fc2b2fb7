package plotter

import (
	_ "embed" // for the CSS
	"html/template"
	"io"
	"math"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter/comparer"
)

//go:embed diff.css
var diffCSS string // in addition to pageCSS

// diffPage is the content of a comparison's page, as printable text.
type diffPage struct {
	Title, Commands, Version string
	Style                    template.CSS
	Sides, Remarks, Missing  []string
	Gates                    []gate
	Changed, Rest            []diffRow
}

// gate is the result of a gate, as printable text.
type gate struct {
	Text string
	Bad  bool // whether the gate fired, or has no result
}

// diffRow is a metric with a bar for its change.
type diffRow struct {
	comparer.Row
	Side  string  // "up" or "down"
	Width float64 // width of the bar in percent of the column; 0 = no bar
}

// WriteDiffPage writes the HTML page of a comparison: one file that needs no network and no script. version is the
// version of perfagent.
func WriteDiffPage(to io.Writer, c *comparer.Comparison, version string) error {
	page := &diffPage{
		Title: text.Printable(c.Sentence()), Commands: text.Printable(c.Commands()), Version: version,
		Sides: c.Sides(), Remarks: c.Remarks(), Missing: c.MissingLines(), Style: template.CSS(pageCSS + diffCSS),
	}
	for _, v := range c.Gates {
		page.Gates = append(page.Gates, gate{text.Printable(v.String()), v.Fired == nil || *v.Fired})
	}
	changed, rest := c.Rows()
	page.Changed, page.Rest = diffRows(changed), diffRows(rest)
	return writeTemplate(to, "diff", page)
}

// diffRows returns the rows with a bar for each change. A bar runs from the middle of the column to one side, and fills
// that side at a change of 100 %.
func diffRows(rows []comparer.Row) []diffRow {
	out := make([]diffRow, len(rows))
	for i, r := range rows {
		out[i] = diffRow{Row: r, Side: "up", Width: math.Min(50, math.Ceil(math.Abs(r.ChangePct)*5)/10)}
		if r.ChangePct < 0 {
			out[i].Side = "down"
		}
	}

	return out
}
