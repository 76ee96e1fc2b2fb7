package reporter

import (
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
)

// LimitReached is the share of a memory limit that a peak must reach for a kill to be put down
// to the limit without the kernel's log.
const LimitReached = 0.9

// LimitKills returns how many processes the kernel killed because the group that sets the job's
// memory limit was full. The other kills belong to groups with a limit of their own: below it, if
// the job made some, or above it, if others have filled them.
func LimitKills(a *collector.Account) float64 {
	kills, here, elsewhere := float64(a.OOMKills), 0.0, false
	for _, v := range a.Victims {
		switch at, known := HitLimit(a, v); {
		case known && at:
			here++
		case known && InGroup(v.Group, a.MemoryHome):
			elsewhere = true
		}
	}

	switch {
	case elsewhere: // a kill without a log entry may belong to either limit
		return here
	case here > 0:
		return max(here, kills)
	case !(kills > 0) || LimitFree(a):
		return 0
	}
	return kills
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

// LimitFree reports whether the kernel's peak of the group that sets the memory limit is too low
// for the limit to have been hit.
func LimitFree(a *collector.Account) bool {
	return float64(a.LimitPeakMB) < LimitReached*float64(a.Limits.MemoryMB)
}

// InGroup reports whether a control group is another one or below it. It is never true of the
// root, which holds everything.
func InGroup(group, of string) bool {
	return of != "" && of != "/" && (group == of || strings.HasPrefix(group, of+"/"))
}
