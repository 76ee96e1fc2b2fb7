package comparer

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/perfagent/perfagent/reporter"
)

// bootPrefix begins the names of the counters since boot, which tell nothing of a
// run and are not compared; totalPrefix those of the totals since the start.
const (
	bootPrefix  = "boot_"
	totalPrefix = "total_"
)

// rule makes one value for a run of the values of its nodes; weights may be nil.
type rule func(values, weights []float64) float64

// ruleOf is how the nodes' values of a metric become one for the run: amounts (bytes,
// hours, the job's CPU time, killed processes) add up, of peaks and of the wall time the
// greatest counts, means and shares are averaged. Nil = the metric is not compared.
func ruleOf(name string) rule {
	switch {
	case strings.HasPrefix(name, bootPrefix):
		return nil
	case strings.HasSuffix(name, "_joules"):
		return sum
	}

	for _, r := range []struct {
		prefix string
		rule   rule
	}{
		{totalPrefix, sum},
		{"job_avg_cpu_", sum},
		{"job_throttled_seconds", sum},
		{"job_throttled_periods", mean},
		{"job_oom_", sum},
		{"host_oom_", sum},
		{"job_peak_", greatest},
		{"job_psi_", mean},
		{"psi_", mean},
		{"limit_cpu_", mean},
		{"gpu_", mean}, // but for its energy
		{"node_", sum},
		{"job_cpu_", sum},
		{"max_t_", greatest},
		{"job_max_", greatest},
		{"wall_", greatest},
		{"cpu_avg_", mean},
	} {
		if strings.HasPrefix(name, r.prefix) {
			return r.rule
		}
	}

	return nil
}

func sum(values, _ []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}

func greatest(values, _ []float64) float64 {
	most := values[0]
	for _, v := range values[1:] {
		most = max(most, v)
	}
	return most
}

// mean weights each node by the CPU time that it offered, so that the mean of a run agrees with its
// used and unused hours. If those are not known, all nodes have the same weight.
func mean(values, weights []float64) float64 {
	total, weight := 0.0, 0.0
	for i, w := range weights {
		total += w * values[i]
		weight += w
	}

	if weight > 0 {
		return total / weight
	}

	return sum(values, nil) / float64(len(values))
}

// value returns a run's value of a metric. A run has none if one of its nodes lacks the metric: the
// amount or peak of the other nodes would pass for that of all. The error says why.
func (r *run) value(name string, of rule) (float64, error) {
	var values, weights []float64
	for _, n := range r.nodes {
		v, err := nodeValue(n.Node, name)
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
	if v := of(values, weights); finite(v) {
		return v, nil
	}

	return 0, errTooLarge
}

// nodeValue returns a metric of one node, or an error that says why it is absent.
func nodeValue(n *reporter.Node, name string) (float64, error) {
	if n.Origin == reporter.OriginPerfPy && strings.HasPrefix(name, totalPrefix) {
		return 0, errors.New("perf.py's totals are since boot")
	}

	if v, ok := n.Metrics[name]; ok {
		if !finite(v) {
			return 0, errTooLarge
		}
		return v, nil
	}

	for _, m := range n.Missing {
		if m.What == name {
			return 0, errors.New(clip(m.Why, maxText))
		}
	}

	return 0, errors.New("not in the report")
}

var errTooLarge = errors.New("is too large to compute with")

// finite reports whether v is a number to compute with: not so large that a sum, or computing a
// median, would overflow.
func finite(v float64) bool { return math.Abs(v) <= 1e300 }
