package plotter

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// headData is what the page says first: how the run ended, what it used of what it had, and what to
// change.
type headData struct {
	Headline, State, Command, Incomplete string
	Updated                              clockTime // of a live page
	Bars                                 []barData
	Verdicts                             []summary.Message
	Advice, More                         []summary.Message // More is folded
	Phase                                string            // that a running job is in
}

// A clockTime is a time of the day for people and for scripts.
type clockTime struct {
	Text string // "14:29:12 UTC"
	Unix int64  // seconds since 1970; 0 = none
}

// A barData is a bar of the head.
type barData struct {
	Key, Label, Share, Whole string
	Value                    string  // percent, exactly
	Width                    float64 // percent of the bar that is filled
	Look                     string  // alarming, dim or ""
}

// openCards is how many pieces of advice are not folded: more would push the charts out of sight.
const openCards = 3

// head returns what the page says first.
func (p *Page) head(run *reporter.Run) headData {
	r := p.slim(run)
	d := headData{
		Headline:   p.headline(r),
		State:      "ended",
		Command:    summary.CommandLine(run.Command),
		Incomplete: text.Printable(run.Incomplete),
		Verdicts:   p.verdicts(r),
	}
	switch {
	case p.options.Live > 0:
		d.State, d.Incomplete = "live", ""
		if !run.End.IsZero() {
			d.Updated = clockTime{run.End.UTC().Format("15:04:05 MST"), run.End.Unix()}
		}
		if len(p.nodes) == 1 {
			d.Phase = p.nodes[0].phase
		}
	case run.Incomplete != "" || run.ExitCode != nil && *run.ExitCode != 0:
		d.State = "failed"
	}

	for _, b := range summary.Bars(r) {
		d.Bars = append(d.Bars, newBar(b))
	}
	cards := p.cards(r)
	d.Advice, d.More = cards[:min(len(cards), openCards)], cards[min(len(cards), openCards):]

	return d
}

// slim returns a report with what bars, verdicts and advice need of the nodes.
func (p *Page) slim(run *reporter.Run) *reporter.Report {
	r := &reporter.Report{Run: *run, Nodes: make(map[string]*reporter.Node, len(p.nodes))}
	for _, n := range p.nodes {
		r.Nodes[n.name] = n.slim
	}
	return r
}

// slimNode returns a copy of a node without its series and long texts.
func slimNode(n *reporter.Node) *reporter.Node {
	out := &reporter.Node{
		Host: n.Host, Job: n.Job, Limits: n.Limits, GPUs: n.GPUs, Metrics: n.Metrics, Verdict: n.Verdict,
		Findings: n.Findings[:min(len(n.Findings), maxPageLines)], Origin: n.Origin,
		Identity: n.Identity, Ranks: slimRanks(n),
	}
	if q, ok := n.Summaries[collector.JobCPU.Key()]; ok {
		out.Summaries = map[string]reporter.Quantile{collector.JobCPU.Key(): q}
	}
	return out
}

// slimRanks returns the ranks of a node with how they ended; nil if there are none.
func slimRanks(n *reporter.Node) map[string]*reporter.Rank {
	if len(n.Ranks) == 0 {
		return nil
	}
	out := make(map[string]*reporter.Rank, len(n.Ranks))
	for name, r := range n.Ranks {
		if r != nil {
			out[name] = &reporter.Rank{
				Rank: r.Rank, Start: r.Start, End: r.End, ExitCode: r.ExitCode, Signal: r.Signal, Incomplete: r.Incomplete,
			}
		}
	}
	return out
}

// verdicts returns how the run ended. That of a single node is already cut to what a page has room for.
func (p *Page) verdicts(r *reporter.Report) []summary.Message {
	if len(p.nodes) == 1 {
		return p.nodes[0].messages
	}
	return summary.Verdicts(r)
}

// cards returns the pieces of advice, the line to paste first.
func (p *Page) cards(r *reporter.Report) []summary.Message {
	if len(p.nodes) == 1 {
		return p.nodes[0].advice
	}
	return summary.Advice(r)
}

// newBar returns a bar as the page draws it.
func newBar(b summary.Bar) barData {
	d := barData{
		Key: b.Key, Label: b.Label, Share: b.Share(), Whole: b.Whole(),
		Value: short(b.Percent), Width: min(100, max(0, b.Percent)),
	}
	switch {
	case b.Percent >= summary.BarAlarming:
		d.Look = "alarming"
	case b.Percent < summary.BarDim:
		d.Look = "dim"
	}
	return d
}

// headline says how the run ended, or for how long it has been running.
func (p *Page) headline(r *reporter.Report) string {
	if p.options.Live > 0 {
		return "running for " + text.Seconds(r.Run.WallSeconds)
	}
	return summary.Headline(r)
}

// siblings are links to the pages of other nodes of the run.
func (p *Page) siblings() []link {
	var out []link
	for _, name := range p.options.Siblings {
		node := strings.TrimSuffix(strings.TrimPrefix(name, "node-"), ".html")
		out = append(out, link{Name: fmt.Sprintf("node %s", text.Printable(node)), File: name})
	}
	return out
}

// A link leads to a file beside the page.
type link struct{ Name, File string }

// write writes the upper part of the page.
func (d *topData) write(w *htmlWriter) {
	w.ours(`
</head>
<body>
<header id="about">
`)
	d.Head.write(w, d.Title)
	w.ours("<details data-details><summary>Details</summary>\n<dl class=\"facts\">\n")
	writeFacts(w, d.Details)
	w.ours("</dl></details>\n")
	if len(d.Siblings) > 0 {
		w.ours(`<p class="note">other nodes of this run:`)
		for _, l := range d.Siblings {
			w.ours(` <a href="`).link(l.File).ours(`">`).text(l.Name).ours("</a>")
		}
		w.ours("</p>")
	}
	w.ours("\n")
	if d.Note != "" {
		w.ours(`<p class="note">`).text(d.Note).ours("</p>")
	}
	w.ours("\n</header>\n<main>\n")
}

// write writes what the page says first. title is that of the page, for a run without a command.
func (d *headData) write(w *htmlWriter, title string) {
	w.ours(`<div class="state `).text(d.State).ours("\" data-verdict>\n<p class=\"headline\">").text(d.Headline)
	if d.Updated.Unix != 0 {
		w.ours(` <span class="updated">updated <time id="updated" data-at="`).whole(int(d.Updated.Unix)).ours(`">`)
		w.text(d.Updated.Text).ours("</time></span>")
	}
	w.ours("</p>\n")
	for _, m := range d.Verdicts {
		writeVerdict(w, m)
		w.ours("\n")
	}
	if d.Incomplete != "" {
		w.ours(`<p class="warn">`).text(d.Incomplete).ours("</p>")
	}
	w.ours("</div>\n<h1>").text(cmp.Or(d.Command, title)).ours("</h1>\n")
	if d.Phase != "" {
		w.ours(`<dl class="facts"><div><dt>phase</dt><dd>`).text(d.Phase).ours("</dd></div></dl>")
	}

	w.ours("\n<div class=\"bars\">\n")
	for _, b := range d.Bars {
		b.write(w)
	}
	w.ours("</div>\n<div id=\"advice\">")
	if len(d.Advice) > 0 {
		w.ours("<div data-advice>")
		writeCards(w, d.Advice)
		if len(d.More) > 0 {
			w.ours(`<details class="more"><summary>`).whole(len(d.More)).ours(" more</summary>")
			writeCards(w, d.More)
			w.ours("</details>")
		}
		w.ours("</div>")
	}
	w.ours("</div>\n")
}

// write writes a bar.
func (b *barData) write(w *htmlWriter) {
	w.ours(`<div class="gauge `).text(b.Look).ours(`" data-bar="`).text(b.Key).ours(`" data-value="`).text(b.Value)
	w.ours(`"><span class="name">`).text(b.Label).ours(`</span><svg viewBox="0 0 100 10" preserveAspectRatio="none" `)
	w.ours(`aria-hidden="true"><rect class="of" width="100" height="10"/><rect class="used" width="`).number(b.Width)
	w.ours(`" height="10"/></svg><b>`).text(b.Share).ours(`</b> <span class="whole">`).text(b.Whole)
	w.ours("</span></div>\n")
}

// writeCards writes pieces of advice.
func writeCards(w *htmlWriter, cards []summary.Message) {
	for _, a := range cards {
		w.ours(`<div class="advice`).when(a.Bad, " bad").ours(`">`)
		if a.Paste {
			w.ours("<code>")
			var gap markup
			for word := range strings.SplitSeq(a.Text, " ") { // no line is broken within one, as behind a hyphen
				w.ours(gap).ours("<span>").text(word).ours("</span>")
				gap = " "
			}
			w.ours(`</code><button type="button" class="copy noprint nojs-hide">copy</button>`)
		} else {
			w.ours("<p>").text(a.Text).ours("</p>")
		}
		w.ours("</div>\n")
	}
}

// writeVerdict writes how a job ended.
func writeVerdict(w *htmlWriter, m summary.Message) {
	w.ours(`<p class="verdict`).when(m.Bad, " bad").ours(`">`).text(m.Text).ours("</p>")
}

// writeFacts writes names and values.
func writeFacts(w *htmlWriter, list []summary.Highlight) {
	for _, f := range list {
		w.ours("<div><dt>").text(f.Label).ours("</dt><dd>").text(f.Value).ours("</dd></div>\n")
	}
}
