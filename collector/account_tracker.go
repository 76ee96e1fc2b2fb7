package collector

import (
	"math"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// An accountTracker keeps the Account of a run. It is a value, like CounterState: next changes nothing and depends only
// on its arguments, so that the same Readings always give the same Account.
type accountTracker struct {
	start host.Instant
	// source is the source of the job's numbers, as in JobOptions; "" without a job.
	source string
	// found reports whether the job's processes can be found if its group does not count them.
	found bool

	last time.Duration // monotonic time of the last Reading

	// The counters of a group that sets a limit count from the moment when it began to set it.
	periods, throttled, throttledSeconds series.Counter
	oomKills, hostOOMKills               series.Counter
	refaults, highs                      series.Counter
	reclaimGroup                         string // the group of refaults and highs
	jobStall, hostStall                  stallCounters
	// peak and limitPeak are high-water marks from before the job, or from before the group set the limit.
	peak, limitPeak       series.Optional
	cpuGroup, memoryGroup string // groups that set the limits at their last Reading

	// oomSeen and hostOOMSeen are the OOM kills already handled by noteOOM, lookedAt is when it last handled some.
	oomSeen, hostOOMSeen series.Optional
	lookedAt             time.Duration
	// killsBefore and hostKillsBefore are the OOM kills counted before the newest Reading.
	killsBefore, hostKillsBefore series.Optional
	limits                       limitKillDetector
	// leastMemory is the host's memory at its lowest since the last Reading that counted all kills; Total is 0 if unknown.
	leastMemory host.Memory

	// searchLog reports whether to search the kernel's log for the victims of new OOM kills.
	searchLog bool
	// missing is what the newest Reading could not measure; nil if nothing.
	missing *series.Missing
}

// newAccountTracker returns an accountTracker that begins at the baseline Reading.
func newAccountTracker(base *host.Reading, job host.JobOptions) accountTracker {
	l := accountTracker{start: base.At, source: job.Source, found: job.Tree != nil, last: base.At.Mono,
		peak: series.Unknown(), limitPeak: series.Unknown(), limits: newLimitKillDetector()}
	l, _ = l.next(NoAccount(), base, trackerInput{})
	return l
}

// A trackerInput is the input of an accountTracker besides the Reading.
type trackerInput struct {
	cpuSeconds float64 // CPU time of the job since the baseline
	closing    bool    // the Reading is the last one
}

// next returns the accountTracker and the Account after another Reading.
func (l accountTracker) next(a Account, r *host.Reading, e trackerInput) (accountTracker, Account) {
	l.missing = nil
	if r.VM != nil {
		setIfKnown(&a.HostOOMKills, l.hostOOMKills.Increase(r.VM.OOMKills))
	}
	if r.Pressure != nil {
		l.hostStall.note(&a.HostStall, r.Pressure)
	}

	if r.Job != nil {
		l.noteJob(&a, r, e)
		if r.Job.Group != nil {
			l.noteGroup(&a, r.Job)
		}
	}

	l.noteKill(&a, r.At)
	l.noteOOM(&a, r.At, e.closing)
	l.noteMemory(r, a.OOMKills.Known())
	l.last = r.At.Mono
	return l, a
}

// noteMemory updates leastMemory. Not every Reading reads /proc/vmstat, nor a group that limits nothing.
func (l *accountTracker) noteMemory(r *host.Reading, groupCounts bool) {
	counted := r.VM == nil || !r.VM.Stale
	if counted && (!groupCounts || r.Job != nil && r.Job.Group != nil) {
		l.leastMemory = host.Memory{}
	}
	if m := r.Memory; m != nil && (l.leastMemory.Total == 0 || m.Available < l.leastMemory.Available) {
		l.leastMemory = *m
	}
}

// noteJob accounts for the usage of the job itself.
func (l *accountTracker) noteJob(a *Account, r *host.Reading, e trackerInput) {
	j := r.Job
	cpus := j.Limits.CPUs
	if a.Limits.CPUs > 0 { // take the mean: it may have changed in between
		cpus = (a.Limits.CPUs + cpus) / 2
	}
	if length := (r.At.Mono - l.last).Seconds(); length > 0 {
		a.LimitCPUSeconds += cpus * length
	}
	a.Limits, a.InnerMemoryGroup = j.Limits.WithRanges(&a.Limits, l.onAxis(r.At)), j.InnerMemoryGroup

	if j.Reclaim != nil {
		l.noteReclaim(&a.Limits, j.Reclaim)
	}
	if !math.IsNaN(j.CPUSeconds) {
		a.CPUSeconds = series.Optional(e.cpuSeconds)
	}
	a.OutsideGroup = a.OutsideGroup || j.Outside
	a.LateCPUSeconds += j.LateCPUSeconds
	a.CPUIncomplete = math.IsNaN(j.CPUSeconds) && e.closing && l.source == host.JobFromTree && l.found
	raiseTo(&a.UnownedMB, series.Optional(j.Unowned/MiB))
	a.LivingCPUSeconds = series.Optional(j.LivingCPUSeconds) // of this Reading only: processes end

	if j.MemoryKind == "" {
		return
	}
	if a.MemoryKind == host.MemoryPSS && j.MemoryKind == host.MemoryRSS {
		l.missing = &series.Missing{What: JobMemory.Key(), Code: MemoryAsRSS,
			Why: "from some moment on resident sizes were added up (rss), in which shared pages count several times"}
	}
	if a.MemoryKind == host.MemoryRSS || a.MemoryKind == host.MemoryGroup && j.MemoryKind == host.MemoryPSS {
		return // once an upper bound, always one; the group's value is missing while a job is small
	}
	a.MemoryKind = j.MemoryKind
}

// noteReclaim accounts for memory pressure on the job: refaults, memory.high and swap.
func (l *accountTracker) noteReclaim(to *host.Limits, h *cgroup.Reclaim) {
	var held host.Reclaim
	if to.Reclaim != nil {
		held = *to.Reclaim
	}
	before := held
	if l.reclaimGroup != to.MemoryGroup { // counts of the previous group are not the job's
		l.reclaimGroup = to.MemoryGroup
		l.refaults.Rebase(series.Optional(held.RefaultedMB*MiB), h.Refaults)
		l.highs.Rebase(0, h.HighEvents)
	}
	if v := l.refaults.Increase(h.Refaults); v > 0 {
		held.RefaultedMB = float64(v) / MiB
	}
	if l.highs.Increase(h.HighEvents) > 0 {
		held.HighMB = h.High / MiB
	}
	if swap := h.Swap / MiB; swap > held.SwapMB {
		held.SwapMB = swap
	}
	if held != before {
		to.Reclaim = &held
	}
}

// noteGroup accounts for the counters of the job's control group.
func (l *accountTracker) noteGroup(a *Account, j *host.JobUsage) {
	g := j.Group
	killed := a.OOMKills
	l.rebaseGroups(a, j)
	setIfKnown(&a.Periods, l.periods.Increase(g.Periods))
	setIfKnown(&a.ThrottledPeriods, l.throttled.Increase(g.ThrottledPeriods))
	setIfKnown(&a.ThrottledSeconds, l.throttledSeconds.Increase(g.ThrottledSeconds))
	setIfKnown(&a.OOMKills, l.oomKills.Increase(g.OOMKills))
	l.limits.next(j, l.leastMemory)
	if more := a.OOMKills - orZero(killed); more > 0 && l.limits.atLimit {
		a.LimitOOMKills = orZero(a.LimitOOMKills) + more
	}

	l.noteLimit(a, j, killed)
	if !l.peak.Known() {
		l.peak = series.Optional(g.PeakMemory)
	}
	if peak := series.Optional(g.PeakMemory); a.Source == host.JobFromCreated || !j.Shared && peak > l.peak {
		setIfKnown(&a.PeakMB, peak/MiB)
	}
	raiseTo(&a.CacheMB, series.Optional(j.PageCache/MiB))
	raiseTo(&a.NonJobMB, series.Optional(j.Own/MiB))

	stall := a.JobStall
	if l.jobStall.note(&stall, &g.Pressure); !j.Shared {
		a.JobStall = stall
	}
}

// rebaseGroups switches to the counters of the groups that now set the limits. Their earlier counts are not the job's;
// the increase so far stays.
func (l *accountTracker) rebaseGroups(a *Account, j *host.JobUsage) {
	g := j.Group
	if j.Limits.CPUGroup != l.cpuGroup {
		l.cpuGroup = j.Limits.CPUGroup
		l.periods.Rebase(a.Periods, g.Periods)
		l.throttled.Rebase(a.ThrottledPeriods, g.ThrottledPeriods)
		l.throttledSeconds.Rebase(a.ThrottledSeconds, g.ThrottledSeconds)
	}

	if j.Limits.MemoryGroup != l.memoryGroup {
		l.memoryGroup, l.limitPeak = j.Limits.MemoryGroup, series.Optional(g.LimitPeak)
		l.limits.limit = newOOMCounter()
		a.LimitPeakMB, a.LimitCacheMB = series.Unknown(), series.Unknown()
	}
	if !l.limitPeak.Known() {
		l.limitPeak = series.Optional(g.LimitPeak)
	}
}

// noteLimit accounts for the used share of the memory limit since the last Reading: the kernel's peak, if it rose,
// minus the largest page cache seen, which the kernel reclaims first. If the kernel killed while the group was full,
// noteLimit records the limit; the kernel's log shows whether this limit was the reason.
func (l *accountTracker) noteLimit(a *Account, j *host.JobUsage, killed series.Optional) {
	g, limit := j.Group, j.Limits.MemoryMB
	peak := series.Optional(g.LimitPeak / MiB)
	setIfKnown(&a.LimitPeakMB, peak)
	raiseTo(&a.LimitCacheMB, series.Optional(g.LimitPageCache/MiB))
	rose := series.Optional(g.LimitPeak) > l.limitPeak
	if rose {
		l.limitPeak = series.Optional(g.LimitPeak)
	}
	switch {
	case !(limit > 0):
	case a.OOMKills > orZero(killed) && l.limits.full(peak/limit) && !a.FullAtKillMB.Known():
		a.FullAtKillMB = limit
	case rose:
		raiseTo(&a.LimitReachedPct, min(100, 100*(peak-a.LimitCacheMB)/limit))
	}
}

// hostOOMEvery is the shortest interval between searches of the kernel's log for kills outside the job's group.
const hostOOMEvery = 30 * time.Second

// noteOOM notes new OOM kills, and decides whether to search for their victims. The log is long: on a host with
// constant kills elsewhere it is read only every hostOOMEvery.
func (l *accountTracker) noteOOM(a *Account, at host.Instant, closing bool) {
	ours, theirs := a.OOMKills > l.oomSeen, a.HostOOMKills > l.hostOOMSeen
	l.searchLog = ours || theirs && (closing || at.Mono-l.lookedAt > hostOOMEvery)
	if !l.searchLog {
		return
	}

	if a.OOMAt.IsZero() || ours && l.oomSeen == 0 { // the first kill in our group replaces one elsewhere
		a.OOMAt = l.onAxis(at)
	}
	if ours {
		l.oomSeen = a.OOMKills
	}
	if theirs {
		l.hostOOMSeen = a.HostOOMKills
	}
	l.lookedAt = at.Mono
}

// onAxis returns the time of a Reading on the time axis of the samples.
func (l *accountTracker) onAxis(at host.Instant) time.Time {
	return l.start.Wall.Add(at.Boot - l.start.Boot)
}

// noteKill records the newest kill in the group or, if no group counts them, on the host.
func (l *accountTracker) noteKill(a *Account, at host.Instant) {
	inGroup, onHost := orZero(a.OOMKills), orZero(a.HostOOMKills)
	ours, anybodys := inGroup > l.killsBefore, onHost > l.hostKillsBefore && !a.OOMKills.Known()
	l.killsBefore, l.hostKillsBefore = inGroup, onHost
	if !ours && !anybodys {
		return
	}

	k := &OOMKill{At: l.onAxis(at), AvailableMB: series.Unknown(), AvailablePct: series.Unknown()}
	if m := l.leastMemory; m.Total > 0 {
		k.AvailableMB, k.AvailablePct = series.Optional(float64(m.Available)/MiB), availablePct(m)
	}
	if ours {
		k.InGroup, k.AtLimit, k.LimitEventsCounted = l.limits.inGroup, l.limits.atLimit, l.limits.counted
		l.limits.settle()
	}
	a.LastOOMKill = k
}

// setIfKnown sets *into to now, if now is known.
func setIfKnown(into *series.Optional, now series.Optional) {
	if now.Known() {
		*into = now
	}
}

// orZero returns v, or 0 if it is unknown.
func orZero(v series.Optional) series.Optional {
	if !v.Known() {
		return 0
	}
	return v
}

// raiseTo raises *into to now, if now is known and larger.
func raiseTo(into *series.Optional, now series.Optional) {
	if now.Known() && !(*into >= now) {
		*into = now
	}
}
