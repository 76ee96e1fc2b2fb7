package diagnosis

import (
	"fmt"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// judgeMemoryShared fires if a third of the job's memory at its peak was in /dev/shm, another tmpfs or shared memory,
// and that was much memory, or memory ran out.
func judgeMemoryShared(e *ruleInput) *reporter.Finding {
	parts, when, ranOut := e.PeakParts(), "at its peak", e.Verdict != nil && IsOutOfMemory(e.Verdict.Cause)
	if ranOut && e.Job != nil && e.Job.MemoryAtKill != nil {
		parts, when = e.Job.MemoryAtKill, "before memory ran out"
	}
	if parts == nil || !positive(parts.ShmemMB) {
		return nil
	}

	// The job's peak excludes page cache, which the parts of a control group include.
	peak := parts.SumMB()
	if job := e.Metric(reporter.MetricJobMemoryPeak); positive(job) {
		peak = max(min(peak, job), parts.ShmemMB)
	}
	if !positive(peak) || findSharedPart*parts.ShmemMB < peak || !ranOut && parts.ShmemMB < findSharedMB {
		return nil
	}

	advice, severity := "raise --shm-size if /dev/shm is too small", ""
	if ranOut {
		advice, severity = "ask for more memory (a larger --shm-size alone does not help)", SeverityWarning
	}
	return &reporter.Finding{Severity: severity, Evidence: evidence("shmem_mb", parts.ShmemMB, "peak_mb", peak),
		Text: fmt.Sprintf("Use fewer workers, or %s: %s of the job's %s %s were in /dev/shm or other shared memory.",
			advice, text.TrimmedSizeText(parts.ShmemMB), text.TrimmedSizeText(peak), when)}
}
