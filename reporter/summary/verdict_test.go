package summary

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

func merged(t testing.TB, inputs ...reporter.SourceReport) *reporter.Report {
	t.Helper()
	r, err := diagnosis.Merge(inputs)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// bareReport returns the report of a node with nothing but an exit code.
func bareReport(node, code int) *reporter.Report {
	r := diagnosis.New(diagnosis.Input{Input: reportertest.NodeInput(node, 1, code, nil)})
	for _, n := range r.Nodes {
		n.Verdict.Conditions = nil
	}
	return r
}

// The run's own verdict comes first, with its node, even if it is a bare exit code.
func TestVerdicts_RunsOwnComesFirst(t *testing.T) {
	for _, c := range []struct {
		name  string
		codes []int
		want  []string
	}{
		{"killed by the launcher", []int{0, 4, 137}, []string{"node 1: exited with code 4", "node 2: killed by SIGKILL"}},
		{"only an exit code", []int{1, 0, 0, 0}, []string{"node 0: exited with code 1"}},
		{"the same code twice", []int{0, 3, 0, 3}, []string{"node 1, 3: exited with code 3"}},
		{"other codes", []int{0, 3, 4}, []string{"node 1: exited with code 3"}},
		{"one node", []int{4}, nil},
		{"all well", []int{0, 0}, nil},
	} {
		var inputs []reporter.SourceReport
		for i, code := range c.codes {
			inputs = append(inputs, reporter.SourceReport{Path: fmt.Sprint(i), Report: bareReport(i, code)})
		}
		r := merged(t, inputs...)
		said := Verdicts(r)
		ok := len(said) == len(c.want)
		for i := 0; ok && i < len(said); i++ {
			ok = strings.HasPrefix(said[i].Text, c.want[i]) && said[i].Bad
		}
		if !ok {
			t.Errorf("%s: verdicts %+v, want %q", c.name, said, c.want)
		}
	}
}

// A bare exit code removes nothing from a node with more to report about the same code.
func TestVerdicts_BareCodeHidesNoOtherVerdict(t *testing.T) {
	a, b := bareReport(0, 3), bareReport(1, 3)
	b.Nodes["1"].Verdict.Text = "exited with code 3 after SIGTERM from bash (process 7)"
	said := Verdicts(merged(t, reporter.SourceReport{Path: "a", Report: a}, reporter.SourceReport{Path: "b", Report: b}))
	if len(said) != 2 || said[0].Text != "node 0: exited with code 3" || said[1].Text != "node 1: "+b.Nodes["1"].Verdict.Text {
		t.Errorf("verdicts %+v, want the code of node 0, and the own verdict of node 1", said)
	}
}
