package process

import "os"

// judgeMemory says how far the memory can be trusted at this moment. One that was put off may be too low by now, and is
// raised to what the resident sizes prove; or it may be too high.
func (t *Tree) judgeMemory(u *Use) {
	if u.MemoryKind == "" || u.Skipped {
		return
	}

	now, largest, all, measured := t.resident(), 0., 0., 0.
	for _, p := range t.ours {
		largest, all = max(largest, float64(p.rss())), all+float64(p.rss())
		if p.paced {
			measured += float64(p.pss)
		}
	}
	if u.MemoryFresh {
		t.measuredPSS = measured
	}

	put := u.MemoryKind == "pss" && !u.MemoryFresh && len(t.ours) > 0 && !t.steady(now)
	u.MemoryHolds = !put || float64(now.pages) >= 0.99*float64(t.weighed.pages)
	switch grown := float64(now.pages) - float64(t.weighed.pages); {
	case !put || !u.MemoryHolds:
	case now.processes == 1 && t.weighed.processes == 1: // what it has got since is its own
		u.Memory += max(0, grown) * float64(os.Getpagesize())
	default:
		u.Memory = max(u.Memory, largest)
	}

	switch {
	case u.MemoryKind != "pss" || t.failed["memory"] != nil:
		u.Proven = max(largest, t.measuredPSS)
	case !u.MemoryHolds:
		u.Proven = max(largest, min(u.Memory, all))
	default:
		u.Proven = max(largest, u.Memory)
	}
}
