package diagnosis

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// KilledForMemory returns the finding MemoryTight of a node on which the kernel killed a process of the job
// for the memory limit that the job has from outside, however short the run was. It returns nil if that did
// not happen, or if the limit is not known.
func KilledForMemory(n *reporter.Node) *reporter.Finding {
	if n == nil || n.Verdict == nil {
		return nil
	}

	limit, kills := n.Verdict.Number("limit_mb"), n.Verdict.Number("limit_kills")
	if limit == 0 && kills > 0 && n.Limits != nil { // the job survived
		limit = float64(n.Limits.MemoryMB)
	}
	if !positive(limit) || n.Verdict.Cause != CauseOOMCgroup && !(kills > 0) {
		return nil
	}

	ask := roundSize((limit + (&ruleInput{Node: n}).swappedOut()) * findKilledRoom)
	killed := text.Count(max(kills, 1), "process", "processes")
	return &reporter.Finding{
		ID: MemoryTight, Severity: SeverityWarning,
		Text: "The kernel killed " + killed + " at the memory limit of " + text.WholeSize(limit) + ": ask for at least " +
			text.WholeSize(ask) + ".",
		Evidence: evidence("limit_mb", limit, "ask_mb", ask, "oom_kills", max(kills, 1)),
	}
}

// ShortVerdict returns the sentence of a verdict. For a kill for memory it leaves out the time and the peak.
func ShortVerdict(v *reporter.Verdict) string {
	if !OutOfMemory(v.Cause) {
		return v.Text
	}

	words := v.Text
	if when, err := time.Parse(time.RFC3339Nano, fmt.Sprint(v.Evidence["time"])); err == nil {
		words, _, _ = strings.Cut(words, " at "+clockTime(when))
	}
	words, _, _ = strings.Cut(words, "; ")
	return words
}

// RoomyMemory returns twice the memory in MiB that the job needed, rounded up, but not more than its limit, unless that
// is less than 1.25 × the need. It returns NaN if it is not known how much the job needs.
func RoomyMemory(n *reporter.Node, run *reporter.Run) float64 {
	e := ruleInput{Node: n, command: commandOf(n, run)}
	if why, _ := e.heldDown(); why != "" || e.sizedBy() != "" {
		return math.NaN()
	}
	need := e.neededMemory()
	ask := roundSize(findMemoryRoom * need)
	if limit := e.memoryGiven(); ask > limit {
		return max(math.Floor(limit), roundSize(findTightRoom*need))
	}
	return ask
}

// ShortAdvice returns the advice of a rule in a few words, or "" if it is not known.
func ShortAdvice(id string) string { return ruleOf(id).Advice }
