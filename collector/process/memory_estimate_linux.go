package process

import "os"

// estimateMemory sets Memory, MemoryLowerBound and MemoryUpToDate in u to the current memory as far as it is known. The
// measurement in u may be from an earlier scan. If the resident sizes have grown since then, it raises Memory to the
// minimum that they prove. If they have shrunk, Memory may be too high and is not up to date.
func (t *Tree) estimateMemory(u *TreeUsage) {
	if u.MemoryKind == "" || t.Next.NoMemory {
		return
	}

	now, largest, all, measured := t.resident(), 0., 0., 0.
	for _, p := range t.jobProcs {
		largest, all = max(largest, float64(p.rss())), all+float64(p.rss())
		if p.measured {
			measured += float64(p.pss)
		}
	}
	if u.MemoryFresh {
		t.measuredPSS = measured
	}

	u.MemoryUpToDate = true
	off := u.MemoryKind == "pss" && !u.MemoryFresh && len(t.jobProcs) > 0 && !t.isSteady(now)
	switch grown := float64(now.pages) - float64(t.measuredResidency.pages); {
	case !off:
	case grown < -0.01*float64(t.measuredResidency.pages):
		u.MemoryUpToDate = false
	case now.processes == 1 && t.measuredResidency.processes == 1: // all growth is in this process
		u.Memory += max(0, grown) * float64(os.Getpagesize())
	default:
		u.Memory = max(u.Memory, largest)
	}

	switch {
	case u.MemoryKind != "pss" || t.failed["memory"] != nil:
		u.MemoryLowerBound = max(largest, t.measuredPSS) + t.openShared()
	case !u.MemoryUpToDate:
		u.MemoryLowerBound = max(largest, min(u.Memory, all+u.Swap+t.openShared()))
	default:
		u.MemoryLowerBound = max(largest, u.Memory)
	}
}
