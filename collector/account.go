package collector

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// MemoryAsRSS is the code for memory of the job that was added up from resident sizes instead of PSS.
const MemoryAsRSS series.ReasonCode = "memory_as_rss"

// ProcessTable names the table of the job's processes where it is missing, and ProcessesUnread is the
// code for processes that could not be read for it.
const (
	ProcessTable                      = "processes"
	ProcessesUnread series.ReasonCode = "processes_unreadable"
)

// Account is what the kernel's counters say of the job and of what limits it: differences from the
// baseline to the newest Reading, unless said otherwise. What was before the job is not in it.
type Account struct {
	Source     string `json:"source,omitempty"`  // host.JobFromGroup…; "" = there is no job
	Running    bool   `json:"running,omitempty"` // at the baseline, which read the job, too
	Group      string `json:"group,omitempty"`   // its path
	Version    string `json:"version,omitempty"`
	MemoryPath string `json:"memory_home,omitempty"` // path of the group that the job's memory is charged to
	MemoryKind string `json:"memory_kind,omitempty"` // of the samples; "" = never measured
	// CPUSeconds is the CPU time of the whole job, without ours and our helpers'. Living is the
	// part of it that belongs to processes that have not ended.
	CPUSeconds series.Optional `json:"cpu_seconds"`
	// CPUIncomplete reports that the last Reading found processes of the job and could not read what they
	// have used.
	CPUIncomplete bool `json:"cpu_open,omitempty"`
	// OutsideGroup reports that the group has not counted all processes of the job, LateCPUSeconds is the
	// part of CPUSeconds that samples lack therefore: it was known later.
	OutsideGroup     bool            `json:"outside,omitempty"`
	LateCPUSeconds   float64         `json:"late_cpu_seconds,omitzero"`
	LivingCPUSeconds series.Optional `json:"living_cpu_seconds"`
	// PeakMB is the kernel's peak of the group that holds the job, page cache included, if it rose
	// while the job ran. CacheMB is the most page cache that was seen in it, OwnMB the most that is
	// not the job's: ours, and what was there before it. All are MiB.
	PeakMB   series.Optional `json:"peak_mb"`
	CacheMB  series.Optional `json:"cache_mb"`
	NonJobMB series.Optional `json:"own_mb"`

	// UnownedMB is the most by which the host's shared memory had grown beyond what is known to be the
	// job's, MiB: files in /dev/shm of which it is not known to whom they belong.
	UnownedMB series.Optional `json:"unowned_mb"`

	Limits host.Limits `json:"limits"`
	// InnerMemoryGroup is the innermost of several groups with the memory limit, or "" if there is one.
	InnerMemoryGroup string `json:"memory_inner,omitempty"`
	// Periods and Throttled count the periods of the CPU quota, all and those in which the group
	// was throttled; ThrottledSeconds is for how long it was.
	Periods          series.Optional `json:"periods"`
	ThrottledPeriods series.Optional `json:"throttled"`
	ThrottledSeconds series.Optional `json:"throttled_seconds"`
	// LimitPeakMB is the kernel's peak of the group that has the memory limit, page cache included,
	// in MiB. LimitCacheMB is the most page cache that was seen in that group.
	LimitPeakMB  series.Optional `json:"limit_peak_mb"`
	LimitCacheMB series.Optional `json:"limit_cache_mb"`
	// LimitReachedPct is the largest share of the memory limit, as it was at that time, that was in
	// use by the kernel's peaks, without page cache. It is unknown if no peak rose while the job
	// ran.
	LimitReachedPct series.Optional `json:"limit_reached_pct"`
	// FullAtKillMB is the memory limit, in MiB, at the first kill in the group at which the group
	// with the limit had been full. It is unknown if there was none.
	FullAtKillMB series.Optional `json:"full_at_kill_mb"`
	// LimitCPUSeconds is the CPU time that the job could have used within its limit, which may have
	// changed during the run.
	LimitCPUSeconds float64 `json:"limit_cpu_seconds,omitzero"`

	// OOMKills counts the processes that were killed in the group, HostOOMKills those on the whole
	// host. LimitOOMKills counts those of OOMKills for which the kernel's counters prove that the
	// job's memory limit was the reason.
	OOMKills      series.Optional `json:"oom_kills"`
	HostOOMKills  series.Optional `json:"host_oom_kills"`
	LimitOOMKills series.Optional `json:"limit_oom_kills"`
	// LastOOMKill is the newest kill in the group or, where no group counts them, on the host; nil if there
	// was none.
	LastOOMKill *OOMKill `json:"kill,omitempty"`
	// Neighbours is 0 if the group held nothing but the job, us and what is above us whenever a kill
	// was counted, and more if it held others. It is unknown if that was not looked at.
	Neighbours series.Optional `json:"neighbours"`
	OOMAt      time.Time       `json:"oom_at,omitzero"`
	Victims    []host.Victim   `json:"victims,omitempty"`
	// SamePIDNamespace reports that Victims are all that the kernel's log has, with process IDs that are
	// ours.
	SamePIDNamespace bool `json:"log_pids,omitempty"`

	// Stalls of the job's group and of the host, seconds (PSI).
	JobStall  Stalls `json:"job_stall"`
	HostStall Stalls `json:"host_stall"`

	// Signals are those that were sent to us so far, for readers of the journal of an agent that
	// was killed after them. The caller fills them in.
	Signals []Signal `json:"signals,omitempty"`
	// Stop is what stopped the job; nil if nothing did. The caller fills it in.
	Stop *Stop `json:"stop,omitempty"`
}

// An OOMKill is what the Readings around an out-of-memory kill say of it. It never changes.
type OOMKill struct {
	At time.Time `json:"at"` // of the first Reading that had counted it
	// InGroup and AtLimit report whether the counters prove that a limit of the job's group or of one
	// below it was the reason, and the job's memory limit.
	InGroup bool `json:"in_group"`
	AtLimit bool `json:"at_limit"`
	// LimitEventsCounted reports whether the kernel counts how often a limit was the reason, so that its silence
	// proves that none was (v2).
	LimitEventsCounted bool `json:"counted"`
	// AvailableMB is the memory, MiB, that the host had available at the last Reading before the kill,
	// and AvailablePct that share of its memory.
	AvailableMB  series.Optional `json:"available_mb"`
	AvailablePct series.Optional `json:"available_pct"`
}

// A Stop is the end that perfagent made to a job because a Rule held. It never changes.
type Stop struct {
	Rule  string  `json:"rule"` // as it was written
	Key   string  `json:"key"`
	Value float64 `json:"value"` // that held
	// ForSeconds is how long the rule had to hold; 0 = one sample was enough.
	ForSeconds float64   `json:"for_seconds"`
	Signal     string    `json:"signal"` // that was sent to the main process
	At         time.Time `json:"at"`     // when it was sent
	// Killed reports whether SIGKILL followed. It is known when the job has ended.
	Killed bool `json:"killed"`
}

// A Signal is a signal that perfagent received, and who sent it.
type Signal struct {
	Signal string    `json:"signal"`           // "SIGTERM"
	Number int       `json:"number,omitempty"` // of this system's; 0 = unknown
	At     time.Time `json:"at"`
	// Kernel reports that no process sent it: Ctrl-C of the terminal, a hang-up, a limit.
	Kernel bool `json:"kernel,omitempty"`
	// PID is the sender's process ID and Process its name; -1 and "" are unknown. A sender outside
	// of our process namespace has the ID 0.
	PID     int    `json:"pid"`
	Process string `json:"process,omitempty"`
}

// Stalls are the seconds in which some or all tasks waited for a resource (PSI).
type Stalls struct {
	CPUSome    series.Optional `json:"cpu_some"`
	CPUFull    series.Optional `json:"cpu_full"`
	MemorySome series.Optional `json:"memory_some"`
	MemoryFull series.Optional `json:"memory_full"`
	IOSome     series.Optional `json:"io_some"`
	IOFull     series.Optional `json:"io_full"`
}

// stallCounters are the counters behind Stalls, in the order of its fields.
type stallCounters [6]series.Counter

// note brings stalls up to another reading: how far they have come since the first one. What it lacks
// stays as it was.
func (c *stallCounters) note(s *Stalls, p *cgroup.Pressure) {
	setIfKnown(&s.CPUSome, c[0].Increase(p.CPU.Some))
	setIfKnown(&s.CPUFull, c[1].Increase(p.CPU.Full))
	setIfKnown(&s.MemorySome, c[2].Increase(p.Memory.Some))
	setIfKnown(&s.MemoryFull, c[3].Increase(p.Memory.Full))
	setIfKnown(&s.IOSome, c[4].Increase(p.IO.Some))
	setIfKnown(&s.IOFull, c[5].Increase(p.IO.Full))
}

// NoAccount returns an Account with nothing known.
func NoAccount() Account {
	u := series.Unknown()
	none := Stalls{u, u, u, u, u, u}
	return Account{
		CPUSeconds: u, LivingCPUSeconds: u, PeakMB: u, CacheMB: u, NonJobMB: u, UnownedMB: u,
		Limits:  host.Limits{CPUQuota: u, MemoryMB: u},
		Periods: u, ThrottledPeriods: u, ThrottledSeconds: u,
		LimitPeakMB: u, LimitCacheMB: u, LimitReachedPct: u, FullAtKillMB: u,
		OOMKills: u, HostOOMKills: u, LimitOOMKills: u, Neighbours: u,
		JobStall: none, HostStall: none,
	}
}

// UnmarshalJSON implements [json.Unmarshaler]: what is missing is unknown.
func (a *Account) UnmarshalJSON(data []byte) error {
	type plain Account
	p := plain(NoAccount())
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	*a = Account(p)
	return nil
}

// A GPU is a device of the node, with what its own counters say of the run.
type GPU struct {
	gpu.Device
	OfJob bool `json:"of_job"`
	// EnergyJoules is the increase of the device's counter, ClockMHz the highest clock that was
	// seen.
	EnergyJoules series.Optional `json:"energy_joules"`
	ClockMHz     series.Optional `json:"clock_mhz"`
	// Throttle lists the reasons for which its clock was seen to be held back.
	Throttle []string `json:"throttle,omitempty"`
	// IdleGaps is when the device, one of the job's, was idle.
	IdleGaps IdleGaps `json:"idle,omitzero"`

	// looks counts the looks at the job's processes, visible those in which one of them could use the device.
	looks, visible float64

	energy     series.Counter
	currentGap IdleGaps // the time for which the device has been idle now; it may still be too short
}

// note takes another state of the device.
func (g *GPU) note(s gpu.State) {
	setIfKnown(&g.EnergyJoules, g.energy.Increase(s.EnergyJoules))
	raiseTo(&g.ClockMHz, series.Optional(s.ClockMHz))
	for _, reason := range s.Throttle {
		if !slices.Contains(g.Throttle, reason) {
			g.Throttle = append(g.Throttle, reason)
		}
	}
}
