package diagnosis

import (
	"time"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// otherEndings counts the endings after the first failure.
type otherEndings struct {
	alike, ended, failed, lost endingCount
	signal                     string // that the launcher sent to the ended jobs; "" if it differs
}

// endingCount counts jobs that ended in the same way.
type endingCount struct {
	count  int
	within time.Duration // from the first failure to the last of these ends; negative if unknown
}

// add counts next, and updates the time since first.
func (c *endingCount) add(first, next *ending) {
	if c.count == 0 {
		c.within = -1
	}
	c.count++
	if !first.failureTime.IsZero() && !next.end.IsZero() {
		c.within = max(c.within, next.end.Sub(first.failureTime))
	}
}

// countOthers sorts the other endings by outcome, and counts each kind relative to the first failure e.
func (e *ending) countOthers(rest []ending) otherEndings {
	var o otherEndings
	for i := range rest {
		r := &rest[i]
		switch {
		case r.outcome == outcomeSucceeded:
		case r.outcome == outcomeUnknown:
			o.lost.add(e, r)
		case r.outcome == outcomeTerminated:
			o.addSignal(r.verdict)
			o.ended.add(e, r)
		case e.sameFailure(r):
			o.alike.add(e, r)
		default:
			o.failed.add(e, r)
		}
	}
	return o
}

// sameFailure reports whether o failed in the same way as e.
func (e *ending) sameFailure(o *ending) bool {
	a, b := e.verdict, o.verdict
	return a.Cause == b.Cause && a.Number("exit_code") == b.Number("exit_code") &&
		a.Evidence["signal"] == b.Evidence["signal"]
}

// addSignal records the launcher's signal that ended a job.
func (o *otherEndings) addSignal(v *reporter.Verdict) {
	sent, _ := v.Evidence["sent_signal"].(string)
	if o.ended.count == 0 {
		o.signal = sent
	}
	if o.signal != sent {
		o.signal = ""
	}
}

// String returns how the other jobs ended, to follow the sentence on the first failure: "; 15 others were ended by
// SIGTERM of the launcher within 1.2 s".
func (o *otherEndings) String() string {
	signal := "a signal"
	if o.signal != "" {
		signal = text.Printable(o.signal)
	}
	return o.alike.words("likewise", "likewise", true) +
		o.ended.words("was ended by "+signal+" of the launcher", "were ended by "+signal+" of the launcher", true) +
		o.failed.words("failed, too", "failed, too", false) +
		o.lost.words("has no end", "have no end", false)
}

// words returns the count as text and, if timed is set, within what time.
func (c *endingCount) words(one, many string, timed bool) string {
	if c.count == 0 {
		return ""
	}
	words := "; " + text.Count(c.count, "other", "others") + " " + text.Plural(c.count, one, many)
	if !timed || c.within < 0 {
		return words
	}
	return words + " within " + text.Seconds(c.seconds())
}

// seconds returns c.within in seconds, rounded up to a positive multiple of 0.1 s.
func (c *endingCount) seconds() float64 {
	const step = 100 * time.Millisecond
	steps := c.within / step
	if c.within%step > 0 || steps == 0 {
		steps++
	}
	return float64(steps) / 10
}

// note adds the counts to the evidence.
func (o *otherEndings) note(evidence map[string]any) {
	last := endingCount{within: -1}
	for _, c := range []struct {
		key string
		endingCount
	}{
		{"others_alike", o.alike}, {"others_ended", o.ended}, {"others_failed", o.failed}, {"others_lost", o.lost},
	} {
		if c.count == 0 {
			continue
		}
		evidence[c.key] = float64(c.count)
		if c.key != "others_lost" {
			last.within = max(last.within, c.within)
		}
	}
	if last.within >= 0 {
		evidence["others_seconds"] = last.seconds()
	}
}
