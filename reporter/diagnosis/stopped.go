package diagnosis

import (
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
)

// stoppedFirst reports whether a rule stopped the job before the kernel killed any of its processes, so that nothing
// else can be the cause. A job that exited with 0 did not fail because of a kill.
func (q *verdictInput) stoppedFirst() bool {
	return q.account.Stop != nil && (q.code == 0 || !q.killedBeforeStop())
}

// killedBeforeStop reports whether the kernel killed a process for lack of memory before a rule stopped the job.
func (q *verdictInput) killedBeforeStop() bool {
	first := q.account.OOMAt
	for _, v := range q.account.Victims {
		if !v.At.IsZero() && (first.IsZero() || v.At.Before(first)) {
			first = v.At
		}
	}

	return q.account.Stop != nil && !first.IsZero() && !first.After(q.account.Stop.At)
}

// stopped looks for a rule that stopped the job.
func (q *verdictInput) stopped() (cause, words string) {
	s := q.account.Stop
	if s == nil {
		return "", ""
	}

	q.noteStop(s)
	if c, ok := collector.ColumnByKey(s.Key); ok && c == collector.JobMemory {
		q.note("mb_per_second", memoryGrowth(q.node, s.At.Add(time.Millisecond), s.Value))
	}
	words = "stopped by the rule " + ruleText(s) + ": it was " + valueText(s) + " when perfagent sent " +
		text.Printable(s.Signal) + " at " + clockTime(s.At)
	switch after := text.Seconds(max(0, q.endTime().Sub(s.At).Seconds())); {
	case s.Killed && q.job.Signal == "SIGKILL":
		words += "; " + s.Signal + " did not end the job, SIGKILL did " + after + " later"
	case s.Killed:
		words += "; the job " + q.endText() + ", and what it left running was killed"
	default:
		words += "; the job " + q.endText()
	}

	if kills := q.jobKills(); kills > 0 {
		q.noteKills(kills)
		words += "; its control group had " + killsText(kills)
	}

	return CauseStopped, words
}

// noteStop adds to the evidence the rule that stopped the job, and the signals sent.
func (q *verdictInput) noteStop(s *collector.Stop) {
	q.evidence["rule"], q.evidence["key"] = text.Printable(s.Rule), text.Printable(s.Key)
	q.note("value", s.Value)
	q.note("for_seconds", s.ForSeconds)
	q.evidence["sent_signal"], q.evidence["killed"] = text.Printable(s.Signal), s.Killed
	q.noteTime("signal_time", s.At)
}

// ruleText returns the text of a rule, in quotes.
func ruleText(s *collector.Stop) string { return "'" + text.Printable(text.Clip(s.Rule, 200)) + "'" }

// valueText returns the value that stopped the job, with its unit.
func valueText(s *collector.Stop) string {
	c, ok := collector.ColumnByKey(s.Key)
	switch unit := c.Info().Unit; {
	case !ok: // from a later version
		return text.Number(s.Value)
	case unit == collector.Mebibytes:
		return text.SizeText(s.Value)
	default:
		return text.Number(s.Value) + " " + unit.Symbol()
	}
}

// memoryKill is outOfMemory, and also mentions a rule that stopped the job after the kill.
func (q *verdictInput) memoryKill() (cause, words string) {
	cause, words = q.outOfMemory()
	if s := q.account.Stop; s != nil && cause != "" {
		words += "; then the rule " + ruleText(s) + " stopped the job at " + clockTime(s.At)
	}

	return cause, words
}

// mainKilled reports whether SIGKILL ended the job's main process and no rule sent it.
func (q *verdictInput) mainKilled() bool {
	return q.job.Signal == "SIGKILL" && (q.account.Stop == nil || !q.account.Stop.Killed)
}

// endedByRule reports whether the signal that ended the job was sent for a rule.
func (q *verdictInput) endedByRule() bool {
	s := q.account.Stop
	return s != nil && (q.job.Signal == s.Signal || q.job.Signal == "SIGKILL" && s.Killed)
}
