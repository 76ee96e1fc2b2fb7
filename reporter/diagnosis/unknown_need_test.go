package diagnosis

import (
	"math"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/reporter"
)

// The option that sets the memory of a program is found in its command line.
func TestMemoryOptionIn(t *testing.T) {
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
	little := findingSet(reporter.MetricJobMemoryPeak, 1000.0, reporter.MetricLimitMemory, 13.0)
	heldBy := func(h reporter.Reclaim) func(*reporter.Node) {
		return findingAll(little, func(n *reporter.Node) { n.Limits.Reclaim = &h })
	}
	const used = "it used at most 1 GiB of its 8 GiB"
	const held = "info: Keep the memory: " + used + ", but "
	for name, c := range map[string]struct {
		change   func(*reporter.Node)
		want     string
		evidence string
	}{
		"memory.high": {heldBy(reporter.Reclaim{HighMB: 1024}), held + "memory.high of 1 GiB held it down, so how much it needs is not known.", "held_by"},
		"swap":        {heldBy(reporter.Reclaim{SwapMB: 300}), held + "up to 300 MiB of it were in swap, so how much it needs is not known.", "held_by"},
		"page cache": {heldBy(reporter.Reclaim{RefaultedMB: 4096}),
			held + "4 GiB had to be read again after the kernel had dropped them, so how much it needs is not known.", "held_by"},
		"java": {findingAll(little, func(n *reporter.Node) { n.Command = []string{"java", "-Xmx3g", "X"} }),
			"info: Lower -Xmx3g before you ask for less memory: " + used + ", and may take as much as that allows.", "sized_by"},
		"java in a script": {findingAll(little, func(n *reporter.Node) {
			n.Processes = []reporter.Process{{Command: "bash x.sh"}, {Command: "java -jar x.jar"}}
		}), "info: Set -Xmx before you ask for less memory: " + used + ", and Java takes a part of the memory that it finds.", "sized_by"},
		"a little": {heldBy(reporter.Reclaim{SwapMB: 1, RefaultedMB: 50}),
			"warning: Set the limit to 2.5 GiB instead of 8 GiB: it used 1 GiB at most (this is twice that, rounded).", "ask_mb"},
	} {
		got, evidence := judged(ruleMemoryUnused, c.change)
		_, amount := evidence["ask_mb"]
		if _, has := evidence[c.evidence]; got != c.want || !has || amount != (c.evidence == "ask_mb") {
			t.Errorf("%s: finding %q with evidence %v; want %q with %s, and an amount only if that is ask_mb", name,
				got, evidence, c.want, c.evidence)
		}

		n := findingNode()
		if c.change(n); math.IsNaN(SuggestedMemory(n, findingRun)) == (c.evidence == "ask_mb") {
			t.Errorf("%s: SuggestedMemory = %v MiB, want a number only if the evidence has ask_mb", name,
				SuggestedMemory(n, findingRun))
		}
	}

	tight := findingAll(heldBy(reporter.Reclaim{SwapMB: 4096}), findingSet(reporter.MetricLimitMemory, 95.0))
	if got, _ := judged(MemoryTight, tight); !strings.HasPrefix(got, "warning: Set the limit to 10 GiB or more: ") || !strings.HasSuffix(got, ", and up to 4 GiB of it were in swap; how much it needs is not known.") {
		t.Errorf("finding memory_tight %q, want 10 GiB or more, 4 GiB in swap, and that the need is not known", got)
	}
}

// The suggested memory is never less than 1.25 × the peak, even if the job has less.
func TestSuggestedMemory_IsAtLeastAQuarterAbovePeak(t *testing.T) {
	for peak, want := range map[float64]float64{1000: 2048, 4000: 8192, 5000: 8192, 6500: 8192, 7000: 10240, 8000: 10240} {
		n := findingNode()
		findingSet(reporter.MetricJobMemoryPeak, peak, reporter.MetricLimitMemory, 1.0)(n)
		if got := SuggestedMemory(n, findingRun); got != want || got < findTightRoom*peak {
			t.Errorf("peak %v MiB: SuggestedMemory = %v, want %v and at least 1.25 × the peak", peak, got, want)
		}
	}
}
