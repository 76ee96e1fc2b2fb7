package collector

import (
	"math"
	"time"

	"github.com/perfagent/perfagent/collector/host"
)

// meter measures the rate of a counter that only grows: how much it grew in a window
// / seconds of the window.
type meter struct {
	since        time.Duration // when the window began
	base         float64       // what the counter was then
	begun, known bool          // there is a base; a window has been measured
}

// rate gives the growth per second and the window's length in seconds; not ok while the
// window is too short, or where the counter is not known.
func (m *meter) rate(now time.Duration, counter float64, minWindow time.Duration) (perSecond, seconds float64, ok bool) {
	window := now - m.since
	switch {
	case math.IsNaN(counter):
		return 0, 0, false
	case !m.begun:
		*m = meter{since: now, base: counter, begun: true}
		return 0, 0, false
	case tooShort(window, minWindow, m.known):
		return 0, 0, false
	}
	grown := max(0, counter-m.base)
	*m = meter{since: now, base: counter, begun: true, known: true}
	return grown / window.Seconds(), window.Seconds(), true
}

// measureRate puts the rate of a counter × scale into a column, of percents never above
// 100.
func (p *Progress) measureRate(c Column, now time.Duration, counter, scale float64, minWindow time.Duration, s *Sample) {
	v, seconds, ok := p.meters[c].rate(now, counter, minWindow)
	if !ok {
		return
	}
	if v *= scale; c.Percent() {
		v = round3(min(100, v))
	}
	s.Values[c], s.Weights[c] = toByte(v), seconds
}

// round3 keeps 3 decimals.
func round3(v float64) float64 { return math.Round(v*1000) / 1000 }

// measureSwap accounts the bytes that went to swap and came back.
func (p *Progress) measureSwap(r *host.Reading, minWindow time.Duration, s *Sample) {
	if r.VM == nil {
		return
	}
	if !p.swapBegun {
		p.swapStart, p.swapBegun = *r.VM, true
	}
	in, out := max(0, r.VM.SwapIn-p.swapStart.SwapIn)/MiB, max(0, r.VM.SwapOut-p.swapStart.SwapOut)/MiB
	s.Values[SwapIn], s.Values[SwapOut] = in, out
	if r.VM.Held {
		return
	}
	p.measureRate(SwapInRate, r.At.Mono, in, 1, minWindow, s)
	p.measureRate(SwapOutRate, r.At.Mono, out, 1, minWindow, s)
}

// measurePressure turns the host's stalls into the share of the time that they took.
func (p *Progress) measurePressure(r *host.Reading, minWindow time.Duration, s *Sample) {
	if r.Pressure == nil {
		return
	}
	for c, seconds := range map[Column]float64{PSICPUSome: r.Pressure.CPU.Some, PSIMemorySome: r.Pressure.Memory.Some,
		PSIMemoryFull: r.Pressure.Memory.Full, PSIIOSome: r.Pressure.IO.Some, PSIIOFull: r.Pressure.IO.Full} {
		p.measureRate(c, r.At.Mono, seconds, 100, minWindow, s)
	}
}

// jobProgress is the state of the job's counters.
type jobProgress struct {
	cpu, read, write   growing
	periods, throttled float64 // at the last Reading that had some
	quotaGroup         string  // of which group they are
}

// growing sums the growth of a counter that is itself a sum over processes. It may fall:
// for a moment when a process ends while the others are being read, for good when one
// ends of which the account goes to nobody (its parent ignores SIGCHLD). What fell for a
// moment must not be counted again when it comes back.
type growing struct {
	total, last float64
	low         float64 // what it fell to at the Reading before, if fallen
	begun       bool
	fallen      bool
}

// add takes one more reading of the counter; NaN changes nothing.
func (g *growing) add(v float64) {
	switch {
	case math.IsNaN(v):
	case !g.begun:
		g.last, g.begun = v, true
	case v >= g.last:
		g.total, g.last, g.fallen = g.total+v-g.last, v, false
	case g.fallen: // for good: parents are read before their children, so the next Reading has it
		g.total, g.last, g.fallen = g.total+max(0, v-g.low), v, false
	default:
		g.low, g.fallen = v, true
	}
}

// beginJob starts the job's account at the baseline.
func (p *Progress) beginJob(r *host.Reading) {
	p.job.periods, p.job.throttled = math.NaN(), math.NaN()
	if r.Job == nil {
		return
	}
	var none Sample
	p.measureJobCounters(r, 0, &none)
	p.measureGroup(r, 0, &none)
}

// measureJob makes the columns of the job and of its control group.
func (p *Progress) measureJob(r *host.Reading, minWindow time.Duration, s *Sample) {
	j := r.Job
	if j == nil {
		return
	}
	s.Values[JobMemory], s.Values[JobProcesses], s.Values[JobThreads] = round3(j.Memory/MiB), j.Processes, j.Threads
	p.measureJobCounters(r, minWindow, s)
	p.measureGroup(r, minWindow, s)
}

// measureJobCounters turns CPU seconds into CPUs, and bytes of storage into totals and
// rates.
func (p *Progress) measureJobCounters(r *host.Reading, minWindow time.Duration, s *Sample) {
	j, now := r.Job, r.At.Mono
	p.job.cpu.add(j.CPUSeconds)
	p.job.read.add(j.Read)
	p.job.write.add(j.Write)
	if !math.IsNaN(j.CPUSeconds) {
		p.measureRate(JobCPU, now+j.Lag, p.job.cpu.total, 1, minWindow, s)
		p.dropImpossible(r, s)
	}
	if math.IsNaN(j.Read) {
		return
	}
	s.Values[JobRead], s.Values[JobWrite] = p.job.read.total/MiB, p.job.write.total/MiB
	p.measureRate(JobReadRate, now, s.Values[JobRead], 1, minWindow, s)
	p.measureRate(JobWriteRate, now, s.Values[JobWrite], 1, minWindow, s)
}

// dropImpossible leaves out CPUs that the host does not have: time that was used before the
// window and came to light in it, by processes that could not be seen.
func (p *Progress) dropImpossible(r *host.Reading, s *Sample) {
	const slack = 0.1 // of ticks
	if cpus := float64(len(r.CPU)); cpus > 0 && s.Values[JobCPU] > cpus*(1+slack)+slack {
		s.Values[JobCPU] = math.NaN()
	}
}

// measureGroup makes the columns of the control group and its limits.
func (p *Progress) measureGroup(r *host.Reading, minWindow time.Duration, s *Sample) {
	g := r.Job.Group
	if g == nil {
		return
	}
	s.Values[LimitMemory] = round3(g.LimitWorkingSet / MiB)
	if limit := float64(r.Job.Limits.MemoryMB); limit > 0 {
		s.Values[LimitMemoryPercent] = round3(min(100, 100*g.LimitWorkingSet/MiB/limit))
	}
	if group := r.Job.Limits.CPUGroup; group != p.job.quotaGroup {
		p.job.quotaGroup, p.job.periods = group, math.NaN()
	}
	if periods := g.Periods - p.job.periods; periods > 0 { // else the group was idle
		s.Values[JobThrottled] = round3(min(100, 100*max(0, g.ThrottledPeriods-p.job.throttled)/periods))
	}
	if !math.IsNaN(g.Periods) {
		p.job.periods, p.job.throttled = g.Periods, g.ThrottledPeriods
	}
	if r.Job.Shared {
		return
	}
	s.Values[JobPageCache] = round3(r.Job.PageCache / MiB)
	for c, seconds := range map[Column]float64{JobPSICPUSome: g.Pressure.CPU.Some, JobPSICPUFull: g.Pressure.CPU.Full,
		JobPSIMemorySome: g.Pressure.Memory.Some, JobPSIMemoryFull: g.Pressure.Memory.Full,
		JobPSIIOSome: g.Pressure.IO.Some, JobPSIIOFull: g.Pressure.IO.Full} {
		p.measureRate(c, r.At.Mono, seconds, 100, minWindow, s)
	}
}

// measureGPUs makes the columns of the GPUs.
func measureGPUs(r *host.Reading, s *Sample) {
	if r.GPUs == nil {
		return
	}
	for i, state := range r.GPUs.States[:min(len(r.GPUs.States), MaxGPUs)] {
		s.Values[GPUColumn(i, GPUUtilization)] = state.UtilizationPct
		s.Values[GPUColumn(i, GPUMemoryUsed)] = round3(state.MemoryUsedMB)
		s.Values[GPUColumn(i, GPUPower)] = state.PowerWatts
		s.Values[GPUColumn(i, GPUTemperature)] = state.TemperatureCelsius
	}
}
