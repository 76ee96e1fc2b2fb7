package summary

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// outOfMemory returns the conclusion on a kill for lack of memory.
func (e *end) outOfMemory() Conclusion {
	limit, why, because := e.verdict.Number("limit_mb"), "", ""
	switch e.verdict.Cause {
	case diagnosis.CauseOOMCgroup:
		if why = " at a memory limit of a control group"; limit > 0 {
			why = " at the limit of " + text.TrimmedSizeText(limit)
		}
	case diagnosis.CauseOOMHost:
		because = ", because the node had no memory left"
	case diagnosis.CauseOOMCPUSet, diagnosis.CauseOOMNUMA:
		because = ", because the NUMA nodes that it may use had no memory left"
		if nodes := e.words("nodes"); nodes != "" {
			because = ", because NUMA node " + nodes + ", all that it may use, had no memory left"
		}
	default:
		because = "; whether for a limit of its control group or for the node's memory is not known"
		if e.verdict.Number("pid") == 0 && e.signal == "SIGKILL" {
			because = ", when the kernel had killed a process of its control group, which others share"
		}
	}

	c := Conclusion{Outcome: Failed, Subject: "memory", How: e.kill(),
		Cause: "Out of memory: a process was killed" + why + because + ", and " + e.ofJob() + " " + e.failure() +
			e.after() + ".",
		Action: "Ask for more memory, or use less: how much it needs is not known."}
	if e.signal == "SIGKILL" {
		c.Cause = "Out of memory: " + e.clause(" was ", "killed"+why) + e.after() + because + "."
	}
	if f := diagnosis.MemoryKillFinding(e.node, &e.Run); f != nil {
		c.Action, c.Notes = e.askForMemory(f, limit)
	}
	return c
}

// askForMemory returns the advice after a kill at a limit in MiB, and a note if memory was growing until the kill.
func (e *end) askForMemory(f *reporter.Finding, limit float64) (action string, notes []string) {
	ask, _ := requestedAmounts(*f)
	action = diagnosis.AskFor(e.node, &e.Run) + text.TrimmedSizeText(ask) + " or more: "
	rate := e.verdict.Number("mb_per_second")
	if !(rate > 0) {
		return action + "the job needed more.", nil
	}
	more := fmt.Sprintf("At this rate %s would last about %s longer. If memory should not grow, look for a leak.",
		text.TrimmedSizeText(ask), text.Seconds(math.Max(1, math.Round((ask-limit)/rate))))
	more = strings.Replace(more, ".0 s", " s", 1)
	return action + "it was still growing, by " + diagnosis.GrowthText(rate) + ".", []string{more}
}

// kill returns a sentence on the process that the kernel killed, the time of the kill, and the group that sets the
// limit.
func (e *end) kill() string {
	var words text.Parts
	killed, heaviest := e.verdict.Number("pid"), e.verdict.Number("heaviest_pid")
	name := process(e.words("process"), killed)
	words.Add(name != "", "The kernel killed %s%s", name, e.at("time"))
	words.Add(name != "" && heaviest > 0 && heaviest != killed, "the heaviest was %s",
		process(e.words("heaviest"), heaviest))
	group := e.words("limit_group")
	words.Add(group != "", "control group %s sets the limit", groupName(group))
	return sentence(strings.Join(words, "; "))
}

// process returns the name of a process and its ID: "python3 (process 4242)".
func process(name string, pid float64) string {
	id := "process " + text.Fixed(pid, 0)
	switch {
	case !(pid > 0):
		return name
	case name == "":
		return id
	}
	return name + " (" + id + ")"
}

// groupName returns the path of a control group or, for a group made by Slurm, the last name in the path and the job.
func groupName(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if job, ok := strings.CutPrefix(part, "job_"); ok {
			if i == len(parts)-1 {
				return "of Slurm job " + job
			}
			return parts[len(parts)-1] + " of Slurm job " + job
		}
	}
	return text.ClipStart(path, 50)
}

// stoppedByRule returns the conclusion on a job that a rule of --stop-if stopped.
func (e *end) stoppedByRule() Conclusion {
	c := Conclusion{Outcome: Stopped,
		Cause: capital(e.clause(" was ", "stopped by your rule '"+text.Clip(e.words("rule"), 200)+"'")) + e.after() + "."}
	subjects := []string{"memory", "disk", "gpu", "cpu"}
	inKey := func(subject string) bool { return strings.Contains(e.words("key"), subject) }
	if i := slices.IndexFunc(subjects, inKey); i >= 0 {
		c.Subject = subjects[i]
	}
	if rate := e.verdict.Number("mb_per_second"); rate > 0 {
		c.Action = "Allow more, or find what it keeps: it was still growing, by " + diagnosis.GrowthText(rate) + "."
	}
	_, how, _ := strings.Cut(text.Printable(e.verdict.Text), "': ")
	how, _, _ = strings.Cut(how, "; ")
	c.How = sentence(how)
	return c
}

// timeLimit returns the conclusion on a job that reached its time limit.
func (e *end) timeLimit() Conclusion {
	by := "timeout"
	if sender := e.words("sender"); sender != "" && sender != by {
		by = "the scheduler"
		if id := e.node.Identity; id != nil && id.Scheduler != "" {
			by = text.Printable(id.Scheduler)
		}
	}
	return Conclusion{Outcome: Stopped, How: e.sent(), Action: "Give it more time: it was not done.",
		Cause: "Time limit: " + e.clause(" was ", "ended by "+by) + e.after() + "."}
}

// diskFull returns the conclusion on a full file system, which may or may not be the reason why the job failed.
func (e *end) diskFull() Conclusion {
	where, what := e.words("path"), "no room was left on "
	if noInodes(e.verdict) {
		what = "no more files could be created on "
	}
	return Conclusion{Outcome: Failed, Subject: "disk_space",
		Cause:  "Disk full: " + what + where + " when " + e.ofJob() + " " + e.failure() + e.after() + ".",
		Action: "Make room on " + where + ", or write elsewhere: its own output shows whether that was the reason."}
}

// noInodes reports whether a file system had run out of inodes, and not of space.
func noInodes(v *reporter.Verdict) bool { return v.Number("available_mb") >= 1 }

// fullText returns the text on a full file system that follows the percentage in its bar.
func fullText(v *reporter.Verdict) string {
	words, _ := v.Evidence["path"].(string)
	if words = text.ClipStart(text.Printable(words), 40); noInodes(v) {
		words = "the files of " + words
	}
	return words
}

// sent returns a sentence on the sender of the signal that was to end the job, and the time of the signal.
func (e *end) sent() string {
	name, signal := process(e.words("sender"), e.verdict.Number("sender_pid")), e.words("sent_signal")
	if name == "" || signal == "" {
		return ""
	}
	words := signal + " came from " + name + e.at("signal_time")
	if e.signal == "SIGKILL" && signal != e.signal {
		words += ", and SIGKILL followed"
	}
	return sentence(words)
}

// killedBySignal returns the conclusion on a job that a signal killed, or that exited because of a signal.
func (e *end) killedBySignal() Conclusion {
	signal := cmp.Or(e.signalName(), e.words("signal"))
	if signal == "" {
		return e.failed()
	}
	from, verb, exit := "", "killed", ""
	c := Conclusion{Outcome: Failed, How: e.sent(), Action: afterSignal[signal]}
	if sender := e.words("sender"); sender != "" && e.words("sent_signal") == signal {
		from = " from " + sender
	}
	if Stops(signal) {
		c.Outcome, verb = Stopped, "stopped"
	}
	if e.signal == "" && e.code != nil {
		exit = fmt.Sprintf(" (exit %d)", *e.code)
	}
	c.Cause = capital(e.clause(" was ", verb+" by "+signal+from+exit)) + e.after()
	switch means := diagnosis.SignalMeaning(signal); {
	case from != "":
		c.Action = ""
	case means != "":
		c.Cause += ": " + means
	case c.Action != "":
	case signal == "SIGKILL":
		c.Action = "Find out who ran kill, or look in the scheduler's log: " + e.notForMemory("the sender is not known")
	default:
		c.Cause += ", sent to it directly; the sender is not known"
	}
	c.Cause += "."
	return c
}

// childDied returns the conclusion on a job that failed because a signal ended one of its processes.
func (e *end) childDied() Conclusion {
	signal, command, name := e.words("signal"), strings.Fields(e.words("command")), ""
	if len(command) > 0 {
		name = text.Clip(path.Base(command[0]), 40)
	}
	c := Conclusion{Outcome: Failed, Action: afterSignal[signal],
		Cause: capital(strings.TrimPrefix(e.clause(" ", e.failure()), "was ")) + e.after() + ": " +
			process(name, e.verdict.Number("pid")) + " was killed by " + signal}
	switch means := diagnosis.SignalMeaning(signal); {
	case means != "":
		c.Cause += ", because " + means
	case signal == "SIGKILL":
		c.Action = "Find out who ran kill, or look in the scheduler's log: " + e.notForMemory("the sender is not known")
	case c.Action == "":
		c.Action = "Find out who sent it: the sender is not known."
	}
	c.Cause += "."
	return c
}

// Stops reports whether the named signal stops a job rather than kills it.
func Stops(signal string) bool {
	return slices.Contains([]string{"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM"}, signal)
}

// notForMemory returns words as the end of a sentence. If no process was killed for lack of memory, it adds that fact.
func (e *end) notForMemory(words string) string {
	kills, host := e.node.Metric(reporter.MetricJobOOMKills), e.node.Metric(reporter.MetricHostOOMKills)
	if kills > 0 || !(kills == 0 || host == 0) {
		return words + "."
	}
	const none = ", and no out-of-memory kill was recorded."
	l, pct := e.node.Limits, e.node.Metric(reporter.MetricLimitMemory)
	unlimited := l != nil && !(l.MostMemoryMB() > 0)
	switch {
	case (unlimited || pct < tightLimit) && !(e.node.Metric(reporter.MetricThrottled) > 0):
		return words + ", perfagent saw no limit reached" + none
	case pct >= 0:
		return words + ", memory came to " + text.WholePercent(pct) + " of its limit" + none
	}
	return words + none
}

// tightLimit is the share of the memory limit, in percent, at which the limit counts as reached.
const tightLimit = 95

// unknown returns the conclusion on a run without an exit code of the job. how is a sentence with all that is known
// about the end.
func (e *end) unknown(how string) Conclusion {
	job := e.node.Job
	switch {
	case e.verdict.Cause == "" && len(e.Nodes) > 0 && len(perfpyNodes(e.Report)) == len(e.Nodes):
		return Conclusion{Cause: "perf.py's samples of " + text.Seconds(e.length) + "."}
	case e.verdict.Cause == "":
		return Conclusion{Cause: "Sampled" + strings.Replace(e.after(), "after", "for", 1) + "."}
	}
	c := Conclusion{Outcome: Odd, Cause: "Ended" + e.after() + "; how is not known.", How: how}
	switch {
	case e.verdict.Number("oom_kills") > 0:
		c.Outcome, c.Subject = Failed, "memory"
	case job != nil && job.Attached: // often only the parent of the job gets the exit code
		c.Outcome = Ended
	}
	return c
}

// succeeded returns the conclusion on exit code 0.
func (e *end) succeeded() Conclusion {
	c := Conclusion{Outcome: Succeeded, Cause: "Succeeded" + e.after(), How: e.sent()}
	if sent := strings.TrimSuffix(c.How, "."); sent != "" {
		c.How = sent + ", and the job exited with 0."
	}
	name, late, who := lateNode(e.Report)
	if kills := e.verdict.Number("oom_kills"); kills > 0 {
		c.Outcome, c.Subject = Odd, "memory"
		c.Cause += ", although the kernel killed " + text.Count(kills, "process", "processes") + " of it for lack of memory"
	} else if name != "" {
		c.Outcome = Odd
		c.Cause += ", but " + who + " was last, " + text.Seconds(late) + " after the others"
	}
	c.Cause += "."
	return c
}

// lateNode returns the node that ended long after the others, or that has a rank which ended long after the others.
// late is the delay in seconds, and who names the node or the rank. All results are zero if no node or rank was late.
func lateNode(r *reporter.Report) (name string, late float64, who string) {
	for name, n := range r.EachNode() {
		for _, f := range n.Findings {
			of := reporter.Verdict{Evidence: f.Evidence}
			if late = of.Number("late_seconds"); f.ID != diagnosis.Straggler || !(late > 0) {
				continue
			}
			if _, ok := f.Evidence["rank"]; ok {
				return name, late, fmt.Sprintf("rank %.0f", of.Number("rank"))
			}
			return name, late, shortNode(name)
		}
	}
	return "", 0, ""
}

// failed returns the conclusion on an exit code without a known reason.
func (e *end) failed() Conclusion {
	words := strings.TrimPrefix(e.clause(" ", e.failure()), "was ")
	c := Conclusion{Outcome: Failed, Cause: capital(words) + e.after() + ".", How: e.sent()}
	switch {
	case e.code != nil && *e.code == 128+9:
		c.Action = "Find out who ran kill: a shell exits with 137 when SIGKILL ended its command, and " +
			e.notForMemory("the sender is not known")
	case e.code != nil && e.signal == "" && diagnosis.ShellSignal(*e.code) != "" && e.words("sent_signal") == "":
		signal := diagnosis.ShellSignal(*e.code)
		c.Cause = strings.TrimSuffix(c.Cause, ".") + ", as a shell does when " + signal + " ended its command."
		c.Action = cmp.Or(afterSignal[signal], "Read its own output.")
	case e.words("sent_signal") == "":
		c.Action = "Read its own output" + e.logEnd() + ": " + e.notForMemory("it exited by itself")
	}
	return c
}

const debug = "Read its own output, or run it in a debugger."

// afterSignal holds the advice for signals that no process sends.
var afterSignal = map[string]string{
	"SIGSEGV": debug, "SIGBUS": debug, "SIGABRT": debug, "SIGFPE": debug, "SIGILL": debug, "SIGSYS": debug,
	"SIGTRAP": debug, "SIGXFSZ": "Raise ulimit -f, or write smaller files.", "SIGXCPU": "Raise ulimit -t.",
}
