package reporter

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector"
)

// The numbers of a phase that are not metrics of the table.
const (
	PhaseSeconds = "seconds"
	PhaseCount   = "count"
)

const phasePrefix = "phase."

// PhaseValue names a number of a phase: phase.NAME.seconds, phase.NAME.count, or phase.NAME.METRIC.
func PhaseValue(phase, number string) string { return phasePrefix + phase + "." + number }

// SplitPhaseValue is the inverse of PhaseValue. Only the name of a phase may have dots. It reports false for
// what is no number of a phase.
func SplitPhaseValue(name string) (phase, number string, ok bool) {
	rest, ok := strings.CutPrefix(name, phasePrefix)
	dot := strings.LastIndexByte(rest, '.')
	if !ok || dot < 1 {
		return "", "", false
	}
	return rest[:dot], rest[dot+1:], true
}

// PhaseNumbers lists the numbers that a phase can have: its length, its beginnings, and metrics in the
// table's order, those of GPUs last.
func PhaseNumbers() []string {
	names := []string{PhaseSeconds, PhaseCount}
	for _, m := range metricTable {
		if m.inPhases {
			names = append(names, m.Name)
		}
	}
	for device := range collector.MaxGPUs {
		for _, m := range gpuMetrics(device) {
			if m.inPhases {
				names = append(names, m.Name)
			}
		}
	}

	return names
}

// PhaseMetric returns what there is to know of a number of a phase: see [PhaseValue]. It reports false if
// there is no such number.
func PhaseMetric(name string) (m Metric, ok bool) {
	phase, number, ok := SplitPhaseValue(name)
	if !ok {
		return Metric{}, false
	}

	switch number {
	case PhaseSeconds:
		m = Metric{Unit: collector.Seconds, Across: collector.Max, Meaning: "length of the phase " + phase}
	case PhaseCount:
		m = Metric{Unit: collector.Times, Across: collector.Max, Meaning: "beginnings of the phase " + phase}
	default:
		if m, ok = MetricNamed(number); !ok || !m.inPhases {
			return Metric{}, false
		}
		m.Meaning, m.PerfPy = m.Meaning+", in the phase "+phase, false
	}
	m.Name, m.Group, m.Phase, m.Number = name, GroupPhases, phase, number

	return m, true
}

// PhaseValues returns all numbers of the node's phases by their names: see [PhaseValue].
func (n *Node) PhaseValues() Values {
	out := make(Values)
	for i := range n.Phases {
		for number, v := range n.Phases[i].Values() {
			out[PhaseValue(n.Phases[i].Name, number)] = v
		}
	}
	return out
}

// Values returns the numbers of the phase: see [PhaseNumbers].
func (p *Phase) Values() Values {
	out := Values{PhaseSeconds: p.Seconds, PhaseCount: float64(p.Count)}
	maps.Copy(out, p.Metrics)
	return out
}

// Phase returns a phase by its name, or nil.
func (n *Node) Phase(name string) *Phase {
	if i := slices.IndexFunc(n.Phases, func(p Phase) bool { return p.Name == name }); i >= 0 {
		return &n.Phases[i]
	}
	return nil
}

// CurrentPhase returns the name of the phase at the newest sample, or "".
func (n *Node) CurrentPhase() string {
	if len(n.Phases) == 0 {
		return ""
	}
	return n.PhaseAt(n.newest())
}

// newest returns the time of the newest sample, or +Inf.
func (n *Node) newest() float64 {
	ends := n.Envelope[collector.Timestamp.Key()].Max
	if len(ends) == 0 {
		return math.Inf(1)
	}
	return ends[len(ends)-1]
}
