package diagnosis

import (
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// rankEnd describes how a rank ended: after how many seconds, with which code or signal, and who had sent SIGTERM
// before. The recording of an open rank stops without an end.
type rankEnd struct {
	after  float64
	exit   int
	signal string
	sender string // of SIGTERM
	open   bool
}

// ranksThat returns the reports of ranks with the given ends.
func ranksThat(t *testing.T, ends ...rankEnd) []reporter.SourceReport {
	t.Helper()
	var out []reporter.SourceReport
	for rank, e := range ends {
		in := Input{Input: reportertest.RankInput(reportertest.RankPlan{Rank: rank, OnNode: len(ends), End: e.after,
			Exit: e.exit, Signal: e.signal, Unfinished: e.open, CPUs: 1})}
		if e.sender != "" {
			at := reportertest.RunStart.Add(time.Duration(e.after*1000-100) * time.Millisecond)
			in.Exit.Signals = []collector.Signal{{Signal: "SIGTERM", Number: 15, At: at, PID: 77, Process: e.sender}}
		}
		r := check.Value(reporter.Decode(check.Value(reporter.Encode(New(in)))(t)))(t)
		out = append(out, reporter.SourceReport{Path: in.Rank, Report: r})
	}
	return out
}

// The verdict of a node is about the rank that failed first; a rank that a launcher ended is named only if no other
// failed.
func TestCombine_NamesFirstFailure(t *testing.T) {
	term := func(after float64, sender string) rankEnd {
		return rankEnd{after: after, exit: 143, signal: "SIGTERM", sender: sender}
	}
	well, open := rankEnd{after: 20}, rankEnd{after: 5, open: true}
	for name, c := range map[string]struct {
		ends  []rankEnd
		first float64 // -1: none
		code  int     // -1: unknown
		text  string
	}{
		"all succeeded": {[]rankEnd{well, well, well}, -1, 0, "all 3 ranks exited with code 0"},
		"one failed":    {[]rankEnd{well, {after: 7, exit: 3}, well}, 1, 3, "rank 1 on node1 exited with code 3"},
		"first of two failures": {[]rankEnd{well, {after: 9, exit: 3}, {after: 7, exit: 4}}, 2, 4,
			"rank 2 on node1 exited with code 4; 1 other failed, too"},
		"crash, others terminated": {[]rankEnd{term(11.2, "mpirun"), {after: 10, exit: 139, signal: "SIGSEGV"}, term(10.5, "mpirun")}, 1, 139,
			"rank 1 on node1 was killed by SIGSEGV: it accessed memory that is not its own (segmentation fault); " +
				"2 others were ended by SIGTERM of the launcher within 1.2 s"},
		"terminated rank ended first": {[]rankEnd{term(9, "slurmstepd"), {after: 10, exit: 1}}, 1, 1,
			"rank 1 on node1 exited with code 1; 1 other was ended by SIGTERM of the launcher"},
		"terminated by bash": {[]rankEnd{term(9, "bash"), {after: 10, exit: 1}}, 0, 143,
			"rank 0 on node1 was killed by SIGTERM from bash (process 77) at 12:00:08 UTC; 1 other failed, too"},
		"scancel": {[]rankEnd{term(9.5, "slurmstepd"), term(9, "slurmstepd"), open}, 1, 143,
			"rank 1 on node1 was killed by SIGTERM from slurmstepd (process 77) at 12:00:08 UTC; " +
				"1 other was ended by SIGTERM of the launcher within 500 ms; 1 other has no end"},
		"recording stops":       {[]rankEnd{well, open, well}, 1, -1, "rank 1 on node1: how the command ended is not known"},
		"recording stops first": {[]rankEnd{open, {after: 10, exit: 2}}, 1, 2, "rank 1 on node1 exited with code 2; 1 other has no end"},
		"one rank":              {[]rankEnd{{after: 10, exit: 2}}, 0, 2, "rank 0 on node1 exited with code 2"},
	} {
		r := check.Value(Combine(ranksThat(t, c.ends...)))(t)
		v, n := r.Run.Verdict, r.Nodes["0"]
		code := -1
		if r.Run.ExitCode != nil {
			code = *r.Run.ExitCode
		}
		if rank, ok := v.Evidence["rank"]; !strings.HasPrefix(v.Text, c.text) || code != c.code || ok != (c.first >= 0) || ok && rank != c.first {
			t.Errorf("%s: %q, exit %d, evidence %v; want %q, exit %d, rank %v", name, v.Text, code, v.Evidence, c.text, c.code, c.first)
		}
		if c.first >= 0 && (v.Evidence["host"] != "node1" || v.Evidence["node"] != 0.0) {
			t.Errorf("%s: evidence %v, want host node1 and node 0", name, v.Evidence)
		}
		if n.Job != nil && n.Job.ExitCode != nil && *n.Job.ExitCode != code || n.Findings == nil {
			t.Errorf("%s: job %+v, want exit code %d; findings %v, want a non-nil list", name, n.Job, code, n.Findings)
		}
		reportertest.Validate(t, check.Value(reporter.Encode(r))(t))
	}
}

// A node has the conditions of all its ranks.
func TestCombine_KeepsConditionsOfAllRanks(t *testing.T) {
	parts := ranksThat(t, rankEnd{after: 5}, rankEnd{after: 5, exit: 1}, rankEnd{after: 5})
	for rank, condition := range map[int]string{0: ConditionSwapping, 2: ConditionThrottled} {
		for _, r := range parts[rank].Report.Nodes["0"].Ranks {
			r.Verdict.Conditions = []string{condition}
		}
	}
	r := check.Value(Combine(parts))(t)
	if got := strings.Join(r.Run.Verdict.Conditions, " "); got != "throttled swapping" {
		t.Errorf("conditions %q, want those of both ranks: %q", got, "throttled swapping")
	}
}
