package plotter

import (
	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// headData is the top of the page: how the run ended, its usage, and what to change.
type headData struct {
	Headline, State, Command, Incomplete string
	Updated                              clockTime // of a live page
	Bars                                 []barData
	Verdicts                             []summary.Message
	Advice, More                         []summary.Message // More is advice that is folded
	Phase                                string            // current phase of a running job
}

// clockTime is a time of the day for people and for scripts.
type clockTime struct {
	Text string // "14:29:12 UTC"
	Unix int64  // seconds since 1970; 0 = none
}

// barData is a bar of the head.
type barData struct {
	summary.Bar
	Value string  // percent, in four digits
	Width float64 // percentage of the bar that is filled
}

// openCards is the number of unfolded pieces of advice: more would push the charts out of sight.
const openCards = 3

// head returns the top of the page.
func (p *Page) head(run *reporter.Run) headData {
	r := p.slim(run)
	d := headData{
		Headline:   summary.Headline(r),
		State:      "ended",
		Command:    summary.CommandLine(run.Command),
		Incomplete: text.Printable(run.Incomplete),
		Verdicts:   summary.Verdicts(r),
	}
	cards := summary.Advice(r) // the line to paste first
	if len(p.nodes) == 1 {     // the node's cards already respect the page's limits
		d.Verdicts, cards = p.nodes[0].messages, p.nodes[0].advice
	}
	switch {
	case p.options.Live > 0:
		d.Headline, d.State, d.Incomplete = "running for "+text.Seconds(run.WallSeconds), "live", ""
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
		d.Bars = append(d.Bars, barData{b, short(b.Percent), min(100, max(0, b.Percent))})
	}
	d.Advice, d.More = cards[:min(len(cards), openCards)], cards[min(len(cards), openCards):]

	return d
}

// slim returns a report with the parts of the nodes that bars, verdicts and advice need.
func (p *Page) slim(run *reporter.Run) *reporter.Report {
	r := &reporter.Report{Run: *run, Nodes: make(map[string]*reporter.Node, len(p.nodes))}
	for _, n := range p.nodes {
		r.Nodes[n.name] = n.slim
	}
	return r
}

// slimNode returns a copy of n without its series and long texts.
func slimNode(n *reporter.Node) *reporter.Node {
	out := &reporter.Node{
		Host: n.Host, Job: n.Job, Limits: n.Limits, GPUs: n.GPUs, Metrics: n.Metrics, Verdict: n.Verdict,
		Findings: n.Findings[:min(len(n.Findings), maxPageLines)], Origin: n.Origin,
		Identity: n.Identity, Ranks: slimRanks(n),
	}
	if q, ok := n.Summaries[collector.JobCPU.Key()]; ok {
		out.Summaries = map[string]reporter.Summary{collector.JobCPU.Key(): q}
	}
	return out
}

// slimRanks returns how the ranks of n ended; nil if there are none.
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
