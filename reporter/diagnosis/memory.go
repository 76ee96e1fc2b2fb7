package diagnosis

import (
	"math"
	"slices"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// outOfMemory looks for an out-of-memory kill of a process of the job. A counter of kills must have
// grown while the job ran, and the counter of the job's own group or the kernel's log must show that
// a process of the job was killed. Kills of others on the same host prove nothing.
func (q *verdictInput) outOfMemory() (cause, words string) {
	victim, named := q.victim()
	inGroup := q.account.OOMKills > 0
	switch {
	case !inGroup && !(q.account.HostOOMKills > 0):
		return "", ""
	case q.job.Signal != "" && q.job.Signal != "SIGKILL" && !crash(q.job.Signal) && !q.endedByRule():
		return "", "" // a signal ended the job, even if it had lost processes before
	case q.job.Signal == "" && q.endedOtherwise():
		return "", ""
	case named && victim.Host:
		return CauseOOMHost, q.hostText(victim) + q.noteHeaviest()
	case named:
		return CauseOOMCgroup, q.groupText(victim) + q.noteHeaviest()
	case inGroup && q.othersKilled():
		return "", ""
	case inGroup && !q.hostFull():
		return CauseOOMCgroup, q.groupText(q.presumedVictim()) + q.noteHeaviest()
	case (inGroup || len(q.account.Victims) == 0) && q.killed() && q.hostMemory() >= hostMemoryFull:
		return CauseOOMHost, q.hostText(q.presumedVictim()) + q.noteHeaviest()
	}

	return "", ""
}

// endedOtherwise reports whether the exit code has another reason: a shell did not find its command,
// a signal had asked the job to end, or its time was over.
func (q *verdictInput) endedOtherwise() bool {
	_, signalled := q.exitSignal()
	return q.code == 126 || q.code == 127 || signalled || q.ownTimeout() != ""
}

// victim returns the process of the job that was killed according to the kernel's log.
func (q *verdictInput) victim() (host.Victim, bool) {
	var best host.Victim
	found := 0
	for _, v := range q.account.Victims {
		if r := q.certainty(v); r > found {
			best, found = v, r
		}
	}
	return best, found > 0
}

// certainty returns how certain it is that a victim was the job's, from 0 (it was not, or that is not
// known) to 3 (it was the job's main process).
func (q *verdictInput) certainty(v host.Victim) int {
	home, killed := q.account.MemoryHome, q.mainKilled()
	if v.Group == "" && !v.Host && q.account.OOMKills > 0 {
		v.Group = home // not in the log, and there was one
	}

	switch {
	case killed && v.PID == q.job.PID:
		return 3
	case v.Foreign:
		return 0
	case killed && q.account.LogPIDs && v.PID > 0:
		return 0 // its main process is not among the victims: something else killed it
	case killed && reporter.InGroup(v.Group, home) && (q.ownGroup() || v.Process == q.commandName()):
		return 2 // in another process namespace, or the whole group was killed at once
	case killed:
		return 0 // another process in the same group
	case reporter.InGroup(v.Group, home) && (q.ownGroup() || q.killed()):
		return 2
	case reporter.InGroup(v.Group, home):
		return 1
	// A job in the root group has no counter of its own. The log has the victims of the root
	// group, which no limit of a group can have hit.
	case v.Host && v.Group == home && q.killed():
		return 1
	}

	return 0
}

// ownGroup reports whether the control group holds only perfagent and the job.
func (q *verdictInput) ownGroup() bool {
	return q.account.Source == host.JobFromGroup || q.account.Source == host.JobFromCreated
}

// othersKilled reports whether the kernel's log names victims in the job's group, or all victims on
// the host. It is called if none of them was the job's.
func (q *verdictInput) othersKilled() bool {
	named := q.account.Victims
	inGroup := func(v host.Victim) bool { return reporter.InGroup(v.Group, q.account.MemoryHome) }
	noGroup := func(v host.Victim) bool { return v.Group == "" }
	if slices.ContainsFunc(named, inGroup) {
		return true
	}
	return slices.ContainsFunc(named, noGroup) && float64(len(named)) >= float64(q.account.HostOOMKills)
}

// presumedVictim returns the victim if no log names one: the main process, if SIGKILL ended it.
func (q *verdictInput) presumedVictim() host.Victim {
	v := host.Victim{At: q.account.OOMAt}
	if q.mainKilled() {
		v.Process, v.PID = q.commandName(), q.job.PID
	}
	return v
}

// hostFull reports, without a log, whether a kill in the group happened because the host was out of
// memory. The kernel counts such a kill in the victim's group, too. A limit that was reached speaks
// against it.
func (q *verdictInput) hostFull() bool {
	if !(q.hostMemory() >= hostMemoryFull) {
		return false
	}
	limit, peak := float64(q.account.Limits.MemoryMB), q.peakMB()
	return math.IsNaN(limit) || peak < reporter.LimitReached*limit
}

// noteKills adds to the evidence the kills in the job's group, and how many of them were caused by the
// limit that the job has from outside.
func (q *verdictInput) noteKills(kills float64) {
	q.note("oom_kills", kills)
	if kills > 0 {
		q.note("limit_kills", reporter.LimitKills(q.account))
	}
}

// hostMemory returns the host's memory in use in the newest sample, in percent.
func (q *verdictInput) hostMemory() float64 { return q.newest(collector.MemPercent) }

// newest returns the maximum of a column in the newest bucket of the ring. That is the newest sample,
// unless the run was so long that a bucket stands for several.
func (q *verdictInput) newest(c collector.Column) float64 {
	n := q.rec.Ring.Len()
	if n == 0 {
		return math.NaN()
	}
	return q.rec.Ring.Bucket(n - 1).Stats[c].Max
}

// peakMB returns the peak memory of the group that has the limit, else the job's own.
func (q *verdictInput) peakMB() float64 {
	for _, v := range []series.Optional{q.account.LimitPeakMB, q.account.PeakMB} {
		if v.Known() {
			return float64(v)
		}
	}
	if q.job != nil && q.job.PeakMemoryMB > 0 {
		return q.job.PeakMemoryMB
	}
	return math.NaN()
}

// pastLimitMB is how far the kernel's peak may exceed a limit, because the kernel allows a few pages.
// A higher peak belongs to another limit.
const pastLimitMB = 1

// groupText fills in the evidence for a group's limit and returns the sentence. The sentence has the
// size of the limit if it was the job's; for groups with a limit of their own only the name is known.
func (q *verdictInput) groupText(v host.Victim) string {
	q.noteKills(math.Max(float64(q.account.OOMKills), 1))
	at, known := reporter.HitLimit(q.account, v)
	switch {
	case known && !at:
		q.evidence["limit_group"] = text.Printable(v.LimitGroup)
		return q.killText(v, " hit the memory limit of the control group "+text.Printable(v.LimitGroup))
	case !known && (reporter.LimitFree(q.account) || q.account.OOMKills > 0 && reporter.LimitKills(q.account) == 0):
		return q.killText(v, " hit the memory limit of a control group within or around its own")
	}

	limit, peak := float64(q.account.Limits.MemoryMB), q.peakMB()
	if then := float64(q.account.FullAtKillMB); then > 0 { // the limit may have changed before or since
		if limit = then; peak > then+pastLimitMB {
			peak = then
		}
	}

	q.note("limit_mb", limit)
	q.note("peak_mb", peak)
	if q.account.Limits.MemoryGroup != "" {
		q.evidence["limit_group"] = text.Printable(q.account.Limits.MemoryGroup)
	}

	what := " hit the memory limit of its control group"
	if limit > 0 {
		what = " hit the memory limit of " + text.SizeText(limit) + " of its control group"
	}

	words := q.killText(v, what)
	if peak > 0 {
		words += "; peak " + text.SizeText(peak)
	}
	return words
}

// hostText does the same for a host that was out of memory.
func (q *verdictInput) hostText(v host.Victim) string {
	q.note("host_oom_kills", float64(q.account.HostOOMKills))
	q.noteKills(float64(q.account.OOMKills))
	used := q.hostMemory()
	q.note("host_memory_pct", used)

	words := q.killText(v, " was killed because the host was out of memory")
	if used > 0 {
		words += "; " + text.Fixed(used, 0) + " % of it was in use in the last sample"
	}
	return words
}

// killText returns who was killed, when, and how the job ended. what follows the victim.
func (q *verdictInput) killText(v host.Victim, what string) string {
	if v.Process != "" {
		q.evidence["process"] = text.Printable(v.Process)
	}
	if v.PID > 0 {
		q.evidence["pid"] = float64(v.PID)
	}

	at := v.At
	if at.IsZero() {
		at = q.account.OOMAt
	}

	q.noteTime("time", at)
	head := "killed by the kernel: "
	if !q.mainKilled() {
		head = q.endText() + " after the kernel killed a process: "
	}

	words := head + processText(v.Process, v.PID) + what
	if !at.IsZero() {
		words += " at " + clockTime(at)
	}
	return words
}

// endText returns how the job's main process ended.
func (q *verdictInput) endText() string {
	if q.job.Signal != "" {
		return "died of " + q.job.Signal
	}
	return "exited with code " + text.Fixed(float64(q.code), 0)
}

// groupKills returns the number of processes that the kernel killed in the job's control group,
// without those known not to be the job's.
func groupKills(a *collector.Account) float64 {
	kills := float64(a.OOMKills)
	for _, v := range a.Victims {
		if v.Foreign && !v.Host && (v.Group == "" || reporter.InGroup(v.Group, a.MemoryHome)) {
			kills--
		}
	}
	return kills
}

// survived returns the kills in a job that succeeded nevertheless.
func (q *verdictInput) survived() string {
	kills := groupKills(q.account)
	if !(kills > 0) {
		return ""
	}
	q.noteKills(kills)
	return ", although its control group had " + text.Count(kills, "out-of-memory kill", "out-of-memory kills")
}

// elsewhere returns the kills that did not end the job: of other processes in a group of the job's
// own, or on the host, if they are not proved to be the job's.
func (q *verdictInput) elsewhere() string {
	if kills := groupKills(q.account); q.ownGroup() && kills > 0 {
		q.noteKills(kills)
		return "; before, its control group had " + text.Count(kills, "out-of-memory kill", "out-of-memory kills") +
			" of other processes"
	}
	if q.killed() && q.account.HostOOMKills > 0 {
		q.note("host_oom_kills", float64(q.account.HostOOMKills))
		kills := text.Count(float64(q.account.HostOOMKills), "out-of-memory kill", "out-of-memory kills")
		return "; this host had " + kills + " during the run, not known to be the job's"
	}
	return ""
}
