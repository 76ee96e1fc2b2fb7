package pusher

import (
	"math"

	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// phaseMetrics returns the numbers of a node's phases that are pushed, as phase/NAME/seconds and so on.
func phaseMetrics(n *reporter.Node) []mlflow.Metric {
	var out []mlflow.Metric
	names := newNames()
	numbers := []string{reporter.PhaseSeconds, reporter.MetricJobCores, reporter.MetricJobMemoryPeak}
	for _, p := range n.Phases {
		key := names.take("phase/", p.Name, numbers...)
		for _, number := range numbers {
			v, ok := p.Metrics[number]
			if number == reporter.PhaseSeconds {
				v, ok = p.Seconds, true
			}
			if ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
				out = append(out, mlflow.Metric{Key: key + "/" + number, Value: v})
			}
		}
	}

	return out
}
