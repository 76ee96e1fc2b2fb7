package diagnosis

import (
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/reporter"
)

// The advice has the number of killed processes and their limit.
func TestMemoryKillFinding_NamesKillsAndLimit(t *testing.T) {
	t.Parallel()
	for kills, want := range map[float64]string{
		1: "The kernel killed 1 process at the memory limit of 256 MiB: ask for at least 384 MiB.",
		3: "The kernel killed 3 processes at the memory limit of 256 MiB: ask for at least 384 MiB.",
	} {
		n := &reporter.Node{Verdict: &reporter.Verdict{
			Cause: CauseOOMCgroup, Evidence: map[string]any{"limit_mb": 256.0, "limit_kills": kills},
		}}
		if f := MemoryKillFinding(n); f == nil || f.Text != want {
			t.Errorf("after %v kills: finding %+v, want %q", kills, f, want)
		}
	}
}

func TestCrashText_NamesSegmentationFault(t *testing.T) {
	t.Parallel()
	if text := crashText("SIGSEGV"); !strings.Contains(text, "segmentation fault") {
		t.Errorf("crashText of SIGSEGV is %q, want it to name the segmentation fault", text)
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
func TestSuggestedMemory_CountsSwap(t *testing.T) {
	t.Parallel()
	n := swappingNode()
	want := "The memory in use came to 100.0 % of the limit of 100 MiB, and 51 MiB of the job's were swapped out: ask for 192 MiB."
	if f := judgeMemoryTight(&ruleInput{Node: n, wall: 60}); f == nil || f.Text != want || f.Evidence["ask_mb"] != 192.0 || f.Evidence["swapped_mb"] != 51.0 {
		t.Errorf("finding %+v, want ask_mb 192, swapped_mb 51 and the text %q", f, want)
	}
	if ask := SuggestedMemory(n, findingRun); ask != 192 {
		t.Errorf("SuggestedMemory = %v MiB, want 192", ask)
	}
	n.Verdict = &reporter.Verdict{Cause: CauseOOMCgroup, Evidence: map[string]any{"limit_mb": 100.0, "limit_kills": 1.0}}
	if f := MemoryKillFinding(n); f == nil || f.Evidence["ask_mb"] != 256.0 {
		t.Errorf("after a kill: finding %+v, want ask_mb 256", f)
	}
}

// Shared memory of an unknown owner may be the job's: advice includes it.
func TestSuggestedMemory_CountsSharedMemoryWithoutOwner(t *testing.T) {
	t.Parallel()
	n := findingNode()
	n.Job = &reporter.Job{UnownedMB: 3000}
	n.Metrics[reporter.MetricJobMemoryPeak], n.Metrics[reporter.MetricLimitMemory] = 100, 2
	if f := judgeMemoryUnused(&ruleInput{Node: n, wall: 60}); f != nil {
		t.Errorf("job of 100 MiB, 3000 MiB without an owner, limit 8192: finding %+v, want none", f)
	}
	if ask := SuggestedMemory(n, findingRun); ask < 6200 {
		t.Errorf("SuggestedMemory = %v MiB, want at least 6200 (unowned shared memory counts)", ask)
	}
	n.Job.UnownedMB = 0
	if f := judgeMemoryUnused(&ruleInput{Node: n, wall: 60}); f == nil {
		t.Error("job of 100 MiB, limit 8192 MiB: no finding, want memory_unused")
	}
}
