package collector

import (
	"slices"
	"strconv"
	"time"
)

// CPUTimes is one line cpuN of /proc/stat in seconds since boot (proc(5)). The
// kernel counts guest in user and guest_nice in nice as well.
type CPUTimes struct {
	Name                                                  string
	User, Nice, System, Idle, Iowait, IRQ, SoftIRQ, Steal float64
	Guest, GuestNice                                      float64
}

// CPUMode numbers what the kernel counts a CPU's time as (proc(5)).
type CPUMode int

// The modes. Time of guests is in ModeUser and ModeNice, as the kernel counts it.
const (
	ModeUser CPUMode = iota
	ModeNice
	ModeSystem
	ModeIdle
	ModeIowait
	ModeIRQ
	ModeSoftIRQ
	ModeSteal
	NumCPUModes
)

// String is the mode's name, as proc(5) and other tools have it.
func (m CPUMode) String() string {
	return [NumCPUModes]string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"}[m]
}

// mode points to the seconds of a mode.
func (c *CPUTimes) mode(m CPUMode) *float64 {
	return [NumCPUModes]*float64{&c.User, &c.Nice, &c.System, &c.Idle, &c.Iowait, &c.IRQ, &c.SoftIRQ, &c.Steal}[m]
}

// cpuTotals sums the time of all CPUs by mode since the first good Reading. It is a
// value, as Progress is.
type cpuTotals struct {
	seconds [NumCPUModes]float64
	counted bool // there was a second good Reading
	// highest is what each CPU's counters have reached. The kernel moves time from
	// iowait to idle and back: what it took away must not be counted again.
	highest []CPUTimes
	at      time.Duration // of highest, on the boot clock
}

// cpuSlack, in seconds, is how much a counter may fall by such corrections, and by how
// much it may outgrow the time that passed. One that falls further was set back, and
// one that leaps further is wrong: neither counts anything.
const cpuSlack = 3

// add accounts the counters of one more Reading. CPUs are matched by name: one that
// was not there before starts counting now.
func (t *cpuTotals) add(cpus []CPUTimes, at time.Duration) {
	if cpus == nil {
		return
	}
	most := (at - t.at).Seconds() + cpuSlack
	highest, shared := cpus, true
	for i := range cpus {
		before, known := cpuNamed(t.highest, cpus[i].Name, i)
		if !known {
			continue
		}
		for m := range NumCPUModes {
			had := *before.mode(m)
			switch grown := *cpus[i].mode(m) - had; {
			case grown >= 0 && grown <= most:
				t.seconds[m] += grown
			case grown < 0 && grown >= -cpuSlack:
				if shared {
					highest, shared = slices.Clone(cpus), false
				}
				*highest[i].mode(m) = had
			}
		}
	}
	t.counted = t.highest != nil
	t.highest, t.at = highest, at
}

// busyPercent is psutil's percent of one CPU between two readings, rounded to
// one decimal as psutil does: each field's difference is clamped at 0,
// total = Σ fields − guest − guest_nice, busy = total − idle − iowait, so steal
// and interrupts are busy. ok is false when the kernel's clock did not advance:
// psutil says 0.0 there, which nobody measured.
func busyPercent(prev, cur CPUTimes) (percent float64, ok bool) {
	d := func(a, b float64) float64 { return max(0, b-a) }
	idle, iowait := d(prev.Idle, cur.Idle), d(prev.Iowait, cur.Iowait)
	guest, guestNice := d(prev.Guest, cur.Guest), d(prev.GuestNice, cur.GuestNice)
	// The order of psutil's additions: near a tie of the rounding their last bit decides.
	total := d(prev.User, cur.User) + d(prev.Nice, cur.Nice) + d(prev.System, cur.System) + idle + iowait +
		d(prev.IRQ, cur.IRQ) + d(prev.SoftIRQ, cur.SoftIRQ) + d(prev.Steal, cur.Steal) + guest + guestNice
	total = total - guest - guestNice
	if total <= 0 {
		return 0, false
	}
	return round1(min(100, max(0, total-idle-iowait)/total*100)), true
}

// cpuSpread gives the mean, least and most busy CPU between two readings. CPUs
// are matched by name, so one that goes or comes (hotplug) is left out of the
// window instead of shifting the others. ok is false when no CPU was measured.
func cpuSpread(prev, cur []CPUTimes) (avg, least, most float64, ok bool) {
	n, sum := 0, 0.0
	least, most = 100, 0
	for i := range cur {
		before, known := cpuNamed(prev, cur[i].Name, i)
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

// cpuNamed finds a CPU by name; hint is where it most likely stands.
func cpuNamed(cpus []CPUTimes, name string, hint int) (CPUTimes, bool) {
	if hint < len(cpus) && cpus[hint].Name == name {
		return cpus[hint], true
	}
	for _, c := range cpus {
		if c.Name == name {
			return c, true
		}
	}
	return CPUTimes{}, false
}

// round1 rounds to one decimal exactly as Python's round(x, 1): from the
// shortest decimal of the value, not from a product that is itself rounded.
func round1(x float64) float64 {
	var buf [32]byte
	v, err := strconv.ParseFloat(string(strconv.AppendFloat(buf[:0], x, 'f', 1, 64)), 64)
	if err != nil {
		return x
	}
	return v
}
