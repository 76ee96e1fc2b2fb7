package diagnosis

import (
	"math"
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// MemoryKillFinding returns the finding MemoryTight if the kernel killed a process of the job on n at the memory limit
// imposed on it, however short the run was. It returns nil if there was no such kill, or if the limit is unknown.
func MemoryKillFinding(n *reporter.Node, run *reporter.Run) *reporter.Finding {
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

	e := &ruleInput{Node: n, run: run}
	ask := roundSize((limit + e.peakJobSwap()) * killedRoom(n.Verdict))
	return &reporter.Finding{
		ID: MemoryTight, Severity: SeverityWarning,
		Text:     killedText(n.Verdict, e.askFor(), ask, limit, max(kills, 1)),
		Evidence: evidence("limit_mb", limit, "ask_mb", ask, "oom_kills", max(kills, 1)),
	}
}

// killedText advises asking for ask MiB after the given number of kills at the limit.
func killedText(v *reporter.Verdict, askFor string, ask, limit, kills float64) string {
	words := askFor + text.TrimmedSizeText(ask) + " or more: the kernel killed " +
		text.Count(kills, "process", "processes") + " at the memory limit of " + text.TrimmedSizeText(limit)
	if rate := v.Number("mb_per_second"); rate > 0 {
		words += ", and memory was still growing, by " + GrowthText(rate)
	}
	return words + "."
}

// GrowthText formats a growth of memory in MiB per second, without decimals that were not measured.
func GrowthText(rate float64) string {
	if rate < 10 {
		return text.SpeedText(rate)
	}
	return text.SizeText(rate) + "/s"
}

// killedRoom returns by what factor to raise the limit after a kill at the limit. If memory was still growing, the need
// is unknown and the factor is larger.
func killedRoom(v *reporter.Verdict) float64 {
	if v.Number("mb_per_second") > 0 {
		return findGrowingRoom
	}
	return findKilledRoom
}

// The growth of memory at which the need of a job is considered unknown.
const (
	growthSamples = 3   // in each of the last samples, memory is larger than in the sample before
	growthShare   = 0.1 // of the limit, in these samples together
)

// memoryGrowth returns the growth of the job's memory, in MiB per second, over the last samples before the given time.
// It returns NaN if memory did not grow in each of them, or if it grew by too small a share of limit, which is in MiB.
func memoryGrowth(n *reporter.Node, before time.Time, limit float64) float64 {
	values := n.Samples.Column(collector.JobMemory.Key())
	times := n.Samples.Column(collector.Timestamp.Key())
	var at, mb []float64
	for i := range min(len(values), len(times)) {
		if seconds := float64(before.UnixMicro()) / 1e6; !math.IsNaN(values[i]) && (before.IsZero() || times[i] < seconds) {
			at, mb = append(at, times[i]), append(mb, values[i])
		}
	}
	if s := n.Sampling; len(mb) == growthSamples && s != nil && !s.Start.IsZero() { // a job begins with next to nothing
		at, mb = slices.Insert(at, 0, float64(s.Start.UnixMicro())/1e6), slices.Insert(mb, 0, 0)
	}

	last, first := len(mb)-1, len(mb)-1-growthSamples
	if first < 0 {
		return math.NaN()
	}
	for i := first; i < last; i++ {
		if !(mb[i+1] > mb[i]) {
			return math.NaN()
		}
	}
	grown, seconds := mb[last]-mb[first], at[last]-at[first]
	if !positive(limit) || !(grown >= growthShare*limit) || !(seconds > 0) {
		return math.NaN()
	}
	return grown / seconds
}

// SuggestedMemory returns how much memory to request, in MiB: twice the job's need, rounded up, but no more than its
// limit or 1.25 × its need, whichever is higher. It returns NaN if the need is unknown.
func SuggestedMemory(n *reporter.Node, run *reporter.Run) float64 {
	e := ruleInput{Node: n, command: commandOf(n, run), run: run}
	if why, _ := e.reclaimReason(); why != "" || e.memoryOption() != "" {
		return math.NaN()
	}
	need := e.neededMemory()
	ask := roundSize(findMemoryRoom * need)
	if limit := e.memoryGiven(); ask > limit {
		return max(math.Floor(limit), roundSize(findTightRoom*need))
	}
	return ask
}

// If swapped or refaulted memory is at least this share of the peak, the job could have used more memory.
const (
	reclaimSwapShare    = 0.05
	reclaimRefaultShare = 0.1
)

// reclaimReason returns what kept the memory of the job below its need, as text and as a name for programs, or "" if
// nothing did. If something did, the need is unknown, and less memory than the job had may be too little.
func (e *ruleInput) reclaimReason() (words, name string) {
	if e.Limits == nil || e.Limits.Reclaim == nil {
		return "", ""
	}
	r, peak := e.Limits.Reclaim, e.peakMemory()
	switch {
	case r.HighMB > 0:
		return "memory.high of " + text.TrimmedSizeText(r.HighMB) + " held it down", "memory.high"
	case r.SwapMB >= reclaimSwapShare*peak:
		return "up to " + text.TrimmedSizeText(r.SwapMB) + " of it were in swap", "swap"
	case r.RefaultedMB >= reclaimRefaultShare*peak:
		return text.TrimmedSizeText(r.RefaultedMB) + " had to be read again after the kernel had dropped them", "refaults"
	}
	return "", ""
}

// unknownNeedFinding returns the finding that the job used less memory than it has, with the reason why no amount is
// advised. It returns nil if the peak shows the need.
func (e *ruleInput) unknownNeedFinding(used string) *reporter.Finding {
	key, words := "sized_by", ""
	reason, name := e.reclaimReason()
	switch option := text.Printable(e.memoryOption()); {
	case reason != "":
		key, words = "held_by", "Keep the memory: "+used+", but "+reason+", so how much it needs is not known."
	case option == "":
		return nil
	case option == "java":
		name, words = option, "Set -Xmx before you ask for less memory: "+used+
			", and Java takes a part of the memory that it finds."
	default:
		name, words = option, "Lower "+option+" before you ask for less memory: "+used+
			", and may take as much as that allows."
	}
	return &reporter.Finding{Severity: SeverityInfo, Text: words, Evidence: map[string]any{key: name}}
}
