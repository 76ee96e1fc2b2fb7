package plotter

import (
	_ "embed" // the style
	"fmt"
	"io"
	"math"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter/comparer"
	"github.com/perfagent/perfagent/reporter/summary"
)

//go:embed diff.css
var diffCSS markup // beyond that of a report's page

// A diffPage is what the page of a comparison shows. All of it is printable text.
type diffPage struct {
	Title, Commands          string
	Sides, Remarks, Absences []string
	Gates                    []summary.Message
	Changed, Rest            []diffRow
}

// A diffRow is a metric with the bar of its change.
type diffRow struct {
	comparer.Row
	Side  string  // "up" or "down"
	Width float64 // of the bar, in percent of its column; 0 = none
}

// WriteDiffPage writes the HTML page of a comparison: one file that needs no network and no script.
// version is that of the program.
func WriteDiffPage(to io.Writer, c *comparer.Comparison, version string) error {
	page := newDiffPage(c)
	w := newHTMLWriter(to)
	w.ours(topHTML).ours("<title>").text(page.Title).ours("</title>\n<style>\n").ours(pageCSS).ours(diffCSS)
	page.write(w)
	w.ours("</main>\n<footer><p>Made by perfagent ").text(version)
	w.ours(". MiB = 2<sup>20</sup> bytes.</p></footer>\n</body>\n</html>\n")
	if err := w.flush(); err != nil {
		return fmt.Errorf("write page: %w", err)
	}

	return nil
}

func newDiffPage(c *comparer.Comparison) *diffPage {
	page := &diffPage{
		Title: text.Printable(c.Sentence()), Commands: text.Printable(c.Commands()),
		Sides: c.Sides(), Remarks: c.Remarks(), Absences: c.Absences(),
	}
	for _, v := range c.Gates {
		page.Gates = append(page.Gates, summary.Message{
			Text: text.Printable(v.String()), Bad: v.Fired == nil || *v.Fired,
		})
	}
	changed, rest := c.Rows()
	page.Changed, page.Rest = diffRows(changed), diffRows(rest)

	return page
}

// write writes the page from the end of its style to its footer.
func (d *diffPage) write(w *htmlWriter) {
	w.ours(`</style>
</head>
<body>
<header id="about">
<p class="note">perfagent diff</p>
<h1 data-verdict>`).text(d.Title).ours("</h1>\n")
	if d.Commands != "" {
		w.ours(`<p class="warn" data-commands>`).text(d.Commands).ours("</p>\n")
	}
	for _, side := range d.Sides {
		w.ours(`<p class="side">`).text(side).ours("</p>\n")
	}
	w.ours("</header>\n<main>\n")
	for _, g := range d.Gates {
		w.ours(`<p class="verdict`).when(g.Bad, " bad").ours(`" data-gate>`).text(g.Text).ours("</p>\n")
	}

	w.ours("<h2>What changed</h2>\n")
	if len(d.Changed) > 0 {
		writeDiffRows(w, d.Changed)
	} else {
		w.ours("<p>Nothing that is measured has changed.</p>\n")
	}
	if len(d.Rest) > 0 {
		w.ours("<h2>The rest</h2>\n<div class=\"rest\">")
		writeDiffRows(w, d.Rest)
		w.ours("</div>")
	}
	w.ours("\n")
	if len(d.Remarks) > 0 {
		w.ours("<h2>Notes</h2>\n")
		writeRemarks(w, d.Remarks)
		w.ours("\n")
	}
	if len(d.Absences) > 0 {
		w.ours(`<details class="more" data-absences><summary>What a side lacks</summary>`)
		writeRemarks(w, d.Absences)
		w.ours("</details>\n")
	}
}

func writeRemarks(w *htmlWriter, list []string) {
	w.ours(`<ul class="remarks">`)
	for _, words := range list {
		w.ours("<li>").text(words).ours("</li>")
	}
	w.ours("</ul>")
}

func writeDiffRows(w *htmlWriter, rows []diffRow) {
	w.ours(`<div class="wide"><table class="compared"><thead><tr><th>metric</th><th>A</th><th class="more"></th>`)
	w.ours(`<th>B</th><th class="more"></th><th>unit</th><th>change</th><th class="scale" aria-hidden="true"></th>`)
	w.ours("<th class=\"number\">p</th></tr></thead>\n<tbody>\n")
	for i := range rows {
		rows[i].write(w)
	}
	w.ours("</tbody></table></div>\n")
}

func (r *diffRow) write(w *htmlWriter) {
	w.ours(`<tr data-metric="`).text(r.Name).ours(`"`).when(r.Changed, ` class="changed"`)
	w.ours(`><td title="`).text(r.Meaning).ours(`">`).text(r.Name).ours(`</td><td class="number">`).text(r.A)
	w.ours(`</td><td class="number more">`).text(r.ASpread).ours(`</td><td class="number">`).text(r.B)
	w.ours(`</td><td class="number more">`).text(r.BSpread).ours("</td><td>").text(r.Unit)
	w.ours(`</td><td class="number">`).text(r.Change).ours(`</td><td class="scale">`)
	if r.Width != 0 {
		w.ours(`<i class="`).text(r.Side).ours(`" style="width:`).number(r.Width).ours(`%"></i>`)
	}
	w.ours(`</td><td class="number">`).text(r.P)
	if r.Runs != "" {
		w.ours(" (").text(r.Runs).ours(" runs)")
	}
	w.ours("</td></tr>\n")
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
