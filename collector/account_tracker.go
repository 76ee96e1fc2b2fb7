package collector

import (
	"math"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// An accountTracker keeps the Account of a run. It is a value, as Progress is: next changes nothing and reads
// nothing else, so that the same Readings always give the same Account.
type accountTracker struct {
	start host.Instant
	// source is where the job's numbers come from, as in JobOptions; "" = there is no job.
	source string
	// found reports whether the job's processes can be found, should its group not count them.
	found bool

	last time.Duration // when the Reading before was taken, on the monotonic clock

	// The counters of a group that sets a limit count from when it began to set it.
	periods, throttled, throttledSeconds series.Counter
	oomKills, hostOOMKills               series.Counter
	refaults, highs                      series.Counter
	reclaimGroup                         string // which they are of
	jobStall, hostStall                  stallCounters
	// peak and limitPeak are high-water marks from before the job, or from before the group set the
	// limit.
	peak, limitPeak       series.Optional
	cpuGroup, memoryGroup string // which set the limits at the last Reading of the group

	// oomSeen and hostOOMSeen are the OOM kills that were looked into, lookedAt is when that was
	// last.
	oomSeen, hostOOMSeen series.Optional
	lookedAt             time.Duration
	// killsBefore and hostKillsBefore are the OOM kills that were counted before the newest Reading.
	killsBefore, hostKillsBefore series.Optional
	limits                       limitKillDetector
	// leastMemory is the least memory that the host had available at the Readings since all kills were
	// counted last; its Total is 0 if that is not known.
	leastMemory host.Memory

	// searchLog reports whether the kernel's log is to be searched for the victims of new OOM kills.
	searchLog bool
	// missing is what the newest Reading showed to be missing, if anything.
	missing *series.Missing
}

// newAccountTracker returns a ledger that begins at the baseline Reading.
func newAccountTracker(base *host.Reading, job host.JobOptions) accountTracker {
	l := accountTracker{start: base.At, source: job.Source, found: job.Tree != nil, last: base.At.Mono,
		peak: series.Unknown(), limitPeak: series.Unknown(), limits: newLimitKillDetector()}
	l, _ = l.next(NoAccount(), base, trackerInput{})
	return l
}

// A trackerInput is what a ledger has to know beside the Reading itself.
type trackerInput struct {
	cpuSeconds float64 // of the job, since the baseline
	closing    bool    // the Reading is the last
}

// next returns the ledger and the Account after another Reading.
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

// noteMemory keeps how much memory the host has. A group that limits nothing and /proc/vmstat are not
// read in each Reading.
func (l *accountTracker) noteMemory(r *host.Reading, groupCounts bool) {
	counted := r.VM == nil || !r.VM.Stale
	if counted && (!groupCounts || r.Job != nil && r.Job.Group != nil) {
		l.leastMemory = host.Memory{}
	}
	if m := r.Memory; m != nil && (l.leastMemory.Total == 0 || m.Available < l.leastMemory.Available) {
		l.leastMemory = *m
	}
}

// noteJob accounts for what the job itself has used.
func (l *accountTracker) noteJob(a *Account, r *host.Reading, e trackerInput) {
	j := r.Job
	cpus := j.Limits.CPUs
	if a.Limits.CPUs > 0 { // one that changed did so in between
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
	a.LivingCPUSeconds = series.Optional(j.LivingCPUSeconds) // at this very Reading: what has ended since is not living

	if j.MemoryKind == "" {
		return
	}
	if a.MemoryKind == host.MemoryPSS && j.MemoryKind == host.MemoryRSS {
		l.missing = &series.Missing{What: JobMemory.Key(), Code: MemoryAsRSS,
			Why: "from some moment on resident sizes were added up (rss), in which shared pages count several times"}
	}
	if a.MemoryKind == host.MemoryRSS || a.MemoryKind == host.MemoryGroup && j.MemoryKind == host.MemoryPSS {
		return // once an upper bound, always one; and the group is silent when a job is small
	}
	a.MemoryKind = j.MemoryKind
}

// noteReclaim accounts for what held the memory of the job down.
func (l *accountTracker) noteReclaim(to *host.Limits, h *cgroup.Reclaim) {
	var held host.Reclaim
	if to.Reclaim != nil {
		held = *to.Reclaim
	}
	before := held
	if l.reclaimGroup != to.MemoryGroup { // what another group had counted is not the job's
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

// noteGroup accounts for what the job's control group has counted.
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

// rebaseGroups switches to the counters of other groups once these set the limits. What they had counted
// before is not the job's; what was counted until now stays.
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

// noteLimit accounts for how much of the memory limit was reached since the last Reading: the
// kernel's peak, if it rose since then, less the most page cache that was seen, which the kernel
// reclaims first. If the kernel killed and the group had been full, it notes that; the kernel's log
// says whether this limit was the reason.
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

// hostOOMEvery is how often the kernel's log is read for kills in other groups than the job's.
const hostOOMEvery = 30 * time.Second

// noteOOM notes new OOM kills, and decides whether their victims are to be searched for. The log is
// long; on a host where others are killed all the time it is read only now and then.
func (l *accountTracker) noteOOM(a *Account, at host.Instant, closing bool) {
	ours, theirs := a.OOMKills > l.oomSeen, a.HostOOMKills > l.hostOOMSeen
	l.searchLog = ours || theirs && (closing || at.Mono-l.lookedAt > hostOOMEvery)
	if !l.searchLog {
		return
	}

	if a.OOMAt.IsZero() || ours && l.oomSeen == 0 { // a kill in our group says more than one elsewhere
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

// onAxis returns the time of a Reading on the axis of the samples.
func (l *accountTracker) onAxis(at host.Instant) time.Time {
	return l.start.Wall.Add(at.Boot - l.start.Boot)
}

// noteKill keeps what is known of the newest kill in the group or, where no group counts them, on the
// host.
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

// setIfKnown replaces a value by what is known now, if it is known.
func setIfKnown(into *series.Optional, now series.Optional) {
	if now.Known() {
		*into = now
	}
}

// orZero returns a value, or 0 if it is not known.
func orZero(v series.Optional) series.Optional {
	if !v.Known() {
		return 0
	}
	return v
}

// raiseTo raises a value to what is known now, if that is more.
func raiseTo(into *series.Optional, now series.Optional) {
	if now.Known() && !(*into >= now) {
		*into = now
	}
}
