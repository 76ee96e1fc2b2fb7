package collector

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/collector/series"
)

// MemoryAsRSS is the code for memory of the job that was summed from resident sizes instead of PSS.
const MemoryAsRSS series.ReasonCode = "memory_as_rss"

// ProcessTable is the name under which a missing table of the job's processes is reported. ProcessesUnread is the code
// for processes that the table could not read.
const (
	ProcessTable                      = "processes"
	ProcessesUnread series.ReasonCode = "processes_unreadable"
)

// Account holds the kernel's counters of the job and of its limits: differences between the baseline and the newest
// Reading, unless noted otherwise. Usage from before the job is not included.
type Account struct {
	Source     string `json:"source,omitempty"`  // host.JobFromGroup…; "" without a job
	Running    bool   `json:"running,omitempty"` // at the baseline, which then includes the job's earlier usage
	Group      string `json:"group,omitempty"`   // path
	Version    string `json:"version,omitempty"`
	MemoryPath string `json:"memory_home,omitempty"` // path of the group charged for the job's memory
	MemoryKind string `json:"memory_kind,omitempty"` // kind of the samples' memory: host.MemoryPSS…; "" if never measured
	// CPUSeconds is the CPU time of the whole job, without perfagent and its helpers. LivingCPUSeconds is the part used
	// by processes that have not ended.
	CPUSeconds series.Optional `json:"cpu_seconds"`
	// CPUIncomplete reports whether the last Reading found processes of the job but could not read their CPU time.
	CPUIncomplete bool `json:"cpu_open,omitempty"`
	// OutsideGroup reports whether processes of the job ran outside the group, which did not count them. LateCPUSeconds
	// is the part of CPUSeconds that became known too late for the samples.
	OutsideGroup     bool            `json:"outside,omitempty"`
	LateCPUSeconds   float64         `json:"late_cpu_seconds,omitzero"`
	LivingCPUSeconds series.Optional `json:"living_cpu_seconds"`
	// PeakMB is the peak that the kernel recorded for the job's group, including page cache, if it rose while the job
	// ran. CacheMB is the most page cache seen in the group. NonJobMB is the most memory seen in the group that is not
	// the job's: it belongs to perfagent or dates from before the job. All values are in MiB.
	PeakMB   series.Optional `json:"peak_mb"`
	CacheMB  series.Optional `json:"cache_mb"`
	NonJobMB series.Optional `json:"own_mb"`

	// UnownedMB is the largest growth of the host's shared memory beyond the known share of the job, in MiB. The growth
	// is due to files in /dev/shm without a known owner.
	UnownedMB series.Optional `json:"unowned_mb"`

	Limits host.Limits `json:"limits"`
	// InnerMemoryGroup is the innermost group if several groups have the memory limit; "" if only one has it.
	InnerMemoryGroup string `json:"memory_inner,omitempty"`
	// Periods counts all periods of the CPU quota, ThrottledPeriods the periods in which the group was throttled, and
	// ThrottledSeconds the time for which it was throttled.
	Periods          series.Optional `json:"periods"`
	ThrottledPeriods series.Optional `json:"throttled"`
	ThrottledSeconds series.Optional `json:"throttled_seconds"`
	// LimitPeakMB is the peak that the kernel recorded for the group with the memory limit, including page cache, in
	// MiB. LimitCacheMB is the most page cache seen in that group.
	LimitPeakMB  series.Optional `json:"limit_peak_mb"`
	LimitCacheMB series.Optional `json:"limit_cache_mb"`
	// LimitReachedPct is the highest percentage of the memory limit that was in use, excluding page cache, at any peak
	// that the kernel recorded. Each peak is compared with the limit in force at that time. It is unknown if no peak
	// rose while the job ran.
	LimitReachedPct series.Optional `json:"limit_reached_pct"`
	// FullAtKillMB is the memory limit, in MiB, at the first kill in the job's group that happened while the group with
	// the limit was full. It is unknown if there was no such kill.
	FullAtKillMB series.Optional `json:"full_at_kill_mb"`
	// LimitCPUSeconds is the CPU time that the job's limit allowed. The limit may have changed during the run.
	LimitCPUSeconds float64 `json:"limit_cpu_seconds,omitzero"`

	// OOMKills counts the processes killed in the group, HostOOMKills the processes killed on the whole host.
	// LimitOOMKills is the part of OOMKills for which the kernel's counters prove that the reason was the job's memory
	// limit.
	OOMKills      series.Optional `json:"oom_kills"`
	HostOOMKills  series.Optional `json:"host_oom_kills"`
	LimitOOMKills series.Optional `json:"limit_oom_kills"`
	// LastOOMKill is the newest kill in the group or, if no group counts kills, on the host; nil if there was none.
	LastOOMKill *OOMKill `json:"kill,omitempty"`
	// MemoryAtPeak belongs to the sample with the most memory of the job, which is PartsPeakMB. Both are zero if no sample
	// had the parts.
	MemoryAtPeak MemoryParts `json:"memory_at_peak,omitzero"`
	PartsPeakMB  float64     `json:"parts_peak_mb,omitzero"`
	// Neighbours is 0 if, whenever a kill was counted, the group held only the job, perfagent and perfagent's
	// ancestors. It is 1 if the group also held other processes, and unknown if the group was not checked.
	Neighbours series.Optional `json:"neighbours"`
	OOMAt      time.Time       `json:"oom_at,omitzero"`
	Victims    []host.Victim   `json:"victims,omitempty"`
	// Largest are the largest processes of the job at the newest kill, from the kernel's log, largest first.
	Largest []host.Task `json:"largest,omitempty"`
	// SamePIDNamespace reports whether Victims is complete and the process IDs in the kernel's log are valid in
	// perfagent's PID namespace.
	SamePIDNamespace bool `json:"log_pids,omitempty"`

	// JobStall and HostStall are the stalls of the job's group and of the host.
	JobStall  Stalls `json:"job_stall"`
	HostStall Stalls `json:"host_stall"`

	// Signals are the signals received so far. The journal keeps them, in case the agent is killed. The caller fills
	// them in.
	Signals []Signal `json:"signals,omitempty"`
	// Stop describes how a Rule stopped the job; nil if no Rule did. The caller fills it in.
	Stop *Stop `json:"stop,omitempty"`
}

// An OOMKill describes an out-of-memory kill, as seen in the Readings before and after it. It is immutable.
type OOMKill struct {
	At time.Time `json:"at"` // time of the first Reading that counted it
	// InGroup reports whether the counters prove that the reason was a limit of the job's group or of a group below it,
	// and AtLimit whether they prove that it was the job's memory limit.
	InGroup bool `json:"in_group"`
	AtLimit bool `json:"at_limit"`
	// LimitEventsCounted reports whether the kernel counts the kills due to a limit (v2). If so, a count of 0 proves
	// that there was none.
	LimitEventsCounted bool `json:"counted"`
	// AvailableMB is the available memory of the host at the last Reading before the kill, in MiB; AvailablePct is its
	// share of the host's memory.
	AvailableMB  series.Optional `json:"available_mb"`
	AvailablePct series.Optional `json:"available_pct"`
	// Memory belongs to the last sample before the kill with the parts of the job's memory or, if that had less memory,
	// to the sample before it.
	Memory MemoryParts `json:"memory,omitzero"`
}

// A Stop describes how perfagent stopped a job because a Rule held. It is immutable.
type Stop struct {
	Rule  string  `json:"rule"` // as written
	Key   string  `json:"key"`
	Value float64 `json:"value"` // of the sample that satisfied the rule
	// ForSeconds is how long the rule had to hold; 0 means that one sample was enough.
	ForSeconds float64   `json:"for_seconds"`
	Signal     string    `json:"signal"` // name of the signal sent to the main process
	At         time.Time `json:"at"`     // when Signal was sent
	// Killed reports whether SIGKILL followed. It is known only after the job has ended.
	Killed bool `json:"killed"`
}

// A Signal is a signal that perfagent received, with its sender.
type Signal = process.Signal

// DeathUnknown is process.Death.How of a process that vanished.
const DeathUnknown = process.DeathUnknown

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

// note updates stalls to their increase since the first reading. Values missing from p leave stalls unchanged.
func (c *stallCounters) note(s *Stalls, p *cgroup.Pressure) {
	setIfKnown(&s.CPUSome, c[0].Increase(p.CPU.Some))
	setIfKnown(&s.CPUFull, c[1].Increase(p.CPU.Full))
	setIfKnown(&s.MemorySome, c[2].Increase(p.Memory.Some))
	setIfKnown(&s.MemoryFull, c[3].Increase(p.Memory.Full))
	setIfKnown(&s.IOSome, c[4].Increase(p.IO.Some))
	setIfKnown(&s.IOFull, c[5].Increase(p.IO.Full))
}

// NoAccount returns an Account in which everything is unknown.
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

// UnmarshalJSON implements [json.Unmarshaler]. Missing keys are unknown.
func (a *Account) UnmarshalJSON(data []byte) error {
	type plain Account
	p := plain(NoAccount())
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	*a = Account(p)
	return nil
}

// A GPU is a device of the node, with the totals of its counters over the run.
type GPU struct {
	gpu.Device
	OfJob bool `json:"of_job"`
	// EnergyJoules is the increase of the device's energy counter, ClockMHz the highest clock frequency seen.
	EnergyJoules series.Optional `json:"energy_joules"`
	ClockMHz     series.Optional `json:"clock_mhz"`
	// Throttle lists the reasons seen for a reduced clock.
	Throttle []string `json:"throttle,omitempty"`
	// IdleGaps describes the idle time of a device of the job.
	IdleGaps IdleGaps `json:"idle,omitzero"`

	// looks counts the checks of the job's processes, visible the checks in which a process could use the device.
	looks, visible float64

	energy     series.Counter
	currentGap IdleGaps // the current idle time, which may be too short for a gap
}

// note updates g with a newer state of the device.
func (g *GPU) note(s gpu.State) {
	setIfKnown(&g.EnergyJoules, g.energy.Increase(s.EnergyJoules))
	raiseTo(&g.ClockMHz, series.Optional(s.ClockMHz))
	for _, reason := range s.Throttle {
		if !slices.Contains(g.Throttle, reason) {
			g.Throttle = append(g.Throttle, reason)
		}
	}
}
