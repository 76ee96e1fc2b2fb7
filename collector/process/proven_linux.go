package process

import "os"

// A judgement says how far the memory can be trusted at the moment of a scan: see Use.
type judgement struct {
	memory, proven float64
	holds          bool
}

// judge judges the memory. One that was put off may be too low by now, and is raised to what the resident sizes prove;
// or it may be too high.
func (t *Tree) judge(u Use) judgement {
	if u.MemoryKind == "" || t.noMemory {
		return judgement{memory: u.Memory}
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

	j := judgement{memory: u.Memory, holds: true}
	off := u.MemoryKind == "pss" && !u.MemoryFresh && len(t.ours) > 0 && !t.steady(now)
	switch grown := float64(now.pages) - float64(t.weighed.pages); {
	case !off:
	case grown < -0.01*float64(t.weighed.pages):
		j.holds = false
	case now.processes == 1 && t.weighed.processes == 1: // what it has got since is its own
		j.memory += max(0, grown) * float64(os.Getpagesize())
	default:
		j.memory = max(j.memory, largest)
	}

	switch {
	case u.MemoryKind != "pss" || t.failed["memory"] != nil:
		j.proven = max(largest, t.measuredPSS) + t.shared.open
	case !j.holds:
		j.proven = max(largest, min(j.memory, all+u.Swap+t.shared.open))
	default:
		j.proven = max(largest, j.memory)
	}
	return j
}
