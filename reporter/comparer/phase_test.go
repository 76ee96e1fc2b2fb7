package comparer

import (
	"fmt"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/reporter"
)

// phased returns a run on two nodes. The second node spends more time in its phases, and only the first node is in the
// third phase.
func phased(id string, factor float64) reporter.SourceReport {
	metrics := func(v float64) reporter.Values {
		return reporter.Values{
			reporter.MetricJobCores: v, reporter.MetricJobMemoryPeak: 100 * v, reporter.MetricCPUMean: 10 * v,
		}
	}
	phases := func(v float64) []reporter.Phase {
		return []reporter.Phase{{Name: "train.a>b", Seconds: v, Count: 2, Metrics: metrics(v)}}
	}
	r := nodesOf(id, 0, reporter.Values{"wall_seconds": 1}, reporter.Values{"wall_seconds": 1})
	r.Report.Nodes["0"].Phases, r.Report.Nodes["1"].Phases = phases(factor), phases(3*factor)
	r.Report.Nodes["0"].Phases = append(r.Report.Nodes["0"].Phases, reporter.Phase{Name: "only", Seconds: 7, Count: 1})

	return r
}

func TestCompare_PhasesHaveMetricsAndGates(t *testing.T) {
	c := Compare(Side{Name: "a", Reports: []reporter.SourceReport{phased("a", 1)}}, Side{Name: "b", Reports: []reporter.SourceReport{phased("b", 2)}})
	for name, want := range map[string]float64{
		"phase.train.a>b.seconds": 3, "phase.train.a>b.count": 2, "phase.train.a>b.job_avg_cpu_cores": 4,
		"phase.train.a>b.job_peak_memory_mb": 300, "phase.train.a>b.cpu_avg_utilization_pct": 20, "phase.only.seconds": 7,
	} {
		wantMedian(t, c, name, want)
	}

	for gate, want := range map[string]string{
		"phase.train.a>b.seconds > +10%": "true", "phase.train.a>b.seconds >= 7": "false", "phase.only.seconds<+5%": "true",
		"phase.train.a>b.cpu_avg_utilization_pct > 30": "true",
	} {
		wantGate(t, c, gateOf(t, gate), want, "")
	}
	wantGate(t, c, gateOf(t, "phase.other.seconds > 1"), "null", "no node of A or B has that phase")
	wantGate(t, c, gateOf(t, "phase.only.job_peak_memory_mb > 1"), "null",
		"that phase has no such number on any node of A or B")
	wantGates(t, nil, map[string]string{"phase.a.wall_seconds > 1": "", "phase.a > 1": "", "phase.a.seconds > 10%": ""})
}

// The table has a few numbers of the first phases, and the gated numbers.
func TestWriteTable_ShowsFirstPhasesAndGatedNumbers(t *testing.T) {
	a, b := phased("a", 1), phased("b", 1)
	for i := range 30 {
		n := a.Report.Nodes["0"]
		n.Phases = append(n.Phases, reporter.Phase{Name: fmt.Sprint("\x1b[31mp", i), Seconds: 1, Count: 1})
	}
	c := Compare(Side{Name: "a", Reports: []reporter.SourceReport{a}}, Side{Name: "b", Reports: []reporter.SourceReport{b}})
	c.CheckGate(Gate{Metric: "phase.only.count", Op: ">", Value: 9})
	out := tableOf(t, c, Options{All: true})
	text := out
	check.Contains(t, "table", text,
		"\npeak memory, train.a>b ", "\nbeginnings, only ", "\nwall time, \\x1b[31mp7 ",
		"the table has the first 10 of 32 phases")
	wantNone(t, "table", text, "\nbeginnings, train.a>b ", "mp8 ", "\nmean node CPU ", "\x1b")
}
