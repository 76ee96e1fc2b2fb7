package plotter

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// pageNode is the part of a node that the page keeps.
type pageNode struct {
	name, host       string
	time             Timeline
	charts           []Chart // all of chartPlans, measured or not
	gpus             int
	lines            []reporter.OperationTimeline // drawn lines of operations
	unseen           int                          // lines that are not drawn
	operations       *reporter.Node               // operations and transfers, without keys; nil if not recorded
	processes        []reporter.Process
	cpus             float64 // that the job may use; 0 if unknown
	messages, advice []summary.Message
	thinned          bool
	cards, details   []summary.Highlight
	phases           [][]string
	phase            string // current phase of the job
	scales           []laneScale
	slim             *reporter.Node // for the head of the page
	ranks            *rankTable     // nil if there are none
	metrics          reporter.Values
	missing          []reporter.Missing
	listed           int // how many of missing are listed: the first ones; the rest is normal
	exit             string
	version          string
}

func newPageNode(run *reporter.Run, name string, n *reporter.Node) *pageNode {
	p := &pageNode{
		name:    name,
		metrics: printableMetrics(n.Metrics),
		details: summary.Details(n),
		gpus:    gpusOf(n),
		scales:  laneScales(n),
		slim:    slimNode(n),
		ranks:   newRankTable(run, name, n),
	}
	p.lines, p.unseen = chosenLines(n)
	p.operations, p.processes = operationsOf(n), n.Processes[:min(len(n.Processes), maxPageLines)]
	p.time, p.charts = withSuspendGaps(run, n, chartsOf(n, p.gpus, p.lines))
	alone := &reporter.Report{Run: *run, Nodes: map[string]*reporter.Node{name: n}}
	p.messages, p.advice = summary.Verdicts(alone), summary.Advice(alone)
	p.phases, p.phase = summary.Phases(alone), text.Printable(n.CurrentPhase())
	wall := run.WallSeconds
	p.host = text.Printable(n.HostName())
	if n.Host != nil {
		p.cpus = float64(n.Host.CPUs)
	}

	if n.Limits != nil && n.Limits.CPUs > 0 {
		p.cpus = n.Limits.MeanCPUs()
	}

	if n.Job != nil {
		if n.Job.ExitCode != nil {
			p.exit = strconv.Itoa(*n.Job.ExitCode)
		}
		if n.Job.Signal != "" {
			p.exit += " " + text.Printable(n.Job.Signal)
		}
		wall = n.Job.End.Sub(n.Job.Start.Time).Seconds()
	}

	if n.Agent != nil {
		p.version = text.Printable(n.Agent.Version)
	}

	p.cards = summary.Highlights(n, wall)
	budget := textBudget(maxPageText)
	p.takeMissing(n.Missing, &budget)
	p.messages, p.advice = budget.fit(p.messages), budget.fit(p.advice)
	p.details = p.details[:min(len(p.details), maxPageLines)]
	return p
}

// takeMissing keeps the entries in missing: first those that the page lists, then the normal ones, with reasons that
// are only shown next to the metrics.
func (p *pageNode) takeMissing(missing []reporter.Missing, budget *textBudget) {
	var rest []reporter.Missing
	p.missing = make([]reporter.Missing, 0, len(missing))
	for i, m := range missing {
		if i == maxPageLines {
			left := fmt.Sprintf("%d more, see the report", len(missing)-i)
			p.missing = append(p.missing, reporter.Missing{What: "…", Why: left})
			break
		}

		shown := reporter.Missing{What: budget.text(m.What), Code: m.Code, Why: budget.text(m.Why)}
		if reporter.NothingToMeasure(m) {
			rest = append(rest, shown)
			continue
		}

		p.missing = append(p.missing, shown)
	}

	p.listed = len(p.missing)
	p.missing = append(p.missing, rest...)
}

// removeMissing removes listed entries with the given code, which would be noise during the run.
func (p *pageNode) removeMissing(code reporter.Code) {
	kept := slices.DeleteFunc(p.missing[:p.listed], func(m reporter.Missing) bool { return m.Code == code })
	p.missing = append(kept, p.missing[p.listed:]...)
	p.listed = len(kept)
}

// The limits of the lists and texts that a page takes from a report. The report itself has no such limits.
const (
	maxPageLines = 500
	maxPageText  = 8 << 20 // bytes of a node's texts; later ones are truncated
	cutPageText  = 200
)

// textBudget is the remaining number of bytes of text.
type textBudget int

// text returns words for the page: in full while the budget lasts, then truncated to cutPageText bytes.
func (r *textBudget) text(words string) string {
	if len(words) > cutPageText && len(words) > int(*r) {
		words = strings.ToValidUTF8(words[:cutPageText], "") + "…"
	}
	*r -= textBudget(min(len(words), int(*r)))
	return text.Printable(words)
}

func (r *textBudget) fit(list []summary.Message) []summary.Message {
	out := slices.Clone(list[:min(len(list), maxPageLines)])
	for i := range out {
		out[i].Text = r.text(out[i].Text)
	}
	return out
}

func (p *pageNode) valueCount() int {
	n := len(p.time.Ends)
	eachSeries(p.charts, func(s *Series) {
		n += len(s.Band.Mean)
		if !same(s.Band) {
			n += len(s.Band.Min) + len(s.Band.Max)
		}
	})
	return n
}

// thin merges neighboring buckets until there are at most limit. The lists are copies, so that the report's lists can
// be garbage collected.
func (p *pageNode) thin(limit int) {
	k := foldFactor(len(p.time.Ends), limit)
	if k == 1 && p.thinned {
		return
	}

	t := p.time
	for i := range p.charts {
		p.charts[i].each(func(s *Series) { s.Band = s.Band.Fold(k, t.width) })
		for j := range p.charts[i].TooltipSeries { // a tooltip needs no band
			if s := &p.charts[i].TooltipSeries[j]; !s.Spread {
				s.Band.Min, s.Band.Max = s.Band.Mean, s.Band.Mean
			}
		}
	}

	p.time, p.thinned = t.thin(k), true
}

// same reports whether b is only a line, because each bucket has one sample. The means of a report are rounded to six
// decimals.
func same(b reporter.Band) bool {
	if len(b.Mean) != len(b.Min) || len(b.Mean) != len(b.Max) {
		return false
	}

	for i, v := range b.Mean {
		if (b.Min[i] != b.Max[i] || math.Abs(v-b.Max[i]) > 5.1e-7) && !math.IsNaN(v) {
			return false
		}
	}

	return true
}

// printableMetrics returns the metrics by their printable names, without values that are not finite.
func printableMetrics(v reporter.Values) reporter.Values {
	out := make(reporter.Values, len(v))
	for name, value := range v {
		if !math.IsNaN(value) && !math.IsInf(value, 0) {
			out[text.Printable(name)] = value
		}
	}
	return out
}
