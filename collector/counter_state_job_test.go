package collector

import (
	"math"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/process"
)

// CPU time discovered at once was not used in the window.
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
		t.Errorf("JobCPU is %v after 1.5 s in a second, want 1.5", s.Values[JobCPU])
	}
	p, s = p.Next(at(2, 40), 0)
	if s.Has(JobCPU) {
		t.Errorf("%v CPUs, want none: 38.5 s in a second are more than the 2 CPUs can give", s.Values[JobCPU])
	}
	p, s = p.Next(at(3, 41), 0)
	if s.Values[JobCPU] != 1 {
		t.Errorf("JobCPU is %v in the second after a jump, want 1", s.Values[JobCPU])
	}
	if _, s = p.Next(at(4, 43.1), 0); s.Values[JobCPU] != 2 { // 18 threads at 100 ms: clock ticks gave 16.58 of 16 CPUs
		t.Errorf("JobCPU is %v after 2.1 s in a second on 2 CPUs, want 2: clock ticks explain the excess", s.Values[JobCPU])
	}
}

// CPU time that is known late counts for a window that ends late.
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
			t.Errorf("after %v: %v CPUs, want 1", r.At.Mono, got)
		}
	}
}

// CPU time that the job's group did not count for several samples belongs to the job at an unknown time: the sample has
// no rate, and the account has the amount.
func TestCounterState_LateCPUTimeGivesNoRate(t *testing.T) {
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
			t.Errorf("step %+v: %v CPUs, want %v", step, got, step.want)
		}
	}
	if a.CPUSeconds != 3.5 || a.LateCPUSeconds != 2.4 || !a.OutsideGroup {
		t.Errorf("account has %v CPU seconds, %v of them late, outside %v; want 3.5, 2.4, true", a.CPUSeconds,
			a.LateCPUSeconds, a.OutsideGroup)
	}
}
