package collector

import (
	"math"

	"github.com/perfagent/perfagent/collector/series"
)

// jobCounterState is the state of the job's counters.
type jobCounterState struct {
	cpu                series.SumCounter
	counted            [NumColumns]series.SumCounter
	periods, throttled float64 // at the last Reading with periods; periods is NaN before the first
	quotaGroup         string  // the group that periods and throttled belong to
}

// jobCPUSeconds returns the CPU time of the job since the baseline.
func (p *CounterState) jobCPUSeconds() float64 { return p.job.cpu.Total() }

// measureJob fills the columns of the job and of its control group.
func (p *CounterState) measureJob(st measurement) {
	j := st.Job
	if j == nil {
		return
	}
	st.sample.MemoryStale, st.sample.MemoryLowerBound = j.MemoryStale, round3(j.MemoryLowerBound/MiB)
	st.sample.Sock, st.sample.HugeTLB = round3(j.Parts.Sock/MiB), round3(j.Parts.HugeTLB/MiB)
	p.measureJobCounters(st)
	p.measureGroup(st)
}

// measureJobCounters measures the CPU time and the other columns of the job.
func (p *CounterState) measureJobCounters(st measurement) {
	j, before := st.Job, p.job.cpu.Total()
	p.job.cpu.Add(j.CPUSeconds)
	st.sample.JobCPUSeconds = p.job.cpu.Total() - before

	if !math.IsNaN(j.CPUSeconds) {
		late := st
		late.now += j.Lag         // CPUSeconds was read Lag after the Reading
		if j.LateCPUSeconds > 0 { // part of it was used before this window
			p.meters[JobCPU].begin(late.now, p.job.cpu.Total())
		}
		p.measureRate(late, JobCPU, p.job.cpu.Total(), 1)
		dropImpossible(st)
	}
	for _, c := range jobColumns {
		row := c.row()
		switch v := row.job(j); {
		case row.Kind == Gauge:
			st.sample.Values[c] = round3(v / row.Unit.size())
		case !math.IsNaN(v):
			sum := &p.job.counted[c]
			sum.Add(v)
			p.measureCounter(st, c, sum.Total(), true)
		}
	}
}

// dropImpossible removes a JobCPU above the number of the host's CPUs. Such a value includes CPU time from before the
// window, used by processes that were not visible then. A small excess is due to clock ticks and is reduced to the
// number of CPUs.
func dropImpossible(st measurement) {
	const slack = 0.1 // excess due to clock ticks: this fraction, plus this many CPUs
	used := &st.sample.Values[JobCPU]
	switch cpus := float64(len(st.CPU)); {
	case cpus == 0 || !(*used > cpus):
	case *used > cpus*(1+slack)+slack:
		*used = math.NaN()
	default:
		*used = cpus
	}
}

// measureGroup fills the columns of the control group and its limits.
func (p *CounterState) measureGroup(st measurement) {
	g, v := st.Job.Group, &st.sample.Values
	if g == nil {
		return
	}
	v[LimitMemory] = round3(g.LimitWorkingSet / MiB)
	if limit := float64(st.Job.Limits.MemoryMB); limit > 0 {
		v[LimitMemoryPercent] = round3(min(100, 100*g.LimitWorkingSet/MiB/limit))
	}

	if group := st.Job.Limits.CPUGroup; group != p.job.quotaGroup {
		p.job.quotaGroup, p.job.periods = group, math.NaN()
	}
	if periods := g.Periods - p.job.periods; periods > 0 { // else the group was idle
		v[JobThrottled] = round3(min(100, 100*max(0, g.ThrottledPeriods-p.job.throttled)/periods))
	}
	if !math.IsNaN(g.Periods) {
		p.job.periods, p.job.throttled = g.Periods, g.ThrottledPeriods
	}

	if st.Job.Shared {
		return
	}
	v[JobPageCache] = round3(st.Job.PageCache / MiB)
	p.measurePressure(st, &g.Pressure, ScopeJob)
}
