package reporter

import (
	"errors"
	"fmt"
	"math"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/series"
)

// facts holds the data from which metrics are computed. If a value cannot be computed, its error is the reason why the
// metric is absent.
type facts struct {
	summary []*series.Summary // by collector.Column
	wall    float64           // seconds from start to end
	wallErr error             // why wall is unknown; only for perf.py's samples
	cpus    int
	// hostSeconds is the number of seconds for which the host was measured; 0 means the whole run.
	hostSeconds float64
	// length is the time between the first and the last Reading, in seconds.
	length float64
	boot   func(collector.Column) float64 // returns a counter since boot, NaN if never read; nil if no metric needs it
	job    *Job
	jobErr error // why job is nil
	// largestProcessMB is the highest peak memory of any sampled process, in MiB; 0 if unknown.
	largestProcessMB float64
	// account is nil for perf.py's reports, which have no account.
	account *collector.Account
	gpus    []collector.GPU
	// whyMissing returns the reason why a column was never measured.
	whyMissing func(collector.Column) error
	// perfpy selects perf.py's rules, which compute metrics from the kept samples.
	perfpy bool
	// inPhase restricts the table to metrics that make sense for a phase.
	inPhase bool
}

// summaryOf returns the summary of column c, or an empty summary if there is none.
func (f *facts) summaryOf(c collector.Column) *series.Summary {
	if int(c) < len(f.summary) {
		return f.summary[c]
	}
	return series.NewSummary()
}

// computed returns a metric that value computes. If the metric is absent for the same reasons as a column, c is that
// column; otherwise c is noColumn.
func computed(value func(*facts) (float64, error), c collector.Column) Metric {
	return Metric{value: value, Group: groupOf(c), column: c}
}

// inPhases marks a metric as one that is also computed for each phase.
func inPhases(of Metric) Metric {
	of.inPhases = true
	return of
}

// reduced returns a metric that reduces the values of column c over the run to one number.
func reduced(c collector.Column, reduce func(*series.Summary) (float64, bool)) Metric {
	row := c.Info()
	value := func(f *facts) (float64, error) {
		if v, ok := reduce(f.summaryOf(c)); ok {
			return v, nil
		}
		return 0, f.whyMissing(c)
	}
	return Metric{value: value, Group: groupOf(c), Unit: row.Unit, Aggregation: row.Aggregation, column: c}
}

// maxOf returns the metric of a column's peak. Over several nodes, the highest peak counts.
func maxOf(c collector.Column) Metric {
	of := reduced(c, (*series.Summary).Max)
	of.Aggregation = collector.Max
	return inPhases(of)
}

// totalOf returns the metric of a counter's total over the run.
func totalOf(c collector.Column) Metric {
	of := maxOf(c)
	of.Aggregation, of.isTotal = c.Info().Aggregation, true
	return of
}

// meanOf returns the metric of a column's mean, weighted by time.
func meanOf(c collector.Column) Metric { return inPhases(reduced(c, (*series.Summary).Mean)) }

// fullyBusy is the lowest percentage that rounds to 100.0. By perf.py's rules, only 100 counts as fully busy.
const fullyBusy = 99.95

// shareOf returns the metric of the share of time in which a column was at least level.
func shareOf(c collector.Column, level float64) Metric {
	of := reduced(c, func(s *series.Summary) (float64, bool) {
		if v, ok := s.Share(level); ok {
			return v, ok
		}
		return s.Share(100) // by perf.py's rules, only 100 is fully busy
	})
	of.Unit = collector.PercentOfTime
	return of
}

func cpuHours(f *facts) (float64, error) {
	if f.wallErr != nil {
		return 0, f.wallErr
	}
	if f.cpus == 0 {
		if f.perfpy {
			return 0, newMissingError(PerfPyCPUs)
		}
		return 0, fmt.Errorf("the number of CPUs is unknown: %w", f.whyMissing(collector.CPUAvg))
	}
	return f.wall * float64(f.cpus) / 3600, nil
}

func unusedCPUHours(f *facts) (float64, error) {
	hours, err := cpuHours(f)
	if err != nil {
		return 0, err
	}
	mean, err := meanOf(collector.CPUAvg).value(f)
	if err != nil {
		return 0, err
	}
	return hours * (100 - mean) / 100, nil
}

// bootOf returns the metric of a counter since boot. It has no Aggregation, because it does not describe the run.
func bootOf(counter collector.Column) Metric {
	value := func(f *facts) (float64, error) {
		if v := f.boot(counter); !math.IsNaN(v) {
			return v, nil
		}
		return 0, f.whyMissing(counter)
	}
	return Metric{value: value, Group: GroupBoot, Unit: counter.Info().Unit, column: counter}
}

// jobWall returns the length of a run that wrapped a job.
func jobWall(f *facts) (float64, error) {
	if f.job == nil {
		return 0, f.jobErr
	}
	return f.wall, nil
}

// jobCPUSeconds returns the job's CPU time or, before the job's end is known, the CPU
// time in its account so far.
func jobCPUSeconds(f *facts) (float64, error) {
	switch {
	case f.account != nil && f.account.CPUIncomplete:
		return 0, newMissingError(JobCPUOpen) // job.cpu_seconds has the known part
	case f.job != nil && f.job.Attached && f.account != nil && !f.account.CPUSeconds.Known():
		return 0, f.whyMissing(collector.JobCPU)
	case f.job != nil:
		return f.job.CPUSeconds, nil
	case f.account != nil && f.account.CPUSeconds.Known():
		return float64(f.account.CPUSeconds), nil
	}
	return 0, f.jobErr
}

func jobCores(f *facts) (float64, error) {
	cpu, err := jobCPUSeconds(f)
	if err != nil {
		return 0, err
	}
	return perWall(f, cpu)
}

// perWall returns v divided by the run's length.
func perWall(f *facts, v float64) (float64, error) {
	if !(f.wall > 0) {
		return 0, newMissingError(NoLength)
	}
	return v / f.wall, nil
}

func limitCPU(f *facts) (float64, error) {
	cpu, err := jobCPUSeconds(f)
	if err != nil {
		return 0, err
	}
	if f.account == nil || !(f.account.Limits.CPUs > 0) || !(f.wall > 0) {
		return 0, newMissingError(LimitUnknown)
	}
	allowed := f.wall * f.account.Limits.CPUs
	if a := f.account; a.LimitCPUSeconds > 0 && f.length > 0 { // the limit may have changed during the run
		allowed = f.wall * a.LimitCPUSeconds / f.length
	}
	return min(100, 100*cpu/allowed), nil
}

func jobPeakMemory(f *facts) (float64, error) {
	if f.job != nil && f.job.PeakMemoryMB > 0 {
		return f.job.PeakMemoryMB, nil
	}
	return maxOf(collector.JobMemory).value(f)
}

// limitMemory returns the highest share of the memory limit that was reached. For the time between samples it uses the
// kernel's own peak. A kill at the limit proves that the limit was reached.
func limitMemory(f *facts) (float64, error) {
	pct, err := maxOf(collector.LimitMemoryPercent).value(f)
	if f.account != nil && f.account.FullAtKillMB.Known() && LimitKills(f.account, f.job) > 0 {
		return 100, nil
	}
	if between := limitReached(f); between > pct {
		return between, nil
	}
	return pct, err
}

// limitReached returns the share of the memory limit that was reached according to the kernel's peaks, which include
// the time between samples. It subtracts page cache that may have come and gone between samples.
func limitReached(f *facts) float64 {
	a := f.account
	if a == nil || f.job == nil || !(a.Limits.LeastMemoryMB() > 0) {
		return math.NaN()
	}
	return float64(a.LimitReachedPct) - 100*unseenCache(f.job, a)/float64(a.Limits.LeastMemoryMB())
}

func throttledPeriods(f *facts) (float64, error) {
	if f.account == nil || !(f.account.Periods > 0) || !f.account.ThrottledPeriods.Known() {
		return 0, f.whyMissing(collector.JobThrottled)
	}
	return 100 * float64(f.account.ThrottledPeriods/f.account.Periods), nil
}

// ofAccount returns the metric of a counter of the account. If the metric is absent, the reason is the same as for
// column c.
func ofAccount(value func(*collector.Account) series.Optional, c collector.Column) Metric {
	return computed(func(f *facts) (float64, error) {
		if f.account != nil {
			if v := value(f.account); v.Known() {
				return float64(v), nil
			}
		}
		return 0, f.whyMissing(c)
	}, c)
}

// stallOf returns the metric of the share of the run in which tasks stalled. value returns the stalled seconds.
func stallOf(value func(*collector.Account) series.Optional, c collector.Column) Metric {
	of := computed(func(f *facts) (float64, error) {
		seconds, err := ofAccount(value, c).value(f)
		if err != nil {
			return 0, err
		}
		if f.hostSeconds > 0 && c.Info().Scope == collector.ScopeHost {
			return min(100, 100*seconds/f.hostSeconds), nil
		}
		share, err := perWall(f, seconds)
		return min(100, 100*share), err
	}, c)
	of.Unit, of.Aggregation = collector.PercentOfTime, c.Info().Aggregation
	return of
}

// jobMaxRSS returns the peak memory of the job's largest process, from wait4(2). For an attached job only its parent
// gets this number, so the highest peak of the sampled processes is used instead.
func jobMaxRSS(f *facts) (float64, error) {
	switch {
	case f.job == nil:
		return 0, f.jobErr
	case !f.job.Attached:
		return f.job.MaxRSSMB, nil
	case f.largestProcessMB > 0:
		return f.largestProcessMB, nil
	}

	return 0, newMissingError(ParentOnly)
}

// compute evaluates the table. Absent metrics are returned with their reasons.
func (f *facts) compute() (Values, []Missing) {
	values := make(Values, len(metricTable))
	var missing []Missing
	table := metricTable
	for i := range f.gpus {
		table = append(table[:len(table):len(table)], gpuMetrics(i)...)
	}
	for _, m := range table {
		if f.perfpy && !m.PerfPy || f.inPhase && !m.inPhases {
			continue
		}
		switch v, err := m.value(f); {
		case errors.Is(err, errNoDevice): // not missing, because the node has no such device
		case err != nil:
			missing = append(missing, newMissingMetric(m.Name, err))
		default:
			values[m.Name] = v
		}
	}
	return values, missing
}
