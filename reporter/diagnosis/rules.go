package diagnosis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// askAtLimit returns how much memory in MiB a job near its limit should ask for, and the peak on which that amount is
// based. If the kernel killed a process at the limit, the job needed more than its peak.
func (e *ruleInput) askAtLimit(pct, limit, kills float64) (ask, peak float64) {
	peak = e.groupPeak()
	if kills > 0 {
		needed := (limit + e.peakJobSwap()) * killedRoom(e.Verdict)
		if e.Limits.MemoryRange != nil { // the limit was raised, and the job went on
			needed = max(needed, finiteOrZero(peak)*findTightRoom)
		}
		return roundSize(needed), pct / 100 * limit
	}
	return roundSize(max(peak+e.peakJobSwap(), finiteOrZero(e.peakMemory())) * findTightRoom), peak
}

// ofLimit formats the limit for a sentence: " of 2 GiB". It lists all values of a limit that changed. It returns "" if
// the limit is unknown.
func (e *ruleInput) ofLimit(limit float64) string {
	switch {
	case e.Limits != nil && e.Limits.MemoryRange != nil:
		return " of " + reporter.MemoryLimitText(e.Limits, text.TrimmedSizeText) +
			" (" + reporter.LimitChangeText(e.Limits.MemoryRange) + ")"
	case positive(limit):
		return " of " + text.TrimmedSizeText(limit)
	}
	return ""
}

// judgeMemoryTight fires if the job came close to its memory limit.
func judgeMemoryTight(e *ruleInput) *reporter.Finding {
	pct, limit := e.Metric(reporter.MetricLimitMemory), e.memoryLimit()
	kills := e.Verdict.Number("limit_kills")                             // in the group, caused by this limit
	if atKill := e.Verdict.Number("limit_mb"); kills > 0 && atKill > 0 { // the limit may have changed since
		limit = atKill
	}
	if !positive(pct) || pct < findTightPct {
		return nil
	}

	ask, peak := e.askAtLimit(pct, limit, kills)
	severity, words := e.tightText(pct, limit, kills, ask)
	swapped := e.peakJobSwap()
	f := &reporter.Finding{Severity: severity, Text: words,
		Evidence: evidence("limit_memory_pct", pct, "peak_mb", peak, "limit_mb", limit,
			"ask_mb", ask, "oom_kills", kills)}
	if swapped > 0 {
		f.Evidence["swapped_mb"] = text.Round(swapped, 3)
	}
	return f
}

// tightText returns the severity ("" = the rule's) and the text of the finding on memory that came to pct percent of
// the limit.
func (e *ruleInput) tightText(pct, limit, kills, ask float64) (severity, words string) {
	if kills > 0 {
		return "", killedText(e.Verdict, e.askFor(), ask, limit, kills)
	}

	reached := "memory came to " + text.WholePercent(pct) + " of the limit" + e.ofLimit(limit)
	swapped := e.peakJobSwap()
	if swapped >= 1 {
		reached += ", and " + text.TrimmedSizeText(swapped) + " of the job were swapped out"
	}
	reason, name := e.reclaimReason()
	if name == "swap" && swapped >= 1 { // the text already mentions swap
		reason = ""
	}

	own := e.Metric(reporter.MetricJobMemoryPeak)
	switch {
	case own < findTightOwn*limit:
		return SeverityInfo, "Look what else its control group holds, or ask for more memory: " + reached +
			", and the job itself had " + text.TrimmedSizeText(own) + " at most."
	case !positive(ask):
		return "", "Ask for more memory: " + reached + "."
	case name == "":
		return "", e.askFor() + text.TrimmedSizeText(ask) + ": " + reached + " (this is the peak + 25 %, rounded)."
	case reason != "":
		reached += ", and " + reason
	}
	return "", e.askFor() + text.TrimmedSizeText(ask) + " or more: " + reached + "; how much it needs is not known."
}

// judgeDisk fires if a file system was nearly full.
func judgeDisk(e *ruleInput) *reporter.Finding {
	pct, free := e.Metric(reporter.MetricDiskPeak), math.NaN()
	if q, ok := e.Summaries[collector.DiskFree.Key()]; ok && q.Min >= 0 {
		free = q.Min
	}
	if !positive(pct) || pct < findDiskPct || free >= findDiskFreeMB {
		return nil
	}
	words := "Make room, or write elsewhere: the file system " + e.fullestPath() + "was up to " +
		text.WholePercent(pct) + " full"
	if !math.IsNaN(free) {
		words += ", with " + text.TrimmedSizeText(free) + " free"
	}
	return &reporter.Finding{Text: words + ".", Evidence: evidence("disk_usage_pct", pct, "free_mb", free)}
}

// judgeGPUIdle fires if next to nothing ran on GPUs of the job. It advises asking for fewer GPUs, but keeping the GPUs
// with memory in use.
func judgeGPUIdle(e *ruleInput) *reporter.Finding {
	var idle []int
	var use []float64
	own, filled, held := 0, 0, math.NaN() // held: the most memory in use on one GPU
	for i, g := range e.GPUs {
		if !g.OfJob {
			continue
		}
		own++
		if e.gpuIsIdle(i) {
			idle, use = append(idle, g.Index), append(use, text.Round(e.gpuUse(i), 3))
			peak, all := e.GPUMetric(reporter.MetricGPUMemoryPeak, i), float64(g.MemoryMB)
			if positive(all) && 100*(peak/all) >= findGPUHeldPct {
				filled++
			}
			if !(peak <= held) {
				held = peak
			}
		}
	}

	if len(idle) == 0 {
		return nil
	}

	words := fmt.Sprintf("%s nearly idle, with a kernel for %s of the time%s "+
		"(how much of the GPU it used is not known)",
		gpuNames(idle, "was", "were"), text.WholePercent(slices.Max(use)), text.Plural(len(idle), "", " at most"))
	if filled > 0 {
		words += fmt.Sprintf(", though up to %s of %s was in use",
			text.TrimmedSizeText(held), text.Plural(len(idle), "its memory", "the memory of one"))
	}
	advice := "Find what " + text.Plural(len(idle), "it waits", "they wait") + " for: "
	switch needed := own - len(idle) + filled; {
	case filled == len(idle):
	case needed > 0:
		advice = fmt.Sprintf("Ask for %s instead of %d, or f%s", text.Count(needed, "GPU", "GPUs"), own, advice[1:])
	default:
		advice = "Ask for no GPU, or f" + advice[1:]
	}
	return &reporter.Finding{Text: advice + words + ".",
		Evidence: evidence("gpus", idle, "avg_utilization_pct", use, "peak_mb", held, "gpus_of_job", own)}
}

// judgeGPUMemory fires if the memory of GPUs of the job was full.
func judgeGPUMemory(e *ruleInput) *reporter.Finding {
	var full []int
	var used, total []float64
	fullest := 0
	for i, g := range e.GPUs {
		peak := e.GPUMetric(reporter.MetricGPUMemoryPeak, i)
		if all := float64(g.MemoryMB); g.OfJob && positive(all) && positive(peak) &&
			100*(peak/all) >= findGPUMemoryPct {
			full = append(full, g.Index)
			used, total = append(used, text.Round(peak, 3)), append(total, text.Round(all, 3))
			if n := len(full) - 1; used[n]/total[n] > used[fullest]/total[fullest] {
				fullest = n
			}
		}
	}

	if len(full) == 0 {
		return nil
	}

	words := fmt.Sprintf("Expect larger inputs to fail, unless the framework takes all memory beforehand: "+
		"the memory of %s was full, up to %s of %s.",
		gpuNames(full, "", ""), text.TrimmedSizeText(used[fullest]), text.TrimmedSizeText(total[fullest]))
	return &reporter.Finding{Text: words, Evidence: evidence("gpus", full, "peak_mb", used, "memory_mb", total)}
}

// judgeOneThread fires if the job kept about one of several CPUs busy.
func judgeOneThread(e *ruleInput) *reporter.Finding {
	if !e.oneThread() || e.isCPUStarved() && e.Metric(reporter.MetricJobThreads) != 1 {
		return nil
	}

	mean, peak, limit := e.Metric(reporter.MetricJobCores), e.Metric(reporter.MetricJobCoresPeak), e.cpusGiven()
	f := &reporter.Finding{Evidence: evidence("avg_cpus", mean, "peak_cpus", peak, "limit_cpus", limit)}
	words := "it used " + text.CPUs(mean) + " of " + e.itsCPUs()
	switch {
	case e.bound() && !e.cpusAskedFor(): // it could use more, and chose not to
		return nil
	case e.bound():
		f.Text, f.Evidence["ask_cpus"] = "Use the other CPUs, or ask for 1 CPU: "+words, 1.0
	case peak > findPhasesPeak:
		f.Text = fmt.Sprintf("Let the parts with one busy thread work in parallel: on average %s, and %s at most",
			words, text.CPUs(peak))
	case e.cpusAskedFor():
		f.Text, f.Evidence["ask_cpus"] = "Work in parallel, or ask for 1 CPU: "+words, 1.0
	default:
		f.Text = "Work in parallel to be faster: " + words
	}

	if f.Text += "."; !e.cpusAskedFor() {
		f.Severity = SeverityInfo
	}
	return f
}

// itsCPUs returns the CPUs of the job in words: "its 8 CPUs".
func (e *ruleInput) itsCPUs() string {
	if e.bound() {
		return "the " + text.CPUs(e.Limits.GivenCPUs) + " CPUs it was given, of which it bound itself to " +
			reporter.CPUsText(e.Limits)
	}
	return "its " + reporter.CPUsText(e.Limits) + " CPUs"
}

// judgeCPUsUnused fires if more CPUs were requested than used.
func judgeCPUsUnused(e *ruleInput) *reporter.Finding {
	mean, peak, limit := e.Metric(reporter.MetricJobCores), e.Metric(reporter.MetricJobCoresPeak), e.cpusGiven()
	ask := max(1, math.Ceil(peak*findCPURoom))
	if e.bound() {
		ask = max(1, min(ask, math.Ceil(e.Limits.MostCPUs())))
	}
	if !e.cpusAskedFor() || e.oneThread() || e.throttled() || e.isCPUStarved() || !(mean >= 0) || !(peak >= 0) ||
		!(mean < limit/2) ||
		!(limit-ask >= max(1, findCPUsOver*limit)) {
		return nil
	}
	return &reporter.Finding{
		Text: fmt.Sprintf("Ask for %s instead of %s: on average it used %s of %s, and %s at most.",
			text.CPUs(ask)+" "+text.Plural(ask, "CPU", "CPUs"), text.CPUs(limit), text.CPUs(mean), e.itsCPUs(),
			text.CPUs(peak)),
		Evidence: evidence("avg_cpus", mean, "peak_cpus", peak, "limit_cpus", limit, "ask_cpus", ask)}
}

// judgeThrottled fires if the CPU quota slowed the job down.
func judgeThrottled(e *ruleInput) *reporter.Finding {
	if !e.throttled() {
		return nil
	}

	pct, stopped, quota := e.Metric(reporter.MetricThrottled), e.Metric(reporter.MetricThrottledSeconds), math.NaN()
	words := "the CPU quota"
	if l := e.Limits; l != nil && positive(float64(l.LeastQuota())) {
		quota = float64(l.LeastQuota()) // the lowest quota throttles most
		words += " of " + reporter.QuotaText(l) + " CPUs"
		if l.QuotaRange != nil {
			words += " (" + reporter.LimitChangeText(l.QuotaRange) + ")"
		}
	}

	words += " stopped the job in " + text.WholePercent(pct) + " of its periods"
	if e.Job != nil && e.Job.Source == host.JobFromTree {
		words = strings.Replace(words, "the job", "the job's control group", 1)
	}
	if positive(stopped) {
		words += ", for " + text.Seconds(stopped) + " summed over CPUs"
	}

	severity := ""
	if used := e.Metric(reporter.MetricJobCPU); stopped < findThrottledLoss*used { // little was lost
		severity = SeverityInfo
	}
	remedy := "Ask for more CPUs, or run fewer threads: "
	if e.bound() && e.Limits.CPUs == float64(e.Limits.CPUQuota) { // in a group that the job entered
		remedy = "Raise the quota, or run fewer threads: the job was given " + text.CPUs(e.Limits.GivenCPUs) +
			" CPUs, and "
	}
	return &reporter.Finding{Severity: severity, Text: remedy + words + ".",
		Evidence: evidence("throttled_periods_pct", pct, "throttled_seconds", stopped, "cpu_quota", quota)}
}

// judgeSwapping fires if the node ran short of memory.
func judgeSwapping(e *ruleInput) *reporter.Finding {
	in, out, total := e.Metric(reporter.MetricSwapIn), e.Metric(reporter.MetricSwapOut), e.swapTraffic()
	if !positive(total) || total < swapTotal || total/e.wall < swapRate {
		return nil
	}

	var moved []string
	if positive(out) {
		moved = append(moved, text.TrimmedSizeText(out)+" went to swap")
	}
	if positive(in) {
		moved = append(moved, text.TrimmedSizeText(in)+" came back from swap")
	}
	return &reporter.Finding{
		Text: fmt.Sprintf("Ask for more memory, or use less: the node was short of it, and %s, %s on average.",
			strings.Join(moved, " and "), text.SpeedText(total/e.wall)),
		Evidence: evidence("swap_in_mb", in, "swap_out_mb", out, "mb_per_second", total/e.wall)}
}

// judgeMemoryUnused fires if much more memory was requested than used.
func judgeMemoryUnused(e *ruleInput) *reporter.Finding {
	limit, peak := e.memoryGiven(), e.peakMemory()
	need := e.neededMemory()
	ask := roundSize(findMemoryRoom * need)
	switch {
	case e.Metric(reporter.MetricJobOOMKills) > 0: // a process was killed, so the memory was needed
		return nil
	case !positive(peak) || !(findMemoryRoom*need < limit/2) || !(ask < limit):
		return nil
	case e.Host != nil && positive(e.Host.MemoryMB) && limit >= e.Host.MemoryMB: // it limits nothing
		return nil
	}

	used := fmt.Sprintf("it used at most %s of its %s", text.TrimmedSizeText(peak), text.TrimmedSizeText(limit))
	if f := e.unknownNeedFinding(used); f != nil {
		f.Evidence["peak_mb"], f.Evidence["limit_mb"] = text.Round(peak, 3), text.Round(limit, 3)
		return f
	}
	severity := ""
	if limit < findSmallLimit {
		severity = SeverityInfo
	}
	return &reporter.Finding{Severity: severity,
		Text: fmt.Sprintf("%s%s instead of %s: it used %s at most (this is twice that, rounded).", e.askFor(),
			text.TrimmedSizeText(ask), text.TrimmedSizeText(limit), text.TrimmedSizeText(need)),
		Evidence: evidence("peak_mb", peak, "limit_mb", limit, "ask_mb", ask)}
}

// judgeSampling fires if the samples have gaps, in which peaks may be missing.
func judgeSampling(e *ruleInput) *reporter.Finding {
	s := e.Sampling
	if s == nil || s.MissedTicks < findMissedTicks || s.Samples < 0 {
		return nil
	}

	ticks := float64(s.Samples) + float64(s.MissedTicks)
	missed, gap := 100*float64(s.MissedTicks)/ticks, s.LongestGapSeconds
	if len(s.Suspends) > 0 { // the gap includes the suspended time, the run time does not
		gap = math.NaN()
	}

	if share := 100 * gap / e.wall; missed < findMissedPct && !(share >= findMissedPct) {
		return nil
	}

	words := fmt.Sprintf("Leave perfagent a little CPU, or choose a longer --interval: %d of %s samples are missing",
		s.MissedTicks, text.Fixed(ticks, 0))
	if positive(gap) {
		words += ", up to " + text.Seconds(gap) + " in one gap"
	}
	return &reporter.Finding{
		Text: words + "; peaks may not have been seen, totals are right.",
		Evidence: evidence("missed_ticks", s.MissedTicks, "samples", s.Samples,
			"missed_pct", missed, "longest_gap_seconds", gap)}
}

// The thresholds for thermal throttling of CPUs.
const (
	clockedShare  = 1  // percent of the run
	clockedMuch   = 5  // percent: less is not worth a warning
	clockedEvents = 10 // events, if the kernel does not count the time
)

// judgeClockedDown fires if the node's CPUs were clocked down because they were too hot.
func judgeClockedDown(e *ruleInput) *reporter.Finding {
	events, seconds := e.Metric(reporter.MetricCPUThrottleEvents), e.Metric(reporter.MetricCPUThrottleSeconds)
	celsius, pct := e.Metric(reporter.MetricCPUTemperature), min(100, 100*seconds/e.wall)
	words, severity := "", ""
	switch {
	case pct >= clockedShare:
		words = fmt.Sprintf("the node's CPUs were clocked down for their heat, one of them for %s (%s of the run)",
			text.Seconds(seconds), text.WholePercent(pct))
		if pct < clockedMuch {
			severity = SeverityInfo
		}
	case math.IsNaN(seconds) && events >= clockedEvents:
		words, severity = "the node's CPUs were clocked down for their heat", SeverityInfo
	default:
		return nil
	}

	if positive(events) {
		words += ", " + text.Count(events, "time", "times")
	}
	if positive(celsius) {
		words += ", at up to " + text.Fixed(celsius, 0) + " " + collector.Celsius.Symbol()
	}
	return &reporter.Finding{Severity: severity,
		Text: "Have the node's cooling looked at, or use another node: " + words + ".",
		Evidence: evidence("throttle_seconds", seconds, "throttle_pct", pct, "throttle_events", events,
			"temperature_celsius", celsius)}
}

// thermalThrottlePct returns the share of the run in which the node's CPUs were clocked down, in percent; 0 if it is
// unknown.
func (e *ruleInput) thermalThrottlePct() float64 {
	return finiteOrZero(min(100, 100*e.Metric(reporter.MetricCPUThrottleSeconds)/e.wall))
}
