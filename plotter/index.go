package plotter

import (
	_ "embed" // for the CSS
	"html/template"
	"io"
)

//go:embed index.css
var indexCSS string // in addition to pageCSS

// Index is a page that lists runs.
type Index struct {
	Title string
	Rows  []IndexRow
}

// IndexRow is a run in an index. Its fields are texts for people.
type IndexRow struct {
	Run, Start, Length, Nodes, End, Command string

	Link        string // address of the run's page, relative to the index; "" = none
	CPU, Memory UsageBar
	State       string // "failed", "live" or ""
}

// UsageBar is a share of a resource, drawn as a bar with words. Percent is 0 if the share is unknown.
type UsageBar struct {
	Percent float64
	Words   string
}

// WriteIndex writes an index: one file without scripts that needs no network.
func WriteIndex(to io.Writer, x Index) error {
	return writeTemplate(to, "index", struct {
		Index
		Style template.CSS
	}{x, template.CSS(pageCSS + "\n" + indexCSS)})
}
