package comparer

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// acrossNodes combines the values of a run's nodes into one value. weights may be nil.
func acrossNodes(across collector.Aggregation, values, weights []float64) float64 {
	switch across {
	case collector.Sum:
		return sum(values)
	case collector.Max:
		return slices.Max(values)
	}
	return mean(values, weights)
}

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}

// mean returns the mean of values. It weights each node by its available CPU time, so that the mean of a run agrees
// with the run's used and unused hours. If weights is nil, all nodes have the same weight.
func mean(values, weights []float64) float64 {
	total, weight := 0.0, 0.0
	for i, w := range weights {
		total += w * values[i]
		weight += w
	}

	if weight > 0 {
		return total / weight
	}

	return sum(values) / float64(len(values))
}

// value returns the run's value of m, or the reason why the run has none. If any node lacks the metric, the run has no
// value, because the amount or peak of the other nodes would be mistaken for the value of the run. A number of a phase
// covers only the nodes that were in the phase.
func (r *run) value(m *reporter.Metric) (float64, error) {
	if m.Kind != "" {
		return r.operationValue(m)
	}
	nodes := r.nodesWith(m)
	if len(nodes) == 0 {
		return 0, errNoPhase
	}

	var values, weights []float64
	for _, n := range nodes {
		v, err := nodeValue(n.Node, m)
		if err != nil {
			if len(r.nodes) > 1 {
				err = fmt.Errorf("node %s: %w", n.name, err)
			}
			return 0, err
		}

		values = append(values, v)
		if h, ok := n.Metrics[reporter.MetricCPUHours]; ok && h > 0 {
			weights = append(weights, h)
		}
	}

	if len(weights) != len(values) {
		weights = nil
	}
	if v := acrossNodes(m.Aggregation, values, weights); isComputable(v) {
		return v, nil
	}

	return 0, errTooLarge
}

// nodesWith returns the nodes that m covers: all nodes or, for a number of a phase, the nodes that were in the phase.
func (r *run) nodesWith(m *reporter.Metric) []node {
	if m.Phase == "" {
		return r.nodes
	}
	return slices.DeleteFunc(slices.Clone(r.nodes), func(n node) bool { return n.Phase(m.Phase) == nil })
}

var errNoPhase = errors.New("the job was not in that phase")

// nodeValue returns the value of m on n, or the reason why it is missing.
func nodeValue(n *reporter.Node, m *reporter.Metric) (float64, error) {
	if n.Origin == reporter.OriginPerfPy && m.IsTotal() {
		return 0, errors.New("perf.py's totals are since boot")
	}

	v, ok := n.Metrics[m.Name]
	if m.Phase != "" {
		v, ok = n.Phase(m.Phase).Values()[m.Number]
	}
	if ok {
		if !isComputable(v) {
			return 0, errTooLarge
		}
		return v, nil
	}

	for _, missing := range n.Missing {
		if missing.What == m.Name {
			return 0, errors.New(text.Clip(missing.Why, maxText))
		}
	}

	return 0, errors.New("not in the report")
}

var errTooLarge = errors.New("is too large to compute with")

// isComputable reports whether v is neither NaN nor so large that a sum or a median would overflow.
func isComputable(v float64) bool { return math.Abs(v) <= 1e300 }
