package diagnosis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// oddity is an event that may happen to one node of several.
type oddity struct {
	key   string // of the value in the evidence
	holds func(*ruleInput) bool
	value func(*ruleInput) float64
	show  func(float64) string // formats a value
	words string               // what happened to the node, with a verb for its value
}

func oddities() []oddity {
	return []oddity{
		{
			key: "throttled_periods_pct", holds: (*ruleInput).throttled, show: text.Percent,
			value: func(e *ruleInput) float64 { return e.Metric(reporter.MetricThrottled) },
			words: "was stopped by its CPU quota, in %s of the periods",
		},
		{
			key: "swapped_mb", holds: func(e *ruleInput) bool { return judgeSwapping(e) != nil },
			value: (*ruleInput).swapTraffic, show: text.TrimmedSizeText,
			words: "was short of memory: %s went to or came from its swap",
		},
		{
			key: "throttle_pct", holds: func(e *ruleInput) bool { return e.thermalThrottlePct() >= clockedMuch },
			value: (*ruleInput).thermalThrottlePct, show: text.Percent,
			words: "was too hot for %s of the run",
		},
		{
			key: "oom_kills", holds: (*ruleInput).ranOutOfMemory, value: (*ruleInput).oomKills,
			show:  func(v float64) string { return text.Count(v, "process", "processes") },
			words: "ran out of memory: the kernel killed %s of the job there",
		},
	}
}

// swapTraffic returns how much the node moved to and from its swap, in MiB.
func (e *ruleInput) swapTraffic() float64 {
	return finiteOrZero(e.Metric(reporter.MetricSwapIn)) + finiteOrZero(e.Metric(reporter.MetricSwapOut))
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
	// The metric also counts kills of other processes in the same group.
	return slices.ContainsFunc(verdicts, func(v *reporter.Verdict) bool {
		return v != nil && (IsOutOfMemory(v.Cause) || v.Number("oom_kills") > 0)
	})
}

// oomKills returns how many processes of the job the kernel killed for lack of memory, at least one if the verdict
// contains a kill.
func (e *ruleInput) oomKills() float64 {
	if !e.ranOutOfMemory() {
		return 0
	}
	return max(1, finiteOrZero(e.Metric(reporter.MetricJobOOMKills)))
}

// finiteOrZero returns v, or 0 if it is unknown or infinite.
func finiteOrZero(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// oddNodes returns a finding for each node that is the only one with some oddity.
func oddNodes(nodes []peer) []peerFinding {
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(p peer) bool { return len(p.input.Metrics) == 0 })
	if len(nodes) < 2 {
		return nil
	}

	var out []peerFinding
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
			out = append(out, peerFinding{odd, &reporter.Finding{Evidence: odd.evidence(len(nodes))}})
		}
		v := finiteOrZero(o.value(odd.input))
		out[i].Evidence[o.key], out[i].Evidence["others_"+o.key] = text.Round(v, 3), text.Round(most, 3)
		words := fmt.Sprintf(o.words, o.show(v))
		if most > 0 {
			words += fmt.Sprintf(" (%s at most %s)", text.Plural(len(nodes)-1, "on the other", "on the others"), o.show(most))
		}
		texts[odd.node] = append(texts[odd.node], words)
	}

	for _, f := range out {
		f.Text = fmt.Sprintf("Look at what is different on this node, or leave it out: only it of %d %s.",
			len(nodes), strings.Join(texts[f.peer.node], ", and "))
	}
	return out
}

// only returns the node for which the oddity holds, and the greatest value of the other nodes. ok is false unless there
// is exactly one such node.
func (o *oddity) only(nodes []peer) (odd peer, most float64, ok bool) {
	count := 0
	for _, p := range nodes {
		if o.holds(p.input) {
			odd, count = p, count+1
		} else {
			most = max(most, finiteOrZero(o.value(p.input)))
		}
	}
	return odd, most, count == 1
}
