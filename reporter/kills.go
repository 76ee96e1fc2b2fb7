package reporter

import (
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
)

// LimitKills returns how many processes the kernel is proved to have killed because the group that sets the job's
// memory limit was full. The other kills belong to groups with a limit of their own (below it, if the job made some, or
// above it, if others have filled them), to the host, or to others in the same group.
func LimitKills(a *collector.Account, j *Job) float64 {
	here, elsewhere := 0.0, false
	for _, v := range a.Victims {
		switch at, known := HitLimit(a, v); {
		case v.Foreign:
		case known && at:
			here++
		case known && InGroup(v.Group, a.MemoryHome):
			elsewhere = true
		}
	}

	switch kills := GroupKills(a); {
	case elsewhere: // a kill without a log entry may belong to either limit
		return here
	case here > 0 || LimitProved(a, j):
		return max(here, kills)
	case a.LimitOOMKills > 0:
		return min(float64(a.LimitOOMKills), max(0, kills))
	}
	return 0
}

// GroupKills returns the number of processes that the kernel killed in the job's control group, without those known not
// to be the job's.
func GroupKills(a *collector.Account) float64 {
	kills := 0.0
	if a.OOMKills.Known() {
		kills = float64(a.OOMKills)
	}
	for _, v := range a.Victims {
		if v.Foreign && (InGroup(v.Group, a.MemoryHome) || v.Group == "" && !v.Host) {
			kills--
		}
	}
	return max(0, kills)
}

// LimitProved reports whether it is proved without the kernel's log that the newest kill in the group was for the job's
// memory limit. Where the kernel does not count that, the largest process proves it, if it had the limit to itself and
// the host had memory.
func LimitProved(a *collector.Account, j *Job) bool {
	k := a.Kill
	switch {
	case k == nil:
		return false
	case k.AtLimit:
		return true
	case k.Counted || j == nil || j.MaxRSSAtMost:
		return false
	}

	limit := a.Limits.MemoryMB
	if a.FullAtKillMB.Known() {
		limit = a.FullAtKillMB
	}
	return k.AvailablePct >= collector.HostRoomPct && 100*j.MaxRSSMB >= collector.LimitHeldPct*float64(limit)
}

// HitLimit reports whether a victim was killed for the job's memory limit, and whether that is
// known. The log has the paths of the whole host. If our group has another name there, the two
// cannot be compared.
func HitLimit(a *collector.Account, v host.Victim) (at, known bool) {
	switch {
	case v.Host:
		return false, true
	case v.LimitGroup == "":
		return false, false
	case v.LimitGroup == a.Limits.MemoryGroup:
		return true, true
	case InGroup(v.LimitGroup, a.Limits.MemoryGroup) && InGroup(a.MemoryInner, v.LimitGroup):
		return true, true // job and step of a scheduler have the same limit
	case a.Limits.MemoryGroup == "": // it is set above what we see
		return false, InGroup(v.LimitGroup, a.MemoryHome) && v.LimitGroup != a.MemoryHome
	}
	return false, InGroup(v.Group, a.MemoryHome)
}

// InGroup reports whether a control group is another one or below it. It is never true of the
// root, which holds everything.
func InGroup(group, of string) bool {
	return of != "" && of != "/" && (group == of || strings.HasPrefix(group, of+"/"))
}
