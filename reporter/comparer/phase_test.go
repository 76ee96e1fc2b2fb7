package comparer

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

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
		m, ok := c.Metric(name)
		if !ok || m.A == nil || *m.A != want || m.Unit == "" {
			t.Errorf("metric %s: found %v, %+v; want A's median %v and a unit", name, ok, m, want)
		}
	}

	for gate, want := range map[string]bool{
		"phase.train.a>b.seconds > +10%": true, "phase.train.a>b.seconds >= 7": false, "phase.only.seconds<+5%": true,
		"phase.train.a>b.cpu_avg_utilization_pct > 30": true,
	} {
		g, err := ParseGate(gate)
		if err != nil {
			t.Fatal(err)
		}
		if v := c.CheckGate(g); v.Fired == nil || *v.Fired != want {
			t.Errorf("gate %s: result %+v, want fired %v", gate, v, want)
		}
	}
	for gate, want := range map[string]string{
		"phase.other.seconds > 1":           "no node of A or B has that phase",
		"phase.only.job_peak_memory_mb > 1": "that phase has no such number on any node of A or B",
	} {
		g, err := ParseGate(gate)
		if err != nil {
			t.Fatal(err)
		}
		if v := c.CheckGate(g); v.Fired != nil || v.Reason != want {
			t.Errorf("gate %s: result %+v, want Fired to be null with the reason %q", gate, v, want)
		}
	}
	for _, bad := range []string{"phase.a.wall_seconds > 1", "phase.a > 1", "phase.a.seconds > 10%"} {
		if _, err := ParseGate(bad); err == nil {
			t.Errorf("ParseGate(%q) succeeded, want an error", bad)
		}
	}
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
	var out bytes.Buffer
	if err := WriteTable(&out, c, Options{All: true}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{"\npeak memory, train.a>b ", "\nbeginnings, only ", "\nwall time, \\x1b[31mp7 ",
		"the table has the first 10 of 32 phases"} {
		if !strings.Contains(text, want) {
			t.Errorf("table lacks %q:\n%s", want, text)
		}
	}
	for _, not := range []string{"\nbeginnings, train.a>b ", "mp8 ", "\nmean node CPU ", "\x1b"} {
		if strings.Contains(text, not) {
			t.Errorf("table has %q, want it hidden:\n%s", not, text)
		}
	}
}
