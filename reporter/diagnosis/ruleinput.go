package diagnosis

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// ruleInput is a node that rules are held against.
type ruleInput struct {
	*reporter.Node
	wall float64 // seconds that the run took on it
}

// examine gives what rules look at; nil where there is nothing to be said of: no node, one
// of perf.py's, which has totals since boot, or one that ran for less than findSeconds.
func examine(n *reporter.Node, run *reporter.Run) *ruleInput {
	if n == nil || n.Origin == reporter.OriginPerfPy {
		return nil
	}
	wall := n.Metric(reporter.MetricWall)
	if math.IsNaN(wall) && run != nil {
		wall = run.WallSeconds // a sidecar's, a journal's
	}
	if !positive(wall) || wall < findSeconds {
		return nil
	}
	return &ruleInput{n, wall}
}

// positive tells whether a number is known, finite and above 0.
func positive(v float64) bool { return v > 0 && !math.IsInf(v, 1) }

// cpuLimit is how many CPUs the job may use; NaN = not known.
func (e *ruleInput) cpuLimit() float64 {
	if e.Limits == nil || !positive(e.Limits.CPUs) {
		return math.NaN()
	}
	return e.Limits.CPUs
}

// cpusAskedFor tells whether somebody set how many CPUs the job gets: by a quota, or by a
// cpuset or affinity that leaves CPUs of the node out. Else it runs on a node as it is.
func (e *ruleInput) cpusAskedFor() bool {
	if !positive(e.cpuLimit()) {
		return false
	}
	return positive(e.Limits.CPUQuota) || e.Host != nil && e.Limits.CPUs < float64(e.Host.CPUs)
}

func (e *ruleInput) oneThread() bool {
	mean := e.Metric(reporter.MetricJobCores)
	return mean >= findThreadLeast && mean <= findThreadMost && e.cpuLimit() >= 2
}

func (e *ruleInput) throttled() bool {
	return e.Metric(reporter.MetricThrottled) >= throttledShare && !quotaOfOthers(e.Node)
}

// waitedForCPU tells that the job did not get the CPUs that it could have used: what it
// used says nothing then of how many it needs. Where its own tasks are not known those of
// the node tell.
func (e *ruleInput) waitedForCPU() bool {
	waited := e.Metric(reporter.MetricJobPSICPU)
	if math.IsNaN(waited) {
		waited = e.Metric(reporter.MetricPSICPUSome)
	}
	return waited >= findWaitPct
}

// memoryLimit is the memory that the job may use, MiB; NaN = there is no limit.
func (e *ruleInput) memoryLimit() float64 {
	if e.Limits == nil || !positive(e.Limits.MemoryMB) {
		return math.NaN()
	}
	return e.Limits.MemoryMB
}

// peakMemory is the highest memory, MiB, of the job or of the group that has the limit,
// whichever is greater; NaN = neither is known.
func (e *ruleInput) peakMemory() float64 {
	job, group := e.Metric(reporter.MetricJobMemoryPeak), e.Metric(reporter.MetricLimitMemory)/100*e.memoryLimit()
	if math.IsNaN(job) || group > job {
		return group
	}
	return job
}

// gpuUse is the mean utilization of a device, percent; NaN = not known.
func (e *ruleInput) gpuUse(device int) float64 {
	return e.GPUMetric(reporter.MetricGPUUtilization, device)
}

// gpuKnown is the part of the kept samples, and so of the time, that has a device's
// utilization: a query that ends early leaves a mean that says little of the run.
func (e *ruleInput) gpuKnown(device int) float64 {
	if device >= collector.MaxGPUs {
		return 0
	}
	known, all := 0, e.Samples.Len()
	for _, v := range e.Samples.Column(collector.GPUColumn(device, collector.GPUUtilization).Key()) {
		if !math.IsNaN(v) {
			known++
		}
	}
	return float64(known) / float64(max(1, all))
}

// killedAt is the memory limit at which the kernel killed, MiB; 0 = not known.
func (e *ruleInput) killedAt() float64 {
	if e.Verdict == nil {
		return 0
	}
	return e.Verdict.Number("limit_mb")
}

// fullestPath names the file systems that were watched, of which the fullest counted.
func (e *ruleInput) fullestPath() string {
	if e.Sampling == nil || len(e.Sampling.DiskPaths) == 0 {
		return ""
	}
	if len(e.Sampling.DiskPaths) == 1 {
		return "of " + text.Printable(e.Sampling.DiskPaths[0]) + " "
	}
	return "(the fullest of " + text.Printable(text.List(e.Sampling.DiskPaths, 4)) + ") "
}

// roundSize rounds MiB up to a size that people would write: 6 GiB, 640 MiB. It is less
// than a quarter above, and never below 16 MiB.
func roundSize(mb float64) float64 {
	if !positive(mb) {
		return math.NaN()
	}
	if mb <= 16 {
		return 16
	}
	_, exp := math.Frexp(mb)
	step := math.Ldexp(1, exp-3)
	return math.Ceil(mb/step) * step
}

// gpuNames names devices, a few by their numbers, with the verb that fits.
func gpuNames(list []int, one, many string) string {
	var words []string
	for _, i := range list[:min(len(list), 8)] {
		words = append(words, strconv.Itoa(i))
	}
	said := text.Plural(len(list), "GPU ", "GPUs ") + strings.Join(words, ", ")
	if more := len(list) - len(words); more > 0 {
		said += fmt.Sprintf(" and %d more", more)
	}
	return strings.TrimRight(said+" "+text.Plural(len(list), one, many), " ")
}
