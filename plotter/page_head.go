package plotter

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// headView is the top of the page: the identity of the run, how it ended, advice, and its usage.
type headView struct {
	Strip      []summary.Highlight // labels and values that identify the run
	Commands   []string
	Cause      []phrase
	Lead, Rest string   // the two parts of the advice
	Notes      []string // findings about the end of the job or about its requests
	Other      []string // all other findings
	Bars       []barView
	Deltas     []summary.Delta
	Log        []string // last lines of the log of the job that failed first

	LogTitle, Version, Paste, How, Incomplete, DeltaNote string
}

// Outside reports whether any number is outside the range of earlier runs.
func (h *headView) Outside() bool {
	return slices.ContainsFunc(h.Deltas, func(d summary.Delta) bool { return d.Outside })
}

// phrase is a part of a sentence. Its look is "ok", "late", "bad", "live" or "".
type phrase struct{ Look, Text string }

// barView is a bar at the top of the page.
type barView struct {
	summary.Bar
	Name, Value, Kind string  // "Memory", percent in four digits, "peak" or "mean"
	Full              bool    // whether the bar explains why the job was killed
	Width             float64 // percentage of the bar that is filled
}

// head returns the top of the page.
func (p *Page) head(r *reporter.Report, c summary.Conclusion) headView {
	budget := textBudget(maxPageText)
	h := headView{
		Strip: p.strip(&r.Run), Version: p.nodes[0].version, Commands: p.commands(&r.Run),
		Cause: phrases(c), Paste: c.Paste, How: unbroken(budget.text(c.How)),
		Notes: budget.fit(c.Notes), Other: budget.fit(c.Other),
	}
	if h.Cause == nil {
		h.Cause = []phrase{{"", "A run"}}
	}
	h.Lead = unbroken(budget.text(c.Action))
	if first, rest, ok := strings.Cut(h.Lead, ":"); ok && len(first) < 80 {
		h.Lead, h.Rest = first+":", rest
	}
	if p.options.Live == 0 && !strings.Contains(c.Cause+c.How, r.Run.Incomplete) {
		h.Incomplete = text.Printable(r.Run.Incomplete)
	}
	killed := c.Outcome == summary.Failed && c.Subject != ""
	for _, b := range summary.Bars(r) {
		v := barView{Bar: b, Name: strings.ToUpper(b.Label[:1]) + b.Label[1:], Value: short(b.Percent),
			Width: min(100, max(0, b.Percent)), Kind: "mean", Full: killed && b.Key == c.Subject && b.Percent >= 95}
		if b.Key != summary.BarCPU && b.Key != summary.BarGPU {
			v.Kind = "peak"
		}
		if b.Key == summary.BarGPUMemory {
			v.Name = "GPU memory"
		}
		h.Bars = append(h.Bars, v)
	}
	slices.SortStableFunc(h.Bars, func(a, b barView) int {
		return cmp.Compare(subjectRank(a.Key, c.Subject), subjectRank(b.Key, c.Subject))
	})
	h.Deltas, h.DeltaNote = summary.Deltas(r)
	h.DeltaNote = strings.TrimPrefix(h.DeltaNote, "the ") // the page has "the" before it
	h.LogTitle, h.Log = summary.LogLines(r, reporter.MaxLogLines)
	return h
}

// subjectRank is a sort key: the resource that explains the end of the job comes first, then memory and CPU.
func subjectRank(key, subject string) int {
	switch {
	case subject != "" && strings.HasPrefix(key, subject):
		return 0
	case key == "memory":
		return 1
	case key == "cpu":
		return 2
	}
	return 3
}

// phrases splits the sentence on how the run ended into parts with different looks: the words before a colon, the word
// Succeeded, and the remark on what was odd.
func phrases(c summary.Conclusion) []phrase {
	words := unbroken(text.Printable(c.Cause))
	look := map[summary.Outcome]string{summary.Failed: "bad", summary.Stopped: "late"}[c.Outcome]
	if rest, ok := strings.CutPrefix(words, "Succeeded"); ok {
		out := []phrase{{"ok", "Succeeded"}}
		if good, odd, ok := strings.Cut(rest, ", but "); ok {
			return append(out, phrase{"", good + ", "}, phrase{"late", "but " + odd})
		}
		return append(out, phrase{"", rest})
	}
	if rest, ok := strings.CutPrefix(words, "Running"); ok {
		return []phrase{{"live", "Running"}, {"", rest}}
	}
	if first, rest, ok := strings.Cut(words, ": "); ok && len(first) < 40 {
		return []phrase{{look, first + ":"}, {"", " " + rest}}
	}
	if words == "" {
		return nil
	}
	return []phrase{{look, words}}
}

// quantity matches a number with its unit. It is compiled when the first page needs it.
var quantity = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(\d) ([KMGT]iB(?:/s)?|min|ms|µs|s|h|d|CPUs?|GPUs?|CPU·h|W)\b`)
})

// unbroken returns words with a non-breaking space between each number and its unit.
func unbroken(words string) string {
	return quantity().ReplaceAllString(strings.ReplaceAll(words, " %", "\u00a0%"), "$1\u00a0$2")
}

// commands returns the command of the run, or the first nodes' commands if they differ.
func (p *Page) commands(run *reporter.Run) []string {
	var out []string
	for _, n := range p.nodes {
		command := run.Command
		if len(n.slim.Command) > 0 {
			command = n.slim.Command
		}
		words := summary.CommandLine(command)
		if words != "" && !slices.Contains(out, words) && len(out) < shownNodes {
			out = append(out, words)
		}
	}
	return out
}

// strip returns the labels and values that identify the run: its name, start, hosts, allowed CPUs and memory, and tags.
func (p *Page) strip(run *reporter.Run) (out []summary.Highlight) {
	add := func(label, value string) {
		if value != "" {
			out = append(out, summary.Highlight{Label: label, Value: value})
		}
	}
	n := p.nodes[0]
	first, last := text.Clip(n.host, stripLetters), text.Clip(p.nodes[len(p.nodes)-1].host, stripLetters)
	add("run", text.Printable(run.ID))
	if !run.Start.IsZero() {
		add("", run.Start.UTC().Format("2 Jan 2006, 15:04:05 MST"))
	}
	if first == "" || last == first {
		add("host", first)
	} else {
		add("hosts", first+" to "+last)
	}
	each := ""
	if len(p.nodes) > 1 {
		each = " a node"
		count := strconv.Itoa(len(p.nodes))
		if run.Gather != nil && run.Gather.NodesExpected > len(p.nodes) {
			count += " of " + strconv.Itoa(run.Gather.NodesExpected)
		}
		add("", count+" nodes")
	}
	if p.ranks > 0 {
		add("", text.Count(p.ranks, "rank", "ranks"))
	}
	if words := allowed(n.slim); words != "" {
		add("allowed", words+each)
	}
	if id := n.slim.Identity; id != nil && id.Scheduler != "" && id.JobID != "" {
		add(text.Printable(id.Scheduler)+" job", text.Printable(id.JobID))
	}
	for _, tag := range summary.Tags(run) {
		add("tag", tag)
	}
	return out
}

// stripLetters is the maximum length of a host's name in the strip.
const stripLetters = 60

// allowed returns the CPUs and the memory that the job may use on n: "2 CPUs, 256 MiB".
func allowed(n *reporter.Node) string {
	var words text.Parts
	switch {
	case n.Limits != nil && n.Limits.CPUs > 0:
		words.Add(true, "%s %s", reporter.CPUsText(n.Limits), text.Plural(n.Limits.MostCPUs(), "CPU", "CPUs"))
	case n.Host != nil && n.Host.CPUs > 0:
		words.Add(true, "%s", text.Count(n.Host.CPUs, "CPU", "CPUs"))
	}
	switch {
	case n.Limits != nil && n.Limits.LeastMemoryMB() > 0:
		words.Add(true, "%s", reporter.MemoryLimitText(n.Limits, text.TrimmedSizeText))
	case n.Host != nil && n.Host.MemoryMB > 0:
		words.Add(true, "%s", text.TrimmedSizeText(n.Host.MemoryMB))
	}
	return words.String()
}

// report returns the report of a single node. For several nodes, the report has only the parts that the head, the
// phases and the cards need.
func (p *Page) report(run *reporter.Run) *reporter.Report {
	r := &reporter.Report{Run: *run, Nodes: make(map[string]*reporter.Node, len(p.nodes))}
	for _, n := range p.nodes {
		r.Nodes[n.name] = cmp.Or(n.whole, n.slim)
	}
	return r
}

// slimNode returns a copy of n without its series and long texts.
func slimNode(n *reporter.Node) *reporter.Node {
	out := &reporter.Node{
		Command: n.Command, Host: n.Host, Job: n.Job, Limits: n.Limits, GPUs: n.GPUs, Metrics: n.Metrics,
		Verdict: n.Verdict, Findings: n.Findings[:min(len(n.Findings), maxPageLines)], Origin: n.Origin,
		Identity: n.Identity, LogTail: n.LogTail,
	}
	if q, ok := n.Summaries[collector.JobCPU.Key()]; ok {
		out.Summaries = map[string]reporter.Summary{collector.JobCPU.Key(): q}
	}
	if len(n.Ranks) > 0 {
		out.Ranks = make(map[string]*reporter.Rank, len(n.Ranks))
	}
	for name, r := range n.Ranks { // keep only how each rank ended
		if r != nil {
			out.Ranks[name] = &reporter.Rank{Rank: r.Rank, Start: r.Start, End: r.End, ExitCode: r.ExitCode, Signal: r.Signal,
				Incomplete: r.Incomplete, Metrics: r.Metrics, LogTail: r.LogTail}
		}
	}
	for i, phase := range n.Phases[:min(len(n.Phases), maxPageLines)] {
		phase.Spans = nil
		if i >= slimPhases {
			phase.Name = text.Clip(phase.Name, cutPageText)
		}
		out.Phases = append(out.Phases, phase)
	}
	return out
}

// slimPhases is the number of phases per node that keep their full names.
const slimPhases = 50
