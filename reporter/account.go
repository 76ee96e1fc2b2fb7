package reporter

import (
	"fmt"
	"math"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/text"
)

// withAccount returns a copy of job, which has only the numbers from wait4(2), with the counters of the job's control
// group or processes added. It returns nil if job is nil.
func withAccount(job *Job, rec *collector.Recording) *Job {
	if job == nil {
		return nil
	}
	a, j := &rec.Account, *job
	j.Source, j.MemoryKind, j.Cgroup = a.Source, a.MemoryKind, a.Group
	j.CPUSeconds, j.CPUAtLeast = wholeCPU(&j, a), a.CPUIncomplete || j.Attached && !a.CPUSeconds.Known()
	j.PeakMemoryMB, j.MemoryAtPeak = peakMemory(&j, rec), KnownParts(a.MemoryAtPeak, a.Source)
	if a.Source == host.JobFromTree && a.UnownedMB >= leastUnowned {
		j.UnownedMB = float64(a.UnownedMB)
	}
	if j.PeakMemoryMB > 0 && j.MemoryKind == "" { // the job ended before its memory was read: the peak is from wait4
		j.MemoryKind = host.MemoryRSS
	}
	if a.Source != host.JobFromTree && a.PeakMB.Known() {
		j.CgroupPeakMB = float64(a.PeakMB)
	}
	return &j
}

// leastUnowned is the smallest growth of a node's shared memory that is reported, in MiB. Other processes often cause
// smaller changes.
const leastUnowned = 4

// wholeCPU returns the total CPU time of the job in seconds: the time of ended processes from wait4 plus the time of
// running processes, or the time in the account if that is greater. wait4 misses the children of parents that ignore
// SIGCHLD, and a control group misses processes that left it.
func wholeCPU(j *Job, a *collector.Account) float64 {
	ended := j.UserSeconds + j.SystemSeconds
	if a.Source == host.JobFromTree && a.LivingCPUSeconds.Known() {
		ended += float64(a.LivingCPUSeconds)
	}
	if a.CPUSeconds.Known() { // for a process tree, it includes the sampled time of children that no process waited for
		return max(ended, float64(a.CPUSeconds))
	}
	return ended
}

// leftGroup returns a remark if the job used much CPU time that its control group did not count and that was found too
// late to be in the samples. Otherwise it returns "".
func leftGroup(j *Job, rec *collector.Recording) string {
	late := rec.Account.LateCPUSeconds
	if j == nil || late < 0.1*j.CPUSeconds+0.1 {
		return ""
	}
	return fmt.Sprintf("processes of the job used %s of CPU that its control group did not count, "+
		"which is missing from the samples; --cgroup off follows these processes", text.Seconds(late))
}

// peakMemory returns the peak memory of the whole job in MiB; 0 if unknown. Because nothing is measured between
// samples, the peak is the greatest value known to have been reached: the highest sample, the largest process (wait4),
// or the kernel's peak of the job's control group. The kernel's peak is reduced by the highest sampled page cache and
// the highest sampled memory of perfagent in the group, and by a bound on the unsampled page cache (see unseenCache).
func peakMemory(j *Job, rec *collector.Recording) float64 {
	a, peak := &rec.Account, 0.0
	if v, ok := rec.Summaries[collector.JobMemory].Max(); ok {
		peak = v
	}
	if largest := j.MaxRSSMB; !j.MaxRSSAtMost {
		if a.Source != host.JobFromTree && !a.OutsideGroup && a.PeakMB > 0 { // wait4 also counts file-backed pages
			largest = min(largest, float64(a.PeakMB))
		}
		peak = max(peak, largest)
	}
	group := float64(a.PeakMB-a.CacheMB-a.NonJobMB) - unseenCache(j, a)
	if a.Source != host.JobFromTree && !math.IsNaN(group) {
		peak = max(peak, group)
	}
	return peak
}

// unseenCache returns an upper bound, in MiB, of the page cache that came and went between two samples: the job's reads
// from storage plus its writes to files. It is NaN if these are unknown, and 0 after a kill at the limit, because the
// kernel reclaims all the page cache that it can before it kills a process.
func unseenCache(j *Job, a *collector.Account) float64 {
	switch {
	case a.FullAtKillMB.Known() && LimitKills(a, j) > 0:
		return 0
	case j.Attached: // the bytes that it read and wrote are unknown
		return math.NaN()
	}
	return j.BlockReadMB + j.BlockWriteMB
}

func newLimits(rec *collector.Recording) *Limits {
	a := &rec.Account
	if a.Source == "" {
		return nil
	}
	l := a.Limits
	if length := (rec.End.Mono - rec.Start.Mono).Seconds(); l.CPUsRange != nil && length > 0 && a.LimitCPUSeconds > 0 {
		l.CPUsRange = new(*l.CPUsRange)
		l.CPUsRange.Mean = series.Optional(a.LimitCPUSeconds / length)
	}
	return &l
}

// newGPUIdle converts the idle gaps of a GPU. It returns nil if there were none.
func newGPUIdle(i *collector.IdleGaps) *GPUIdle {
	if i.Count == 0 {
		return nil
	}
	mean := func(m collector.GapMean) series.Optional {
		return series.Optional(text.Round(float64(m.Mean()), 3))
	}
	return &GPUIdle{
		Seconds:            text.Round(i.Seconds, 3),
		Gaps:               i.Count,
		LongestGapSeconds:  text.Round(i.LongestSeconds, 3),
		JobCPUs:            mean(i.JobCPUs),
		DiskMBPerSecond:    mean(i.DiskRate),
		WaitingForStorePct: mean(i.Waiting),
	}
}

func newGPUs(rec *collector.Recording) []GPU {
	var out []GPU
	for _, g := range rec.GPUs {
		out = append(out, GPU{Index: g.Index, UUID: g.UUID, Name: g.Name, MemoryMB: g.MemoryMB,
			PowerLimitWatts: g.PowerLimitWatts, OfJob: g.OfJob, MIG: g.MIG,
			ClockMHz: g.ClockMHz, Throttle: g.Throttle, Idle: newGPUIdle(&g.IdleGaps)})
	}
	return out
}

// LimitKills returns the number of processes that the kernel provably killed because the group that sets the job's
// memory limit was full. It does not count kills that happened because the host or another group was full (a group that
// the job created below, or a group above that other processes filled), nor kills of processes in the same group that
// are not part of the job.
func LimitKills(a *collector.Account, j *Job) float64 {
	here, elsewhere := 0.0, false
	for _, v := range a.Victims {
		switch at, known := HitLimit(a, v); {
		case v.Foreign:
		case known && at:
			here++
		case known && InGroup(v.Group, a.MemoryPath):
			elsewhere = true
		}
	}

	switch kills := GroupKills(a); {
	case elsewhere: // a kill without a log entry may be due to either limit
		return here
	case here > 0 || LimitProved(a, j):
		return max(here, kills)
	case a.LimitOOMKills > 0:
		return min(float64(a.LimitOOMKills), max(0, kills))
	}
	return 0
}

// GroupKills returns the number of processes that the kernel killed in the job's control group, except victims known
// not to be part of the job.
func GroupKills(a *collector.Account) float64 {
	kills := 0.0
	if a.OOMKills.Known() {
		kills = float64(a.OOMKills)
	}
	for _, v := range a.Victims {
		if v.Foreign && (InGroup(v.Group, a.MemoryPath) || v.Group == "" && !v.Host) {
			kills--
		}
	}
	return max(0, kills)
}

// LimitProved reports whether it is certain, even without the kernel's log, that the newest kill in the group was due
// to the job's memory limit. If the kernel does not count events at the limit, a process that peaked near the limit is
// proof, provided that the host had free memory.
func LimitProved(a *collector.Account, j *Job) bool {
	k := a.LastOOMKill
	switch {
	case k == nil:
		return false
	case k.AtLimit:
		return true
	case k.LimitEventsCounted || j == nil || j.MaxRSSAtMost:
		return false
	}

	limit := a.Limits.MemoryMB
	if a.FullAtKillMB.Known() {
		limit = a.FullAtKillMB
	}
	return k.AvailablePct >= collector.HostAvailablePct && 100*j.MaxRSSMB >= collector.LimitUnreclaimablePct*float64(limit)
}

// HitLimit reports whether v was killed because of the job's memory limit, and whether the cause is known. Paths in the
// kernel log are relative to the host's root group. If perfagent knows the job's group under a different path, the two
// cannot be compared.
func HitLimit(a *collector.Account, v host.Victim) (at, known bool) {
	switch {
	case v.Host:
		return false, true
	case v.LimitGroup == "":
		return false, false
	case v.LimitGroup == a.Limits.MemoryGroup:
		return true, true
	case InGroup(v.LimitGroup, a.Limits.MemoryGroup) && InGroup(a.InnerMemoryGroup, v.LimitGroup):
		return true, true // a scheduler's job and step have the same limit
	case a.Limits.MemoryGroup == "": // the limit is set above the visible groups
		return false, InGroup(v.LimitGroup, a.MemoryPath) && v.LimitGroup != a.MemoryPath
	}
	return false, InGroup(v.Group, a.MemoryPath)
}

// InGroup reports whether the control group is of itself or a descendant of it. It returns false if of is "" or the
// root, which contains every group.
func InGroup(group, of string) bool {
	return of != "" && of != "/" && (group == of || strings.HasPrefix(group, of+"/"))
}

// CPUsText returns the number of usable CPUs during the run: "2", or "0.5 to 2".
func CPUsText(l *Limits) string { return rangeText(l.CPUsRange, l.CPUs, text.CPUs) }

// QuotaText returns the CPU quota during the run in the form of CPUsText.
func QuotaText(l *Limits) string { return rangeText(l.QuotaRange, float64(l.CPUQuota), text.CPUs) }

// MemoryLimitText returns the memory limit during the run: "2.0 GiB", or "1.0 GiB to 2.0 GiB".
func MemoryLimitText(l *Limits, size func(float64) string) string {
	return rangeText(l.MemoryRange, float64(l.MemoryMB), size)
}

// CPUBindingText describes a job that bound itself to fewer CPUs than it was given: "bound itself to 1 of the 2
// CPUs it was given". It returns "" for other jobs.
func CPUBindingText(l *Limits) string {
	if l == nil || !(l.GivenCPUs > 0) {
		return ""
	}
	return "bound itself to " + CPUsText(l) + " of the " + text.CPUs(l.GivenCPUs) + " CPUs it was given"
}

func rangeText(r *LimitRange, now float64, format func(float64) string) string {
	switch {
	case r == nil:
		return format(now)
	case !(r.Max > 0):
		return format(float64(r.Min)) + " to no limit"
	}
	return format(float64(r.Min)) + " to " + format(float64(r.Max))
}

// LimitChangeText describes when a limit changed: "changed at 12:00:18 UTC". It returns "" for nil.
func LimitChangeText(r *LimitRange) string {
	if r == nil {
		return ""
	}
	at := r.ChangedAt.UTC().Format("15:04:05") + " UTC"
	if r.Changes > 1 {
		return "changed " + text.Count(r.Changes, "time", "times") + ", last at " + at
	}
	return "changed at " + at
}
