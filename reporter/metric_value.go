package reporter

import (
	"fmt"
	"math"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/series"
)

// facts is what metrics are computed from. An error of a value says why it is
// absent.
type facts struct {
	summary []*series.Summary // by collector.Column
	// at100 is the level of cpu_avg_utilization_at100_pct: 99.95, or perf.py's 100.
	at100 float64
	wall  func() (float64, error) // seconds from start to end
	cpus  int
	// length is the time between the first and the last Reading, seconds.
	length float64
	boot   [6]float64 // by collector.Counters; NaN = never read
	job    *Job
	noJob  error // why job is nil
	// account is nil for a report that has none: perf.py's.
	account *collector.Account
	gpus    []collector.GPU
	// why says why a column was never measured.
	why func(collector.Column) error
	// perfpy: computed from samples by perf.py's rules.
	perfpy bool
}

// column is the summary of a column; an empty one where there is none.
func (f *facts) column(c collector.Column) *series.Summary {
	if int(c) < len(f.summary) {
		return f.summary[c]
	}
	return series.NewSummary()
}

type metricFunc = func(*facts) (float64, error)

func maxOf(c collector.Column) metricFunc {
	return func(f *facts) (float64, error) {
		if v, ok := f.column(c).Max(); ok {
			return v, nil
		}
		return 0, f.why(c)
	}
}

func meanOf(c collector.Column) metricFunc {
	return func(f *facts) (float64, error) {
		if v, ok := f.column(c).Mean(); ok {
			return v, nil
		}
		return 0, f.why(c)
	}
}

func cpuOver(level float64) metricFunc {
	return func(f *facts) (float64, error) {
		if v, ok := f.column(collector.CPUAvg).Share(level); ok {
			return v, nil
		}
		return 0, f.why(collector.CPUAvg)
	}
}

func cpuAt100(f *facts) (float64, error) { return cpuOver(f.at100)(f) }

func cpuHours(f *facts) (float64, error) {
	wall, err := f.wall()
	if err != nil {
		return 0, err
	}
	if f.cpus == 0 {
		if f.perfpy {
			return 0, absent(PerfPyCPUs)
		}
		return 0, fmt.Errorf("the number of CPUs is unknown: %w", f.why(collector.CPUAvg))
	}
	return wall * float64(f.cpus) / 3600, nil
}

func unusedCPUHours(f *facts) (float64, error) {
	hours, err := cpuHours(f)
	if err != nil {
		return 0, err
	}
	mean, err := meanOf(collector.CPUAvg)(f)
	if err != nil {
		return 0, err
	}
	return hours * (100 - mean) / 100, nil
}

func bootOf(counter int) metricFunc {
	return func(f *facts) (float64, error) {
		if v := f.boot[counter]; v == v { // not NaN
			return v, nil
		}
		return 0, f.why(collector.Counters()[counter])
	}
}

func ofJob(value func(*Job) float64) metricFunc {
	return func(f *facts) (float64, error) {
		if f.job == nil {
			return 0, f.noJob
		}
		return value(f.job), nil
	}
}

// jobWall is the run's length where a job was wrapped.
func jobWall(f *facts) (float64, error) {
	if f.job == nil {
		return 0, f.noJob
	}
	return f.wall()
}

// jobCPUSeconds is the job's CPU time; of a job the end of which is not known, what its
// account says so far.
func jobCPUSeconds(f *facts) (float64, error) {
	switch {
	case f.account != nil && f.account.CPUOpen:
		return 0, errOpenCPU
	case f.job != nil:
		return jobCPU(f.job), nil
	case f.account != nil && f.account.CPUSeconds.Known():
		return float64(f.account.CPUSeconds), nil
	}
	return 0, f.noJob
}

func jobCores(f *facts) (float64, error) {
	cpu, err := jobCPUSeconds(f)
	if err != nil {
		return 0, err
	}
	return perWall(f, cpu)
}

// perWall divides by the run's length.
func perWall(f *facts, v float64) (float64, error) {
	wall, err := f.wall()
	if err != nil {
		return 0, err
	}
	if !(wall > 0) {
		return 0, absent(NoLength)
	}
	return v / wall, nil
}

func limitCPU(f *facts) (float64, error) {
	cpu, err := jobCPUSeconds(f)
	if err != nil {
		return 0, err
	}
	wall, err := f.wall()
	if err != nil {
		return 0, err
	}
	if f.account == nil || !(f.account.Limits.CPUs > 0) || !(wall > 0) {
		return 0, absent(LimitUnknown)
	}
	allowed := wall * f.account.Limits.CPUs
	if a := f.account; a.LimitCPUSeconds > 0 && f.length > 0 { // the limit may have changed meanwhile
		allowed = wall * a.LimitCPUSeconds / f.length
	}
	return min(100, 100*cpu/allowed), nil
}

func jobPeakMemory(f *facts) (float64, error) {
	if f.job != nil && f.job.PeakMemoryMB > 0 {
		return f.job.PeakMemoryMB, nil
	}
	return maxOf(collector.JobMemory)(f)
}

// limitMemory is how much of the limit was reached. Between samples the kernel's own peak
// tells, and that it had to kill.
func limitMemory(f *facts) (float64, error) {
	pct, err := maxOf(collector.LimitMemoryPercent)(f)
	if f.account != nil && f.account.FullAtKillMB.Known() && LimitKills(f.account) > 0 {
		return 100, nil
	}
	if between := limitReached(f); between > pct {
		return between, nil
	}
	return pct, err
}

// limitReached is what the kernel's peaks tell of the time between samples, without page
// cache that may have come and gone.
func limitReached(f *facts) float64 {
	a := f.account
	if a == nil || f.job == nil || !(a.Limits.MemoryMB > 0) {
		return math.NaN()
	}
	return float64(a.LimitReachedPct) - 100*unseenCache(f.job, a)/float64(a.Limits.MemoryMB)
}

func throttledPeriods(f *facts) (float64, error) {
	if f.account == nil || !(f.account.Periods > 0) || !f.account.Throttled.Known() {
		return 0, f.why(collector.JobThrottled)
	}
	return 100 * float64(f.account.Throttled/f.account.Periods), nil
}

// ofAccount gives a counter of the account; the column tells why it is absent.
func ofAccount(value func(*collector.Account) series.Optional, c collector.Column) metricFunc {
	return func(f *facts) (float64, error) {
		if f.account != nil {
			if v := value(f.account); v.Known() {
				return float64(v), nil
			}
		}
		return 0, f.why(c)
	}
}

// stallOf gives the share of the run that a stall took.
func stallOf(value func(*collector.Account) series.Optional, c collector.Column) metricFunc {
	return func(f *facts) (float64, error) {
		seconds, err := ofAccount(value, c)(f)
		if err != nil {
			return 0, err
		}
		share, err := perWall(f, seconds)
		return min(100, 100*share), err
	}
}

func jobCPU(j *Job) float64 { return j.CPUSeconds }

func jobRSS(j *Job) float64 { return j.MaxRSSMB }

// compute evaluates the table. What is absent comes back with its reason.
func (f *facts) compute() (Values, []Missing) {
	values := make(Values, len(metricTable))
	var lacking []Missing
	for _, m := range metricTable {
		if f.perfpy && !m.PerfPy {
			continue
		}
		v, err := m.value(f)
		if err != nil {
			lacking = append(lacking, missing(m.Name, err))
			continue
		}
		values[m.Name] = v
	}

	for i := range f.gpus {
		for _, m := range gpuMetrics() {
			name := gpuMetricName(m.Name, i)
			if v, err := m.value(f, i); err != nil {
				lacking = append(lacking, missing(name, err))
			} else {
				values[name] = v
			}
		}
	}

	return values, lacking
}
