package diagnosis

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// The causes of a Verdict. docs/verdict.md lists the proof and the evidence of each.
const (
	CauseExited    = "exited"
	CauseSignal    = "signal"
	CauseOOMCgroup = "oom_cgroup"
	CauseOOMHost   = "oom_host"
	CauseOOMCPUSet = "oom_cpuset"
	CauseOOMNUMA   = "oom_numa"
	CauseOOM       = "oom"
	CauseTimeLimit = "time_limit"
	CauseDiskFull  = "disk_full"
	CauseChildDied = "child_died"
	CauseStopped   = "stopped_by_rule"
	CauseUnknown   = "unknown"
)

const (
	// hostShortPct is the available percentage of the host's memory below which a kill is attributed to the host
	// without the kernel's log.
	hostShortPct = 2
	// fullMB is the free space in MiB below which a file system counts as full.
	fullMB = 1
	// killGrace is the longest time after SIGTERM in which SIGKILL is attributed to a scheduler without a known end
	// time. Schedulers wait 5 to 60 s by default.
	killGrace = 2 * time.Minute
	// limitSlack is how long before the scheduler's end time a signal is still attributed to the scheduler.
	limitSlack = 10 * time.Second
)

// IsOutOfMemory reports whether cause is a kill for lack of memory.
func IsOutOfMemory(cause string) bool {
	return slices.Contains([]string{CauseOOMCgroup, CauseOOMHost, CauseOOMCPUSet, CauseOOMNUMA, CauseOOM}, cause)
}

// verdictPriority ranks the verdicts on jobs that failed at the same moment. The higher it is, the better the verdict
// explains the end of the run.
func verdictPriority(v *reporter.Verdict) int {
	const crashed = "crashed"
	order := []string{CauseUnknown, CauseSignal, CauseExited, crashed, CauseTimeLimit, CauseDiskFull, CauseStopped}
	cause := v.Cause
	switch signal, _ := v.Evidence["signal"].(string); {
	case IsOutOfMemory(cause):
		return len(order)
	case cause == CauseExited && v.Number("exit_code") == 0:
		return -2
	case (cause == CauseSignal || cause == CauseChildDied) && isCrash(signal):
		cause = crashed
	case cause == CauseChildDied: // by a signal that others send
		cause = CauseSignal
	}
	return slices.Index(order, cause) // -1 for a cause from a later version
}

// isCrash reports whether the named signal indicates a fault in the program rather than a request to end.
func isCrash(signal string) bool {
	return slices.Contains([]string{"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGSYS",
		"SIGABRT", "SIGTRAP", "SIGXCPU", "SIGXFSZ"}, signal)
}

// verdictInput holds the facts about how a job ended.
type verdictInput struct {
	node     *reporter.Node
	run      reporter.Run
	rec      *collector.Recording
	account  *collector.Account
	job      *reporter.Job
	code     int // the job's exit code
	exit     ExitContext
	deaths   []reporter.Death // of other processes, in order
	fatal    *reporter.Death  // the one that explains the exit code; nil = none
	evidence map[string]any   // numbers as float64, as JSON decodes them
}

// newVerdict returns the verdict on the job of n, or nil if there was no job or it is still running. It is a pure
// function of its arguments.
func newVerdict(n *reporter.Node, run reporter.Run, rec *collector.Recording, e ExitContext) *reporter.Verdict {
	running := n.Job != nil && n.Job.ExitCode == nil && e.UnknownReason == ""
	if n.Job == nil && len(run.Command) == 0 || running {
		return nil
	}
	if e.TimeLimit.Before(run.Start.Time) { // the end time is another job's, or invalid
		e.TimeLimit = time.Time{}
	}

	q := &verdictInput{
		node: n, run: run, rec: rec, account: &rec.Account, job: n.Job, exit: e,
		evidence: make(map[string]any),
	}
	if n.Job != nil && n.Job.ExitCode != nil {
		q.code = *n.Job.ExitCode
		q.deaths, _ = reporter.NewDeaths(rec, n.Job, run.End)
		q.fatal = q.fatalDeath()
	}

	v := &reporter.Verdict{Evidence: q.evidence, Conditions: []string{}}
	v.Cause, v.Text = q.cause()
	v.Text = text.Printable(v.Text)
	if log := e.LogTail; log != nil {
		if v.LogError = findLogError(e.LastLines); v.LogError != nil {
			v.LogError.MayLeave = log.MayLeave
			v.Text += "; its log ends with " + LogErrorWords(v.LogError.Kind)
		}
	}
	v.Beside = q.otherDeaths(v.Cause)
	for _, c := range Conditions() {
		if c.holds(q) {
			v.Conditions = append(v.Conditions, c.Name)
		}
	}

	return v
}

// cause returns the first proven cause, in the order of the table in docs/verdict.md, and the text of the verdict.
func (q *verdictInput) cause() (cause, words string) {
	switch {
	case q.job == nil:
		return CauseUnknown, q.unknownEndText()
	case q.exit.UnknownReason != "":
		return CauseUnknown, "how the job ended is not known: " + text.Printable(q.exit.UnknownReason) + q.earlierKillsText()
	}

	q.evidence["exit_code"] = float64(q.code)
	if q.job.Signal != "" {
		q.evidence["signal"] = text.Printable(q.job.Signal)
	}
	switch {
	case q.stoppedFirst():
		return q.stopped()
	case q.code == 0:
		if s, sent := q.lastEndSignal(); sent {
			q.noteSignal(s)
		}
		return CauseExited, "exited with code 0" + q.survivedKillsText()
	}

	causes := []func() (cause, words string){q.outOfMemory, q.stopped, q.timeLimit, q.diskFull, q.signal, q.childDied}
	for _, look := range causes {
		if cause, words := look(); cause != "" {
			return cause, words
		}
	}

	return CauseExited, q.exitText()
}

// unknownEndText returns why the end of a job is unknown, and what happened before it.
func (q *verdictInput) unknownEndText() string {
	const unknown = "how the command ended is not known"
	if q.run.Incomplete == "" {
		return unknown + ": no exit status was recorded"
	}

	before := ""
	for _, s := range slices.Backward(q.account.Signals) {
		if endsJob(s) {
			before += "; " + q.noteSignal(s) + " had come before"
			break
		}
	}

	if s := q.account.Stop; s != nil {
		q.noteStop(s)
		before += "; the rule " + ruleText(s) + " had stopped it at " + clockTime(s.At)
	}

	if before += q.earlierKillsText(); before == "" {
		return unknown + ": " + q.run.Incomplete
	}
	return unknown + before
}

// earlierKillsText returns the out-of-memory kills before an unknown end, or "".
func (q *verdictInput) earlierKillsText() string {
	return q.notedKillsText("; until then its control group had ", reporter.GroupKills(q.account))
}

// notedKillsText adds kills to the evidence and returns them as a text after before, or "" if there were none.
func (q *verdictInput) notedKillsText(before string, kills float64) string {
	if !(kills > 0) {
		return ""
	}
	q.noteKills(kills)
	return before + killsText(kills)
}

// killsText returns a text such as "2 out-of-memory kills".
func killsText(n float64) string { return text.Count(n, "out-of-memory kill", "out-of-memory kills") }

// exitText returns the sentence for an otherwise unexplained exit code.
func (q *verdictInput) exitText() string {
	words := "exited with code " + strconv.Itoa(q.code)
	switch s, sent := q.lastEndSignal(); {
	case sent:
		words += " after " + q.noteSignal(s)
	case ShellSignal(q.code) != "":
		name := ShellSignal(q.code)
		words += ", as a shell does when " + name + " ended its command"
		if name == "SIGKILL" {
			words += "; the sender is not known"
			q.noteHeadroom()
		}
	}
	return words + q.coreText() + q.otherKillsText() + q.alreadyFullText()
}

// commandName returns the name that the kernel gives to a process that runs the job's command.
func (q *verdictInput) commandName() string {
	if len(q.run.Command) == 0 {
		return ""
	}
	name := path.Base(q.run.Command[0])
	return name[:min(len(name), 15)] // TASK_COMM_LEN
}

// clockTime formats t for a sentence, without the date, which is in the run's report.
func clockTime(t time.Time) string { return t.UTC().Format("15:04:05") + " UTC" }

// processText returns a text such as "python (process 4242)".
func processText(name string, pid int) string {
	process := "process " + strconv.Itoa(pid)
	switch {
	case pid <= 0:
		return cmp.Or(text.Printable(name), "a process")
	case name == "":
		return process
	}
	return text.Printable(name) + " (" + process + ")"
}

// note adds a number to the evidence, if it is known.
func (q *verdictInput) note(key string, v float64) {
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		q.evidence[key] = v
	}
}

// noteTime adds a time to the evidence, if it is known.
func (q *verdictInput) noteTime(key string, t time.Time) {
	if !t.IsZero() {
		q.evidence[key] = t.UTC().Format(time.RFC3339Nano)
	}
}

// ExitContext holds facts about a job's end beyond its exit status. The zero value means that nothing is known.
type ExitContext struct {
	// UnknownReason is why the exit status is unknown; "" if it is known.
	UnknownReason string
	// Signals are the signals to perfagent or its process group that were relayed to the job, oldest first.
	Signals []collector.Signal
	// Space is the free space of the file systems that matter to a failed job, measured at its end. SpaceBefore was
	// measured before the job started: a file system that was full then proves nothing. A path missing from it was not
	// measured.
	Space, SpaceBefore []host.FreeSpace
	// DiskPaths are the watched paths that the job's user can write to until disk_free_mb, the free space of the
	// fullest path, is 0.
	DiskPaths []string
	// CoreDumped reports whether the kernel wrote a core of the main process. Cores are the job's core files on the
	// file systems of Space, if one of these is full or CoreDumped is set; CoresWritten reports whether the kernel
	// writes cores to files.
	CoreDumped, CoresWritten bool
	Cores                    []host.CoreFile
	// Scheduler is the scheduler of the job ("Slurm"); "" if none is known. TimeLimit is when it ends the job; zero if
	// unknown.
	Scheduler string
	TimeLimit time.Time
	// LogTail is the end of the job's log; nil if there is none. LastLines are its last LogErrorLines lines, redacted and
	// printable, even if LogTail has fewer.
	LogTail   *reporter.LogTail
	LastLines []string
	// Timeout is when the timeout(1) that runs perfagent ends the job; zero if there is none, or if it is unknown.
	Timeout time.Time
}

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
