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

// outOfMemory looks for a kill of the job's by the kernel. What counts is that a counter
// of kills grew while the job ran, and that a process of the job was hit: its own group's
// counter tells that, or the kernel's log. Kills of others on the same host prove nothing.
func (q *verdictInput) outOfMemory() (cause, words string) {
	victim, named := q.victim()
	inGroup := q.account.OOMKills > 0
	switch {
	case !inGroup && !(q.account.HostOOMKills > 0):
		return "", ""
	case q.job.Signal != "" && q.job.Signal != "SIGKILL" && !crash(q.job.Signal):
		return "", "" // somebody ended it, whatever it had lost before
	case q.job.Signal == "" && q.endedOtherwise():
		return "", ""
	case named && victim.Host:
		return CauseOOMHost, q.hostText(victim)
	case named:
		return CauseOOMCgroup, q.groupText(victim)
	case inGroup && q.othersHit():
		return "", ""
	case inGroup && !q.hostFull():
		return CauseOOMCgroup, q.groupText(q.likely())
	case (inGroup || len(q.account.Victims) == 0) && q.killed() && q.hostMemory() >= hostMemoryFull:
		return CauseOOMHost, q.hostText(q.likely())
	}

	return "", ""
}

// endedOtherwise tells of an exit code that says itself why: a shell did not find its
// command, somebody had told the job to end, the time was over.
func (q *verdictInput) endedOtherwise() bool {
	_, told := q.toldToEnd()
	return q.code == 126 || q.code == 127 || told || q.ownTimeout() != ""
}

// victim is the process of the job that the kernel's log says to have been killed.
func (q *verdictInput) victim() (host.Victim, bool) {
	var best host.Victim
	found := 0
	for _, v := range q.account.Victims {
		if r := q.relation(v); r > found {
			best, found = v, r
		}
	}
	return best, found > 0
}

// relation tells how sure it is that a victim was the job's: 0 = it was not, or that is
// not known; 3 = it was its main process.
func (q *verdictInput) relation(v host.Victim) int {
	home, killed := q.account.MemoryHome, q.job.Signal == "SIGKILL"
	if v.Group == "" && !v.Host && q.account.OOMKills > 0 {
		v.Group = home // it is not told, and there was one
	}

	switch {
	case killed && v.PID == q.job.PID:
		return 3
	case v.Foreign:
		return 0
	case killed && q.account.LogPIDs && v.PID > 0:
		return 0 // its main process is not among the victims: somebody else killed it
	case killed && reporter.InGroup(v.Group, home) && (q.ownGroup() || v.Process == q.commandName()):
		return 2 // in another process namespace, or all of the group was killed at once
	case killed:
		return 0 // somebody else in the same group
	case reporter.InGroup(v.Group, home) && (q.ownGroup() || q.killed()):
		return 2
	case reporter.InGroup(v.Group, home):
		return 1
	// Where the job is in the root group there is no counter of its own. The log has
	// the victims of the root group; a group's limit cannot have hit those.
	case v.Host && v.Group == home && q.killed():
		return 1
	}

	return 0
}

// ownGroup tells whether the control group holds nobody but us and the job.
func (q *verdictInput) ownGroup() bool {
	return q.account.Source == host.JobFromGroup || q.account.Source == host.JobFromCreated
}

// othersHit tells that the kernel's log names victims of the job's group, none of which
// was the job's; or that it names all victims of the host.
func (q *verdictInput) othersHit() bool {
	named := q.account.Victims
	inGroup := func(v host.Victim) bool { return reporter.InGroup(v.Group, q.account.MemoryHome) }
	noGroup := func(v host.Victim) bool { return v.Group == "" }
	if slices.ContainsFunc(named, inGroup) {
		return true
	}
	return slices.ContainsFunc(named, noGroup) && float64(len(named)) >= float64(q.account.HostOOMKills)
}

// likely is the victim where no log names one: the main process, if SIGKILL ended it.
func (q *verdictInput) likely() host.Victim {
	v := host.Victim{At: q.account.OOMAt}
	if q.job.Signal == "SIGKILL" {
		v.Process, v.PID = q.commandName(), q.job.PID
	}
	return v
}

// hostFull tells, where no log does, whether a kill in the group was for the host's want of
// memory: the kernel counts such a one in the victim's group too. A limit that was reached
// speaks against it.
func (q *verdictInput) hostFull() bool {
	if !(q.hostMemory() >= hostMemoryFull) {
		return false
	}
	limit, peak := float64(q.account.Limits.MemoryMB), q.peakMB()
	return math.IsNaN(limit) || peak < reporter.LimitReached*limit
}

// noteKills puts kills in the job's group into the evidence, and how many of them were for
// the limit that the job has from outside.
func (q *verdictInput) noteKills(kills float64) {
	q.known("oom_kills", kills)
	if kills > 0 {
		q.known("limit_kills", reporter.LimitKills(q.account))
	}
}

// hostMemory is the host's memory in use, percent, in the newest sample.
func (q *verdictInput) hostMemory() float64 { return q.newest(collector.MemPercent) }

// newest is the greatest value of a column in the newest bucket of the ring: that of the
// newest sample, unless the run was so long that a bucket stands for several.
func (q *verdictInput) newest(c collector.Column) float64 {
	n := q.rec.Ring.Len()
	if n == 0 {
		return math.NaN()
	}
	return q.rec.Ring.Bucket(n - 1).Stats[c].Max
}

// peakMB is the highest memory of the group that has the limit, else of the job's own.
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

// pastLimitMB is how much the kernel's peak may be above a limit: it lets a few pages pass.
// More is of another limit.
const pastLimitMB = 1

// groupText fills in the evidence of a group's limit and says it in a sentence. How high
// the limit was is told where it was the job's: of groups that have one of their own only
// the name is known.
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
	if then := float64(q.account.FullAtKillMB); then > 0 { // it may have been changed since, or before
		if limit = then; peak > then+pastLimitMB {
			peak = then
		}
	}

	q.known("limit_mb", limit)
	q.known("peak_mb", peak)
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

// hostText does so where the host was out of memory.
func (q *verdictInput) hostText(v host.Victim) string {
	q.known("host_oom_kills", float64(q.account.HostOOMKills))
	q.noteKills(float64(q.account.OOMKills))
	used := q.hostMemory()
	q.known("host_memory_pct", used)
	words := q.killText(v, " was killed because the host was out of memory")
	if used > 0 {
		words += "; " + text.Fixed(used, 0) + " % of it was in use in the last sample"
	}
	return words
}

// killText tells who was killed, when, and how the job ended. what follows the victim.
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

	q.moment("time", at)
	head := "killed by the kernel: "
	if q.job.Signal != "SIGKILL" {
		head = q.endText() + " after the kernel killed a process: "
	}

	words := head + processText(v.Process, v.PID) + what
	if !at.IsZero() {
		words += " at " + clockTime(at)
	}
	return words
}

// endText is how the job's main process ended.
func (q *verdictInput) endText() string {
	if q.job.Signal != "" {
		return "died of " + q.job.Signal
	}
	return "exited with code " + text.Fixed(float64(q.code), 0)
}

// groupKills is how many processes the kernel killed in the job's control group, those
// left out that are known not to be the job's.
func groupKills(a *collector.Account) float64 {
	kills := float64(a.OOMKills)
	for _, v := range a.Victims {
		if v.Foreign && !v.Host && (v.Group == "" || reporter.InGroup(v.Group, a.MemoryHome)) {
			kills--
		}
	}
	return kills
}

// survived tells what the kernel killed of a job that succeeded all the same.
func (q *verdictInput) survived() string {
	kills := groupKills(q.account)
	if !(kills > 0) {
		return ""
	}
	q.noteKills(kills)
	return ", although the kernel killed " + text.Count(kills, "process", "processes") +
		" of its control group for want of memory"
}

// elsewhere tells of kills that did not end the job: of others in a group that is the job's
// alone, or on the host, which are not proved to be the job's.
func (q *verdictInput) elsewhere() string {
	if kills := groupKills(q.account); q.ownGroup() && kills > 0 {
		q.noteKills(kills)
		return "; before, the kernel killed " + text.Count(kills, "process", "processes") +
			" of its control group for want of memory, but not this one"
	}
	if q.killed() && q.account.HostOOMKills > 0 {
		q.known("host_oom_kills", float64(q.account.HostOOMKills))
		return "; the kernel killed " + text.Count(float64(q.account.HostOOMKills), "process", "processes") +
			" on this host for want of memory meanwhile, none of which is known to be the job's"
	}
	return ""
}
