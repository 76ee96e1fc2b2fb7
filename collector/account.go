package collector

import (
	"math"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/series"
)

// baseCounters are what the counters of an Account were before the job; those of the
// groups that set the limits, before such a group set them.
type baseCounters struct {
	cpuGroup, memoryGroup                string // that set them at the last Reading of the group
	periods, throttled, throttledSeconds series.Optional
	oomKills, hostOOMKills               series.Optional
	peak, limitPeak                      series.Optional
	jobStall, hostStall                  Stalls
}

func newBaseCounters(r *Reading) baseCounters {
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
func (b *baseCounters) update(r *Reading) {
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
func (b *baseCounters) follow(a *Account, j *JobUse) {
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

// account brings the Account up to the newest Reading.
func (s *Sampler) account(r *Reading) {
	a, b := &s.rec.Account, &s.base
	b.update(r)
	if r.VM != nil {
		newer(&a.HostOOMKills, growth(b.hostOOMKills, series.Optional(r.VM.OOMKills)))
	}
	if r.Pressure != nil {
		a.HostStall = newStalls(*r.Pressure).minus(b.hostStall)
	}
	if j := r.Job; j != nil {
		s.accountJob(a, r)
		if j.Group != nil {
			s.accountGroup(a, j)
		}
	}
	s.noteOOM(r)
}

func (s *Sampler) accountJob(a *Account, r *Reading) {
	j := r.Job
	a.Limits = j.Limits
	if length := (r.At.Mono - s.prev.At.Mono).Seconds(); length > 0 {
		a.LimitCPUSeconds += j.Limits.CPUs * length
	}
	if !math.IsNaN(j.CPUSeconds) {
		a.CPUSeconds = series.Optional(s.progress.job.cpu.total)
	}
	a.CPUOpen = math.IsNaN(j.CPUSeconds) && s.closing && s.reader.job.Source == JobFromTree && s.reader.job.Tree != nil
	a.Living = series.Optional(j.Living) // of this very Reading: what has ended since is not living
	if j.MemoryKind == "" {
		return
	}
	if a.MemoryKind == MemoryPSS && j.MemoryKind == MemoryRSS {
		s.rec.addGap(JobMemory.Key(), "from some moment on resident sizes were added up (rss), in which shared pages count several times")
	}
	if a.MemoryKind == MemoryRSS || a.MemoryKind == MemoryGroup && j.MemoryKind == MemoryPSS {
		return // once an upper bound, always one; and it is when a job is small that the group does not tell
	}
	a.MemoryKind = j.MemoryKind
}

func (s *Sampler) accountGroup(a *Account, j *JobUse) {
	g, b := j.Group, &s.base
	b.follow(a, j)
	killed := a.OOMKills
	newer(&a.Periods, growth(b.periods, series.Optional(g.Periods)))
	newer(&a.Throttled, growth(b.throttled, series.Optional(g.ThrottledPeriods)))
	newer(&a.ThrottledSeconds, growth(b.throttledSeconds, series.Optional(g.ThrottledSeconds)))
	newer(&a.OOMKills, growth(b.oomKills, series.Optional(g.OOMKills)))
	s.accountLimit(a, j, killed)
	if peak := series.Optional(g.PeakMemory); a.Source == JobFromCreated || !j.Shared && peak > b.peak {
		newer(&a.PeakMB, peak/MiB)
	}
	highest(&a.CacheMB, series.Optional(j.PageCache/MiB))
	highest(&a.OwnMB, series.Optional(j.Own/MiB))
	if !j.Shared {
		a.JobStall = newStalls(g.Pressure).minus(b.jobStall)
	}
}

// accountLimit notes how much of the memory limit was reached between the last Reading
// and this one: the kernel's peak, where it rose meanwhile, less the most page cache that was
// seen, which the kernel takes back first. Where it killed and the group had been full, that
// is noted: whether this limit was why, its log tells.
func (s *Sampler) accountLimit(a *Account, j *JobUse, killed series.Optional) {
	g, limit := j.Group, j.Limits.MemoryMB
	peak := series.Optional(g.LimitPeak / MiB)
	newer(&a.LimitPeakMB, peak)
	highest(&a.LimitCacheMB, series.Optional(g.LimitPageCache/MiB))
	rose := series.Optional(g.LimitPeak) > s.base.limitPeak
	if rose {
		s.base.limitPeak = series.Optional(g.LimitPeak)
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

// fullGroup is the part of its limit at which a group counts as full: the kernel counts
// pages for each CPU apart, and charges some at once.
const fullGroup = 0.98

// noteOOM looks, when the kernel has killed for want of memory, for whom.
func (s *Sampler) noteOOM(r *Reading) {
	a := &s.rec.Account
	ours, theirs := a.OOMKills > s.oomSeen, a.HostOOMKills > s.hostOOMSeen
	// The log is long, and on a host where others are killed all the time it is read
	// only now and then.
	if !ours && !(theirs && (s.closing || r.At.Mono-s.oomLook > hostOOMEvery)) {
		return
	}
	if a.OOMAt.IsZero() || ours && s.oomSeen == 0 { // a kill in our group says more than one elsewhere
		a.OOMAt = s.rec.Start.Wall.Add(r.At.Boot - s.rec.Start.Boot)
	}
	if ours {
		s.oomSeen = a.OOMKills
	}
	if theirs {
		s.hostOOMSeen = a.HostOOMKills
	}
	a.Victims, s.oomLook = s.victims(r.At), r.At.Mono
	a.LogPIDs = s.log != nil && s.log.whole()
}

// hostOOMEvery is how often the kernel's log is read for kills in groups that are not the
// job's.
const hostOOMEvery = 30 * time.Second

// noteGPUs brings the devices up to the newest Reading, and makes room for their
// columns when they are first seen.
func (s *Sampler) noteGPUs(r *Reading) {
	if r.GPUs == nil {
		return
	}
	for _, g := range r.GPUs.Missing {
		s.rec.addGap(g.What, g.Why)
	}
	s.rec.GPUTrouble = ""
	if r.GPUs.Err != nil {
		s.rec.GPUTrouble = r.GPUs.Err.Error()
	}
	devices := r.GPUs.Devices[:min(len(r.GPUs.Devices), MaxGPUs)]
	for i := len(s.rec.GPUs); i < len(devices); i++ {
		s.rec.GPUs = append(s.rec.GPUs, newGPU(devices[i]))
		s.noteJobGPUs(devices[:i+1])
	}
	for i := range devices {
		s.rec.GPUs[i].note(r.GPUs.States[i])
	}
	s.rec.Widen(len(s.rec.GPUs))
}

// noteJobGPUs finds out which of the devices are the job's. A sidecar has no job.
func (s *Sampler) noteJobGPUs(devices []gpu.Device) {
	if s.reader.job.Source == "" {
		return
	}
	ofJob, doubt := gpu.OfJob(devices, s.reader.job.Env)
	for i := range ofJob {
		s.rec.GPUs[i].OfJob = ofJob[i]
	}
	if doubt != "" {
		s.rec.addGap("gpus.of_job", doubt)
	}
}

func newGPU(d gpu.Device) GPU {
	u := series.Unknown()
	return GPU{Index: d.Index, UUID: d.UUID, Name: strings.TrimSpace(d.Name), MemoryMB: series.Optional(d.MemoryMB),
		PowerLimitWatts: series.Optional(d.PowerLimitWatts), MIG: d.MIG, EnergyJoules: u, ClockMHz: u}
}
