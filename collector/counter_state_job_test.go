package collector

import (
	"math"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/process"
)

// If more CPU time appears in a window than the host's CPUs can provide, it was used before the window.
func TestCounterState_DropsMoreCPUsThanTheHostHas(t *testing.T) {
	at := func(mono int, cpu float64) *host.Reading {
		nan := math.NaN()
		r := &host.Reading{CPU: make([]host.CPUTimes, 2), Job: &host.JobUsage{CPUSeconds: cpu, IO: process.UnknownIO(), Memory: nan, Processes: nan, Threads: nan}}
		r.At.Mono = time.Duration(mono) * time.Second
		return r
	}

	p := NewCounterState(at(0, 0))
	p, s := p.Next(at(1, 1.5), 0)
	if s.Values[JobCPU] != 1.5 {
		t.Errorf("JobCPU = %v for 1.5 s of CPU time in a second, want 1.5", s.Values[JobCPU])
	}
	p, s = p.Next(at(2, 40), 0)
	if s.Has(JobCPU) {
		t.Errorf("JobCPU = %v for 38.5 s of CPU time in a second on 2 CPUs, want no value", s.Values[JobCPU])
	}
	p, s = p.Next(at(3, 41), 0)
	if s.Values[JobCPU] != 1 {
		t.Errorf("JobCPU = %v in the second after a jump, want 1", s.Values[JobCPU])
	}
	if _, s = p.Next(at(4, 43.1), 0); s.Values[JobCPU] != 2 { // seen: 16.58 of 16 CPUs, with 18 threads at 100 ms
		t.Errorf("JobCPU = %v for 2.1 s of CPU time in a second on 2 CPUs, want 2: the excess is due to clock ticks", s.Values[JobCPU])
	}
}

// CPU time that is read Lag after the Reading counts for a window that ends Lag later.
func TestCounterState_LagExtendsWindowOfCPUTime(t *testing.T) {
	at := func(mono, cpu float64, lag time.Duration) *host.Reading {
		nan := math.NaN()
		r := &host.Reading{CPU: make([]host.CPUTimes, 2), Job: &host.JobUsage{CPUSeconds: cpu, Lag: lag, IO: process.UnknownIO(), Memory: nan, Processes: nan, Threads: nan}}
		r.At.Mono = time.Duration(mono * float64(time.Second))
		return r
	}

	p := NewCounterState(at(0, 0, 0))
	for _, r := range []*host.Reading{at(1, 1, 0), at(2, 2.9, 900*time.Millisecond), at(3, 3, 0), at(4, 4, 0)} {
		var s Sample
		p, s = p.Next(r, 100*time.Millisecond)
		if got := s.Values[JobCPU]; math.Abs(got-1) > 1e-9 {
			t.Errorf("after %v: JobCPU = %v, want 1", r.At.Mono, got)
		}
	}
}

// If the job's group did not count some CPU time for several samples, it is unknown when that time was used. The sample
// then has no rate, but the account includes the time.
func TestCounterState_GivesNoRateForLateCPUTime(t *testing.T) {
	at := func(mono time.Duration, cpu, late float64) *host.Reading {
		nan := math.NaN()
		r := &host.Reading{Job: &host.JobUsage{
			CPUSeconds: cpu, LateCPUSeconds: late, Outside: late > 0, IO: process.UnknownIO(), Memory: nan, Processes: nan, Threads: nan,
		}}
		r.At.Mono = mono * time.Second
		return r
	}

	base := at(0, 0, 0)
	p, l, a := NewCounterState(base), newAccountTracker(base, host.JobOptions{Source: host.JobFromCreated}), NoAccount()
	for _, step := range []struct{ cpu, late, want float64 }{{0, 0, 0}, {0, 0, 0}, {2.5, 2.4, math.NaN()}, {3.5, 0, 1}} {
		r := at(time.Duration(p.last.Mono/time.Second)+1, step.cpu, step.late)
		var s Sample
		p, s = p.Next(r, 0)
		l, a = l.next(a, r, trackerInput{cpuSeconds: p.jobCPUSeconds()})
		if got := s.Values[JobCPU]; got != step.want && !(math.IsNaN(got) && math.IsNaN(step.want)) {
			t.Errorf("step %+v: JobCPU = %v, want %v", step, got, step.want)
		}
	}
	if a.CPUSeconds != 3.5 || a.LateCPUSeconds != 2.4 || !a.OutsideGroup {
		t.Errorf("CPUSeconds = %v, LateCPUSeconds = %v, OutsideGroup = %v; want 3.5, 2.4, true", a.CPUSeconds,
			a.LateCPUSeconds, a.OutsideGroup)
	}
}
