package diagnosis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/plainjson"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// addImbalance replaces the imbalance findings of an earlier merge with new ones for the report's nodes.
// The result is a function of the nodes' numbers, so the order and the steps of merging make no
// difference. A nil list of findings becomes an empty one. Existing lists are replaced, not changed.
func addImbalance(r *reporter.Report) {
	for _, n := range r.Nodes {
		if n == nil {
			continue
		}
		n.Findings = slices.DeleteFunc(append([]reporter.Finding{}, n.Findings...),
			func(f reporter.Finding) bool { return f.ID == findImbalance })
	}
	for name, f := range imbalance(r) {
		n := r.Nodes[name]
		n.Findings = append(n.Findings, f)
		sortFindings(n.Findings)
	}
}

// A measure is a quantity that the nodes should have equal shares of.
type measure struct {
	name    string  // in the evidence
	minMean float64 // mean over nodes below which there is no finding
	of      func(*ruleInput) float64
	value   func(float64) text.Quantity
	words   string // what the value is of
}

func measures() []measure {
	return []measure{
		{"cpus", findImbalanceCPUs, func(e *ruleInput) float64 { return e.Metric(reporter.MetricJobCores) },
			func(v float64) text.Quantity { return text.Quantity{Number: text.CPUs(v)} }, " CPUs"},
		{"memory_mb", findImbalanceMB, func(e *ruleInput) float64 { return e.Metric(reporter.MetricJobMemoryPeak) },
			text.Whole, " of memory"},
		{"gpu_utilization_pct", findImbalanceGPU, (*ruleInput).gpuMean,
			text.Percentage, " of its GPUs' time"},
	}
}

// gpuMean returns the mean utilization of the job's devices, or NaN if it is not known.
func (e *ruleInput) gpuMean() float64 {
	sum, n := 0.0, 0.0
	for i, g := range e.GPUs {
		if v := e.gpuUse(i); g.OfJob && v >= 0 {
			sum, n = sum+v, n+1
		}
	}
	return sum / n
}

// imbalance returns findings by node. For each measure it takes the node with the lowest value, if
// that is far below the mean over the nodes where the measure is known.
func imbalance(r *reporter.Report) map[string]reporter.Finding {
	out := make(map[string]reporter.Finding)
	if len(r.Nodes) < 2 {
		return out
	}

	rules := Rules()
	rule := rules[slices.IndexFunc(rules, func(r Rule) bool { return r.ID == findImbalance })]
	texts := make(map[string][]string)
	for _, m := range measures() {
		node, value, mean, count := lowestNode(r, m)
		if count < 2 || !(mean >= m.minMean) || math.IsInf(mean, 0) || !(value < findImbalanceShare*mean) {
			continue
		}
		f, ok := out[node]
		if !ok {
			f = rule.finding(&reporter.Finding{Evidence: evidence("nodes", count)})
		}
		f.Evidence[m.name], f.Evidence["mean_"+m.name] = plainjson.Round(value, 3), plainjson.Round(mean, 3)
		texts[node] = append(texts[node],
			fmt.Sprintf("%v%s where the mean of the nodes is %v", m.value(value), m.words, m.value(mean)))
		out[node] = f
	}

	for node, f := range out {
		f.Text = fmt.Sprintf("The work is uneven: on this node the job used %s. "+
			"Give the nodes equal shares, or use fewer of them.", strings.Join(texts[node], ", and "))
		out[node] = f
	}
	return out
}

// lowestNode returns the node with the lowest value of a measure, the value, and the mean and number
// of the nodes where the measure is known. Among equal nodes it takes the first.
func lowestNode(r *reporter.Report, m measure) (node string, value, mean float64, count int) {
	value = math.Inf(1)
	for _, name := range r.NodeNames() {
		e := newRuleInput(r.Nodes[name], &r.Run)
		if e == nil {
			continue
		}
		v := m.of(e)
		if !(v >= 0) || math.IsInf(v, 1) {
			continue
		}

		count++
		mean += (v - mean) / float64(count)
		if v < value {
			node, value = name, v
		}
	}

	return node, value, mean, count
}

// Advice is a finding with the nodes that have it.
type Advice struct {
	reporter.Finding          // of the first of the nodes where its severity is highest
	Nodes            []string // by index
}

// AdviceOf returns the findings of all nodes, each ID once, in the order of the findings of one node.
func AdviceOf(r *reporter.Report) []Advice {
	var list []reporter.Finding
	nodes := make(map[string][]string)
	for _, name := range r.NodeNames() {
		n := r.Nodes[name]
		if n == nil {
			continue
		}
		for _, f := range n.Findings {
			i := slices.IndexFunc(list, func(had reporter.Finding) bool { return had.ID == f.ID })
			switch {
			case i < 0:
				list = append(list, f)
			case list[i].Severity != SeverityWarning && f.Severity == SeverityWarning:
				list[i] = f
			}
			if had := nodes[f.ID]; len(had) == 0 || had[len(had)-1] != name {
				nodes[f.ID] = append(had, name)
			}
		}
	}

	sortFindings(list)
	out := make([]Advice, len(list))
	for i, f := range list {
		out[i] = Advice{f, nodes[f.ID]}
	}
	return out
}
