package diagnosis

import (
	"fmt"
	"math"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// The thresholds for a starved GPU.
const (
	starvedShare   = 20  // percent of the run that it spent in idle gaps
	starvedCPUs    = 0.8 // CPUs that the job kept busy in the gaps
	starvedWaiting = 50  // percent of the gaps in which tasks waited for storage
	starvedDisk    = 50  // MiB/s of disk traffic in the gaps
)

// The resources that may keep a GPU waiting.
const (
	busyCPU  = "cpu"
	busyDisk = "disk"
)

// judgeGPUStarved fires if GPUs of the job waited while a CPU or a disk was busy. Its numbers are from the GPU with the
// longest idle time.
func judgeGPUStarved(e *ruleInput) *reporter.Finding {
	var starved []int
	var worst *reporter.GPUIdle
	for i := range e.GPUs {
		g := &e.GPUs[i]
		if !g.OfJob || e.gpuIsIdle(i) || !(e.idleShare(g.Idle) > starvedShare) || busyResource(g.Idle) == "" {
			continue
		}
		starved = append(starved, g.Index)
		if worst == nil || g.Idle.Seconds > worst.Seconds {
			worst = g.Idle
		}
	}
	if worst == nil {
		return nil
	}

	gaps := text.Count(float64(worst.Gaps), "gap", "gaps")
	words := fmt.Sprintf("%s idle for %s of the time, in %s of up to %s, while ", gpuNames(starved, "was", "were"),
		text.WholePercent(e.idleShare(worst)), gaps, text.Seconds(worst.LongestGapSeconds))
	busy := busyResource(worst)
	if busy == busyCPU {
		words = fmt.Sprintf("Prepare the GPU's work in more processes, or ahead of it: %sthe job kept %s busy.", words,
			text.CPUs(float64(worst.JobCPUs))+" "+text.Plural(float64(worst.JobCPUs), "CPU", "CPUs"))
	} else {
		words = "Read ahead in more processes, or from a faster disk: " + words + "a disk was busy."
	}

	return &reporter.Finding{Text: words, Evidence: evidence("gpus", starved, "idle_pct", e.idleShare(worst),
		"gaps", worst.Gaps, "longest_gap_seconds", worst.LongestGapSeconds, "busy", busy,
		"job_cpus", float64(worst.JobCPUs))}
}

// gpuIsIdle reports whether next to nothing ran on the given GPU, so the job does not need it.
func (e *ruleInput) gpuIsIdle(device int) bool {
	mean := e.gpuUse(device)
	return mean >= 0 && mean < gpuIdleShare && e.gpuCoverage(device) >= gpuIdleKnown
}

// idleShare returns the idle time of a GPU, i, in percent of the run, or NaN if it is unknown.
func (e *ruleInput) idleShare(i *reporter.GPUIdle) float64 {
	if i == nil || !positive(i.Seconds) {
		return math.NaN()
	}
	return min(100, 100*i.Seconds/e.wall)
}

// busyResource returns the resource that was busy while the GPU was idle, or "" if none was.
func busyResource(i *reporter.GPUIdle) string {
	switch {
	case i.JobCPUs >= starvedCPUs:
		return busyCPU
	case i.WaitingForStorePct >= starvedWaiting || i.DiskMBPerSecond >= starvedDisk:
		return busyDisk
	}
	return ""
}
