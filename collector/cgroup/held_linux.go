package cgroup

import (
	"math"
	"os"
)

// Held reads what may have held memory down, of the group that sets Limits.Memory by the newest Limits, or of this
// group where none does. It is for every few seconds, as the kernel adds up memory.stat over all CPUs and groups below.
func (g *Group) Held() Held {
	h := Held{Swap: nan, Refaults: nan, High: nan, HighEvents: nan}
	if g.memory == nil || g.limiting < 0 && !g.memory.hasCounters() {
		return h
	}

	level, prefix := max(g.limiting, 0), "total_"
	if g.memory.v2 {
		prefix = ""
	}
	var v [4]float64
	_ = g.r.keys(g.memory.path(level, "memory.stat"), []string{prefix + "workingset_refault_file",
		prefix + "workingset_refault_anon", prefix + "workingset_refault", "total_swap"}, v[:])
	for _, pages := range v[:3] { // a kernel has the first two, or the third, or none
		if bytes := pages * float64(os.Getpagesize()); math.IsNaN(h.Refaults) {
			h.Refaults = bytes
		} else if !math.IsNaN(bytes) {
			h.Refaults += bytes
		}
	}
	if h.Swap = v[3]; !g.memory.v2 {
		return h
	}

	var none Counters // what is not there is absent
	h.Swap = none.number(&g.r, ifThere(g.memory.path(level, "memory.swap.current")))
	g.readHigh(&h)
	return h
}

// readHigh reads the lowest memory.high of the group and its visible ancestors.
func (g *Group) readHigh(h *Held) {
	for i := range g.memory.dirs {
		data, err := g.r.read(g.memory.path(i, "memory.high"), maxFile)
		if err != nil {
			continue
		}
		if v, ok := parseLimit(data); ok && (v < h.High || v == v && h.High != h.High) {
			var events [1]float64
			_ = g.r.keys(g.memory.path(i, "memory.events"), []string{"high"}, events[:])
			h.High, h.HighEvents = v, events[0]
		}
	}
}
