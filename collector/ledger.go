package collector

import (
	"math"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// A ledger keeps the Account of a run. It is a value, as Progress is: next changes nothing and asks nobody, so that the
// same Readings always give the same Account.
type ledger struct {
	start host.Instant
	// source is where the job's numbers come from, as in JobOptions; "" = there is no job.
	source string
	// found reports whether the job's processes can be found, should its group not tell of them.
	found bool

	last time.Duration // when the Reading before was taken, on the monotonic clock
	base baseCounters
	// oomSeen and hostOOMSeen are the OOM kills that have been looked into, lookedAt is when that was last.
	oomSeen, hostOOMSeen series.Optional
	lookedAt             time.Duration

	// look reports whether the kernel's log is to be asked for the victims of new OOM kills.
	look bool
	// gap is what the newest Reading made known to be missing, if anything.
	gap *Gap
}

// newLedger begins at the baseline Reading.
func newLedger(base *host.Reading, job host.JobOptions) ledger {
	return ledger{start: base.At, source: job.Source, found: job.Tree != nil, last: base.At.Mono, base: newBaseCounters(base)}
}

// An entry is what a ledger learns beside the Reading itself.
type entry struct {
	cpuSeconds float64 // of the job, since the baseline
	closing    bool    // the Reading is the last
}

// next brings the Account up to a Reading.
func (l ledger) next(a Account, r *host.Reading, e entry) (ledger, Account) {
	l.gap = nil
	l.base.update(r)

	if r.VM != nil {
		newer(&a.HostOOMKills, growth(l.base.hostOOMKills, series.Optional(r.VM.OOMKills)))
	}
	if r.Pressure != nil {
		a.HostStall = newStalls(*r.Pressure).minus(l.base.hostStall)
	}

	if r.Job != nil {
		l.noteJob(&a, r, e)
		if r.Job.Group != nil {
			l.noteGroup(&a, r.Job)
		}
	}

	l.noteOOM(&a, r.At, e.closing)
	l.last = r.At.Mono
	return l, a
}

// noteJob accounts what the job itself has used.
func (l *ledger) noteJob(a *Account, r *host.Reading, e entry) {
	j := r.Job
	a.Limits = j.Limits
	if length := (r.At.Mono - l.last).Seconds(); length > 0 {
		a.LimitCPUSeconds += j.Limits.CPUs * length
	}

	if !math.IsNaN(j.CPUSeconds) {
		a.CPUSeconds = series.Optional(e.cpuSeconds)
	}
	a.CPUOpen = math.IsNaN(j.CPUSeconds) && e.closing && l.source == host.JobFromTree && l.found
	a.Living = series.Optional(j.Living) // of this very Reading: what has ended since is not living

	if j.MemoryKind == "" {
		return
	}
	if a.MemoryKind == host.MemoryPSS && j.MemoryKind == host.MemoryRSS {
		l.gap = &Gap{JobMemory.Key(),
			"from some moment on resident sizes were added up (rss), in which shared pages count several times"}
	}
	if a.MemoryKind == host.MemoryRSS || a.MemoryKind == host.MemoryGroup && j.MemoryKind == host.MemoryPSS {
		return // once an upper bound, always one; and it is when a job is small that the group does not tell
	}
	a.MemoryKind = j.MemoryKind
}

// noteGroup accounts what the job's control group has counted.
func (l *ledger) noteGroup(a *Account, j *host.JobUse) {
	g, b := j.Group, &l.base
	b.follow(a, j)
	killed := a.OOMKills
	newer(&a.Periods, growth(b.periods, series.Optional(g.Periods)))
	newer(&a.Throttled, growth(b.throttled, series.Optional(g.ThrottledPeriods)))
	newer(&a.ThrottledSeconds, growth(b.throttledSeconds, series.Optional(g.ThrottledSeconds)))
	newer(&a.OOMKills, growth(b.oomKills, series.Optional(g.OOMKills)))

	l.noteLimit(a, j, killed)
	if peak := series.Optional(g.PeakMemory); a.Source == host.JobFromCreated || !j.Shared && peak > b.peak {
		newer(&a.PeakMB, peak/MiB)
	}
	highest(&a.CacheMB, series.Optional(j.PageCache/MiB))
	highest(&a.OwnMB, series.Optional(j.Own/MiB))

	if !j.Shared {
		a.JobStall = newStalls(g.Pressure).minus(b.jobStall)
	}
}

// fullGroup is the part of its limit at which a group counts as full: the kernel counts
// pages for each CPU apart, and charges some at once.
const fullGroup = 0.98

// noteLimit notes how much of the memory limit was reached between the last Reading
// and this one: the kernel's peak, where it rose meanwhile, less the most page cache that was
// seen, which the kernel takes back first. Where it killed and the group had been full, that
// is noted: whether this limit was why, its log tells.
func (l *ledger) noteLimit(a *Account, j *host.JobUse, killed series.Optional) {
	g, limit := j.Group, j.Limits.MemoryMB
	peak := series.Optional(g.LimitPeak / MiB)
	newer(&a.LimitPeakMB, peak)
	highest(&a.LimitCacheMB, series.Optional(g.LimitPageCache/MiB))
	rose := series.Optional(g.LimitPeak) > l.base.limitPeak
	if rose {
		l.base.limitPeak = series.Optional(g.LimitPeak)
	}
	if !killed.Known() {
		killed = 0
	}

	switch {
	case !(limit > 0):
	case a.OOMKills > killed && peak >= fullGroup*limit && !a.FullAtKillMB.Known():
		a.FullAtKillMB = limit
	case rose:
		highest(&a.LimitReachedPct, min(100, 100*(peak-a.LimitCacheMB)/limit))
	}
}

// hostOOMEvery is how often the kernel's log is read for kills in groups that are not the
// job's.
const hostOOMEvery = 30 * time.Second

// noteOOM notes new OOM kills, and decides whether their victims are to be looked for. The
// log is long, and on a host where others are killed all the time it is read only now and then.
func (l *ledger) noteOOM(a *Account, at host.Instant, closing bool) {
	ours, theirs := a.OOMKills > l.oomSeen, a.HostOOMKills > l.hostOOMSeen
	l.look = ours || theirs && (closing || at.Mono-l.lookedAt > hostOOMEvery)
	if !l.look {
		return
	}

	if a.OOMAt.IsZero() || ours && l.oomSeen == 0 { // a kill in our group says more than one elsewhere
		a.OOMAt = l.start.Wall.Add(at.Boot - l.start.Boot)
	}
	if ours {
		l.oomSeen = a.OOMKills
	}
	if theirs {
		l.hostOOMSeen = a.HostOOMKills
	}
	l.lookedAt = at.Mono
}

// baseCounters are what the counters of an Account were before the job; those of the
// groups that set the limits, before such a group set them.
type baseCounters struct {
	cpuGroup, memoryGroup                string // that set them at the last Reading of the group
	periods, throttled, throttledSeconds series.Optional
	oomKills, hostOOMKills               series.Optional
	peak, limitPeak                      series.Optional
	jobStall, hostStall                  Stalls
}

func newBaseCounters(r *host.Reading) baseCounters {
	u := series.Unknown()
	b := baseCounters{periods: u, throttled: u, throttledSeconds: u, oomKills: u, hostOOMKills: u, peak: u, limitPeak: u,
		jobStall: NoAccount().JobStall, hostStall: NoAccount().HostStall}
	if r.Job != nil {
		b.cpuGroup, b.memoryGroup = r.Job.Limits.CPUGroup, r.Job.Limits.MemoryGroup
	}
	b.update(r)
	return b
}

// update fills in what is not known yet: the first good Reading of each counter counts.
func (b *baseCounters) update(r *host.Reading) {
	first := func(into *series.Optional, v float64) {
		if !into.Known() {
			*into = series.Optional(v)
		}
	}
	stalls := func(into *Stalls, now Stalls) {
		for _, f := range []struct {
			into *series.Optional
			now  series.Optional
		}{{&into.CPUSome, now.CPUSome}, {&into.CPUFull, now.CPUFull}, {&into.MemorySome, now.MemorySome},
			{&into.MemoryFull, now.MemoryFull}, {&into.IOSome, now.IOSome}, {&into.IOFull, now.IOFull}} {
			first(f.into, float64(f.now))
		}
	}
	if r.VM != nil {
		first(&b.hostOOMKills, r.VM.OOMKills)
	}
	if r.Pressure != nil {
		stalls(&b.hostStall, newStalls(*r.Pressure))
	}
	if r.Job == nil || r.Job.Group == nil {
		return
	}
	g := r.Job.Group
	first(&b.periods, g.Periods)
	first(&b.throttled, g.ThrottledPeriods)
	first(&b.throttledSeconds, g.ThrottledSeconds)
	first(&b.oomKills, g.OOMKills)
	first(&b.peak, g.PeakMemory)
	first(&b.limitPeak, g.LimitPeak)
	stalls(&b.jobStall, newStalls(g.Pressure))
}

// follow goes over to the counters of other groups where these set the limits from now
// on: what they had counted before is not of the job, what grew until now stays.
func (b *baseCounters) follow(a *Account, j *host.JobUse) {
	g := j.Group
	if j.Limits.CPUGroup != b.cpuGroup {
		b.cpuGroup = j.Limits.CPUGroup
		b.periods = rebased(a.Periods, g.Periods)
		b.throttled = rebased(a.Throttled, g.ThrottledPeriods)
		b.throttledSeconds = rebased(a.ThrottledSeconds, g.ThrottledSeconds)
	}
	if j.Limits.MemoryGroup != b.memoryGroup {
		b.memoryGroup, b.limitPeak = j.Limits.MemoryGroup, series.Optional(g.LimitPeak)
		a.LimitPeakMB, a.LimitCacheMB = series.Unknown(), series.Unknown()
	}
}

// rebased is where a counter begins of which so much is to have grown by now.
func rebased(grown series.Optional, now float64) series.Optional {
	if !grown.Known() {
		grown = 0
	}
	return series.Optional(now) - grown
}

// newer takes what is known now, else keeps what was known before.
func newer(into *series.Optional, now series.Optional) {
	if now.Known() {
		*into = now
	}
}

// highest keeps the greatest that was known.
func highest(into *series.Optional, now series.Optional) {
	if now.Known() && !(*into >= now) {
		*into = now
	}
}
