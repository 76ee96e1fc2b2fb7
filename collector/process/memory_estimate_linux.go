package process

import "os"

// A memoryEstimate holds Memory, MemoryLowerBound and MemoryUpToDate of TreeUsage at the moment of a scan.
type memoryEstimate struct {
	memory, lowerBound float64
	upToDate           bool
}

// estimateMemory estimates the current memory from u. The measurement in u may be from an earlier scan. If the resident
// sizes have grown since, it raises Memory to what they prove; if they have shrunk, Memory may be too high, and is not
// up to date.
func (t *Tree) estimateMemory(u TreeUsage) memoryEstimate {
	if u.MemoryKind == "" || t.Next.NoMemory {
		return memoryEstimate{memory: u.Memory}
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

	j := memoryEstimate{memory: u.Memory, upToDate: true}
	off := u.MemoryKind == "pss" && !u.MemoryFresh && len(t.jobProcs) > 0 && !t.isSteady(now)
	switch grown := float64(now.pages) - float64(t.measuredResidency.pages); {
	case !off:
	case grown < -0.01*float64(t.measuredResidency.pages):
		j.upToDate = false
	case now.processes == 1 && t.measuredResidency.processes == 1: // all growth is of this process
		j.memory += max(0, grown) * float64(os.Getpagesize())
	default:
		j.memory = max(j.memory, largest)
	}

	switch {
	case u.MemoryKind != "pss" || t.failed["memory"] != nil:
		j.lowerBound = max(largest, t.measuredPSS) + t.shared.open
	case !j.upToDate:
		j.lowerBound = max(largest, min(j.memory, all+u.Swap+t.shared.open))
	default:
		j.lowerBound = max(largest, j.memory)
	}
	return j
}
