package diagnosis

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/reporter"
)

// The advice states the number of killed processes and their limit.
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

// Growth is reported if memory grew in each of the last three samples before the kill, and by a tenth of the limit in
// total.
func TestMemoryGrowth_NeedsThreeRisingSamples(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	start := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		values []float64 // one each second
		kill   int       // seconds
		want   float64
	}{
		"grew to the end":                {[]float64{10, 10, 20, 60, 110}, 9, 100.0 / 3},
		"sample after the kill":          {[]float64{10, 10, 20, 60, 110, 3}, 6, 100.0 / 3},
		"last sample unknown":            {[]float64{10, 10, 20, 60, 110, nan}, 9, 100.0 / 3},
		"grew from the start":            {[]float64{20, 60, 110}, 9, 110.0 / 3},
		"constant once":                  {[]float64{10, 20, 60, 60}, 9, nan},
		"less than a tenth of the limit": {[]float64{100, 108, 116, 125}, 9, nan},
		"a tenth of the limit":           {[]float64{100, 108, 116, 125.75}, 9, 25.75 / 3},
		"too few samples":                {[]float64{100, 200}, 9, nan},
		"grew and then fell":             {[]float64{10, 60, 120, 80}, 9, nan},
		"no samples":                     {nil, 9, nan},
		"grew only after the kill":       {[]float64{10, 10, 10, 60, 110, 160}, 4, nan},
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
		t.Errorf("node without samples, no limit: growth %v, want NaN", got)
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

// Advice includes swapped memory, and is never so little that the job would swap again.
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

// Shared memory of an unknown owner may belong to the job, so advice includes it.
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

// The option that sets the memory of a program is found in its command line.
func TestMemoryOptionIn_FindsOptionThatSetsMemory(t *testing.T) {
	for command, want := range map[string]string{
		"java -Xms1g -Xmx3g -jar x.jar":                           "-Xmx3g",
		"/usr/lib/jvm/bin/java -jar x.jar":                        "java",
		"java -XX:MaxRAMPercentage=60 X":                          "-XX:MaxRAMPercentage=60",
		"gatk --java-options -Xmx8G HaplotypeCaller":              "-Xmx8G",
		"sh -c 'java -Xmx2g'":                                     "-Xmx2g",
		"sh -c 'java -Xmx2g; true'":                               "-Xmx2g",
		"sh -c '(sort -S 2G; true)'":                              "-S 2G",
		"sh -c '(cd x; sort -u -S 2G)'":                           "-S 2G",
		"cellranger count --localmem=64 --id x":                   "--localmem=64",
		"samtools sort -@ 8 -m 2G in.bam":                         "-m 2G",
		"samtools sort -m768M in.bam":                             "-m768M",
		"sort -S 50% big":                                         "-S 50%",
		"sort --buffer-size=4G big":                               "--buffer-size=4G",
		"STAR --limitBAMsortRAM 31000000000 --runMode alignReads": "--limitBAMsortRAM 31000000000",
		"Trinity --max_memory 50G":                                "--max_memory 50G",
		"spades.py --memory 250":                                  "--memory 250",
		"srun --mem=8G ./model":                                   "--mem=8G",
		"spark-submit --driver-memory 4g app.py":                  "--driver-memory 4g",
		"node --max-old-space-size=4096 app.js":                   "--max-old-space-size=4096",
		"redis-server --maxmemory 2gb":                            "--maxmemory 2gb",
		"app mem=12g":                                             "mem=12g",

		"python -m train --epochs 5":                "",
		"train --param 5 --frames 10 --program 7":   "",
		"train --memory-format channels_last -m 20": "",
		"train --pin-memory --batch 4":              "",
		"make -S 4 MEM":                             "",
		"echo mem 4":                                "",
		"--mem":                                     "",
		"":                                          "",
	} {
		if got := memoryOptionIn(strings.Fields(command)); got != want {
			t.Errorf("memoryOptionIn(%s) = %q, want %q", command, got, want)
		}
	}
}

// If the peak does not show the need of a job, no amount is advised, and the reason is given.
func TestFindings_UnknownNeedGivesReasonAndNoAmount(t *testing.T) {
	little := metrics("memory=1000 limit=13")
	heldBy := func(h reporter.Reclaim) change {
		return all(little, func(n *reporter.Node) { n.Limits.Reclaim = &h })
	}
	const used = "it used at most 1 GiB of its 8 GiB"
	const held = "info: Keep the memory: " + used + ", but "
	for name, c := range map[string]struct {
		change   change
		want     string
		evidence string
	}{
		"memory.high": {heldBy(reporter.Reclaim{HighMB: 1024}), held + "memory.high of 1 GiB held it down, so how much it needs is not known.", "held_by"},
		"swap":        {heldBy(reporter.Reclaim{SwapMB: 300}), held + "up to 300 MiB of it were in swap, so how much it needs is not known.", "held_by"},
		"page cache": {heldBy(reporter.Reclaim{RefaultedMB: 4096}),
			held + "4 GiB had to be read again after the kernel had dropped them, so how much it needs is not known.", "held_by"},
		"java": {all(little, func(n *reporter.Node) { n.Command = []string{"java", "-Xmx3g", "X"} }),
			"info: Lower -Xmx3g before you ask for less memory: " + used + ", and may take as much as that allows.", "sized_by"},
		"java in a script": {all(little, func(n *reporter.Node) {
			n.Processes = []reporter.Process{{Command: "bash x.sh"}, {Command: "java -jar x.jar"}}
		}), "info: Set -Xmx before you ask for less memory: " + used + ", and Java takes a part of the memory that it finds.", "sized_by"},
		"little reclaim": {heldBy(reporter.Reclaim{SwapMB: 1, RefaultedMB: 50}),
			"warning: Set the limit to 2.5 GiB instead of 8 GiB: it used 1 GiB at most (this is twice that, rounded).", "ask_mb"},
	} {
		got, evidence := judged(ruleMemoryUnused, c.change)
		_, amount := evidence["ask_mb"]
		if _, has := evidence[c.evidence]; got != c.want || !has || amount != (c.evidence == "ask_mb") {
			t.Errorf("%s: finding %q with evidence %v; want %q with %s, and an amount only under the key ask_mb", name,
				got, evidence, c.want, c.evidence)
		}

		n := findingNode()
		if c.change(n); math.IsNaN(SuggestedMemory(n, findingRun)) == (c.evidence == "ask_mb") {
			t.Errorf("%s: SuggestedMemory = %v MiB, want a number only if the evidence contains ask_mb", name,
				SuggestedMemory(n, findingRun))
		}
	}

	tight := all(heldBy(reporter.Reclaim{SwapMB: 4096}), metrics("limit=95"))
	if got, _ := judged(MemoryTight, tight); !strings.HasPrefix(got, "warning: Set the limit to 10 GiB or more: ") || !strings.HasSuffix(got, ", and up to 4 GiB of it were in swap; how much it needs is not known.") {
		t.Errorf("finding memory_tight %q, want 10 GiB or more, 4 GiB in swap, and that the need is not known", got)
	}
}

// The suggested memory is never less than 1.25 × the peak, even if the job's limit is lower.
func TestSuggestedMemory_IsAtLeastAQuarterAbovePeak(t *testing.T) {
	for peak, want := range map[float64]float64{1000: 2048, 4000: 8192, 5000: 8192, 6500: 8192, 7000: 10240, 8000: 10240} {
		n := findingNode()
		metrics("memory=%v limit=1", peak)(n)
		if got := SuggestedMemory(n, findingRun); got != want || got < findTightRoom*peak {
			t.Errorf("peak %v MiB: SuggestedMemory = %v, want %v and at least 1.25 × the peak", peak, got, want)
		}
	}
}
