package comparer

import (
	"fmt"
	"slices"

	"github.com/perfagent/perfagent/reporter"
)

// phaseMetrics returns the numbers of all phases, grouped by phase. Phases are in the order of their first starts.
func phaseMetrics(sides ...[]*run) []reporter.Metric {
	var phases []string
	numbers := make(map[string]bool)
	for _, r := range slices.Concat(sides...) {
		for _, n := range r.nodes {
			for _, p := range n.Phases {
				if !slices.Contains(phases, p.Name) {
					phases = append(phases, p.Name)
				}
			}
			for name := range n.PhaseValues() {
				numbers[name] = true
			}
		}
	}

	var out []reporter.Metric
	for _, phase := range phases {
		for _, number := range reporter.PhaseNumbers() {
			name := reporter.PhaseMetricName(phase, number)
			if m, ok := reporter.PhaseMetric(name); ok && numbers[name] {
				out = append(out, m)
			}
		}
	}

	return out
}

// phasesShown is the maximum number of phases in the tables. The JSON form of a comparison has all of them.
const phasesShown = 10

// isNotable reports whether the tables show the given number of a phase if no gate uses it.
func isNotable(number string) bool {
	switch number {
	case reporter.PhaseSeconds, reporter.MetricJobCPU, reporter.MetricJobCores, reporter.MetricJobMemoryPeak:
		return true
	}
	return false
}

// hidePhases hides the less notable numbers and the later phases from the tables, and adds a note on the hidden phases.
func (c *Comparison) hidePhases() {
	var phases []string
	for i := range c.Metrics {
		of := c.Metrics[i].definition
		if of.Phase == "" {
			continue
		}
		if !slices.Contains(phases, of.Phase) {
			phases = append(phases, of.Phase)
		}
		c.Metrics[i].hidden = !isNotable(of.Number) || len(phases) > phasesShown
	}

	if len(phases) > phasesShown {
		c.Notes = append(c.Notes, fmt.Sprintf("the table has the first %d of %d phases; --format json has all",
			phasesShown, len(phases)))
	}
}

// visibleMetrics returns the metrics that the tables show.
func (c *Comparison) visibleMetrics() []Metric {
	return slices.DeleteFunc(slices.Clone(c.Metrics), func(m Metric) bool { return m.hidden })
}
