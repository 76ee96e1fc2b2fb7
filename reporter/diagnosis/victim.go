package diagnosis

import (
	"slices"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// victim returns the victim in the kernel's log that is most certainly the job's.
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

// certainty returns how certain it is that v was the job's, from 0 (it was not, or that is unknown) to 3 (it was the
// job's main process).
func (q *verdictInput) certainty(v host.Victim) int {
	inGroup, killed := q.inGroup(v), q.mainKilled()
	switch {
	case killed && v.PID == q.job.PID:
		return 3
	case v.Foreign:
		return 0
	case killed && q.account.SamePIDNamespace && v.PID > 0:
		return 0 // the PID would match: something else killed the main process
	case killed && inGroup && (q.alone() || v.Process == q.commandName()):
		return 2 // in another process namespace, or the whole group was killed at once
	case killed:
		return 0 // another process in the same group
	case q.isJobProcess(v):
		return 2
	case inGroup && q.alone():
		return 1
	}
	return 0
}

// isJobProcess reports whether v was the job's, judged by its parents.
func (q *verdictInput) isJobProcess(v host.Victim) bool {
	return v.InJob || v.PID > 0 && (v.PID == q.job.PID || v.Parent == q.job.PID && q.account.SamePIDNamespace)
}

// inGroup reports whether v was in the job's group or below it. If the log does not name the victim's group, it is
// enough that the job's group counted a kill.
func (q *verdictInput) inGroup(v host.Victim) bool {
	if v.Group == "" {
		return !v.Host && q.account.OOMKills > 0
	}
	return reporter.InGroup(v.Group, q.account.MemoryPath)
}

// alone reports whether the control group holds only the job, perfagent, and the processes that run perfagent.
func (q *verdictInput) alone() bool {
	if n := q.account.Neighbours; n.Known() {
		return n == 0
	}
	return q.account.Source == host.JobFromGroup || q.account.Source == host.JobFromCreated
}

// othersKilled reports whether the kernel's log names victims in the job's group, or all victims on the host. Call it
// only if none of them was the job's.
func (q *verdictInput) othersKilled() bool {
	named := q.account.Victims
	noGroup := func(v host.Victim) bool { return v.Group == "" }
	if slices.ContainsFunc(named, func(v host.Victim) bool { return reporter.InGroup(v.Group, q.account.MemoryPath) }) {
		return true
	}
	return slices.ContainsFunc(named, noGroup) && float64(len(named)) >= float64(q.account.HostOOMKills)
}

// presumedVictim returns the victim if no log names one: the main process, if SIGKILL ended it at the time of the kill.
// The result is false if the victim is not known to be the job's.
func (q *verdictInput) presumedVictim() (host.Victim, bool) {
	v := host.Victim{At: q.account.OOMAt}
	if !q.mainKilled() {
		return v, q.account.OOMKills > 0 && q.alone() && !q.othersKilled()
	}

	v.Process, v.PID = q.commandName(), q.job.PID
	switch {
	case !q.killedAtEnd():
		return v, false
	case q.account.OOMKills.Known():
		return v, q.account.OOMKills > 0 && q.alone() && !q.othersKilled()
	}
	// No group counts kills. A host with so little memory had to kill a process.
	return v, len(q.account.Victims) == 0 && q.hostWasShort()
}

// sharedKill reports whether SIGKILL ended the main process just when the kernel had killed a process of a group that
// the job shares with others, and no log names the victim.
func (q *verdictInput) sharedKill() bool {
	return q.mainKilled() && q.account.OOMKills > 0 && !q.alone() && !q.othersKilled() && q.killedAtEnd()
}

// killedAtEnd reports whether the newest kill was counted no earlier than a second before the job ended.
func (q *verdictInput) killedAtEnd() bool {
	k := q.account.LastOOMKill
	return k != nil && !k.At.Before(q.endTime().Add(-time.Second))
}

// hostWasShort reports whether the host had next to no memory before the newest kill.
func (q *verdictInput) hostWasShort() bool {
	k := q.account.LastOOMKill
	return k != nil && k.AvailablePct < hostShortPct
}

// commandOf returns the command of a killed process as sampled, or else the kernel's name for it.
func (q *verdictInput) commandOf(v host.Victim) string {
	if v.PID > 0 && v.PID == q.job.PID {
		return text.Clip(strings.Join(q.run.Command, " "), maxCommand)
	}
	samePIDs := v.InJob || q.account.SamePIDNamespace // else the PID is of another namespace
	for _, p := range q.node.Processes {
		if samePIDs && p.PID == v.PID {
			return text.Clip(p.Command, maxCommand)
		}
	}
	return v.Process
}

// maxCommand is the maximum length of a command in the evidence.
const maxCommand = 200
