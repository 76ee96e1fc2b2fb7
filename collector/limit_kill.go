package collector

import (
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// A limitKillDetector finds out whether a memory limit was the reason for a kill in the job's group. That a
// group was full is no proof: page cache alone fills it.
type limitKillDetector struct {
	inGroup, atLimit, counted bool // as in Kill, of a kill that the newest Reading has counted

	own, limit       oomCounter // of the group, and of the group that sets the memory limit
	underOOM         bool       // v1: since the kill before
	unreclaimablePct float64    // percent of the limit that cannot be reclaimed, at the newest Reading
}

func newLimitKillDetector() limitKillDetector {
	return limitKillDetector{own: newOOMCounter(), limit: newOOMCounter()}
}

// An oomCounter is how often a limit left the kernel nothing but to kill, at the three newest Readings.
// The kernel counts that some time before it kills.
type oomCounter [3]series.Optional

func newOOMCounter() oomCounter {
	return oomCounter{series.Unknown(), series.Unknown(), series.Unknown()}
}

// next takes another reading.
func (c *oomCounter) next(v float64) {
	c[2], c[1], c[0] = c[1], c[0], series.Optional(v)
	for i := range c {
		if !c[i].Known() { // it begins, or could not be read
			c[i] = c[0]
		}
	}
}

// settle makes what was counted until now that of a kill that is over.
func (c *oomCounter) settle() { c[1], c[2] = c[0], c[0] }

func (c *oomCounter) rose() bool { return c[0] > c[2] }

const (
	// LimitUnreclaimablePct is the share of a limit from which a kill in the group is put down to the limit, in
	// percent, if the kernel cannot reclaim so much and does not count what it killed for.
	LimitUnreclaimablePct = 90
	// HostAvailablePct is the share of its memory that the host must have available then.
	HostAvailablePct = 5
)

// next takes another Reading of the group. scarce is the host's memory before it.
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

// settle begins anew after a kill.
func (w *limitKillDetector) settle() {
	w.own.settle()
	w.limit.settle()
	w.underOOM = false
}

// fullGroup is the part of its limit at which a group counts as full: the kernel counts pages for
// each CPU apart, and charges some in advance.
const fullGroup = 0.98

// full reports whether the group with the limit was full at a kill. Without a proof its peak must do,
// a part of the limit.
func (w *limitKillDetector) full(peak series.Optional) bool {
	return w.atLimit || !w.counted && peak >= fullGroup
}

// availablePct returns the share of the host's memory that is available.
func availablePct(m host.Memory) series.Optional {
	if m.Total == 0 {
		return series.Unknown()
	}
	return series.Optional(100 * float64(m.Available) / float64(m.Total))
}
