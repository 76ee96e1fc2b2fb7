package collector

import (
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// A limitKillDetector determines whether a memory limit was the reason for a kill in the job's group. A full group is
// no proof, because page cache alone can fill it.
type limitKillDetector struct {
	inGroup, atLimit, counted bool // as in OOMKill, for a kill counted by the newest Reading

	own, limit       oomCounter // of the job's group, and of the group with the memory limit
	underOOM         bool       // v1: the group was out of memory at a Reading since the last kill
	unreclaimablePct float64    // percent of the limit, at the previous Reading
}

func newLimitKillDetector() limitKillDetector {
	return limitKillDetector{own: newOOMCounter(), limit: newOOMCounter()}
}

// An oomCounter holds a counter of the kernel at the three newest Readings, newest first: how often a limit left the
// kernel no choice but to kill. The kernel increments the counter some time before the kill.
type oomCounter [3]series.Optional

func newOOMCounter() oomCounter {
	return oomCounter{series.Unknown(), series.Unknown(), series.Unknown()}
}

// next adds the reading v, which may be NaN.
func (c *oomCounter) next(v float64) {
	c[2], c[1], c[0] = c[1], c[0], series.Optional(v)
	for i := range c {
		if !c[i].Known() { // first reading, or unreadable
			c[i] = c[0]
		}
	}
}

// settle attributes all counts so far to kills that are already recorded.
func (c *oomCounter) settle() { c[1], c[2] = c[0], c[0] }

func (c *oomCounter) rose() bool { return c[0] > c[2] }

const (
	// LimitUnreclaimablePct is the least unreclaimable memory, in percent of the limit, at which a kill in the group is
	// attributed to the limit. It matters only if the kernel does not count the reasons for kills.
	LimitUnreclaimablePct = 90
	// HostAvailablePct is the least percentage of the host's memory that must be available at such a kill.
	HostAvailablePct = 5
)

// next adds another Reading of the job's group. scarce is the host's memory at the earlier Reading with the least
// available memory.
func (w *limitKillDetector) next(j *host.JobUsage, scarce host.Memory) {
	g := j.Group
	w.own.next(g.OOMs)
	w.limit.next(g.LimitOOMs)
	w.underOOM = w.underOOM || g.UnderOOM
	w.counted = w.own[0].Known() && (w.limit[0].Known() || !(j.Limits.MemoryMB > 0))
	w.atLimit = w.limit.rose() || w.underOOM
	if !w.counted && w.unreclaimablePct >= LimitUnreclaimablePct && availablePct(scarce) >= HostAvailablePct {
		w.atLimit = true
	}
	w.inGroup = w.own.rose() || w.atLimit
	w.unreclaimablePct = 100 * g.LimitUnreclaimable / MiB / float64(j.Limits.MemoryMB)
}

// settle prepares w for the next kill.
func (w *limitKillDetector) settle() {
	w.own.settle()
	w.limit.settle()
	w.underOOM = false
}

// fullGroup is the share of its limit from which a group counts as full. It is below 1 because the kernel counts pages
// per CPU and charges some of them in advance.
const fullGroup = 0.98

// full reports whether the group with the limit was full at a kill. If the kernel does not count kills due to the
// limit, peak decides: the group's peak as a share of the limit.
func (w *limitKillDetector) full(peak series.Optional) bool {
	return w.atLimit || !w.counted && peak >= fullGroup
}

// availablePct returns the available percentage of the host's memory.
func availablePct(m host.Memory) series.Optional {
	if m.Total == 0 {
		return series.Unknown()
	}
	return series.Optional(100 * float64(m.Available) / float64(m.Total))
}
