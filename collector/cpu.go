package collector

import (
	"math"
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// cpuTotals sums the time of all CPUs by mode since the first good Reading. It is a value, like CounterState.
type cpuTotals struct {
	seconds [host.NumCPUModes]float64
	counted bool // true from the second good Reading on
	// highest holds the highest value of each CPU's counters. The kernel moves time from iowait to idle and back; the
	// part moved back must not count twice.
	highest []host.CPUTimes
	at      time.Duration // time of highest, on the boot clock
}

// cpuSlack is how far a correction by the kernel may lower a counter, and by how much a counter may grow faster than
// the clock, in seconds.
const cpuSlack = 3

// add adds another Reading of the counters. It matches CPUs by name; a new CPU counts from this Reading on.
func (t *cpuTotals) add(cpus []host.CPUTimes, at time.Duration) {
	if cpus == nil {
		return
	}
	most := (at - t.at).Seconds() + cpuSlack
	highest, shared := cpus, true
	for i := range cpus {
		before, known := findCPU(t.highest, cpus[i].Name, i)
		if !known {
			continue
		}
		for m := range host.NumCPUModes {
			delta, reached := series.CorrectedDelta(before.Seconds[m], cpus[i].Seconds[m], cpuSlack, most)
			t.seconds[m] += delta
			if reached == cpus[i].Seconds[m] {
				continue
			}
			if shared {
				highest, shared = slices.Clone(cpus), false
			}
			highest[i].Seconds[m] = reached
		}
	}

	t.counted = t.highest != nil
	t.highest, t.at = highest, at
}

// CPUSeconds returns the CPU time since the first good Reading, by CPUMode, in seconds summed over CPUs. All are NaN
// before the second good Reading.
func (p *CounterState) CPUSeconds() [host.NumCPUModes]float64 {
	if p.cpuTotal.counted {
		return p.cpuTotal.seconds
	}
	var none [host.NumCPUModes]float64
	for m := range none {
		none[m] = math.NaN()
	}
	return none
}

// measureCPU sets the percentages of CPU time, unless the window is still too short.
func (p *CounterState) measureCPU(st measurement) {
	if st.CPU == nil {
		return
	}
	p.cpuTotal.add(st.CPU, st.At.Boot)
	window := st.now - p.cpuSince
	if p.cpu != nil && tooShort(window, st.minWindow, p.cpuKnown) {
		return
	}

	if avg, least, most, ok := cpuSpread(p.cpu, st.CPU); ok {
		p.cpuKnown = true
		v := &st.sample.Values
		v[CPUAvg], v[CPUMin], v[CPUMax] = avg, least, most
		v[CPUIowait], v[CPUSteal] = p.cpuShare(host.ModeIowait), p.cpuShare(host.ModeSteal)
		for _, c := range [...]Column{CPUAvg, CPUMin, CPUMax, CPUIowait, CPUSteal} {
			st.sample.Weights[c] = window.Seconds()
		}
	}
	p.cpu, p.cpuSince, p.cpuModes = st.CPU, st.now, p.cpuTotal.seconds
}

// cpuShare returns the share of mode m in the window's CPU time over all CPUs, in percent.
func (p *CounterState) cpuShare(m host.CPUMode) float64 {
	total := 0.0
	for i, v := range p.cpuTotal.seconds {
		total += v - p.cpuModes[i]
	}
	if total <= 0 {
		return math.NaN()
	}
	return round3(100 * (p.cpuTotal.seconds[m] - p.cpuModes[m]) / total)
}

// busyPercent returns how busy one CPU was between two readings, in percent, computed and rounded to one decimal as by
// psutil: each field's difference is clamped at 0, total = Σ fields − guest − guest_nice, busy = total − idle − iowait,
// so steal and interrupts count as busy. It reports false if the kernel's clock did not advance: in that case psutil
// returns 0.0, which is not a measurement.
func busyPercent(prev, cur host.CPUTimes) (percent float64, ok bool) {
	var d [host.NumCPUModes]float64
	total := 0.0
	for m := range d { // in psutil's order: near a rounding tie the last bit decides
		d[m] = max(0, cur.Seconds[m]-prev.Seconds[m])
		total += d[m]
	}
	guest, guestNice := max(0, cur.Guest-prev.Guest), max(0, cur.GuestNice-prev.GuestNice)
	total = total + guest + guestNice
	total = total - guest - guestNice
	if total <= 0 {
		return 0, false
	}

	busy := max(0, total-d[host.ModeIdle]-d[host.ModeIowait])
	return series.Round1(min(100, busy/total*100)), true
}

// cpuSpread returns the mean, the lowest and the highest busy percentage of the CPUs between two readings. It matches
// CPUs by name, so hotplug leaves a CPU out of the window instead of shifting the other CPUs. It reports false if no
// CPU was measured.
func cpuSpread(prev, cur []host.CPUTimes) (avg, least, most float64, ok bool) {
	n, sum := 0, 0.0
	least, most = 100, 0
	for i := range cur {
		before, known := findCPU(prev, cur[i].Name, i)
		if !known {
			continue
		}
		v, measured := busyPercent(before, cur[i])
		if !measured {
			continue
		}
		n++
		sum += v
		least, most = min(least, v), max(most, v)
	}

	if n == 0 {
		return 0, 0, 0, false
	}
	return sum / float64(n), least, most, true
}

// findCPU returns the CPU with the given name; hint is its likely index.
func findCPU(cpus []host.CPUTimes, name string, hint int) (host.CPUTimes, bool) {
	if c := findByName(cpus, name, hint, func(c *host.CPUTimes) string { return c.Name }); c != nil {
		return *c, true
	}
	return host.CPUTimes{}, false
}
