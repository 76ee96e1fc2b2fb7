package summary

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

func merged(t testing.TB, inputs ...reporter.SourceReport) *reporter.Report {
	t.Helper()
	r, err := diagnosis.Merge(inputs)
	check.Must(t, err)
	return r
}

// withVerdict returns r with a verdict and findings on all its nodes and ranks.
func withVerdict(t testing.TB, r *reporter.Report) *reporter.Report {
	return merged(t, reporter.SourceReport{Path: "x", Report: r})
}

// manyRanks returns a report of 4 nodes with 16 ranks each: rank 37 failed, rank 5 was almost idle, and the launcher
// ended 10 other ranks.
func manyRanks() *reporter.Report {
	r := reportertest.Ranks(4, 16, 60)
	for rank := 38; rank < 48; rank++ {
		reportertest.TerminateRank(r, rank, 500*time.Millisecond, "prted")
	}
	reportertest.EndRank(r, 37, time.Second, 7, "", &reporter.Verdict{
		Cause: "exited", Text: "exited with code 7", Evidence: map[string]any{}})
	reportertest.RankOf(r, 5).Metrics[reporter.MetricJobCores] = 0.04
	return r
}

// oneNode returns a report of one node with 4 ranks; rank 2 crashed.
func oneNode() *reporter.Report {
	r := reportertest.Ranks(1, 4, 20)
	reportertest.EndRank(r, 2, 3*time.Second, 139, "SIGSEGV", &reporter.Verdict{
		Cause: "signal", Text: "killed by SIGSEGV: it accessed memory that is not its own (segmentation fault)",
		Evidence: map[string]any{}})
	return r
}

// lostRank returns a report of 2 nodes with 2 ranks each; rank 1 has no end.
func lostRank() *reporter.Report {
	r := reportertest.Ranks(2, 2, 20)
	k := reportertest.RankOf(r, 1)
	k.ExitCode, k.Job, k.Incomplete = nil, nil, "cut off"
	k.Verdict = &reporter.Verdict{Cause: "unknown", Text: "how the command ended is not known: cut off",
		Evidence: map[string]any{}, Conditions: []string{}}
	r.Run.Incomplete, r.Run.ExitCode = "rank 1 has no end", nil
	return r
}

// lostOthers returns the report of lostRank, in which rank 2 failed.
func lostOthers() *reporter.Report {
	r := lostRank()
	reportertest.EndRank(r, 2, time.Second, 6, "", &reporter.Verdict{
		Cause: "exited", Text: "exited with code 6", Evidence: map[string]any{}})
	return r
}

// hostileRanks returns a report of ranks with hostile texts and numbers.
func hostileRanks() *reporter.Report {
	r := reportertest.KilledRank()
	for _, n := range r.Nodes {
		n.Identity.NodeName = reportertest.Hostile
	}
	k := reportertest.RankOf(r, 3)
	k.Signal, k.Verdict.Text = reportertest.Hostile, reportertest.Hostile
	for name := range k.Metrics {
		k.Metrics[name] = -1.5e300
	}
	return r
}

func rankReports() map[string]*reporter.Report {
	return map[string]*reporter.Report{
		"ranks": reportertest.KilledRank(), "ranks-good": reportertest.Ranks(2, 2, 20), "ranks-many": manyRanks(),
		"ranks-node": oneNode(), "ranks-late": reportertest.LateRank(), "ranks-lost": lostRank(),
		"ranks-lost-others": lostOthers(),
		"ranks-hostile":     hostileRanks(),
	}
}

func TestWrite_RanksGolden(t *testing.T) {
	for name, r := range rankReports() {
		t.Run(name, func(t *testing.T) {
			r = withVerdict(t, r)
			got := bothSummaries(t, r, "perfagent-out/4711/node-0.json")
			reportertest.CompareGolden(t, filepath.Join("testdata", name+".txt"), []byte(got), *update)
			for _, width := range []int{1, 20, 60, 80, 200} {
				summaryOf(t, r, Options{Color: true, Width: width})
			}
			marked := showMarkdown(t, r)
			showMarkdownForm(t, name, marked)
			reportertest.CompareGolden(t, filepath.Join("testdata", name+".md"), []byte(marked), *update)
		})
	}
}

// A node has the same name in all tables: the scheduler's name. In a Pod, the host name is the name of the Pod.
func TestWrite_NodeHasSameNameInAllTables(t *testing.T) {
	for nodes := 1; nodes <= 2; nodes++ {
		r := reportertest.Ranks(nodes, 2, 20)
		for i, n := range r.Nodes {
			n.Host.Hostname, n.Identity.NodeName = "job-4711-"+i+"-xk2vp", "worker-"+i
		}
		for _, out := range []string{summaryOf(t, r, whole), showMarkdown(t, r)} {
			if strings.Count(out, "worker-0") < 3 || strings.Contains(out, "xk2vp") { // in the line of the node, and in the lines of two ranks
				t.Errorf("%d nodes: want worker-0 at least 3 times, and not the Pod's name xk2vp:\n%s", nodes, out)
			}
		}
		if d := Details(r.Nodes["0"])[0]; !strings.HasPrefix(d.Value, "worker-0 (job-4711-0-xk2vp), ") {
			t.Errorf("host in the details %+v, want worker-0 and the Pod's name in parentheses", d)
		}
	}

	r := reportertest.Ranks(1, 2, 20)
	if d := Details(r.Nodes["0"])[0]; !strings.HasPrefix(d.Value, "node1.cluster.example.org, ") {
		t.Errorf("host in the details %+v, want the full name node1.cluster.example.org", d)
	}
}

// The rank that failed first is in the first row. Failed and uneven ranks are preferred, and no rank is lost.
func TestChooseRanks_PutsFirstFailureFirstAndLosesNoRank(t *testing.T) {
	r := withVerdict(t, manyRanks())
	rows := rankRows(r)
	if len(rows) != 64 {
		t.Fatalf("%d ranks, want 64", len(rows))
	}
	numbers := func(list []RankRow) (out []int) {
		for _, row := range list {
			out = append(out, row.Rank)
		}
		return out
	}
	shown, left := ChooseRanks(rows, 16)
	check.Equal(t, numbers(shown), []int{37, 0, 1, 2, 3, 5, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47}, "chosen ranks")
	check.Equal(t, RestOfRanks(left), "48 more: 48 succeeded", "rest")
	shown, left = ChooseRanks(rows, 4)
	check.Equal(t, numbers(shown), []int{37, 38, 39, 40}, "chosen ranks")
	check.Equal(t, RestOfRanks(left), "60 more: 53 succeeded, 7 SIGTERM", "rest")
	all := slices.Sorted(slices.Values(append(numbers(shown), numbers(left)...)))
	for i, rank := range all {
		if rank != i {
			t.Fatalf("rank at position %d of the sorted shown and omitted ranks is %d, want each rank once", i, rank)
		}
	}
	shown, _ = ChooseRanks(nil, 16)
	wantValues(t, "ranks chosen from none, and the rest", "[] ", shown, RestOfRanks(nil))
}

// The overview has the number of ranks and the ranks that failed.
func TestNewOverview_CountsRanksAndListsFailedRanks(t *testing.T) {
	o := NewOverview(withVerdict(t, manyRanks()), "", "")
	wantValues(t, "ranks, nodes, failed ranks, exit code", "64 4 [37 38 39 40 41 42 43 44 45 46 47] 7", o.Ranks,
		o.Nodes, o.FailedRanks, *o.ExitCode)
	check.Equal(t, o.Verdict, "Rank 37 on node3 failed (exit 7) after 59.0 s.", "verdict")
	if o := NewOverview(reportertest.Nodes(3, 1), "", ""); o.Ranks != 0 || o.FailedRanks == nil || len(o.FailedRanks) != 0 {
		t.Errorf("overview without ranks %+v, want 0 ranks and an empty list of failed ranks", o)
	}
}

func TestLine_NamesFirstFailedRank(t *testing.T) {
	for name, want := range map[string]string{
		"ranks":      "perfagent: Out of memory: rank 3 on node1 was killed at the limit of 8 GiB after 18.8 s. Ask for 12 GiB or more: the job needed more. Page: x.html\n",
		"ranks-many": "perfagent: Rank 37 on node3 failed (exit 7) after 59.0 s. Read its own output: ",
		"ranks-node": "perfagent: Rank 2 was killed by SIGSEGV after 17.0 s: it accessed memory that is not its own (segmentation fault). Read its own output, or run it in a debugger. ",
	} {
		r := withVerdict(t, rankReports()[name])
		if got := Line(r, "x.html", nil); !strings.HasPrefix(got, want) {
			t.Errorf("%s: line %q, want it to begin with %q", name, got, want)
		}
	}
}

// Slurm assigns CPUs to each task, and memory to the node.
func TestAdvice_SlurmLineRequestsCPUsPerTask(t *testing.T) {
	r := reportertest.Ranks(1, 4, 60)
	n := r.Nodes["0"]
	n.Limits.CPUs, n.Limits.CPUQuota, n.Limits.MemoryMB = 32, 32, 8192
	r.Run.Platform = reporter.PlatformSlurm
	check.Equal(t, Conclude(withVerdict(t, r)).Paste, "#SBATCH --cpus-per-task=2 --mem=4G", "line to paste")
}
