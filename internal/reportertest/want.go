package reportertest

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/reporter"
)

// Reasons returns the joined reasons why the item what is missing from n; "" if it is not missing.
func Reasons(n *reporter.Node, what string) string {
	var all []string
	for _, m := range n.Missing {
		if m.What == what {
			all = append(all, m.Why)
		}
	}
	return strings.Join(all, "; ")
}

// WentWrong reports whether m is missing because of a failure. It is not a failure if the job has no limit or group,
// because that depends on the machine, or if the job ended immediately.
func WentWrong(m reporter.Missing) bool {
	return !regexp.MustCompile(`^(no control group limits|other processes are in the job's control group|` +
		`no control group is visible|neither the job's standard error|` +
		`the control group has no such counter|the job ended before)`).
		MatchString(m.Why)
}

// WantEveryMetric checks that each metric of the table has a value or a reason for its absence.
func WantEveryMetric(t testing.TB, n *reporter.Node) {
	t.Helper()
	for _, m := range reporter.Metrics() {
		v, there := n.Metrics[m.Name]
		why := slices.IndexFunc(n.Missing, func(x reporter.Missing) bool { return x.What == m.Name && x.Why != "" })
		switch {
		case !there && why < 0 && m.OfDevice(): // the node has no such device
		case there == (why >= 0):
			t.Errorf("%s: has a value: %v, index of the reason: %d in %v; want one of them", m.Name, there, why, n.Missing)
		case math.IsNaN(v) || v < 0 || strings.HasPrefix(string(m.Unit), "percent") && v > 100:
			t.Errorf("%s = %v, want a valid number", m.Name, v)
		}
	}
}

// WantMeansInside checks that each mean of a summary or of the envelope is between its minimum and maximum.
func WantMeansInside(t testing.TB, r *reporter.Report) {
	t.Helper()
	for name, n := range r.Nodes {
		if n == nil {
			continue
		}

		for key, q := range n.Summaries {
			if !(q.Min <= q.Mean && q.Mean <= q.Max) {
				t.Errorf("node %s: summary of %s: mean %v is not between min %v and max %v", name, key, q.Mean, q.Min, q.Max)
			}
		}

		for key, band := range n.Envelope {
			for i, mean := range band.Mean {
				if mean < band.Min[i] || mean > band.Max[i] {
					t.Errorf("node %s: envelope of %s: point %d: mean %v is not between min %v and max %v", name, key, i,
						mean, band.Min[i], band.Max[i])
				}
			}
		}
	}
}

// WantVerdict checks the cause of the verdict of node 0 and parts of its text, and returns the verdict.
func WantVerdict(t testing.TB, r *reporter.Report, cause string, words ...string) *reporter.Verdict {
	t.Helper()
	v := r.Nodes["0"].Verdict
	if v == nil || r.Run.Verdict == nil {
		t.Fatalf("verdict of the node %v, of the run %v; want both", v, r.Run.Verdict)
	}
	if r.Run.Verdict.Cause != v.Cause || r.Run.Verdict.Text != v.Text {
		t.Errorf("verdict of the run %+v differs from that of the node, %+v", r.Run.Verdict, v)
	}
	if v.Cause != cause {
		t.Errorf("cause = %s (%s), want %s", v.Cause, v.Text, cause)
	}
	for _, w := range words {
		if !strings.Contains(v.Text, w) {
			t.Errorf("text of the verdict %q lacks %q", v.Text, w)
		}
	}
	return v
}

// WantEvidence checks parts of the evidence of a verdict.
func WantEvidence(t testing.TB, v *reporter.Verdict, want map[string]any) {
	t.Helper()
	for key, value := range want {
		if fmt.Sprint(v.Evidence[key]) != fmt.Sprint(value) {
			t.Errorf("evidence %s = %v, want %v; all evidence: %v", key, v.Evidence[key], value, v.Evidence)
		}
	}
}

// WantTimeInRun checks that the time with the given key in the evidence is within the run, or noticed soon after
// its end.
func WantTimeInRun(t testing.TB, r *reporter.Report, key string) {
	t.Helper()
	text, _ := r.Nodes["0"].Verdict.Evidence[key].(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Before(r.Run.Start.Add(-time.Second)) || at.After(r.Run.End.Add(time.Minute)) {
		t.Errorf("%s = %q (%v), want a time between %v and %v", key, text, err, r.Run.Start, r.Run.End)
	}
}
