package diagnosis

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// mergedRun merges the nodes of a report, each from a separate file, in a random order and in steps, and checks that
// neither makes a difference.
func mergedRun(t *testing.T, r *reporter.Report) *reporter.Report {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	inputs := func() []reporter.SourceReport {
		var out []reporter.SourceReport
		for _, name := range r.NodeNames() {
			n := r.Nodes[name]
			copied := *n
			copied.Ranks = maps.Clone(n.Ranks)
			run := r.Run
			run.ExitCode = nil
			out = append(out, reporter.SourceReport{Path: name, Report: &reporter.Report{
				Schema: reporter.Schema, Run: run, Nodes: map[string]*reporter.Node{name: &copied},
			}})
		}
		random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		return out
	}

	merged := mustMerge(t, inputs()...)
	want := encoded(t, merged)
	for range 5 {
		list := inputs()
		steps := mustMerge(t, list[0])
		for _, next := range list[1:] {
			steps = mustMerge(t, reporter.SourceReport{Path: "steps", Report: steps}, next)
		}
		for name, got := range map[string]*reporter.Report{"in another order": mustMerge(t, list...), "in steps": steps} {
			if diff := cmp.Diff(want, encoded(t, got)); diff != "" {
				t.Fatalf("merged %s (-want +got):\n%s", name, diff)
			}
		}
	}
	return merged
}

// The run's verdict and exit code are from the first rank that failed.
func TestFirstFailure_SetsVerdictAndExitCodeOfRun(t *testing.T) {
	r := mergedRun(t, reportertest.KilledRank())
	v := r.Run.Verdict
	want := "rank 3 on node1 was killed by the kernel: python (process 4245) hit the memory limit of 8.0 GiB of its " +
		"control group at 12:00:18 UTC; peak 8.0 GiB; 7 others were ended by SIGTERM of the launcher within 1.2 s"
	if v.Cause != CauseOOMCgroup || v.Text != want {
		t.Errorf("verdict %s: %s, want %s: %s", v.Cause, v.Text, CauseOOMCgroup, want)
	}
	if *r.Run.ExitCode != 137 || r.Run.Signal != "SIGKILL" {
		t.Errorf("the run has exit code %d and signal %q, want 137 and SIGKILL", *r.Run.ExitCode, r.Run.Signal)
	}
	for key, want := range map[string]any{"rank": 3.0, "node": 0.0, "host": "node1", "others_ended": 7.0,
		"others_seconds": 1.2, "limit_mb": 8192.0} {
		if v.Evidence[key] != want {
			t.Errorf("evidence %s = %v, want %v", key, v.Evidence[key], want)
		}
	}
	if _, changed := r.Nodes["0"].Ranks["3"].Verdict.Evidence["rank"]; changed {
		t.Error("the verdict of the rank itself was changed: its evidence has a rank")
	}
}

// ends returns a verdict with evidence from pairs of keys and values.
func ends(cause, words string, more ...any) *reporter.Verdict {
	v := &reporter.Verdict{Cause: cause, Text: words, Evidence: map[string]any{}}
	for i := 0; i < len(more); i += 2 {
		v.Evidence[more[i].(string)] = more[i+1]
	}
	return v
}

// The sentence names the first failure and counts the other endings.
func TestFirstFailure_NamesFirstAndCountsOtherEndings(t *testing.T) {
	type report = *reporter.Report
	fails := func(rank int, before time.Duration, code int) func(report) {
		return func(r report) {
			reportertest.EndRank(r, rank, before, code, "", ends(CauseExited, fmt.Sprintf("exited with code %d", code)))
		}
	}
	victim := func(rank int, before time.Duration, sender string) func(report) {
		return func(r report) { reportertest.TerminateRank(r, rank, before, sender) }
	}
	stops := func(rank int, before time.Duration) func(report) {
		return func(r report) {
			k := reportertest.RankOf(r, rank)
			k.End.Time = k.End.Add(-before)
			k.ExitCode, k.Incomplete, k.Job = nil, "cut off", nil
			k.Verdict = ends(CauseUnknown, "how the command ended is not known: cut off")
		}
	}
	limit := func(rank int, before time.Duration, pairs ...any) func(report) {
		return func(r report) {
			reportertest.EndRank(r, rank, before, 143, "SIGTERM", ends(CauseTimeLimit,
				"ended at a time limit of Slurm: SIGTERM from slurmstepd (process 7) at 12:00:20 UTC; the job died of SIGTERM",
				append([]any{"sender", "slurmstepd", "sent_signal", "SIGTERM"}, pairs...)...))
		}
	}
	const s = time.Second
	for _, c := range []struct {
		name   string
		change []func(report)
		want   string // text of the verdict
		code   int    // -1 = unknown
	}{
		{"all succeeded", nil, "all 4 ranks exited with code 0", 0},
		{"one failed", []func(report){fails(2, s, 7)}, "rank 2 on node2 exited with code 7", 7},
		{"earlier of two failures", []func(report){fails(0, s, 7), fails(3, 3*s, 8)},
			"rank 3 on node2 exited with code 8; 1 other failed, too", 8},
		{"same failure within 100 ms", []func(report){fails(0, s, 7), fails(3, s, 7)},
			"rank 0 on node1 exited with code 7; 1 other likewise within 100 ms", 7},
		{"terminated rank ended first", []func(report){victim(0, 3*s, "prted"), fails(3, s, 8)},
			"rank 3 on node2 exited with code 8; 1 other was ended by SIGTERM of the launcher", 8},
		{"signal from bash", []func(report){victim(0, 3*s, "bash"), fails(3, s, 8)},
			"rank 0 on node1 was killed by SIGTERM from bash (process 77) at 12:00:17 UTC; 1 other failed, too", 143},
		{"all ended by the launcher", []func(report){victim(0, s, "slurmstepd"), victim(1, 2*s, "slurmstepd"), victim(2, s, "slurmstepd")},
			"rank 1 on node1 was killed by SIGTERM from slurmstepd (process 77) at 12:00:18 UTC; 2 others were ended by SIGTERM of the launcher within 1.0 s", 143},
		{"journal stops", []func(report){stops(0, 5*s)}, "rank 0 on node1: how the command ended is not known: cut off", -1},
		{"terminated rank, journal stops", []func(report){stops(0, 5*s), victim(3, s, "prted")},
			"rank 3 on node2 was killed by SIGTERM from prted (process 77) at 12:00:19 UTC; 1 other has no end", 143},
		{"journals stop before a failure", []func(report){stops(0, 5*s), stops(1, 5*s), fails(3, 50*time.Millisecond, 9)},
			"rank 3 on node2 exited with code 9; 2 others have no end", 9},
		{"Hydra", []func(report){fails(1, s, 1), stops(0, s), victim(2, s/2, "hydra_pmi_proxy"), victim(3, 100*time.Millisecond, "mpiexec.hydra")},
			"rank 1 on node1 exited with code 1; 2 others were ended by SIGTERM of the launcher within 900 ms; 1 other has no end", 1},
		{"time limit of the job", []func(report){limit(0, s, "limit_time", "2024-05-01T12:00:00Z"), limit(1, 2*s, "limit_time", "2024-05-01T12:00:00Z"), fails(2, s, 1)},
			"rank 1 on node1 was ended at a time limit of Slurm: SIGTERM from slurmstepd (process 7) at 12:00:20 UTC; the job died of SIGTERM" +
				"; 1 other likewise within 1.0 s; 1 other failed, too", 143},
		{"cancelled step", []func(report){limit(0, 2*s), fails(2, s, 1)},
			"rank 2 on node2 exited with code 1; 1 other was ended by SIGTERM of the launcher", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := reportertest.Ranks(2, 2, 20)
			for _, change := range c.change {
				change(r)
			}
			merged := mergedRun(t, r)
			if v := merged.Run.Verdict; v.Text != c.want {
				t.Errorf("verdict %s\nwant %s", v.Text, c.want)
			}
			code := -1
			if merged.Run.ExitCode != nil {
				code = *merged.Run.ExitCode
			}
			if code != c.code && c.code >= 0 {
				t.Errorf("the run has exit code %d, want %d", code, c.code)
			}
		})
	}
}

// A node with ranks has the same verdict as its run, and the verdict on a single job is unchanged.
func TestFirstFailure_NodeAndRunHaveSameVerdict(t *testing.T) {
	r := reportertest.Ranks(1, 3, 20)
	reportertest.EndRank(r, 1, time.Second, 139, "SIGSEGV", ends(CauseSignal, "killed by SIGSEGV: a fault"))
	if v := mergedRun(t, r).Run.Verdict; v.Text != "rank 1 on node1 was killed by SIGSEGV: a fault" || v.Number("rank") != 1 {
		t.Errorf("verdict %q on rank %v, want rank 1 on node1 killed by SIGSEGV", v.Text, v.Number("rank"))
	}

	merged := mergedRun(t, r)
	if n := merged.Nodes["0"]; n.Verdict.Text != merged.Run.Verdict.Text || *n.Job.ExitCode != 139 || n.Job.Signal != "SIGSEGV" {
		t.Errorf("the node has the verdict %+v and the job %+v, want the run's verdict, exit code 139 and SIGSEGV",
			n.Verdict, n.Job)
	}
	if r.Nodes["0"].Job.Signal != "" {
		t.Errorf("the merge changed the job of its input: signal %q", r.Nodes["0"].Job.Signal)
	}
	first, ok := firstFailure(endingsOf("", r.Nodes["0"]))
	if _, has := first.verdict.Evidence["node"]; !ok || has || first.verdict.Evidence["host"] != "node1" || *first.code != 139 {
		t.Errorf("first failure %+v (found: %v), want one on host node1 with exit code 139 and no node", first, ok)
	}

	own := ends(CauseSignal, "killed by SIGSEGV: a fault")
	alone := reportertest.NodeReport(0, 20, 1, nil)
	alone.Nodes["0"].Verdict = own
	if merged := mustMerge(t, reporter.SourceReport{Path: "x", Report: alone}); merged.Run.Verdict != own {
		t.Errorf("verdict on a single job %+v, want it unchanged: %+v", merged.Run.Verdict, own)
	}
	if _, ok := firstFailure(nil); ok {
		t.Error("firstFailure(nil) found a failure")
	}
}

// Ranks that are alone on their nodes are also named.
func TestFirstFailure_NamesRanksAloneOnTheirNodes(t *testing.T) {
	r := reportertest.Ranks(3, 1, 20)
	for name, n := range r.Nodes {
		rank := n.Ranks[name].Rank
		n.Identity.Rank, n.Ranks = &rank, nil
	}
	n := r.Nodes["1"]
	n.Verdict, n.Job.ExitCode = ends(CauseExited, "exited with code 4", "exit_code", 4.0), new(4)
	merged := mergedRun(t, r)
	if v := merged.Run.Verdict; v.Text != "rank 1 on node2 exited with code 4" || *merged.Run.ExitCode != 4 {
		t.Errorf("verdict %q, exit code %d; want rank 1 on node2 exited with code 4", v.Text, *merged.Run.ExitCode)
	}
}

// For any verdicts, the first failure is independent of their order, can be encoded, and is one of them.
func FuzzFirst(f *testing.F) {
	f.Add([]byte(`[{"cause":"oom_cgroup","text":"killed","evidence":{"time":"2024-05-01T12:00:00Z","sender":7}},`+
		`{"cause":"signal","text":"\u001b","evidence":null},{"cause":"later","text":"","evidence":{"exit_code":1e300}}]`), int64(7))
	f.Fuzz(func(t *testing.T, data []byte, spread int64) {
		var verdicts []*reporter.Verdict
		if json.Unmarshal(data, &verdicts) != nil || slices.Contains(verdicts, nil) {
			return
		}

		var list []ending
		for i, v := range verdicts {
			e := ending{node: fmt.Sprint(i / 2), host: strings.Repeat("h.", i), verdict: v, fromRankTable: i%2 > 0}
			if e.fromRankTable {
				e.rank = &i
			}
			if i%3 > 0 {
				e.end = reportertest.RunStart.Add(time.Duration(spread * int64(i)))
			}
			list = append(list, e)
		}
		first, ok := firstFailure(list)
		if ok != (len(list) > 0) || ok && first.verdict == nil {
			t.Fatalf("firstFailure of %d endings: %+v, found %v; want one with a verdict, unless there are no endings",
				len(list), first, ok)
		}
		slices.Reverse(list)
		again, _ := firstFailure(list)
		if !reflect.DeepEqual(first, again) {
			t.Errorf("the order of the endings changes the first failure:\n%+v with %+v\n%+v with %+v", first,
				first.verdict, again, again.verdict)
		}
		if ok {
			if _, err := json.Marshal(first.verdict.Evidence); err != nil {
				t.Error(err)
			}
		}
	})
}
