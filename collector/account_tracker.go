package collector

import (
	"math"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// An accountTracker keeps the Account of a run. Like CounterState, it is a value: next does not modify it and depends
// only on its arguments, so the same Readings always give the same Account.
type accountTracker struct {
	start host.Instant
	// source is the source of the job's numbers, as in JobOptions; "" without a job.
	source string
	// found reports whether the job's processes can be found without its group.
	found bool

	last time.Duration // monotonic time of the last Reading

	// Counters of the group that sets a limit. They start when the group begins to set the limit.
	periods, throttled, throttledSeconds series.Counter
	oomKills, hostOOMKills               series.Counter
	refaults, highs                      series.Counter
	reclaimGroup                         string // the group that refaults and highs count for
	jobStall, hostStall                  stallCounters
	// peak is the peak memory of the job's group before the job started. limitPeak is the newest peak of the group that
	// sets the memory limit.
	peak, limitPeak       series.Optional
	cpuGroup, memoryGroup string // groups that set the limits at the last Reading

	// oomSeen and hostOOMSeen count the OOM kills that noteOOM has handled. lookedAt is the last time it handled any.
	oomSeen, hostOOMSeen series.Optional
	lookedAt             time.Duration
	// killsBefore and hostKillsBefore count the OOM kills before the newest Reading.
	killsBefore, hostKillsBefore series.Optional
	limits                       limitKillDetector
	// leastMemory is the host's memory at the Reading with the least available memory since the last Reading that
	// counted all kills. Total is 0 if it is unknown.
	leastMemory host.Memory
	// memory holds the parts of the job's memory in the two newest samples that had them, newest first.
	memory [2]MemoryParts

	// searchLog reports whether to search the kernel's log for the victims of new OOM kills.
	searchLog bool
	// missing describes what the newest Reading could not measure; nil if it measured everything.
	missing *series.Missing
}

// newAccountTracker returns an accountTracker that begins at the baseline Reading.
func newAccountTracker(base *host.Reading, job host.JobOptions) accountTracker {
	t := accountTracker{start: base.At, source: job.Source, found: job.Tree != nil, last: base.At.Mono,
		peak: series.Unknown(), limitPeak: series.Unknown(), limits: newLimitKillDetector()}
	t, _ = t.next(NoAccount(), base, trackerInput{})
	return t
}

// A trackerInput is the input of an accountTracker in addition to the Reading.
type trackerInput struct {
	cpuSeconds float64 // CPU time of the job since the baseline
	closing    bool    // the Reading is the last one
	// memory holds the parts of the job's memory in the sample of the Reading.
	memory MemoryParts
}

// next returns the accountTracker and the Account after the Reading r.
func (t accountTracker) next(a Account, r *host.Reading, in trackerInput) (accountTracker, Account) {
	t.missing = nil
	if r.VM != nil {
		setIfKnown(&a.HostOOMKills, t.hostOOMKills.Increase(r.VM.OOMKills))
	}
	if r.Pressure != nil {
		t.hostStall.note(&a.HostStall, r.Pressure)
	}

	if r.Job != nil {
		t.noteJob(&a, r, in)
		if r.Job.Group != nil {
			t.noteGroup(&a, r.Job)
		}
	}

	t.noteKill(&a, r.At)
	t.noteOOM(&a, r.At, in.closing)
	t.noteMemory(r, a.OOMKills.Known())
	if in.memory.Timestamp > 0 {
		t.memory = [2]MemoryParts{in.memory, t.memory[0]}
	}
	t.last = r.At.Mono
	return t, a
}

// noteMemory updates leastMemory. It restarts the minimum only after a Reading that counted kills: some Readings
// skip /proc/vmstat or the job's group.
func (t *accountTracker) noteMemory(r *host.Reading, groupCounts bool) {
	counted := r.VM == nil || !r.VM.Stale
	if counted && (!groupCounts || r.Job != nil && r.Job.Group != nil) {
		t.leastMemory = host.Memory{}
	}
	if m := r.Memory; m != nil && (t.leastMemory.Total == 0 || m.Available < t.leastMemory.Available) {
		t.leastMemory = *m
	}
}

// noteJob accounts for the usage of the job itself.
func (t *accountTracker) noteJob(a *Account, r *host.Reading, in trackerInput) {
	j := r.Job
	cpus := j.Limits.CPUs
	if a.Limits.CPUs > 0 { // the limit may have changed since the last Reading: take the mean
		cpus = (a.Limits.CPUs + cpus) / 2
	}
	if length := (r.At.Mono - t.last).Seconds(); length > 0 {
		a.LimitCPUSeconds += cpus * length
	}
	a.Limits, a.InnerMemoryGroup = j.Limits.WithRanges(&a.Limits, onAxis(t.start, r.At)), j.InnerMemoryGroup

	if j.Reclaim != nil {
		t.noteReclaim(&a.Limits, j.Reclaim)
	}
	if !math.IsNaN(j.CPUSeconds) {
		a.CPUSeconds = series.Optional(in.cpuSeconds)
	}
	a.OutsideGroup = a.OutsideGroup || j.Outside
	a.LateCPUSeconds += j.LateCPUSeconds
	a.CPUIncomplete = math.IsNaN(j.CPUSeconds) && in.closing && t.source == host.JobFromTree && t.found
	raiseTo(&a.UnownedMB, series.Optional(j.Unowned/MiB))
	a.LivingCPUSeconds = series.Optional(j.LivingCPUSeconds) // not a maximum: processes end

	if j.MemoryKind == "" {
		return
	}
	if a.MemoryKind == host.MemoryPSS && j.MemoryKind == host.MemoryRSS {
		t.missing = &series.Missing{What: JobMemory.Key(), Code: MemoryAsRSS,
			Why: "later samples add up resident sizes (rss), which count shared pages several times"}
	}
	if a.MemoryKind == host.MemoryRSS || a.MemoryKind == host.MemoryGroup && j.MemoryKind == host.MemoryPSS {
		return // keep rss, an upper bound, and the group, which is not read while a job is small
	}
	a.MemoryKind = j.MemoryKind
}

// noteReclaim accounts for memory pressure on the job: refaults, memory.high and swap.
func (t *accountTracker) noteReclaim(limits *host.Limits, r *cgroup.Reclaim) {
	var total host.Reclaim
	if limits.Reclaim != nil {
		total = *limits.Reclaim
	}
	before := total
	if t.reclaimGroup != limits.MemoryGroup { // earlier counts of the new group are not the job's
		t.reclaimGroup = limits.MemoryGroup
		t.refaults.Rebase(series.Optional(total.RefaultedMB*MiB), r.Refaults)
		t.highs.Rebase(0, r.HighEvents)
	}
	if v := t.refaults.Increase(r.Refaults); v > 0 {
		total.RefaultedMB = float64(v) / MiB
	}
	if t.highs.Increase(r.HighEvents) > 0 {
		total.HighMB = r.High / MiB
	}
	if swap := r.Swap / MiB; swap > total.SwapMB {
		total.SwapMB = swap
	}
	if total != before {
		limits.Reclaim = &total
	}
}

// noteGroup accounts for the counters of the job's control group.
func (t *accountTracker) noteGroup(a *Account, j *host.JobUsage) {
	g := j.Group
	killed := a.OOMKills
	t.rebaseGroups(a, j)
	setIfKnown(&a.Periods, t.periods.Increase(g.Periods))
	setIfKnown(&a.ThrottledPeriods, t.throttled.Increase(g.ThrottledPeriods))
	setIfKnown(&a.ThrottledSeconds, t.throttledSeconds.Increase(g.ThrottledSeconds))
	setIfKnown(&a.OOMKills, t.oomKills.Increase(g.OOMKills))
	t.limits.next(j, t.leastMemory)
	if more := a.OOMKills - orZero(killed); more > 0 && t.limits.atLimit {
		a.LimitOOMKills = orZero(a.LimitOOMKills) + more
	}

	t.noteLimit(a, j, killed)
	if !t.peak.Known() {
		t.peak = series.Optional(g.PeakMemory)
	}
	if peak := series.Optional(g.PeakMemory); a.Source == host.JobFromCreated || !j.Shared && peak > t.peak {
		setIfKnown(&a.PeakMB, peak/MiB)
	}
	raiseTo(&a.CacheMB, series.Optional(j.PageCache/MiB))
	raiseTo(&a.NonJobMB, series.Optional(j.Own/MiB))

	stall := a.JobStall
	if t.jobStall.note(&stall, &g.Pressure); !j.Shared {
		a.JobStall = stall
	}
}

// rebaseGroups switches to the counters of the groups that now set the limits. Earlier counts of these groups are not
// the job's; the increase so far is kept.
func (t *accountTracker) rebaseGroups(a *Account, j *host.JobUsage) {
	g := j.Group
	if j.Limits.CPUGroup != t.cpuGroup {
		t.cpuGroup = j.Limits.CPUGroup
		t.periods.Rebase(a.Periods, g.Periods)
		t.throttled.Rebase(a.ThrottledPeriods, g.ThrottledPeriods)
		t.throttledSeconds.Rebase(a.ThrottledSeconds, g.ThrottledSeconds)
	}

	if j.Limits.MemoryGroup != t.memoryGroup {
		t.memoryGroup, t.limitPeak = j.Limits.MemoryGroup, series.Optional(g.LimitPeak)
		t.limits.limit = newOOMCounter()
		a.LimitPeakMB, a.LimitCacheMB = series.Unknown(), series.Unknown()
	}
	if !t.limitPeak.Known() {
		t.limitPeak = series.Optional(g.LimitPeak)
	}
}

// noteLimit accounts for the used share of the memory limit. If the kernel's peak rose since the last Reading, the used
// memory is the peak minus the largest page cache seen, which the kernel reclaims first. If the kernel killed a process
// while the group was full, noteLimit records the limit; the kernel's log shows whether this limit was the reason.
func (t *accountTracker) noteLimit(a *Account, j *host.JobUsage, killed series.Optional) {
	g, limit := j.Group, j.Limits.MemoryMB
	peak := series.Optional(g.LimitPeak / MiB)
	setIfKnown(&a.LimitPeakMB, peak)
	raiseTo(&a.LimitCacheMB, series.Optional(g.LimitPageCache/MiB))
	rose := series.Optional(g.LimitPeak) > t.limitPeak
	if rose {
		t.limitPeak = series.Optional(g.LimitPeak)
	}
	switch {
	case !(limit > 0):
	case a.OOMKills > orZero(killed) && t.limits.full(peak/limit) && !a.FullAtKillMB.Known():
		a.FullAtKillMB = limit
	case rose:
		raiseTo(&a.LimitReachedPct, min(100, 100*(peak-a.LimitCacheMB)/limit))
	}
}

// hostOOMEvery is the shortest interval between searches of the kernel's log for kills outside the job's group.
const hostOOMEvery = 30 * time.Second

// noteOOM notes new OOM kills, and decides whether to search for their victims. The log is long, so kills outside the
// job's group cause a search only every hostOOMEvery.
func (t *accountTracker) noteOOM(a *Account, at host.Instant, closing bool) {
	ours, theirs := a.OOMKills > t.oomSeen, a.HostOOMKills > t.hostOOMSeen
	t.searchLog = ours || theirs && (closing || at.Mono-t.lookedAt > hostOOMEvery)
	if !t.searchLog {
		return
	}

	if a.OOMAt.IsZero() || ours && t.oomSeen == 0 { // the first kill in the job's group replaces a kill elsewhere
		a.OOMAt = onAxis(t.start, at)
	}
	if ours {
		t.oomSeen = a.OOMKills
	}
	if theirs {
		t.hostOOMSeen = a.HostOOMKills
	}
	t.lookedAt = at.Mono
}

// noteKill records the newest kill in the group or, if no group counts kills, on the host.
func (t *accountTracker) noteKill(a *Account, at host.Instant) {
	inGroup, onHost := orZero(a.OOMKills), orZero(a.HostOOMKills)
	ours, anybodys := inGroup > t.killsBefore, onHost > t.hostKillsBefore && !a.OOMKills.Known()
	t.killsBefore, t.hostKillsBefore = inGroup, onHost
	if !ours && !anybodys {
		return
	}

	k := &OOMKill{At: onAxis(t.start, at), AvailableMB: series.Unknown(), AvailablePct: series.Unknown()}
	// A Reading may miss a kill, and then measure the memory of what is left of the job.
	if k.Memory = t.memory[0]; t.memory[1].SumMB() > k.Memory.SumMB() {
		k.Memory = t.memory[1]
	}
	if m := t.leastMemory; m.Total > 0 {
		k.AvailableMB, k.AvailablePct = series.Optional(float64(m.Available)/MiB), availablePct(m)
	}
	if ours {
		k.InGroup, k.AtLimit, k.LimitEventsCounted = t.limits.inGroup, t.limits.atLimit, t.limits.counted
		t.limits.settle()
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
