package diagnosis

import (
	"math"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/reporter"
)

// The conditions of a Verdict.
const (
	ConditionThrottled     = "throttled"
	ConditionMemoryStarved = "memory_starved"
	ConditionIOWait        = "io_wait"
	ConditionSwapping      = "swapping"
	ConditionGPUIdle       = "gpu_idle"
)

// Condition is a reason why a job was slow, however it ended. docs/verdict.md names the counter that proves each
// condition.
type Condition struct {
	Name string

	// holds reports whether the condition held. If so, it adds the counter that proves it to the evidence.
	holds func(*verdictInput) bool
}

// The thresholds of the conditions.
const (
	minCondition    = 1.0      // seconds: shares of the time mean little in shorter runs
	throttledShare  = 10.0     // percent of the quota's periods
	memoryStall     = 10.0     // percent of the time
	memoryPart      = 0.1      // of the node's memory: a job with less may not be the one that waited
	memoryTightPct  = 95.0     // percent of the limit
	memorySomeStall = 1.0      // percent of the time
	ioStall         = 20.0     // percent of the time
	iowaitShare     = 20.0     // percent of the CPU time
	ioRate          = 1.0 / 16 // MiB/s: a job that moves less is not the one that waits on the node
	quotaPart       = 0.1      // of a shared quota: a job that uses less is not the one that was stopped
	swapTotal       = 64.0     // MiB
	swapRate        = 1.0      // MiB/s
	gpuIdleShare    = 10.0     // percent of the time
	gpuIdleAfter    = 30.0     // seconds
	gpuIdleKnown    = 0.5      // of the run: a GPU measured for less is not judged
)

// Conditions returns the table of conditions, in the order of Verdict.Conditions.
func Conditions() []Condition {
	return []Condition{
		{ConditionThrottled, (*verdictInput).throttled},
		{ConditionMemoryStarved, (*verdictInput).memoryStarved},
		{ConditionIOWait, (*verdictInput).ioWait},
		{ConditionSwapping, (*verdictInput).swapping},
		{ConditionGPUIdle, (*verdictInput).gpuIdle},
	}
}

// noteIfAtLeast reports whether the given metric is at least level, in a run of at least minCondition seconds. If so,
// it adds the metric to the evidence.
func (q *verdictInput) noteIfAtLeast(metric string, level float64) bool {
	v, ok := q.node.Metrics[metric]
	if !ok || !(v >= level) || q.run.WallSeconds < minCondition {
		return false
	}
	q.note(metric, v)
	return true
}

func (q *verdictInput) throttled() bool {
	return !quotaOfOthers(q.node) && q.noteIfAtLeast(reporter.MetricThrottled, throttledShare)
}

// quotaOfOthers reports whether the job shares its CPU quota with other processes and used next to none of it. Then the
// quota stopped those processes, not the job.
func quotaOfOthers(n *reporter.Node) bool {
	return n.Job != nil && n.Job.Source == host.JobFromTree && n.Limits != nil &&
		n.Metric(reporter.MetricJobCores) < quotaPart*float64(n.Limits.LeastQuota())
}

func (q *verdictInput) memoryStarved() bool {
	if _, known := q.node.Metrics[reporter.MetricJobPSIMemory]; known {
		if q.noteIfAtLeast(reporter.MetricJobPSIMemory, memoryStall) {
			return true
		}
	} else if q.node.Metric(reporter.MetricJobMemoryPeak) >= memoryPart*q.node.Host.MemoryMB &&
		q.noteIfAtLeast(reporter.MetricPSIMemoryFull, memoryStall) {
		return true
	}
	some := 100 * float64(q.account.JobStall.MemorySome) / q.run.WallSeconds
	if !(some >= memorySomeStall) || !q.noteIfAtLeast(reporter.MetricLimitMemory, memoryTightPct) {
		return false
	}
	q.note("job_psi_memory_some_avg_pct", min(100, some))
	return true
}

func (q *verdictInput) ioWait() bool {
	if _, known := q.node.Metrics[reporter.MetricJobPSIIO]; known {
		return q.noteIfAtLeast(reporter.MetricJobPSIIO, ioStall)
	}
	moved := q.node.Metric(reporter.MetricJobRead) + q.node.Metric(reporter.MetricJobWritten)
	if !(moved >= ioRate*q.run.WallSeconds) {
		return false // other processes on the node are waiting
	}
	return q.noteIfAtLeast(reporter.MetricPSIIOFull, ioStall) || q.noteIfAtLeast(reporter.MetricIOWait, iowaitShare)
}

func (q *verdictInput) swapping() bool {
	in, out := q.node.Metrics[reporter.MetricSwapIn], q.node.Metrics[reporter.MetricSwapOut]
	if in+out < swapTotal || in+out < swapRate*q.run.WallSeconds || q.run.WallSeconds < minCondition {
		return false
	}
	q.note(reporter.MetricSwapIn, in)
	q.note(reporter.MetricSwapOut, out)
	return true
}

func (q *verdictInput) gpuIdle() bool {
	if q.run.WallSeconds < gpuIdleAfter {
		return false
	}

	sum, n := 0.0, 0
	for i, g := range q.rec.GPUs {
		c := collector.GPUColumn(i, collector.GPUUtilization)
		if !g.OfJob || c >= q.rec.NumColumns() { // a damaged journal may name more GPUs than it has columns
			continue
		}
		mean, known := q.rec.Summaries[c].Mean()
		if !known || math.IsNaN(mean) || !(q.rec.Summaries[c].Weight() >= gpuIdleKnown*q.run.WallSeconds) {
			continue
		}
		sum, n = sum+mean, n+1
	}

	if n == 0 || !(sum/float64(n) < gpuIdleShare) {
		return false
	}

	q.note("gpu_avg_utilization_pct", sum/float64(n))
	q.note("job_gpus", float64(n))
	return true
}
