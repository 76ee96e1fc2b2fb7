package plotter

import (
	_ "embed" // the style
	"fmt"
	"io"
)

//go:embed index.css
var indexCSS markup // beyond that of a report's page

// An Index is a page that lists runs.
type Index struct {
	Title string
	Rows  []IndexRow
}

// An IndexRow is a run in an index. Its texts are for people.
type IndexRow struct {
	Run, Start, Length, Nodes, End, Command string

	Link        string // of the run's page, relative to the index; "" = it has none
	CPU, Memory Gauge
	State       string // "failed", "live" or ""
}

// A Gauge is a share as a bar with words. Percent is 0 if it is not known.
type Gauge struct {
	Percent float64
	Words   string
}

// WriteIndex writes an index: one file without scripts that needs no network.
func WriteIndex(to io.Writer, x Index) error {
	w := newHTMLWriter(to)
	w.ours(topHTML).ours("<title>").text(x.Title).ours("</title>\n<style>\n").ours(pageCSS).ours("\n").ours(indexCSS)
	w.ours("</style>\n</head>\n<body>\n<header><h1>").text(x.Title).ours("</h1></header>\n<main>\n")
	if len(x.Rows) > 0 {
		w.ours(`<div class="wide"><table class="runs" data-runs>
<thead><tr><th>Run</th><th>Start</th><th>Length</th><th>Nodes</th><th>End</th><th>CPU</th><th>Memory</th>`)
		w.ours("<th>Command</th></tr></thead>\n<tbody>\n")
		for i := range x.Rows {
			x.Rows[i].write(w)
		}
		w.ours("</tbody>\n</table></div>")
	} else {
		w.ours(`<p class="note">There are no runs.</p>`)
	}

	w.ours("\n</main>\n<footer>perfagent</footer>\n</body>\n</html>\n")
	if err := w.flush(); err != nil {
		return fmt.Errorf("write index: %w", err)
	}

	return nil
}

func (r *IndexRow) write(w *htmlWriter) {
	w.ours(`<tr class="`).text(r.State).ours(`"><td>`)
	if r.Link != "" {
		w.ours(`<a href="`).link(r.Link).ours(`">`).text(r.Run).ours("</a>")
	} else {
		w.text(r.Run)
	}
	w.ours("</td><td>").text(r.Start).ours("</td><td>").text(r.Length).ours(`</td><td title="nodes">`).text(r.Nodes)
	w.ours(`</td><td class="end">`).text(r.End).ours(`</td><td title="CPU">`)
	r.CPU.write(w)
	w.ours(`</td><td title="memory">`)
	r.Memory.write(w)
	w.ours("</td><td>").text(r.Command).ours("</td></tr>\n")
}

func (g *Gauge) write(w *htmlWriter) {
	w.text(g.Words)
	if g.Percent != 0 {
		w.ours(`<svg aria-hidden="true"><rect class="of" width="100%" height="7" rx="2"/><rect class="used" width="`)
		w.fixed(g.Percent, 1).ours(`%" height="7" rx="2"/></svg>`)
	}
}
