package diagnosis

import (
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/reporter"
)

// The advice has the number of killed processes and their limit.
func TestKilledForMemory(t *testing.T) {
	t.Parallel()
	for kills, want := range map[float64]string{
		1: "The kernel killed 1 process at the memory limit of 256 MiB: ask for at least 384 MiB.",
		3: "The kernel killed 3 processes at the memory limit of 256 MiB: ask for at least 384 MiB.",
	} {
		n := &reporter.Node{Verdict: &reporter.Verdict{
			Cause: CauseOOMCgroup, Evidence: map[string]any{"limit_mb": 256.0, "limit_kills": kills},
		}}
		if f := MemoryKillFinding(n); f == nil || f.Text != want {
			t.Errorf("%v kills: %+v, want %q", kills, f, want)
		}
	}

	if text := crashText("SIGSEGV"); !strings.Contains(text, "segmentation fault") {
		t.Errorf("SIGSEGV: %q", text)
	}
}

// swappingNode returns a node with a job of 151 MiB, 51 of them swapped out for a limit of 100.
func swappingNode() *reporter.Node {
	n := findingNode()
	n.Limits.MemoryMB = 100
	n.Metrics[reporter.MetricLimitMemory], n.Metrics[reporter.MetricJobMemoryPeak] = 100, 151
	n.Summaries[collector.JobMemorySwap.Key()] = reporter.Summary{Mean: 40, Max: 51}
	return n
}

// Advice includes swapped memory, and is never so little that it has to be swapped again.
func TestAdvice_CountsSwap(t *testing.T) {
	t.Parallel()
	n := swappingNode()
	want := "The memory in use came to 100.0 % of the limit of 100 MiB, and 51 MiB of the job's were swapped out: ask for 192 MiB."
	if f := judgeMemoryTight(&ruleInput{Node: n, wall: 60}); f == nil || f.Text != want || f.Evidence["ask_mb"] != 192.0 || f.Evidence["swapped_mb"] != 51.0 {
		t.Errorf("%+v, want %q", f, want)
	}
	if ask := SuggestedMemory(n, findingRun); ask != 192 {
		t.Errorf("asks for %v MiB", ask)
	}
	n.Verdict = &reporter.Verdict{Cause: CauseOOMCgroup, Evidence: map[string]any{"limit_mb": 100.0, "limit_kills": 1.0}}
	if f := MemoryKillFinding(n); f == nil || f.Evidence["ask_mb"] != 256.0 {
		t.Errorf("after a kill: %+v", f)
	}
}

// Shared memory of an unknown owner may be the job's: advice includes it.
func TestAdvice_CountsMemoryWithoutOwner(t *testing.T) {
	t.Parallel()
	n := findingNode()
	n.Job = &reporter.Job{UnownedMB: 3000}
	n.Metrics[reporter.MetricJobMemoryPeak], n.Metrics[reporter.MetricLimitMemory] = 100, 2
	if f := judgeMemoryUnused(&ruleInput{Node: n, wall: 60}); f != nil {
		t.Errorf("100 MiB and 3000 of 8192: %+v", f)
	}
	if ask := SuggestedMemory(n, findingRun); ask < 6200 {
		t.Errorf("asks for %v MiB", ask)
	}
	n.Job.UnownedMB = 0
	if f := judgeMemoryUnused(&ruleInput{Node: n, wall: 60}); f == nil {
		t.Error("100 MiB of 8192: no advice")
	}
}
