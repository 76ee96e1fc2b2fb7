package diagnosis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/scheduler"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// ending describes how the job of one rank, or of a node without ranks, ended.
type ending struct {
	node string // its index; "" if there is only one node
	host string
	// rank is nil if the job is not one of several. It is always set for a job in a rank table.
	rank          *int
	fromRankTable bool

	end     time.Time // when the job ended, or its newest sample; zero if neither is known
	code    *int
	signal  string
	verdict *reporter.Verdict // never nil

	outcome     outcome   // set by firstFailure
	failureTime time.Time // when the job began to fail; set by firstFailure
}

// endingsOf returns the endings of n's ranks or, if it has none, of its job. It omits jobs without a verdict, which are
// still running.
func endingsOf(name string, n *reporter.Node) []ending {
	if n == nil {
		return nil
	}

	at := ending{node: name, host: n.HostName()}
	if len(n.Ranks) > 0 {
		return at.rankEndings(n)
	}
	if n.Verdict == nil {
		return nil
	}

	at.verdict = n.Verdict
	if id := n.Identity; id != nil && id.WorldSize > 1 {
		at.rank = id.Rank
	}
	if times := n.Samples.Column(collector.Timestamp.Key()); len(times) > 0 && times[len(times)-1] > 0 {
		at.end = time.UnixMilli(int64(1000 * times[len(times)-1]))
	}
	if n.Job != nil {
		at.end, at.code, at.signal = n.Job.End.Time, n.Job.ExitCode, n.Job.Signal
	}
	return []ending{at}
}

// allEndings returns the endings of all jobs of r.
func allEndings(r *reporter.Report) (list []ending) {
	for name, n := range r.Nodes {
		list = append(list, endingsOf(name, n)...)
	}
	return list
}

// rankEndings returns a copy of e for each rank of n that has ended.
func (e ending) rankEndings(n *reporter.Node) []ending {
	var out []ending
	for _, r := range n.RankList() {
		one := e
		one.rank, one.fromRankTable = &r.Rank, true
		one.end, one.code, one.signal, one.verdict = r.End.Time, r.ExitCode, r.Signal, r.Verdict
		if one.verdict == nil {
			one.verdict = fallbackVerdict(r)
		}
		if one.verdict != nil {
			out = append(out, one)
		}
	}
	return out
}

// fallbackVerdict returns a verdict on r, for which none was recorded, or nil if r is still running.
func fallbackVerdict(r *reporter.Rank) *reporter.Verdict {
	v := &reporter.Verdict{Cause: CauseUnknown, Text: "how the command ended is not known", Evidence: map[string]any{}}
	switch {
	case r.ExitCode != nil:
		v.Cause, v.Text = CauseExited, "exited with code "+strconv.Itoa(*r.ExitCode)
		v.Evidence["exit_code"] = float64(*r.ExitCode)
	case r.Incomplete == "":
		return nil
	default:
		v.Text += ": " + text.Printable(r.Incomplete)
	}
	return v
}

// outcome is a kind of ending. The lower the value, the better it explains the end of the run.
type outcome int

const (
	outcomeFailed     outcome = iota // by itself
	outcomeTerminated                // by its launcher
	outcomeUnknown                   // the end is unknown
	outcomeSucceeded
)

// classify derives the outcome from the verdict and the sender of the signal.
func (e *ending) classify() outcome {
	sender, _ := e.verdict.Evidence["sender"].(string)
	switch v := e.verdict; {
	case v.Cause == CauseExited && v.Number("exit_code") == 0:
		return outcomeSucceeded
	case (scheduler.IsLauncher(sender) || scheduler.IsDaemon(sender)) && e.endedByLauncher():
		return outcomeTerminated
	case v.Cause == CauseUnknown:
		return outcomeUnknown
	}
	return outcomeFailed
}

// EndedByLauncher reports whether a launcher ended jobs of r and no job of r failed by itself: the reason is then on
// another node.
func EndedByLauncher(r *reporter.Report) bool {
	first, ok := firstFailure(allEndings(r))
	return ok && first.outcome == outcomeTerminated
}

// endedByLauncher reports whether the signal of a launcher ended the job. A signal at the scheduler's end time does not
// count, because the time limit ended the job. SIGUSR1 and SIGUSR2 do not count either, because they are meant for
// programs that handle them.
func (e *ending) endedByLauncher() bool {
	switch v := e.verdict; v.Cause {
	case CauseSignal, CauseUnknown:
		return true
	case CauseTimeLimit:
		_, known := v.Evidence["limit_time"]
		return !known
	case CauseExited:
		sent, _ := v.Evidence["sent_signal"].(string)
		return sent != "SIGUSR1" && sent != "SIGUSR2"
	}
	return false
}

// failedAt returns when the job began to fail: when the kernel killed one of its processes, when a rule stopped it, or
// otherwise when it ended.
func (e *ending) failedAt() time.Time {
	key := ""
	switch c := e.verdict.Cause; {
	case IsOutOfMemory(c):
		key = "time"
	case c == CauseStopped:
		key = "signal_time"
	}

	words, _ := e.verdict.Evidence[key].(string)
	at, err := time.Parse(time.RFC3339Nano, words)
	if err != nil || at.After(e.end) && !e.end.IsZero() {
		return e.end
	}
	return at
}

// compare orders endings by how well they explain the end of the run: jobs that failed by themselves come before jobs
// that a launcher ended and jobs with an unknown end, and earlier failures before later ones.
func (e *ending) compare(o *ending) int {
	return cmp.Or(
		cmp.Compare(e.outcome, o.outcome),
		compareKnown(e.failureTime, o.failureTime),
		-cmp.Compare(verdictPriority(e.verdict), verdictPriority(o.verdict)),
		reporter.CompareNodes(e.node, o.node),
		cmp.Compare(e.rankNumber(), o.rankNumber()),
	)
}

// compareKnown orders times. Unknown times come last.
func compareKnown(a, b time.Time) int {
	switch {
	case a.IsZero() == b.IsZero():
		return a.Compare(b)
	case a.IsZero():
		return 1
	}
	return -1
}

// rankNumber returns the rank, or -1 if there is none.
func (e *ending) rankNumber() int {
	if e.rank == nil {
		return -1
	}
	return *e.rank
}

// firstFailure returns the ending of the job that failed first, with a verdict that also describes the other endings;
// ok is false if list is empty. Outside rank tables, the verdict on a single job or on jobs that all succeeded is
// unchanged. firstFailure is a pure function, and the order of list makes no difference.
func firstFailure(list []ending) (first ending, ok bool) {
	if len(list) == 0 {
		return ending{}, false
	}

	list = slices.Clone(list)
	for i := range list {
		list[i].outcome, list[i].failureTime = list[i].classify(), list[i].failedAt()
	}
	slices.SortFunc(list, func(a, b ending) int { return a.compare(&b) })

	first = list[0]
	if !first.fromRankTable && (first.outcome == outcomeSucceeded || len(list) == 1) {
		return first, true
	}
	v := *first.verdict
	v.Evidence = maps.Clone(v.Evidence)
	if v.Evidence == nil {
		v.Evidence = make(map[string]any)
	}
	v.Conditions = conditionsOf(list)
	first.verdict = &v

	switch {
	case first.outcome != outcomeSucceeded:
		others := first.countOthers(list[1:])
		first.note(v.Evidence)
		others.note(v.Evidence)
		v.Text = first.sentence() + others.String()
	case len(list) > 1:
		v.Text = fmt.Sprintf("all %d ranks %s", len(list), v.Text)
	}
	return first, true
}

// conditionsOf returns the conditions of the job that failed first, list[0], and of all ranks.
func conditionsOf(list []ending) []string {
	out := []string{}
	for _, c := range Conditions() {
		for i, e := range list {
			if (i == 0 || e.fromRankTable) && slices.Contains(e.verdict.Conditions, c.Name) {
				out = append(out, c.Name)
				break
			}
		}
	}
	return out
}

// note adds the job's rank, node and host to the evidence.
func (e *ending) note(evidence map[string]any) {
	if e.rank != nil {
		evidence["rank"] = float64(*e.rank)
	}
	if index, err := strconv.ParseUint(e.node, 10, 31); err == nil {
		evidence["node"] = float64(index)
	}
	if e.host != "" {
		evidence["host"] = text.Printable(e.host)
	}
}

// sentence returns how the job ended, with its name: "rank 3 on node1 was killed by …".
func (e *ending) sentence() string {
	words := text.Printable(e.verdict.Text)
	if e.rank == nil {
		return "node " + text.Printable(text.Clip(e.node, 40)) + ": " + words
	}

	name := fmt.Sprintf("rank %d%s", *e.rank, e.where())
	head, _, _ := strings.Cut(words, " ")
	switch head {
	case "killed", "ended", "stopped":
		return name + " was " + words
	case "exited", "died":
		return name + " " + words
	}
	return name + ": " + words
}

// where returns the node's name for a sentence: " on node1".
func (e *ending) where() string {
	host, _, _ := strings.Cut(e.host, ".") // the domain is the same for all hosts
	switch {
	case e.host != "":
		return " on " + text.Printable(text.Clip(cmp.Or(host, e.host), 40))
	case e.node != "":
		return " on node " + text.Printable(text.Clip(e.node, 40))
	}
	return ""
}

// otherEndings counts the endings after the first failure.
type otherEndings struct {
	alike, ended, failed, lost endingCount
	signal                     string // that the launcher sent to the ended jobs; "" if there were several
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

// words returns the count as text, with the time span if timed is set.
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
