package diagnosis

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/reporter"
)

// The advice has the number of killed processes and their limit.
func TestMemoryKillFinding_NamesKillsAndLimit(t *testing.T) {
	t.Parallel()
	slurm := &reporter.Run{Platform: reporter.PlatformSlurm}
	for _, c := range []struct {
		kills, growth float64
		run           *reporter.Run
		want          string
	}{
		{1, 0, nil, "Set the limit to 384 MiB or more: the kernel killed 1 process at the memory limit of 256 MiB."},
		{3, 0, slurm, "Ask for 384 MiB or more: the kernel killed 3 processes at the memory limit of 256 MiB."},
		{1, 49.6, slurm, "Ask for 512 MiB or more: the kernel killed 1 process at the memory limit of 256 MiB, " +
			"and memory was still growing, by 50 MiB/s."},
	} {
		n := &reporter.Node{Verdict: &reporter.Verdict{Cause: CauseOOMCgroup,
			Evidence: map[string]any{"limit_mb": 256.0, "limit_kills": c.kills, "mb_per_second": c.growth},
		}}
		if f := MemoryKillFinding(n, c.run); f == nil || f.Text != c.want {
			t.Errorf("after %v kills: finding %+v, want %q", c.kills, f, c.want)
		}
	}
}

// The need is not known if memory grew in each of the last three samples before the kill, together by a tenth of the
// limit.
func TestMemoryGrowth(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	start := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		values []float64 // one each second
		kill   int       // seconds
		want   float64
	}{
		"grew to the end":           {[]float64{10, 10, 20, 60, 110}, 9, 100.0 / 3},
		"a sample after the kill":   {[]float64{10, 10, 20, 60, 110, 3}, 6, 100.0 / 3},
		"an unknown last sample":    {[]float64{10, 10, 20, 60, 110, nan}, 9, 100.0 / 3},
		"from its start":            {[]float64{20, 60, 110}, 9, 110.0 / 3},
		"stood still once":          {[]float64{10, 20, 60, 60}, 9, nan},
		"less than a tenth":         {[]float64{100, 108, 116, 125}, 9, nan},
		"a tenth":                   {[]float64{100, 108, 116, 125.75}, 9, 25.75 / 3},
		"too few":                   {[]float64{100, 200}, 9, nan},
		"grew and then fell":        {[]float64{10, 60, 120, 80}, 9, nan},
		"grew, and killed at once":  {nil, 9, nan},
		"grew only after the kill.": {[]float64{10, 10, 10, 60, 110, 160}, 4, nan},
	} {
		n := &reporter.Node{Sampling: &reporter.Sampling{Start: reporter.Time{Time: start}}}
		times := make([]float64, len(c.values))
		for i := range times {
			times[i] = float64(1001 + i)
		}
		n.Samples = reporter.Samples{Keys: []string{collector.Timestamp.Key(), collector.JobMemory.Key()},
			Columns: [][]float64{times, c.values}}
		got := memoryGrowth(n, start.Add(time.Duration(c.kill)*time.Second), 256)
		if !(math.Abs(got-c.want) < 1e-9) && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%s: growth %v MiB/s, want %v", name, got, c.want)
		}
	}
	if got := memoryGrowth(&reporter.Node{}, time.Time{}, nan); !math.IsNaN(got) {
		t.Errorf("without samples and limit: growth %v, want NaN", got)
	}
}

func TestSignalMeaning_NamesSegmentationFault(t *testing.T) {
	t.Parallel()
	if text := SignalMeaning("SIGSEGV"); !strings.Contains(text, "segmentation fault") {
		t.Errorf("SignalMeaning of SIGSEGV is %q, want it to name the segmentation fault", text)
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
	want := "Set the limit to 192 MiB: memory came to 100 % of the limit of 100 MiB, and 51 MiB of the job were swapped out " +
		"(this is the peak + 25 %, rounded)."
	if f := judgeMemoryTight(&ruleInput{Node: n, wall: 60}); f == nil || f.Text != want || f.Evidence["ask_mb"] != 192.0 || f.Evidence["swapped_mb"] != 51.0 {
		t.Errorf("finding %+v, want ask_mb 192, swapped_mb 51 and the text %q", f, want)
	}
	if ask := SuggestedMemory(n, findingRun); ask != 192 {
		t.Errorf("SuggestedMemory = %v MiB, want 192", ask)
	}
	n.Verdict = &reporter.Verdict{Cause: CauseOOMCgroup, Evidence: map[string]any{"limit_mb": 100.0, "limit_kills": 1.0}}
	if f := MemoryKillFinding(n, nil); f == nil || f.Evidence["ask_mb"] != 256.0 {
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
