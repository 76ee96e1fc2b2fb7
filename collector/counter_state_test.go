package collector

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/check"
)

// reading returns a Reading of one CPU, one disk, lo and eth0.
func reading(when time.Duration, busy float64, disk, lo, eth uint64) *host.Reading {
	return &host.Reading{At: at(when), CPU: []host.CPUTimes{ticks("cpu0", busy*100, 0, 0, 1e6+float64(when/clockTick)-busy*100)},
		Memory: &host.Memory{Total: 1000, Available: 250}, Disk: []host.DiskUsage{{Path: "/", Used: 30, Available: 70}, {Path: "/b", Used: 60, Available: 40}},
		Devices: [host.NumDeviceKinds][]host.Device{
			host.Disks: []host.Device{{Name: "sda", In: disk, Out: 2 * disk, Class: host.Counted}, {Name: "sda1", In: disk, Out: 2 * disk, Class: 0}},
			host.NICs:  []host.Device{{Name: "lo", In: lo, Out: lo, Class: host.Counted | host.Loopback}, {Name: "eth0", In: eth, Out: 3 * eth, Class: host.Counted}, {Name: "br0", In: eth, Out: eth, Class: 0}},
		}}
}

// columns returns the measured values and weights of a Sample.
func columns(s Sample) map[string][2]float64 {
	out := map[string][2]float64{}
	for c := range NumColumns {
		if s.Has(c) {
			out[c.Key()] = [2]float64{s.Values[c], s.Weights[c]}
		}
	}
	return out
}

// figures returns the measured CPU percentage, rate and total of the network, each with its weight.
func figures(s Sample) [][2]float64 {
	all := columns(s)
	return [][2]float64{all["cpu_pct_per_cpu_avg"], all["net_io_ext_recv_mb_per_second"], all["net_io_ext_recv_mb"]}
}

func TestCounterState_SampleHasDifferenceOfTwoReadings(t *testing.T) {
	const mib, sectors = MiB, MiB / 512
	p, r := NewCounterState(reading(0, 10, 0, 0, 0)), reading(2*time.Second, 10.5, 4*sectors, mib, 10*mib)
	_, s := p.Next(r, 40*time.Millisecond)
	_, again := p.Next(r, 40*time.Millisecond)
	same(t, "Sample of a second call of Next", again, s)
	same(t, "sample", columns(s), map[string][2]float64{
		"cpu_pct_per_cpu_avg": {25, 2}, "cpu_pct_per_cpu_min": {25, 2}, "cpu_pct_per_cpu_max": {25, 2}, "cpu_iowait_pct": {0, 2}, "cpu_steal_pct": {0, 2},
		"mem_percent": {75, 2}, "disk_usage_percent": {60, 2},
		"mem_used_mb": {750. / mib, 2}, "disk_used_mb": {60. / mib, 2}, "disk_free_mb": {40. / mib, 2}, // fullest disk
		"disk_io_read_mb": {4, 2}, "disk_io_write_mb": {8, 2}, "disk_io_read_mb_per_second": {2, 2}, "disk_io_write_mb_per_second": {4, 2},
		"net_io_lo_sent_mb": {1, 2}, "net_io_lo_recv_mb": {1, 2}, "net_io_lo_sent_mb_per_second": {0.5, 2}, "net_io_lo_recv_mb_per_second": {0.5, 2},
		"net_io_ext_sent_mb": {30, 2}, "net_io_ext_recv_mb": {10, 2}, "net_io_ext_sent_mb_per_second": {15, 2}, "net_io_ext_recv_mb_per_second": {5, 2},
		"timestamp": {1_767_225_602, 2},
	})
}

// After a source has failed for a while, its next window covers the gap, and no byte is lost.
func TestCounterState_FailedSourceLengthensItsWindow(t *testing.T) {
	const mib = MiB
	p := NewCounterState(reading(0, 10, 0, 0, 0))
	p, s := p.Next(&host.Reading{At: at(time.Second)}, 40*time.Millisecond)
	same(t, "an empty Reading", columns(s), map[string][2]float64{"timestamp": {1_767_225_601, 1}})
	_, s = p.Next(reading(4*time.Second, 11, 0, 0, 8*mib), 40*time.Millisecond)
	same(t, "percent, rate and total", figures(s), [][2]float64{{25, 4}, {2, 4}, {8, 3}})
}

// The counters of a source that is missing from the baseline begin at 0, with its first good Reading.
func TestCounterState_LateSourceBeginsAtZero(t *testing.T) {
	p := NewCounterState(&host.Reading{At: at(0)})
	p, s := p.Next(reading(time.Second, 10, 7<<20, 7<<20, 7<<20), 40*time.Millisecond)
	same(t, "percent, rate and total at first", figures(s), [][2]float64{{}, {}, {0, 1}})
	check.True(t, !s.Has(DiskReadRate), "rate of the disk at first = %v, want none", s.Values[DiskReadRate])
	_, s = p.Next(reading(2*time.Second, 10.25, 7<<20, 7<<20, 9<<20), 40*time.Millisecond)
	same(t, "percent, rate and total", figures(s), [][2]float64{{25, 1}, {2, 1}, {2, 1}})
}

func TestCounterState_CountsDevicesThatComeAndGo(t *testing.T) {
	nic := func(name string, n uint64) host.Device {
		return host.Device{Name: name, In: n << 20, Class: host.Counted}
	}

	readings := [][]host.Device{
		{nic("eth0", 100), nic("eth1", 1000)},
		{nic("eth1", 1001), nic("eth0", 110)},                    // other order: +11
		{nic("eth1", 1002)},                                      // eth0 removed: +1
		{nic("eth1", 1002), nic("eth0", 5000), nic("usb0", 900)}, // eth0 returns, usb0 is new: +0
		{nic("eth1", 3), nic("eth0", 5002), nic("usb0", 905)},    // eth1 reset: +7
		{nic("wan0", 4), nic("eth0", 5002), nic("usb0", 905)},    // eth1 renamed: +0
		{},               // all removed
		{nic("wan0", 8)}, // one returns: +0
	}

	p := NewCounterState(devicesAt(host.NICs, 0, readings[0]...))
	var got []float64
	for i, devs := range readings[1:] {
		var s Sample
		p, s = p.Next(devicesAt(host.NICs, float64(i+1), devs...), 0)
		got = append(got, s.Values[NetExtRecv])
	}

	same(t, "MiB since the start", got, []float64{11, 12, 12, 19, 19, 19, 19})
}

// Clock steps and suspends do not distort the time axis, which is the start plus the boot clock. Windows follow the
// monotonic clock.
func TestCounterState_ClockStepsDoNotDistortTimeAxis(t *testing.T) {
	p := NewCounterState(reading(0, 10, 0, 0, 0))
	r := reading(time.Second, 10.5, 0, 0, 0)
	r.At.Wall = r.At.Wall.Add(-time.Hour)
	p, s := p.Next(r, 0)
	same(t, "timestamp after a step of the wall clock", columns(s)["timestamp"], [2]float64{1_767_225_601, 1})
	r = reading(2*time.Second, 11, 0, 0, 0)
	r.At.Boot += 8 * time.Hour
	_, s = p.Next(r, 0)
	same(t, "timestamp after a suspend of 8 h", columns(s)["timestamp"], [2]float64{1_767_225_602 + 8*3600, 1})
	same(t, "percent", columns(s)["cpu_pct_per_cpu_avg"], [2]float64{50, 1})
}

// world makes random Readings of an unstable host, and records the real increases.
type world struct {
	rng         *rand.Rand
	mono, boot  time.Duration
	wall        time.Time
	cpus        []host.CPUTimes
	disks, nics []*worldDevice
	calm        bool // no device comes, goes or restarts
	born        int
	// moved is an upper bound of each total: the bytes moved by all devices, plus resets that may be mistaken for wraps.
	moved [NumColumns]float64
}

type worldDevice struct {
	name    string
	in, out uint64
	mask    uint64 // of the counter's width
	class   host.DeviceClass
}

func newWorld(seed uint64, calm bool) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 3)), mono: time.Hour, boot: 2 * time.Hour, wall: time.Unix(1_767_225_600, 0), calm: calm}
	for i := range 4 {
		w.cpus = append(w.cpus, ticks(fmt.Sprintf("cpu%d", i), 1000, 10, 100, 100000, 5, 1, 1, 1, 5, 5))
	}
	for range 3 {
		w.disks = append(w.disks, w.device("sd", host.Counted))
		w.nics = append(w.nics, w.device("eth", host.Counted))
	}
	w.disks = append(w.disks, w.device("dm-", 0))
	w.nics = append(w.nics, w.device("lo", host.Counted|host.Loopback), w.device("veth", 0))
	return w
}

// device returns a device with random counters, often just below a wrap.
func (w *world) device(kind string, class host.DeviceClass) *worldDevice {
	w.born++
	d := &worldDevice{name: fmt.Sprintf("%s%d", kind, w.born), mask: math.MaxUint64, class: class}
	if w.rng.IntN(2) == 0 {
		d.mask = math.MaxUint32
	}
	d.in, d.out = w.rng.Uint64()&d.mask>>10, w.rng.Uint64()&d.mask>>10
	if w.rng.IntN(2) == 0 {
		d.in, d.out = d.mask-w.rng.Uint64N(1<<20), d.mask-w.rng.Uint64N(1<<20)
	}
	return d
}

// pass advances the clock by nothing, by too little for a window, by some time, or by a night.
func (w *world) pass() {
	step := []time.Duration{0, time.Millisecond, 30 * time.Millisecond, time.Second, time.Second, 7 * time.Second}[w.rng.IntN(6)]
	w.mono, w.boot, w.wall = w.mono+step, w.boot+step, w.wall.Add(step)
	switch w.rng.IntN(20) {
	case 0:
		w.wall = w.wall.Add(time.Hour)
	case 1:
		w.wall = w.wall.Add(-time.Hour)
	case 2:
		w.boot, w.wall = w.boot+8*time.Hour, w.wall.Add(8*time.Hour)
	}

	for i := range w.cpus {
		busy := math.Round(w.rng.Float64()*step.Seconds()*100) / 100
		w.cpus[i].Seconds[host.ModeUser] += busy
		w.cpus[i].Seconds[host.ModeIdle] += math.Round((step.Seconds()-busy)*100) / 100
		if w.rng.IntN(50) == 0 {
			w.cpus[i].Seconds[host.ModeIowait] = max(0, w.cpus[i].Seconds[host.ModeIowait]-1)
		}
	}

	w.move(w.disks, host.Disks)
	w.move(w.nics, host.NICs)
}

// move increments the counters of a kind of devices.
func (w *world) move(devs []*worldDevice, kind host.DeviceKind) {
	for _, d := range devs {
		in, out := w.rng.Uint64N(1<<18), w.rng.Uint64N(1<<18)
		d.in, d.out = (d.in+in)&d.mask, (d.out+out)&d.mask
		slack := 0.0
		if !w.calm && w.rng.IntN(30) == 0 {
			d.in, d.out, slack = w.rng.Uint64N(100), w.rng.Uint64N(100), 2<<30
		}
		for _, c := range deviceCounters {
			n := out
			if c.in {
				n = in
			}
			if c.kind == kind && d.class == c.class {
				w.moved[c.total] += float64(n*kind.Unit()) + slack
			}
		}
	}
}

// trouble removes, adds, renames and reorders devices.
func (w *world) trouble() {
	if w.calm {
		return
	}
	for _, devs := range []*[]*worldDevice{&w.disks, &w.nics} {
		n := len(*devs)
		switch w.rng.IntN(12) {
		case 0:
			*devs = append(*devs, w.device("new", host.Counted))
		case 1:
			if n > 1 {
				*devs = slices.Delete(*devs, n/2, n/2+1)
			}
		case 2:
			(*devs)[0].name += "x"
		case 3:
			w.rng.Shuffle(n, func(i, j int) { (*devs)[i], (*devs)[j] = (*devs)[j], (*devs)[i] })
		}
	}

	if n := len(w.cpus); w.rng.IntN(12) == 0 && n > 1 {
		w.cpus = slices.Delete(w.cpus, n-1, n)
	}
}

// read returns a Reading; sometimes a source is missing.
func (w *world) read(whole bool) *host.Reading {
	r := &host.Reading{At: host.Instant{Wall: w.wall, Mono: w.mono, Boot: w.boot}, CPU: slices.Clone(w.cpus),
		Memory: &host.Memory{Total: 1 << 34, Available: w.rng.Uint64N(1 << 34)}, Disk: []host.DiskUsage{{Path: "/", Used: w.rng.Uint64(), Available: w.rng.Uint64()}}}
	list := func(devs []*worldDevice) []host.Device {
		out := []host.Device{}
		for _, d := range devs {
			out = append(out, host.Device{Name: d.name, In: d.in, Out: d.out, Class: d.class})
		}
		return out
	}

	r.Devices[host.Disks], r.Devices[host.NICs] = list(w.disks), list(w.nics)
	if whole {
		return r
	}

	switch w.rng.IntN(10) {
	case 0:
		r.CPU = nil
	case 1:
		r.Devices[host.Disks] = nil
	case 2:
		r.Devices[host.NICs] = nil
	case 3:
		r.Memory, r.Disk = nil, nil
	}

	return r
}

// checkSample returns an error if no host could have the Sample.
func checkSample(s, before *Sample) error {
	for c := range NumColumns {
		v, w := s.Values[c], s.Weights[c]
		switch {
		case math.IsInf(v, 0) || v < 0 || math.Signbit(v):
			return fmt.Errorf("%s = %v, want a finite number of at least 0", c.Key(), v)
		case c.IsPercent() && v > 100:
			return fmt.Errorf("%s = %v, want at most 100", c.Key(), v)
		case !(w >= 0) || math.IsInf(w, 0):
			return fmt.Errorf("weight of %s = %v, want a finite number of seconds", c.Key(), w)
		}
	}

	for _, c := range append(Counters(), Timestamp) {
		if s.Values[c] < before.Values[c] {
			return fmt.Errorf("%s fell from %v to %v, want a counter that never falls", c.Key(), before.Values[c], s.Values[c])
		}
		if s.Has(c) {
			before.Values[c] = s.Values[c]
		}
	}

	if least, mean, most := s.Values[CPUMin], s.Values[CPUAvg], s.Values[CPUMax]; least > mean+1e-9 || mean > most+1e-9 {
		return fmt.Errorf("CPUs are %v to %v %% busy, mean %v: want the mean in that range", least, mean, most)
	}
	return nil
}

// nothingBefore returns the empty sample before the first one.
func nothingBefore() *Sample {
	var s Sample
	for c := range s.Values {
		s.Values[c] = absent
	}
	return &s
}

func TestCounterState_ValuesAreNeverNegativeNorHuge(t *testing.T) {
	const window = 20 * time.Millisecond
	for seed := range uint64(60) {
		w := newWorld(seed, false)
		p, before := NewCounterState(w.read(true)), nothingBefore()
		for n := range 300 {
			w.pass()
			w.trouble()
			r := w.read(false)
			var s Sample
			p, s = p.Next(r, window)
			if err := checkSample(&s, before); err != nil {
				t.Fatalf("seed %d, reading %d: %v", seed, n, err)
			}
			for _, c := range deviceCounters {
				if r.Devices[c.kind] != nil != s.Has(c.total) {
					t.Fatalf("seed %d, reading %d: source was read: %v, but %s = %v", seed, n, r.Devices[c.kind] != nil, c.total.Key(),
						s.Values[c.total])
				}
				if s.Values[c.total]*MiB > w.moved[c.total] {
					t.Fatalf("seed %d, reading %d: %s = %v bytes, want at most the %v that all devices moved", seed, n, c.total.Key(), s.Values[c.total]*MiB, w.moved[c.total])
				}
				if max := w.moved[c.total] / MiB / window.Seconds(); s.Values[c.rate] > max {
					t.Fatalf("seed %d, reading %d: %s = %v, want at most %v", seed, n, c.rate.Key(), s.Values[c.rate], max)
				}
			}
			if r.Memory != nil != s.Has(MemPercent) || (r.Disk != nil) != s.Has(DiskPercent) {
				t.Fatalf("seed %d, reading %d: memory was read: %v, has a value: %v; disk was read: %v, has a value: %v", seed, n, r.Memory != nil,
					s.Has(MemPercent), r.Disk != nil, s.Has(DiskPercent))
			}
		}
	}
}

// If the devices of a host stay the same, no bytes and no seconds are lost in wraps, gaps and short windows.
func TestCounterState_LosesNoBytesAndNoSeconds(t *testing.T) {
	for seed := range uint64(60) {
		w := newWorld(seed, true)
		first := w.read(true)
		p := NewCounterState(first)
		var s Sample
		var covered, moved, total [NumColumns]float64
		lastCPU := first.At.Mono
		for n := range 300 {
			w.pass()
			r := w.read(n == 299)
			p, s = p.Next(r, 20*time.Millisecond)
			for c := range NumColumns {
				if s.Has(c) {
					covered[c] += s.Weights[c]
					moved[c] += s.Values[c] * s.Weights[c]
				}
			}
			if s.Has(CPUAvg) {
				lastCPU = r.At.Mono
			}
			for _, c := range deviceCounters { // bytes covered by rates
				if s.Has(c.rate) {
					total[c.rate] = s.Values[c.total]
				}
			}
		}
		for _, c := range deviceCounters {
			if c.optional { // the world has no such devices
				continue
			}
			if got := s.Values[c.total] * MiB; got != w.moved[c.total] {
				t.Errorf("seed %d: %s = %v bytes, want %v", seed, c.total.Key(), got, w.moved[c.total])
			}
			// If the last window is too short, its bytes are not in a rate yet. Rates are rounded to a byte.
			if got, want := moved[c.rate], total[c.rate]; math.Abs(got-want) > 1e-6*covered[c.rate] || want < 10 {
				t.Errorf("seed %d: Σ %s × seconds = %v, want %v, which should be at least 10", seed, c.rate.Key(), got, want)
			}
		}
		if want := (lastCPU - first.At.Mono).Seconds(); math.Abs(covered[CPUAvg]-want) > 1e-6 || want < 100 {
			t.Errorf("seed %d: the windows of the CPU cover %v s, want %v s, which should be at least 100", seed, covered[CPUAvg], want)
		}
	}
}

func TestPerfPySample_CountsAllDevicesSinceBoot(t *testing.T) {
	before := []host.CPUTimes{ticks("cpu0", 100, 0, 0, 100), ticks("cpu1", 100, 0, 0, 100)}
	r := &host.Reading{CPU: []host.CPUTimes{ticks("cpu0", 150, 0, 0, 150), ticks("cpu1", 200, 0, 0, 100)},
		Memory: &host.Memory{Total: 1000, Available: 250}, Disk: []host.DiskUsage{{Path: "/", Used: 30, Available: 70}, {Path: "/b", Used: 60, Available: 40}},
		Devices: [host.NumDeviceKinds][]host.Device{
			host.Disks: []host.Device{{Name: "sda", In: 2048, Out: 4096, Class: host.Counted | host.PerfPy}, {Name: "dm-0", In: 2048, Out: 0, Class: host.PerfPy}, {Name: "sda1", In: 2048, Out: 0, Class: 0}},
			host.NICs:  []host.Device{{Name: "lo", In: 1 << 20, Out: 2 << 20, Class: host.Counted | host.Loopback | host.PerfPy}, {Name: "eth0", In: 3 << 20, Out: 4 << 20, Class: host.Counted | host.PerfPy}, {Name: "br0", In: 5 << 20, Out: 6 << 20, Class: host.PerfPy}},
		}}
	s := perfpySample(before, r, 1234.5)
	same(t, "values", s.Values, wideValues(75, 50, 100, 75, 30, 2, 2, 2, 10, 1, 8, 1234.5))
	// psutil returns 0.0 if the kernel's clock has not moved.
	s = perfpySample(before, &host.Reading{CPU: before}, 1)
	same(t, "values of a window without a tick", s.Values, wideValues(0, 0, 0, absent, absent, absent, absent, absent, absent, absent, absent, 1))
}

// wideValues returns the values of a Sample in which only the first columns were measured.
func wideValues(first ...float64) (values [MaxColumns]float64) {
	for c := range values {
		values[c] = absent
	}
	copy(values[:], first)
	return values
}

// jobAt returns a Reading of a job with the given CPU time, on a host with two CPUs.
func jobAt(seconds, cpu float64) *host.Reading {
	u := math.NaN()
	r := &host.Reading{CPU: make([]host.CPUTimes, 2), Job: &host.JobUsage{CPUSeconds: cpu, IO: process.UnknownIO(), Memory: u, Processes: u, Threads: u}}
	r.At.Mono = time.Duration(seconds * float64(time.Second))
	return r
}

// If more CPU time appears in a window than the host's CPUs can provide, it was used before the window.
func TestCounterState_DropsMoreCPUsThanTheHostHas(t *testing.T) {
	checkSteps(t, NewCounterState(jobAt(0, 0)), []Column{JobCPU},
		step{"for 1.5 s of CPU time in a second", jobAt(1, 1.5), []float64{1.5}},
		step{"for 38.5 s of CPU time in a second on 2 CPUs", jobAt(2, 40), []float64{absent}},
		step{"in the second after a jump", jobAt(3, 41), []float64{1}},
		// Seen: 16.58 of 16 CPUs, with 18 threads at 100 ms. The excess is due to clock ticks.
		step{"for 2.1 s of CPU time in a second on 2 CPUs", jobAt(4, 43.1), []float64{2}})
}

// CPU time that is read Lag after the Reading counts for a window that ends Lag later.
func TestCounterState_LagExtendsWindowOfCPUTime(t *testing.T) {
	late, p := jobAt(2, 2.9), NewCounterState(jobAt(0, 0))
	late.Job.Lag = 900 * time.Millisecond
	for _, r := range []*host.Reading{jobAt(1, 1), late, jobAt(3, 3), jobAt(4, 4)} {
		var s Sample
		p, s = p.Next(r, 100*time.Millisecond)
		got := s.Values[JobCPU]
		check.True(t, math.Abs(got-1) <= 1e-9, "after %v: JobCPU = %v, want 1", r.At.Mono, got)
	}
}

// If the job's group did not count some CPU time for several samples, it is unknown when that time was used. The sample
// then has no rate, but the account includes the time.
func TestCounterState_GivesNoRateForLateCPUTime(t *testing.T) {
	base := jobAt(0, 0)
	p, l, a := NewCounterState(base), newAccountTracker(base, host.JobOptions{Source: host.JobFromCreated}), NoAccount()
	for i, step := range []struct{ cpu, late, want float64 }{{0, 0, 0}, {0, 0, 0}, {2.5, 2.4, absent}, {3.5, 0, 1}} {
		r := jobAt(float64(i+1), step.cpu)
		r.CPU = nil // the number of CPUs is not to reject the value
		r.Job.LateCPUSeconds, r.Job.Outside = step.late, step.late > 0
		var s Sample
		p, s = p.Next(r, 0)
		l, a = l.next(a, r, trackerInput{cpuSeconds: p.jobCPUSeconds()})
		same(t, fmt.Sprintf("JobCPU in step %+v", step), s.Values[JobCPU], step.want)
	}
	check.True(t, a.CPUSeconds == 3.5 && a.LateCPUSeconds == 2.4 && a.OutsideGroup,
		"CPUSeconds = %v, LateCPUSeconds = %v, OutsideGroup = %v; want 3.5, 2.4, true", a.CPUSeconds, a.LateCPUSeconds, a.OutsideGroup)
}

// A window of a few ticks is measured if it is the first. After longer windows it is not measured, because its peaks
// would exceed theirs by chance. Its bytes still count.
func TestCounterState_OnlyTheFirstWindowMayBeShort(t *testing.T) {
	reading := func(after time.Duration, idle float64, bytes uint64) *host.Reading {
		return &host.Reading{At: host.Instant{Wall: time.Unix(1000, 0).Add(after), Mono: after, Boot: after},
			CPU: []host.CPUTimes{{Name: "cpu0", Seconds: [host.NumCPUModes]float64{host.ModeUser: after.Seconds() - idle, host.ModeIdle: idle}}},
			Devices: [host.NumDeviceKinds][]host.Device{host.NICs: {{Name: "eth0", In: bytes, Class: host.Counted}},
				host.Disks: {{Name: "sda", In: bytes / 512, Class: host.Counted}}}}
	}

	least, u := MinWindow(time.Second), absent
	values := func(s Sample) []float64 {
		v := &s.Values
		return []float64{v[CPUAvg], v[CPUMin], v[CPUMax], v[NetExtRecvRate], v[DiskReadRate], v[NetExtRecv], s.Weights[CPUAvg]}
	}
	_, first := NewCounterState(reading(0, 0, 0)).Next(reading(50*time.Millisecond, 0.03, MiB), least)
	same(t, "job of 50 ms", values(first), []float64{40, 40, 40, 20, 20, 1, 0.05})
	p, _ := NewCounterState(reading(0, 0, 0)).Next(reading(time.Second, 1, 0), least)
	p, short := p.Next(reading(1060*time.Millisecond, 1.02, MiB), least)
	same(t, "60 ms after a second", values(short)[:6], []float64{u, u, u, u, u, 1})
	_, longer := p.Next(reading(1500*time.Millisecond, 1.25, 2*MiB), least)
	same(t, "the next window", values(longer), []float64{50, 50, 50, 4, 4, 2, 0.5})
}

// perf.py's first sample has no percentages, because there is no reading before it.
func TestPerfPySample_FirstHasNoPercentages(t *testing.T) {
	s := perfpySample(nil, &host.Reading{CPU: []host.CPUTimes{{Name: "cpu0", Seconds: [host.NumCPUModes]float64{host.ModeUser: 1}}}}, 1)
	check.True(t, !s.Has(CPUAvg), "CPUAvg = %v after a single Reading, want no value", s.Values[CPUAvg])
}
