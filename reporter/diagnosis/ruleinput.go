package diagnosis

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// ruleInput is a node that rules are applied to.
type ruleInput struct {
	*reporter.Node
	wall    float64 // the node's run time in seconds
	command []string
	run     *reporter.Run // may be nil
}

// newRuleInput returns the input of the rules for n. It returns nil if the rules do not apply: if n is nil, comes from
// perf.py (the totals are since boot), or ran for less than minRunSeconds.
func newRuleInput(n *reporter.Node, run *reporter.Run) *ruleInput {
	if n == nil || n.Origin == reporter.OriginPerfPy {
		return nil
	}

	wall := n.Metric(reporter.MetricWall)
	if math.IsNaN(wall) && run != nil {
		wall = run.WallSeconds // from a sidecar or a journal
	}
	if !positive(wall) || wall < minRunSeconds {
		return nil
	}

	return &ruleInput{n, wall, commandOf(n, run), run}
}

// askFor is AskFor for the job of e.
func (e *ruleInput) askFor() string { return AskFor(e.Node, e.run) }

// AskFor returns the words before an amount of memory: "Ask for " under a scheduler, and "Set the limit to " otherwise.
// run may be nil.
func AskFor(n *reporter.Node, run *reporter.Run) string {
	scheduled := run != nil && (run.Platform == reporter.PlatformSlurm || run.Platform == reporter.PlatformKubernetes)
	if scheduled || n.Identity != nil && n.Identity.Scheduler != "" {
		return "Ask for "
	}
	return "Set the limit to "
}

// commandOf returns the wrapped command of n, or otherwise the run's.
func commandOf(n *reporter.Node, run *reporter.Run) []string {
	if len(n.Command) == 0 && run != nil {
		return run.Command
	}
	return n.Command
}

// positive reports whether v is known, finite and above 0.
func positive(v float64) bool { return v > 0 && !math.IsInf(v, 1) }

// positiveOrNaN returns v if it is positive, and NaN otherwise.
func positiveOrNaN(v float64) float64 {
	if !positive(v) {
		return math.NaN()
	}
	return v
}

// limits returns the limits of the job. Zero limits mean unknown.
func (e *ruleInput) limits() *host.Limits { return cmp.Or(e.Limits, &host.Limits{}) }

// cpuLimit returns the mean number of CPUs that the job could use, or NaN if it is unknown.
func (e *ruleInput) cpuLimit() float64 { return positiveOrNaN(e.limits().MeanCPUs()) }

// cpusGiven returns the least number of CPUs that the job was given, or NaN if it is unknown.
func (e *ruleInput) cpusGiven() float64 {
	if e.bound() {
		return e.Limits.GivenCPUs
	}
	return positiveOrNaN(e.limits().LeastCPUs())
}

// bound reports whether the job bound itself to fewer CPUs than it was given.
func (e *ruleInput) bound() bool { return positive(e.limits().GivenCPUs) }

// cpusAskedFor reports whether the job's number of CPUs was chosen: by a quota, or by a cpuset or an affinity that
// excludes CPUs of the node.
func (e *ruleInput) cpusAskedFor() bool {
	given := e.cpusGiven()
	if !e.bound() && e.Limits != nil { // CPUs that went offline were not chosen
		given = e.Limits.MostCPUs()
	}
	if !positive(given) {
		return false
	}
	quota := float64(e.Limits.CPUQuota)
	own := e.bound() && quota <= e.Limits.CPUs // set by the job itself
	return positive(quota) && !own || e.Host != nil && given < float64(e.Host.CPUs)
}

func (e *ruleInput) oneThread() bool {
	mean := e.Metric(reporter.MetricJobCores)
	return mean >= findThreadMin && mean <= findThreadMax && e.cpusGiven() >= 2
}

func (e *ruleInput) throttled() bool {
	return e.Metric(reporter.MetricThrottled) >= throttledShare && !quotaOfOthers(e.Node)
}

// isCPUStarved reports whether the job did not get the CPUs that it could have used. Its usage then does not show its
// need.
func (e *ruleInput) isCPUStarved() bool { return e.cpuWaitPct() >= findWaitPct }

// cpuWaitPct returns the share of the time in which a task of the job waited for a CPU, in percent. If it is unknown,
// cpuWaitPct returns the share for tasks of the node.
func (e *ruleInput) cpuWaitPct() float64 {
	return firstKnown(e.Metric(reporter.MetricJobPSICPU), e.Metric(reporter.MetricPSICPUSome))
}

// firstKnown returns the first value that is not NaN, or NaN if there is none.
func firstKnown(values ...float64) float64 {
	for _, v := range values {
		if !math.IsNaN(v) {
			return v
		}
	}
	return math.NaN()
}

// memoryLimit returns the memory limit of the job in MiB, the lowest if it changed, or NaN if there was none.
func (e *ruleInput) memoryLimit() float64 { return positiveOrNaN(float64(e.limits().LeastMemoryMB())) }

// memoryGiven returns the least memory that the job was given, in MiB, or NaN if there was no limit.
func (e *ruleInput) memoryGiven() float64 {
	if given := e.limits().GivenMemoryMB; positive(given) {
		return given
	}
	return e.memoryLimit()
}

// peakMemory returns the peak memory in MiB of the job or of the group with the limit, whichever is higher, or NaN if
// neither is known.
func (e *ruleInput) peakMemory() float64 {
	job, group := e.Metric(reporter.MetricJobMemoryPeak), e.groupPeak()
	if math.IsNaN(job) || group > job {
		return group
	}
	return job
}

// groupPeak returns the peak memory in use in MiB of the group with the limit, or NaN if it is unknown.
func (e *ruleInput) groupPeak() float64 {
	if q, ok := e.Summaries[collector.LimitMemory.Key()]; ok && e.Limits != nil && e.Limits.MemoryRange != nil {
		return q.Max // the metric is a share of a limit that changed
	}
	return e.Metric(reporter.MetricLimitMemory) / 100 * e.memoryLimit()
}

// neededMemory returns peakMemory or, if it is more, the sum of the job's peak and the node's shared memory that the
// job may have filled.
func (e *ruleInput) neededMemory() float64 {
	peak := e.peakMemory()
	if job := e.Metric(reporter.MetricJobMemoryPeak); e.Job != nil && job+e.Job.UnownedMB > peak {
		return job + e.Job.UnownedMB
	}
	return peak
}

// peakJobSwap returns the peak amount of the job's memory in swap, in MiB, or 0 if unknown. The job's peak includes
// swap; the usage of its control group does not.
func (e *ruleInput) peakJobSwap() float64 {
	if q, ok := e.Summaries[collector.JobMemorySwap.Key()]; ok && positive(q.Max) {
		return q.Max
	}
	return 0
}

// gpuUse returns the mean utilization of the given device in percent, or NaN if it is unknown.
func (e *ruleInput) gpuUse(device int) float64 {
	return e.GPUMetric(reporter.MetricGPUUtilization, device)
}

// gpuCoverage returns the share of the kept samples, and thus of the time, in which the device's utilization is known.
// If the GPU queries ended early, the mean covers little of the run.
func (e *ruleInput) gpuCoverage(device int) float64 {
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

// fullestPath names the watched file systems for a sentence on the fullest of them: "of /data ".
func (e *ruleInput) fullestPath() string {
	if e.Sampling == nil || len(e.Sampling.DiskPaths) == 0 {
		return ""
	}
	if len(e.Sampling.DiskPaths) == 1 {
		return "of " + text.Printable(e.Sampling.DiskPaths[0]) + " "
	}
	return "(the fullest of " + text.Printable(text.List(e.Sampling.DiskPaths, 4)) + ") "
}

// roundSize rounds MiB up to a customary size: 6 GiB, 640 MiB. The result is less than a quarter above mb, and at least
// 16 MiB.
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

// gpuNames lists the first few devices by number, followed by the verb in singular or plural.
func gpuNames(list []int, one, many string) string {
	var words []string
	for _, i := range list {
		words = append(words, strconv.Itoa(i))
	}
	names := text.Plural(len(list), "GPU ", "GPUs ") + text.List(words, 8)
	return strings.TrimRight(names+" "+text.Plural(len(list), one, many), " ")
}
