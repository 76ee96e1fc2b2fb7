package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

const (
	// crashBeforeEnd is the longest time between the crash of a process and the end of the job that the crash explains.
	crashBeforeEnd = 5 * time.Second
	// mercy is the same for a launcher that ended the other processes first: launchers wait for up to 30 s before they
	// send SIGTERM, or SIGKILL.
	mercy = 40 * time.Second
	// maxOthers is the maximum number of sentences on other deaths.
	maxOthers = 5
)

// shellSignals are the signals for which an exit code of 128+n is a shell's, by number on Linux.
var shellSignals = map[int]string{
	4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE",
	24: "SIGXCPU", 25: "SIGXFSZ", 31: "SIGSYS",
}

// ShellSignal returns the name of the signal that ended the last command of a shell that exited with code, or "" if the
// code does not show one.
func ShellSignal(code int) string { return shellSignals[code-128] }

// relayedSignals are the other signals that a shell may report as 128+n, as programs do as well.
var relayedSignals = map[int]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 10: "SIGUSR1", 12: "SIGUSR2", 14: "SIGALRM", 15: "SIGTERM",
}

// fatalDeath returns the death that explains why the main process exited with another code than 0, or nil if there is
// none: the last one by signal n if the code is 128+n, or else the first crash that led to the end.
func (q *verdictInput) fatalDeath() *reporter.Death {
	if q.code == 0 || q.job.Signal != "" {
		return nil
	}
	if name := ShellSignal(q.code) + relayedSignals[q.code-128]; name != "" {
		for i := range slices.Backward(q.deaths) {
			if q.deaths[i].Signal == name {
				return &q.deaths[i]
			}
		}
	}
	if q.code == 126 || q.code == 127 { // the command could not be started
		return nil
	}
	for i := range q.deaths {
		d := &q.deaths[i]
		before := q.job.End.Sub(d.End.Time)
		if isCrash(d.Signal) && (before <= crashBeforeEnd || before <= mercy && q.siblingsFollowed(d, q.deaths[i+1:])) {
			return d
		}
	}
	return nil
}

// siblingsFollowed reports whether siblings of d were ended by SIGTERM or SIGKILL just before the job's end. later are
// the deaths after d.
func (q *verdictInput) siblingsFollowed(d *reporter.Death, later []reporter.Death) bool {
	return d.PPID > 0 && slices.ContainsFunc(later, func(o reporter.Death) bool {
		return o.PPID == d.PPID && (o.Signal == "SIGTERM" || o.Signal == "SIGKILL") &&
			q.job.End.Sub(o.End.Time) <= crashBeforeEnd
	})
}

// childDied looks for a death that explains the exit code.
func (q *verdictInput) childDied() (cause, words string) {
	d := q.fatal
	if d == nil {
		return "", ""
	}
	q.evidence["signal"], q.evidence["pid"] = text.Printable(d.Signal), float64(d.PID)
	if d.Command != "" {
		q.evidence["command"] = text.Printable(text.Clip(d.Command, maxCommand))
	}
	if d.CoreDumped {
		q.evidence["core_dumped"] = true
	}
	before := q.secondsBeforeEnd(d)
	q.note("seconds_before_end", text.Round(before, 3))

	words = q.endText() + " after " + nameOf(d) + " " + d.DiedOf()
	switch means := SignalMeaning(d.Signal); {
	case means != "":
		words += ": " + means
	case !isCrash(d.Signal):
		words += "; the kernel does not say who sent it"
	}
	if before >= 1 {
		words += "; that was " + text.Seconds(before) + " before the end"
	}
	if d.Signal == "SIGKILL" {
		q.noteHeadroom()
		words += q.otherKillsText()
	}
	return CauseChildDied, words + q.coreText()
}

// secondsBeforeEnd returns how long before the job's end the process of d ended.
func (q *verdictInput) secondsBeforeEnd(d *reporter.Death) float64 {
	return max(0, q.job.End.Sub(d.End.Time).Seconds())
}

// nameOf returns the name and the ID of the process of d: "python3 (process 4245)".
func nameOf(d *reporter.Death) string {
	if d.Command == "" {
		return processText("", d.PID)
	}
	return processText(programOf(reporter.Process{Command: d.Command}), d.PID)
}

// noteHeadroom adds to the evidence of an unexplained SIGKILL how much of the memory limit was never used, in percent.
func (q *verdictInput) noteHeadroom() {
	q.note("headroom_pct", max(0, 100-q.node.Metric(reporter.MetricLimitMemory)))
}

// notForMemory returns a remark on a SIGKILL that did not come from the out-of-memory killer, or "" if it may have.
func (q *verdictInput) notForMemory() string {
	pct := q.node.Metric(reporter.MetricLimitMemory)
	if !(pct < findTightPct) || q.account.OOMKills != 0 || q.account.HostOOMKills > 0 {
		return ""
	}
	return "; memory was at most " + text.WholePercent(pct) + " of its limit: not the out-of-memory killer"
}

// otherDeaths returns a sentence on each of the last deaths in a failed job that are not its cause. Equal deaths in a
// row share a sentence.
func (q *verdictInput) otherDeaths(cause string) (out []string) {
	if q.code == 0 || q.job == nil {
		return nil
	}
	for i := 0; i < len(q.deaths); {
		d, n := &q.deaths[i], 1
		for i+n < len(q.deaths) && likeDeath(d, &q.deaths[i+n]) && q.fatal != &q.deaths[i+n] {
			n++
		}
		if i += n; d.Signal == "" && d.ExitCode == nil || q.evidence["pid"] == float64(d.PID) || q.endedAlike(cause, d) {
			continue
		}
		words := nameOf(d) + " " + d.DiedOf()
		if n > 1 {
			words = fmt.Sprintf("%d processes %s, the first %s", n, strings.Replace(d.DiedOf(), "was ", "were ", 1), nameOf(d))
		}
		if d.Signal == "SIGKILL" {
			words += q.notForMemory()
		}
		before := q.secondsBeforeEnd(d)
		ago := text.Seconds(before)
		if before < 10 {
			ago = text.Fixed(before, 1) + " s"
		}
		out = append(out, text.Printable(ago+" before, "+words))
	}
	return out[max(0, len(out)-maxOthers):]
}

// endedAlike reports whether what ended the job also ended the process of d: a signal to both, or a rule.
func (q *verdictInput) endedAlike(cause string, d *reporter.Death) bool {
	sent := d.Signal == q.evidence["signal"] || d.Signal == q.evidence["sent_signal"] || cause == CauseStopped
	return sent && d.Signal != "" && !isCrash(d.Signal) && cause != CauseChildDied
}

// likeDeath reports whether a and b are deaths of siblings with the same program, in the same way.
func likeDeath(a, b *reporter.Death) bool {
	return a.PPID == b.PPID && a.DiedOf() == b.DiedOf() &&
		programOf(reporter.Process{Command: a.Command}) == programOf(reporter.Process{Command: b.Command})
}

// judgeChildrenDied fires if signals ended processes of a job that succeeded. SIGTERM, SIGINT and SIGHUP are normal:
// pools of workers end so.
func judgeChildrenDied(e *ruleInput) *reporter.Finding {
	if e.Job == nil || e.Job.ExitCode == nil || *e.Job.ExitCode != 0 {
		return nil
	}
	var first *reporter.Death
	count := 0
	for i := range e.Deaths {
		d := &e.Deaths[i]
		if d.Signal == "" || slices.Contains([]string{"SIGTERM", "SIGINT", "SIGHUP"}, d.Signal) {
			continue
		}
		if count++; first == nil {
			first = d
		}
	}
	if first == nil {
		return nil
	}
	after := first.End.Sub(e.Job.Start.Time).Seconds()
	words := nameOf(first) + " " + first.DiedOf()
	if count > 1 {
		words = fmt.Sprintf("%d of its processes were killed by signals, the first, %s, by %s", count, nameOf(first),
			text.Printable(first.Signal))
	}
	words += " after " + text.Seconds(max(0, after))
	f := &reporter.Finding{Text: "Check that its results are complete: " + words + ", and the job exited with 0.",
		Evidence: evidence("count", count, "pid", first.PID, "signal", text.Printable(first.Signal),
			"seconds", max(0, after))}
	if first.Command != "" {
		f.Evidence["command"] = text.Printable(text.Clip(first.Command, maxCommand))
	}
	return f
}
