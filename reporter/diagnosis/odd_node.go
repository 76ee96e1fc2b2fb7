package diagnosis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// An oddity is something that happens to one node of several.
type oddity struct {
	key   string // of the value in the evidence
	holds func(*ruleInput) bool
	value func(*ruleInput) float64
	show  func(float64) string // formats a value

	// text says what happened to the node, whose value is v, and how it was on the others.
	text func(v float64, others string) string
}

func oddities() []oddity {
	return []oddity{
		{
			key: "throttled_periods_pct", holds: (*ruleInput).throttled, show: text.Percent,
			value: func(e *ruleInput) float64 { return e.Metric(reporter.MetricThrottled) },
			text: func(v float64, others string) string {
				return "was stopped by its CPU quota, in " + text.Percent(v) + " of the periods" + others
			},
		},
		{
			key: "swapped_mb", holds: func(e *ruleInput) bool { return judgeSwapping(e) != nil }, show: text.WholeSize,
			value: (*ruleInput).swapped,
			text: func(v float64, others string) string {
				return "was short of memory: " + text.WholeSize(v) + " went to or came from its swap" + others
			},
		},
		{
			key: "throttle_pct", holds: func(e *ruleInput) bool { return e.clockedDown() >= clockedMuch }, show: text.Percent,
			value: (*ruleInput).clockedDown,
			text: func(v float64, others string) string {
				return "was too hot for " + text.Percent(v) + " of the run" + others
			},
		},
		{
			key: "oom_kills", holds: (*ruleInput).ranOutOfMemory, show: func(v float64) string { return text.Fixed(v, 0) },
			value: (*ruleInput).oomKills,
			text: func(v float64, _ string) string {
				return "ran out of memory: the kernel killed " + text.Count(v, "process", "processes") + " of the job there"
			},
		},
	}
}

// swapped returns how much the node moved from and to its swap, in MiB.
func (e *ruleInput) swapped() float64 {
	return finite(e.Metric(reporter.MetricSwapIn)) + finite(e.Metric(reporter.MetricSwapOut))
}

// ranOutOfMemory reports whether the kernel killed a process of the job for lack of memory.
func (e *ruleInput) ranOutOfMemory() bool {
	if e.Verdict == nil {
		return positive(e.Metric(reporter.MetricJobOOMKills))
	}
	verdicts := []*reporter.Verdict{e.Verdict}
	for _, r := range e.Ranks {
		verdicts = append(verdicts, r.Verdict)
	}
	// The metric counts the kills of others in the same group, too.
	return slices.ContainsFunc(verdicts, func(v *reporter.Verdict) bool {
		return v != nil && (OutOfMemory(v.Cause) || v.Number("oom_kills") > 0)
	})
}

// oomKills returns how many processes of the job the kernel killed for lack of memory. At least one was if the verdict
// says so, counted or not.
func (e *ruleInput) oomKills() float64 {
	if !e.ranOutOfMemory() {
		return 0
	}
	return max(1, finite(e.Metric(reporter.MetricJobOOMKills)))
}

// finite returns a number, or 0 if it is not known or not finite.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// oddNodes returns findings on nodes to which something happened that happened to no other node.
func oddNodes(nodes []part) []found {
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(p part) bool { return len(p.input.Metrics) == 0 })
	if len(nodes) < 2 {
		return nil
	}

	var out []found
	texts := make(map[string][]string)
	at := make(map[string]int)
	for _, o := range oddities() {
		odd, most, ok := o.only(nodes)
		if !ok {
			continue
		}
		i, seen := at[odd.node]
		if !seen {
			i, at[odd.node] = len(out), len(out)
			out = append(out, found{odd, &reporter.Finding{Evidence: odd.evidence(len(nodes))}})
		}
		v := finite(o.value(odd.input))
		out[i].Evidence[o.key], out[i].Evidence["others_"+o.key] = text.Round(v, 3), text.Round(most, 3)
		texts[odd.node] = append(texts[odd.node], o.text(v, o.others(most, len(nodes)-1)))
	}

	for _, f := range out {
		f.Text = fmt.Sprintf("Only this node of %d %s. Look at what is different there, or leave it out.",
			len(nodes), strings.Join(texts[f.part.node], ", and "))
	}
	return out
}

// only returns the node for which it holds, if there is just one, and the greatest value of the others.
func (o *oddity) only(nodes []part) (odd part, most float64, ok bool) {
	count := 0
	for _, p := range nodes {
		if o.holds(p.input) {
			odd, count = p, count+1
		} else {
			most = max(most, finite(o.value(p.input)))
		}
	}
	return odd, most, count == 1
}

// others returns how it was on the other nodes.
func (o *oddity) others(most float64, n int) string {
	if most == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s at most %s)", text.Plural(n, "on the other", "on the others"), o.show(most))
}
