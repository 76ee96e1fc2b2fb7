package collector

import (
	"math"
	"time"

	"github.com/perfagent/perfagent/collector/host"
)

// Progress is what one Reading leaves for the next. It is a value: Next changes
// nothing. Percents and rates are measured over a window, which begins at the
// last Reading that ended one; so a Reading that follows too soon, or a source
// that failed in between, lengthens the window instead of spoiling it.
type Progress struct {
	start, last host.Instant // of the first and of the newest Reading
	cpu         []host.CPUTimes
	cpuSince    time.Duration
	cpuKnown    bool // a CPU window has been measured
	cpuTotals   cpuTotals
	io          [host.NumKinds]ioProgress
	// total is the bytes of each counter since its first good Reading, base what
	// it was when the window of its rate began.
	total, base [len(counterTable)]uint64
	cpuModes    [host.NumCPUModes]float64 // of cpuTotals when the window of CPU began
	meters      [NumColumns]meter
	swapStart   host.VMStat // at the first good Reading
	swapBegun   bool
	job         jobProgress
}

// ioProgress is the state of one source of byte counters.
type ioProgress struct {
	devices []host.Device // of the last good Reading; nil = none yet
	since   time.Duration // when the window began
	known   bool          // a window has been measured
}

// counter ties a byte counter to its columns and to the devices that feed it.
type counter struct {
	total, rate Column
	kind        host.Kind
	in          bool
	class       host.Class // a device counts when its Counted and Loopback bits equal this
}

// counterTable lists the six byte counters in perf.py's order.
var counterTable = [...]counter{
	{DiskRead, DiskReadRate, host.Disks, true, host.Counted},
	{DiskWrite, DiskWriteRate, host.Disks, false, host.Counted},
	{NetLoSent, NetLoSentRate, host.NICs, false, host.Counted | host.Loopback},
	{NetExtSent, NetExtSentRate, host.NICs, false, host.Counted},
	{NetLoRecv, NetLoRecvRate, host.NICs, true, host.Counted | host.Loopback},
	{NetExtRecv, NetExtRecvRate, host.NICs, true, host.Counted},
}

// Begin starts the account at the baseline Reading.
func Begin(r *host.Reading) Progress {
	p := Progress{start: r.At, last: r.At, cpu: r.CPU, cpuSince: r.At.Mono}
	p.cpuTotals.add(r.CPU, r.At.Boot)
	for k, devs := range r.Devices {
		p.io[k] = ioProgress{devices: devs, since: r.At.Mono}
	}
	var none Sample
	p.measureSwap(r, 0, &none)
	p.measurePressure(r, 0, &none)
	p.beginJob(r)
	return p
}

// Next accounts one more Reading and makes its Sample. minWindow is the least
// time that percents and rates are measured over, once there is any measurement;
// the first may be as short as FirstWindow.
func (p Progress) Next(r *host.Reading, minWindow time.Duration) (Progress, Sample) {
	var s Sample
	elapsed := max(0, (r.At.Mono - p.last.Mono).Seconds())
	for c := range s.Values {
		s.Values[c], s.Weights[c] = math.NaN(), elapsed
	}
	p.last = r.At
	s.Values[Timestamp] = p.timestamp(r.At)
	if r.Memory != nil {
		s.Values[MemPercent] = r.Memory.Percent()
		s.Values[MemUsed] = float64(r.Memory.Used()) / MiB
	}
	for i, d := range r.Disk { // the fullest of the file systems
		if v := d.Percent(); i == 0 || v > s.Values[DiskPercent] {
			s.Values[DiskPercent] = v
			s.Values[DiskUsed], s.Values[DiskFree] = float64(d.Used)/MiB, float64(d.Available)/MiB
		}
	}
	p.cpuTotals.add(r.CPU, r.At.Boot)
	p.measureCPU(r, minWindow, &s)
	for k, devs := range r.Devices {
		p.measureIO(host.Kind(k), devs, r.At.Mono, minWindow, &s)
	}
	if r.Load != nil {
		s.Values[Load1], s.Values[ProcsRunning] = r.Load.One, r.Load.Running
	}
	p.measureSwap(r, minWindow, &s)
	p.measurePressure(r, minWindow, &s)
	p.measureJob(r, minWindow, &s)
	measureGPUs(r, &s)
	return p, s
}

// CPUSeconds is the CPU time since the first good Reading, by CPUMode, in seconds
// summed over CPUs; all NaN before there are two.
func (p *Progress) CPUSeconds() [host.NumCPUModes]float64 {
	if p.cpuTotals.counted {
		return p.cpuTotals.seconds
	}
	var none [host.NumCPUModes]float64
	for m := range none {
		none[m] = math.NaN()
	}
	return none
}

// timestamp is the moment of the sample in seconds since 1970, to the
// millisecond: the wall clock of the start plus the boot clock since then, so
// that a step of the wall clock bends no time axis.
func (p *Progress) timestamp(at host.Instant) float64 {
	t := p.start.Wall.Add(max(0, at.Boot-p.start.Boot))
	return float64(t.UnixMilli()) / 1000
}

// measureCPU turns CPU seconds into percents.
func (p *Progress) measureCPU(r *host.Reading, minWindow time.Duration, s *Sample) {
	if r.CPU == nil {
		return
	}
	window := r.At.Mono - p.cpuSince
	if p.cpu != nil && tooShort(window, minWindow, p.cpuKnown) {
		return
	}
	if avg, least, most, ok := cpuSpread(p.cpu, r.CPU); ok {
		p.cpuKnown = true
		s.Values[CPUAvg], s.Values[CPUMin], s.Values[CPUMax] = avg, least, most
		s.Values[CPUIowait], s.Values[CPUSteal] = p.cpuShare(host.ModeIowait), p.cpuShare(host.ModeSteal)
		for _, c := range []Column{CPUAvg, CPUMin, CPUMax, CPUIowait, CPUSteal} {
			s.Weights[c] = window.Seconds()
		}
	}
	p.cpu, p.cpuSince, p.cpuModes = r.CPU, r.At.Mono, p.cpuTotals.seconds
}

// cpuShare is the share of the window's CPU time, over all CPUs, that the kernel counted
// as one mode, in percent.
func (p *Progress) cpuShare(m host.CPUMode) float64 {
	total := 0.0
	for i, v := range p.cpuTotals.seconds {
		total += v - p.cpuModes[i]
	}
	if total <= 0 {
		return math.NaN()
	}
	return round3(100 * (p.cpuTotals.seconds[m] - p.cpuModes[m]) / total)
}

// measureIO turns the counts of one source into bytes since the start and into
// rates: bytes moved in the window / seconds of the window.
func (p *Progress) measureIO(kind host.Kind, devs []host.Device, now, minWindow time.Duration, s *Sample) {
	io := &p.io[kind]
	if devs == nil {
		return
	}
	window := now - io.since
	fresh := io.devices == nil // the source's first good Reading: nothing to compare with
	measured := !fresh && !tooShort(window, minWindow, io.known)
	io.known = io.known || measured
	for i, c := range counterTable {
		if c.kind != kind {
			continue
		}
		p.total[i] += c.delta(io.devices, devs, kind.Unit())
		s.Values[c.total] = float64(p.total[i]) / MiB
		if measured {
			s.Values[c.rate] = toByte(float64(p.total[i]-p.base[i]) / MiB / window.Seconds())
			s.Weights[c.rate] = window.Seconds()
		}
		if measured || fresh {
			p.base[i] = p.total[i]
		}
	}
	if measured || fresh {
		io.since = now
	}
	io.devices = devs
}

// tooShort tells whether a window cannot be measured. The first one of a job may
// be shorter than the others: it has no longer ones beside it to be compared with.
func tooShort(window, minWindow time.Duration, known bool) bool {
	if !known {
		minWindow = min(minWindow, FirstWindow)
	}
	return window <= 0 || window < minWindow
}

// toByte rounds a rate to 1e-6 MiB/s, about one byte per second: its further
// digits are noise that would fill the journal.
func toByte(rate float64) float64 { return math.Round(rate*1e6) / 1e6 }

// delta is the bytes that the counter's devices moved between two Readings. A
// device that was not there before starts counting now.
func (c counter) delta(prev, cur []host.Device, unit uint64) uint64 {
	var sum uint64
	for i, d := range cur {
		if d.Class&(host.Counted|host.Loopback) != c.class {
			continue
		}
		before, known := deviceNamed(prev, d.Name, i)
		if !known {
			continue
		}
		if c.in {
			sum += grown(before.In, d.In, unit) * unit
		} else {
			sum += grown(before.Out, d.Out, unit) * unit
		}
	}
	return sum
}

// deviceNamed finds a device by name; hint is where it most likely stands.
func deviceNamed(devs []host.Device, name string, hint int) (host.Device, bool) {
	if hint < len(devs) && devs[hint].Name == name {
		return devs[hint], true
	}
	for _, d := range devs {
		if d.Name == name {
			return d, true
		}
	}
	return host.Device{}, false
}

// wrapReach is how near to the end of its range a counter must have been, and
// how near to 0 it must be, for a fall to be a wrap: 1 GiB. Any other fall is a
// device that was taken away and came back; what it moved meanwhile is unknown.
const wrapReach = 1 << 30

// maxGrowth is more than any device can move between two Readings: 1 PiB. A
// counter that leaps further is another device's, or a wrong one.
const maxGrowth = 1 << 50

// grown is how much a counter grew, never negative and never by more than what
// it can have counted: wraps at 32 and at 64 bits are undone, other falls are 0.
func grown(prev, cur, unit uint64) uint64 {
	reach := uint64(wrapReach) / unit
	switch {
	case cur >= prev && cur-prev <= maxGrowth/unit:
		return cur - prev
	case cur >= reach:
		return 0
	case prev <= math.MaxUint32 && prev > math.MaxUint32-reach:
		return cur + (math.MaxUint32 - prev) + 1
	case prev > math.MaxUint64-reach:
		return cur - prev // unsigned arithmetic wraps as the counter did
	}
	return 0
}

// bootTotals sums the counters since boot, in MiB: over the devices that we
// count or, for perf.py, over all that psutil sums. NaN = not read.
func bootTotals(r *host.Reading, perfpy bool) [len(counterTable)]float64 {
	var out [len(counterTable)]float64
	for i, c := range counterTable {
		if r.Devices[c.kind] == nil {
			out[i] = math.NaN()
			continue
		}
		sum := 0.0
		for _, d := range r.Devices[c.kind] {
			if !c.countsBoot(d, perfpy) {
				continue
			}
			n := d.Out
			if c.in {
				n = d.In
			}
			sum += float64(n) * float64(c.kind.Unit())
		}
		out[i] = sum / MiB
	}
	return out
}

// countsBoot reports whether a device is in the sum since boot: ours, or perf.py's.
func (c counter) countsBoot(d host.Device, perfpy bool) bool {
	if perfpy {
		return d.Class&host.PerfPy != 0 && d.Class&host.Loopback == c.class&host.Loopback
	}
	return d.Class&(host.Counted|host.Loopback) == c.class
}

// perfpySample is the sample that perf.py would have taken: CPU percents over
// whatever window there was (psutil answers 0.0 where the clock did not move),
// byte counters since boot over all devices.
func perfpySample(prevCPU []host.CPUTimes, r *host.Reading, timestamp float64) Sample {
	var s Sample
	for c := range s.Values {
		s.Values[c] = math.NaN()
	}
	s.Values[Timestamp] = timestamp
	if r.CPU != nil && prevCPU != nil {
		avg, least, most, ok := cpuSpread(prevCPU, r.CPU)
		if !ok {
			avg, least, most = 0, 0, 0
		}
		s.Values[CPUAvg], s.Values[CPUMin], s.Values[CPUMax] = avg, least, most
	}
	if r.Memory != nil {
		s.Values[MemPercent] = r.Memory.Percent()
	}
	if len(r.Disk) > 0 {
		s.Values[DiskPercent] = r.Disk[0].Percent()
	}
	for i, v := range bootTotals(r, true) {
		s.Values[counterTable[i].total] = v
	}
	return s
}
