package diagnosis

import (
	"cmp"
	"fmt"
	"math"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// The thresholds for a neighbour. Shares are of the node's capacity.
const (
	neighbourShare   = 25  // percent of the node's CPUs or memory that other processes used
	neighbourSteal   = 10  // percent of the CPU time that went to other virtual machines
	neighbourWait    = 5   // percent of the time that tasks waited for memory
	neighbourOwnCPUs = 0.9 // of the CPUs that the job may use: a job that used more was not held up
)

// judgeNeighbour fires if other processes on the node, or other virtual machines on its hypervisor, held the job up.
func judgeNeighbour(e *ruleInput) *reporter.Finding {
	return cmp.Or(e.neighbourOnCPUs(), e.neighbourInMemory())
}

// neighbourOnCPUs returns the finding on CPUs, or nil.
func (e *ruleInput) neighbourOnCPUs() *reporter.Finding {
	job, steal := e.Metric(reporter.MetricJobCores), e.percent(reporter.MetricSteal)
	cpus := math.NaN()
	if e.Host != nil && e.Host.CPUs > 0 {
		cpus = float64(e.Host.CPUs)
	}
	others := max(0, (e.percent(reporter.MetricCPUMean)-finiteOrZero(steal))/100*cpus-job)
	waiting := e.cpuWaitPct()

	words := ""
	switch {
	case others >= neighbourShare*cpus/100 && waiting >= findWaitPct && !e.isSelfContended():
		words = fmt.Sprintf("others kept %s of the node's %s CPUs busy, and %s waited for a CPU for %s of the time.",
			text.CPUs(others), text.CPUs(cpus), e.waitingTasks(reporter.MetricJobPSICPU), text.WholePercent(waiting))
	case steal >= neighbourSteal:
		words = fmt.Sprintf("other virtual machines took %s of the CPU time.", text.WholePercent(steal))
	default:
		return nil
	}
	return &reporter.Finding{
		Text: "Ask for CPUs of its own, or use a quieter node: " + words,
		Evidence: evidence("resource", "cpu", "others_cpus", others, "job_cpus", job, "cpus", cpus,
			"waiting_pct", waiting, "steal_pct", steal),
	}
}

// waitingTasks returns which tasks waited: the job's if the metric ofJob is known, otherwise the node's.
func (e *ruleInput) waitingTasks(ofJob string) string {
	if math.IsNaN(e.Metric(ofJob)) {
		return "processes on the node"
	}
	return "the job's processes"
}

// isSelfContended reports whether the job's tasks may have waited for each other: it had the CPUs that it may use, its
// quota stopped it, or it may use only some of the node's CPUs and has more threads than those.
func (e *ruleInput) isSelfContended() bool {
	limit := e.cpuLimit()
	return e.Metric(reporter.MetricJobCores) >= neighbourOwnCPUs*limit ||
		e.Metric(reporter.MetricThrottled) >= throttledShare ||
		limit < float64(e.Host.CPUs) && e.Metric(reporter.MetricJobThreads) > limit
}

// neighbourInMemory returns the finding on memory, or nil. There is none for a job that came close to its own limit,
// because it waits at that limit.
func (e *ruleInput) neighbourInMemory() *reporter.Finding {
	waiting := firstKnown(e.percent(reporter.MetricJobPSIMemory), e.percent(reporter.MetricPSIMemoryFull))
	if e.Host == nil || !positive(e.Host.MemoryMB) || !(waiting >= neighbourWait) ||
		e.Metric(reporter.MetricLimitMemory) >= findTightPct {
		return nil
	}

	used := e.mean(collector.MemPercent) / 100 * e.Host.MemoryMB
	others := used - (e.mean(collector.JobMemory) - finiteOrZero(e.mean(collector.JobMemorySwap)))
	if !(others >= neighbourShare*e.Host.MemoryMB/100) || others > e.Host.MemoryMB {
		return nil
	}
	return &reporter.Finding{
		Text: fmt.Sprintf("Use a node of its own, or one with more memory: others held %s of the node's %s, and "+
			"%s waited for memory for %s of the time.",
			text.TrimmedSizeText(others), text.TrimmedSizeText(e.Host.MemoryMB),
			e.waitingTasks(reporter.MetricJobPSIMemory), text.WholePercent(waiting)),
		Evidence: evidence("resource", "memory", "others_memory_mb", others, "waiting_pct", waiting),
	}
}

// percent returns the given metric, or NaN if it is unknown or not between 0 and 100.
func (e *ruleInput) percent(metric string) float64 {
	if v := e.Metric(metric); v >= 0 && v <= 100 {
		return v
	}
	return math.NaN()
}

// mean returns the mean of c over the run, or NaN if it is unknown.
func (e *ruleInput) mean(c collector.Column) float64 {
	if q, ok := e.Summaries[c.Key()]; ok {
		return q.Mean
	}
	return math.NaN()
}
