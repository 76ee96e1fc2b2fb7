package diagnosis

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// outOfMemory looks for an out-of-memory kill of a process of the job. A counter of kills must have grown while the job
// ran, and the victim must be known to be the job's: from the kernel's log and the process's parents, or because the
// group holds nothing else. Kills of other processes on the same host or in the same group prove nothing, unless
// SIGKILL ended the main process just when the kernel had killed a process of the group, and no log names the victim.
func (q *verdictInput) outOfMemory() (cause, words string) {
	switch {
	case !(q.account.OOMKills > 0) && !(q.account.HostOOMKills > 0):
		return "", ""
	case q.job.Signal != "" && q.job.Signal != "SIGKILL" && !isCrash(q.job.Signal) && !q.endedByRule():
		return "", "" // a signal ended the job, even if processes had been killed before
	case q.job.Signal == "" && q.endedOtherwise():
		return "", ""
	}

	v, known := q.victim()
	if !known {
		v, known = q.presumedVictim()
	}
	switch cause = q.killCause(v); {
	case known:
		words = q.killedFor(cause, v)
	case q.mainKilled() && q.account.OOMKills > 0 && !q.alone() && !q.othersKilled() && q.killedAtEnd():
		cause, words = CauseOOM, q.sharedText()
	default:
		return "", ""
	}

	q.job.MemoryAtKill = q.memoryAtKill()
	words += q.noteHeaviest()
	if s := q.account.Stop; s != nil {
		words += "; then the rule " + ruleText(s) + " stopped the job at " + clockTime(s.At)
	}
	return cause, words
}

// endedOtherwise reports whether the exit code has a reason other than a kill: a shell did not find its command, a
// signal had asked the job to end, or the time limit was reached.
func (q *verdictInput) endedOtherwise() bool {
	_, signalled := q.exitSignal()
	return q.code == 126 || q.code == 127 || signalled || q.ownTimeout() != ""
}

// killCause returns which limit or shortage caused the kill of v.
func (q *verdictInput) killCause(v host.Victim) string {
	logged := map[string]string{
		host.OOMOfGroup: CauseOOMCgroup, host.OOMOfHost: CauseOOMHost,
		host.OOMOfCPUSet: CauseOOMCPUSet, host.OOMOfPolicy: CauseOOMNUMA,
	}[v.Constraint]
	switch k := q.account.LastOOMKill; {
	case logged != "":
		return logged
	case !v.Host && (k != nil && k.InGroup || reporter.LimitProved(q.account, q.job)):
		return CauseOOMCgroup
	case q.hostWasShort():
		return CauseOOMHost
	}
	return CauseOOM
}

// killedFor adds the kill of v to the evidence and returns the sentence about it.
func (q *verdictInput) killedFor(cause string, v host.Victim) string {
	switch cause {
	case CauseOOMCgroup:
		return q.groupText(v)
	case CauseOOMHost:
		return q.hostText(v)
	case CauseOOMCPUSet:
		return q.nodesText(v, "its cpuset allows")
	case CauseOOMNUMA:
		return q.nodesText(v, "its memory policy allows")
	}
	q.noteKills(float64(q.account.OOMKills))
	return q.killText(v, " ran out of memory") + unknownLimitSuffix
}

// unknownLimitSuffix ends the sentence on a kill without a proven reason.
const unknownLimitSuffix = "; it was a limit of its control group, or of the host: which is not known"

// sharedText is killedFor for a kill in a group that the job shares with other processes.
func (q *verdictInput) sharedText() string {
	q.noteKills(float64(q.account.OOMKills))
	q.noteTime("time", q.account.LastOOMKill.At)
	return "killed by SIGKILL when the kernel had killed a process of its control group, which holds others, too, " +
		"for lack of memory" + unknownLimitSuffix
}

// nodesText is killedFor for NUMA nodes that were out of memory.
func (q *verdictInput) nodesText(v host.Victim, which string) string {
	q.noteKills(float64(q.account.OOMKills))
	nodes, were := "the NUMA nodes", "were"
	if v.Nodes != "" {
		q.evidence["nodes"] = text.Printable(v.Nodes)
		nodes = "NUMA nodes " + text.Printable(v.Nodes)
		if !strings.ContainsAny(v.Nodes, "-,") {
			nodes, were = "NUMA node "+text.Printable(v.Nodes), "was"
		}
	}
	return q.killText(v, " was killed because "+nodes+", all that "+which+", "+were+" out of memory")
}

// noteKills adds to the evidence the number of kills in the job's group, and how many of them were at the limit imposed
// on the job.
func (q *verdictInput) noteKills(kills float64) {
	q.note("oom_kills", kills)
	if kills > 0 {
		q.note("limit_kills", reporter.LimitKills(q.account, q.job))
	}
}

// pastLimitMB is how far, in MiB, the peak counted by the kernel may exceed the limit, because the kernel allows a few
// more pages. A higher peak was reached under a different limit.
const pastLimitMB = 1

// groupText is killedFor for the limit of a group. For the job's own limit, the sentence states the size. For any other
// group, only the name is known.
func (q *verdictInput) groupText(v host.Victim) string {
	q.noteKills(math.Max(float64(q.account.OOMKills), 1))
	at, known := reporter.HitLimit(q.account, v)
	switch {
	case known && !at:
		q.noteGroup(v.LimitGroup)
		return q.killText(v, " hit the memory limit of the control group "+text.Printable(v.LimitGroup))
	case !known && !reporter.LimitProved(q.account, q.job):
		return q.killText(v, " hit the memory limit of a control group within or around its own")
	}

	limit := float64(q.account.Limits.MemoryMB)
	// Prefer the peak of the group with the limit to the peak of the job.
	peak := firstKnown(float64(q.account.LimitPeakMB), float64(q.account.PeakMB), positiveOrNaN(q.job.PeakMemoryMB))
	if atKill := float64(q.account.FullAtKillMB); atKill > 0 { // the limit may have changed before or since
		if limit = atKill; peak > atKill+pastLimitMB {
			peak = atKill
		}
	}

	q.note("limit_mb", limit)
	q.note("peak_mb", peak)
	q.noteGroup(q.account.Limits.MemoryGroup)
	what := " hit the memory limit of its control group"
	if limit > 0 {
		what = " hit the memory limit of " + text.SizeText(limit) + " of its control group"
	}

	words := q.killText(v, what)
	q.noteGrowth(limit)
	if peak > 0 && math.Abs(peak-limit) > pastLimitMB { // otherwise the limit is also the peak
		words += "; peak " + text.SizeText(peak)
	}
	q.setPeak(limit)
	return words
}

// noteGrowth adds to the evidence how fast memory grew until the kill, if the growth shows that the need is unknown.
func (q *verdictInput) noteGrowth(limit float64) {
	at, _ := time.Parse(time.RFC3339Nano, fmt.Sprint(q.evidence["time"]))
	q.note("mb_per_second", memoryGrowth(q.node, at, limit))
}

// setPeak sets the job's peak memory to limit (MiB), because a job that was alone in its group and reached the limit
// had that peak, even if no sample shows it. In a shared group it only lowers a peak above the limit. A peak that
// includes swapped memory, or was reached under another limit, is kept.
func (q *verdictInput) setPeak(limit float64) {
	e := ruleInput{Node: q.node}
	if !(limit > 0) || e.peakJobSwap() > 0 || q.account.Limits.MemoryRange != nil {
		return
	}
	if !q.alone() && !(q.job.PeakMemoryMB > limit) { // others may have filled the group
		return
	}
	q.job.PeakMemoryMB = limit
	if _, known := q.node.Metrics[reporter.MetricJobMemoryPeak]; known {
		q.node.Metrics[reporter.MetricJobMemoryPeak] = limit
	}
}

// hostText is killedFor for a host that was out of memory.
func (q *verdictInput) hostText(v host.Victim) string {
	q.note("host_oom_kills", float64(q.account.HostOOMKills))
	q.noteKills(float64(q.account.OOMKills))
	words := q.killText(v, " was killed because the host was out of memory")
	k := q.account.LastOOMKill
	if k == nil || !k.AvailablePct.Known() {
		return words
	}
	q.note("available_mb", float64(k.AvailableMB))
	q.note("host_memory_pct", 100-float64(k.AvailablePct))
	return words + "; " + text.Fixed(100-float64(k.AvailablePct), 0) + " % of it was in use in the sample before"
}

// noteGroup adds the group with the limit to the evidence, if it is known.
func (q *verdictInput) noteGroup(name string) {
	if name != "" {
		q.evidence["group"], q.evidence["limit_group"] = text.Printable(name), text.Printable(name)
	}
}

// killText adds the victim to the evidence and returns the text on the victim, the time, and how the job ended. what is
// the text after the victim's name.
func (q *verdictInput) killText(v host.Victim, what string) string {
	if v.Process != "" {
		q.evidence["process"] = text.Printable(v.Process)
	}
	if v.PID > 0 {
		q.evidence["pid"] = float64(v.PID)
	}
	if command := q.commandOf(v); command != "" {
		q.evidence["command"] = text.Printable(command)
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

// jobKills returns how many killed processes in the job's control group are known to have belonged to the job.
func (q *verdictInput) jobKills() float64 {
	if q.alone() {
		return reporter.GroupKills(q.account)
	}
	kills := 0.0
	for _, v := range q.account.Victims {
		if q.isJobProcess(v) && q.inGroup(v) {
			kills++
		}
	}
	return kills
}

// survivedKillsText describes the kills in a job that succeeded nevertheless, or returns "" if there were none.
func (q *verdictInput) survivedKillsText() string {
	words := q.notedKillsText(", although its control group had ", q.jobKills())
	if words == "" {
		return ""
	}
	q.noteTime("time", q.account.OOMAt)
	if limit := float64(q.account.Limits.MemoryMB); reporter.LimitKills(q.account, q.job) > 0 {
		q.noteGrowth(limit)
		q.setPeak(limit)
	}
	return words
}

// otherKillsText describes the kills that did not end the job: of other processes in the job's own group, in a shared
// group, or on the host.
func (q *verdictInput) otherKillsText() string {
	all, onHost := float64(q.account.OOMKills), float64(q.account.HostOOMKills)
	switch kills := reporter.GroupKills(q.account); {
	case q.alone() && kills > 0:
		return q.notedKillsText("; before, its control group had ", kills) + " of other processes"
	case all > 0 && kills == 0:
		return "; its control group had " + killsText(all) + ", not of the job's processes"
	case all > 0:
		return "; its control group had " + killsText(all) + ", not known to be the job's"
	case (q.mainKilled() || q.job.Signal == "" && q.code == 128+9) && onHost > 0: // or a command of a shell was killed
		q.note("host_oom_kills", onHost)
		return "; this host had " + killsText(onHost) + " during the run, not known to be the job's"
	}
	return ""
}

// programOf returns the name of the program that p ran.
func programOf(p reporter.Process) string {
	words := strings.Fields(strings.Trim(p.Command, "[]"))
	if len(words) == 0 {
		return "a process"
	}
	return text.Clip(text.Printable(path.Base(words[0])), 40)
}

// noteHeaviest adds the process with the highest peak memory to the evidence of an out-of-memory kill, and returns a
// text about it: "; the heaviest is python3 (14448) with 1.7 GiB". It returns "" if none is known.
func (q *verdictInput) noteHeaviest() string {
	p, ok := q.node.LargestProcess()
	if !ok {
		return ""
	}
	q.evidence["heaviest"] = programOf(p)
	q.note("heaviest_pid", float64(p.PID))
	q.note("heaviest_mb", p.PeakMemoryMB)
	return fmt.Sprintf("; the heaviest is %s (%d) with %s", programOf(p), p.PID, text.SizeText(p.PeakMemoryMB))
}

// victim returns the victim in the kernel's log that most certainly belonged to the job.
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

// certainty returns how certain it is that v belonged to the job, from 0 (unknown, or it did not) to 3 (it was the
// job's main process).
func (q *verdictInput) certainty(v host.Victim) int {
	inGroup, killed := q.inGroup(v), q.mainKilled()
	switch {
	case killed && v.PID == q.job.PID:
		return 3
	case v.Foreign:
		return 0
	case killed && q.account.SamePIDNamespace && v.PID > 0:
		return 0 // PIDs can be compared and differ: v was not the main process, which was killed
	case killed && inGroup && (q.alone() || v.Process == q.commandName()):
		return 2 // in another process namespace, or the whole group was killed together
	case killed:
		return 0 // another process in the same group
	case q.isJobProcess(v):
		return 2
	case inGroup && q.alone():
		return 1
	}
	return 0
}

// isJobProcess reports whether v belonged to the job, judged by its parents.
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
// only if none of the victims belonged to the job.
func (q *verdictInput) othersKilled() bool {
	named := q.account.Victims
	noGroup := func(v host.Victim) bool { return v.Group == "" }
	if slices.ContainsFunc(named, func(v host.Victim) bool { return reporter.InGroup(v.Group, q.account.MemoryPath) }) {
		return true
	}
	return slices.ContainsFunc(named, noGroup) && float64(len(named)) >= float64(q.account.HostOOMKills)
}

// presumedVictim returns the victim if no log names one: the main process, if SIGKILL ended it at the time of the kill.
// The result is false if the victim is not known to have belonged to the job.
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

// killedAtEnd reports whether the newest kill was counted no earlier than a second before the job ended.
func (q *verdictInput) killedAtEnd() bool {
	k := q.account.LastOOMKill
	return k != nil && !k.At.Before(q.job.End.Time.Add(-time.Second))
}

// hostWasShort reports whether the host had next to no memory before the newest kill.
func (q *verdictInput) hostWasShort() bool {
	k := q.account.LastOOMKill
	return k != nil && k.AvailablePct < hostShortPct
}

// commandOf returns the command of a killed process as sampled, or otherwise the kernel's name for it.
func (q *verdictInput) commandOf(v host.Victim) string {
	if v.PID > 0 && v.PID == q.job.PID {
		return text.Clip(strings.Join(q.run.Command, " "), maxCommand)
	}
	samePIDs := v.InJob || q.account.SamePIDNamespace // otherwise the PID is from another namespace
	for _, p := range q.node.Processes {
		if samePIDs && p.PID == v.PID {
			return text.Clip(p.Command, maxCommand)
		}
	}
	return v.Process
}

// memoryAtKill returns the parts of the job's memory before the newest kill, with the largest processes at the kill. It
// returns nil if the parts are unknown.
func (q *verdictInput) memoryAtKill() *reporter.MemoryParts {
	k := q.account.LastOOMKill
	if k == nil {
		return nil
	}
	parts := reporter.KnownParts(k.Memory, q.account.Source)
	if parts != nil {
		for _, t := range q.account.Largest {
			t.Command = text.Printable(q.commandOf(host.Victim{PID: t.PID, Process: t.Command, InJob: true}))
			t.RSSMB = text.Round(t.RSSMB, 3)
			parts.Largest = append(parts.Largest, t)
		}
	}
	return parts
}

// maxCommand is the maximum length of a command in the evidence.
const maxCommand = 200
