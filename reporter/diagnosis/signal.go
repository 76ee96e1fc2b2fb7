package diagnosis

import (
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/scheduler"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// lastSamples is how many of the newest kept samples count as shortly before the job's end.
const lastSamples = 5

// signalDelay is how long after the job's end perfagent may notice the signal that ended it: a signal to the whole
// process group reaches perfagent and the job at the same time.
const signalDelay = time.Second

// lastEndSignal returns the newest signal to perfagent that was meant to end the job.
func (q *verdictInput) lastEndSignal() (collector.Signal, bool) {
	return q.newest(func(collector.Signal) bool { return true })
}

// exitSignal returns the newest signal n to perfagent, if the job exited with 128+n.
func (q *verdictInput) exitSignal() (collector.Signal, bool) {
	return q.newest(func(s collector.Signal) bool {
		return s.Number > 0 && q.job.Signal == "" && q.code == 128+s.Number
	})
}

// newest returns the newest signal to perfagent that was meant to end the job and for which fits returns true.
func (q *verdictInput) newest(fits func(collector.Signal) bool) (collector.Signal, bool) {
	for _, s := range slices.Backward(q.exit.Signals) {
		if endsJob(s) && q.precedesEnd(s) && fits(s) {
			return s, true
		}
	}
	return collector.Signal{}, false
}

// precedesEnd reports whether s may have led to the job's end. A signal noticed shortly after the end may have, if the
// job died of that very signal.
func (q *verdictInput) precedesEnd(s collector.Signal) bool {
	end := q.job.End.Time
	return end.IsZero() || !s.At.After(end) || s.Signal == q.job.Signal && s.At.Before(end.Add(signalDelay))
}

// endsJob reports whether s asks a process to end.
func endsJob(s collector.Signal) bool {
	return slices.Contains([]string{"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGABRT",
		"SIGXCPU", "SIGALRM", "SIGUSR1", "SIGUSR2"}, s.Signal)
}

// byTimeout reports whether timeout(1) sent the signal.
func byTimeout(s collector.Signal) bool { return !s.Kernel && s.Process == "timeout" }

// byScheduler reports whether a daemon of a scheduler may have sent the signal: the sender has a daemon's name, or
// cannot be seen.
func byScheduler(s collector.Signal) bool {
	return !s.Kernel && (s.PID <= 0 || scheduler.IsDaemon(s.Process))
}

// senderOf returns the sender of the signal in words.
func senderOf(s collector.Signal) string {
	switch {
	case !s.Kernel && s.PID == 0:
		return "a process outside of this process namespace"
	case !s.Kernel:
		return processText(s.Process, s.PID)
	case s.Signal == "SIGINT":
		return "the terminal (Ctrl-C)"
	case s.Signal == "SIGQUIT":
		return `the terminal (Ctrl-\)`
	case s.Signal == "SIGHUP":
		return "the terminal (hang-up)"
	}
	return "the kernel"
}

// noteSignal adds s, a signal to perfagent, and its sender to the evidence. It returns a text such as "SIGTERM from
// bash (process 12) at 14:03:07 UTC".
func (q *verdictInput) noteSignal(s collector.Signal) string {
	q.evidence["sender"] = senderOf(s)
	if s.Process != "" && !s.Kernel {
		q.evidence["sender"] = text.Printable(s.Process)
	}
	if s.PID > 0 && !s.Kernel {
		q.evidence["sender_pid"] = float64(s.PID)
	}
	q.evidence["sent_signal"] = s.Signal
	q.noteTime("signal_time", s.At)
	return s.Signal + " from " + senderOf(s) + " at " + clockTime(s.At)
}

// timeLimit looks for a signal or an exit code that shows that the job reached a time limit.
func (q *verdictInput) timeLimit() (cause, words string) {
	if words := q.ownTimeout(); words != "" {
		return CauseTimeLimit, words
	}

	i := slices.IndexFunc(q.exit.Signals, q.isTimeLimit)
	if i < 0 {
		return "", ""
	}

	s, killed := q.exit.Signals[i], q.job.Signal == "SIGKILL"
	q.noteTime("limit_time", q.exit.TimeLimit)
	words = "ended at a time limit"
	if q.exit.Scheduler != "" && !byTimeout(s) {
		words += " of " + q.exit.Scheduler
	}

	words += ": " + q.noteSignal(s)
	if killed {
		return CauseTimeLimit, words + ", SIGKILL " + text.Fixed(max(0, q.job.End.Sub(s.At).Seconds()), 1) + " s later"
	}
	return CauseTimeLimit, words + "; the job " + q.endText()
}

// isTimeLimit reports whether s was sent because the job reached a time limit.
func (q *verdictInput) isTimeLimit(s collector.Signal) bool {
	switch {
	case s.Signal != "SIGTERM" || !q.precedesEnd(s):
		return false
	case byTimeout(s): // timeout also relays signals that it receives
		return q.exit.Timeout.IsZero() || !s.At.Before(q.exit.Timeout.Add(-time.Second))
	case !q.exit.TimeLimit.IsZero():
		return !s.At.Before(q.exit.TimeLimit.Add(-limitSlack))
	}
	return q.exit.Scheduler != "" && byScheduler(s) && q.job.Signal == "SIGKILL" && q.job.End.Sub(s.At) <= killGrace
}

// ownTimeout returns the sentence for a timeout(1) command that exited because its time was over: with 124, or with 137
// if it had to send SIGKILL. It returns "" otherwise.
func (q *verdictInput) ownTimeout() string {
	if limit, ok := TimeoutLimit(q.run.Command); q.commandName() != "timeout" || !ok || q.run.WallSeconds < limit {
		return ""
	}
	kills := slices.ContainsFunc(q.run.Command[1:], func(arg string) bool {
		return strings.HasPrefix(arg, "-k") || strings.HasPrefix(arg, "--k") ||
			strings.HasPrefix(arg, "-s") || strings.HasPrefix(arg, "--s")
	})
	switch {
	case q.job.Signal == "" && q.code == 124:
		return "ended at a time limit: timeout exited with code 124, as it does when the time is over"
	case q.code == 137 && kills:
		return "ended at a time limit: timeout ended with SIGKILL, " +
			"as it does when the time is over and SIGTERM did not help"
	}
	return ""
}

// TimeoutLimit returns the duration in command, a command line of timeout(1), in seconds: the first argument that is
// neither an option nor an option's value. ok is false if there is none, or if it is 0, which means no limit.
func TimeoutLimit(command []string) (seconds float64, ok bool) {
	for i := 1; i < len(command); i++ {
		switch arg := command[i]; {
		case arg == "-k" || arg == "-s" || arg == "--kill-after" || arg == "--signal":
			i++
		case strings.HasPrefix(arg, "-"):
		default:
			unit := 1.0
			if n := len(arg); n > 0 {
				if at := strings.IndexByte("smhd", arg[n-1]); at >= 0 {
					unit, arg = []float64{1, 60, 3600, 86400}[at], arg[:n-1]
				}
			}
			v, err := strconv.ParseFloat(arg, 64)
			return v * unit, err == nil && v > 0
		}
	}
	return 0, false
}

// signal explains a job that a signal ended, or that exited with 128+n after signal n had been sent to it.
func (q *verdictInput) signal() (cause, words string) {
	name := q.job.Signal
	verb := "killed by "
	if name == "" {
		s, sent := q.exitSignal()
		if !sent {
			return "", ""
		}
		name, verb = s.Signal, "exited with code "+strconv.Itoa(q.code)+", as programs do after "
		q.evidence["signal"] = name
	}

	fits := func(s collector.Signal) bool { return s.Signal == name && q.precedesEnd(s) }
	if first := slices.IndexFunc(q.exit.Signals, fits); first >= 0 {
		return CauseSignal, verb + q.noteSignal(q.exit.Signals[first])
	}

	words = verb + name
	means := SignalMeaning(name)
	if means != "" {
		means = ": " + means
	}
	switch {
	case name == "SIGPIPE":
		return CauseSignal, words + means
	case isCrash(name):
		return CauseSignal, words + means + q.coreText()
	case name == "SIGKILL":
		words += "; the kernel does not say who sent it" + q.otherKillsText()
		q.noteHeadroom()
		if s, sent := q.lastEndSignal(); sent {
			words += "; " + q.noteSignal(s) + " had come before"
		}
		return CauseSignal, words
	}

	return CauseSignal, words + ", sent to the job directly; sender unknown"
}

// SignalMeaning returns what the named signal means if no process sent it, or "" if that is not known.
func SignalMeaning(name string) string {
	return map[string]string{
		"SIGSEGV": "it accessed memory that is not its own (segmentation fault)",
		"SIGBUS":  "it used memory that is not there, such as a mapped file that is cut off or has no room",
		"SIGABRT": "it aborted itself, or the signal was sent to it",
		"SIGXFSZ": "a file grew beyond the limit (ulimit -f)",
		"SIGXCPU": "its CPU time went beyond the limit (ulimit -t)",
		"SIGPIPE": "the reader of its pipe or socket had gone, or the signal was sent to it",
	}[name]
}

// diskFull looks for a full file system.
func (q *verdictInput) diskFull() (cause, words string) {
	ended := q.job.Signal
	if q.fatal != nil {
		ended = q.fatal.Signal
	}
	if !slices.Contains([]string{"", "SIGBUS", "SIGXFSZ", "SIGABRT"}, ended) || q.endedOtherwise() || q.coreLost() {
		return "", ""
	}
	i := slices.IndexFunc(q.exit.Space, func(r host.FreeSpace) bool {
		return IsFull(r) && !q.fullBefore(r.Path) && !q.filledByCore(r)
	})
	if i < 0 {
		return q.fullInSamples()
	}

	room := q.exit.Space[i]
	q.evidence["path"] = text.Printable(path.Clean(room.Path))
	q.note("available_mb", room.FreeMB)
	if room.Inodes >= 0 {
		q.note("available_inodes", float64(room.Inodes))
	}

	q.noteTime("time", q.job.End.Time)
	what := "no room was left on the file system of "
	if !(room.FreeMB < fullMB) {
		what = "no file could be made any more (no inodes left) on the file system of "
	}
	return CauseDiskFull, q.endText() +
		", and " + what + text.Printable(path.Clean(room.Path)) + " when it ended"
}

// fullInSamples looks for a watched file system that was full in the last samples, because a failing job may remove its
// unfinished files.
func (q *verdictInput) fullInSamples() (cause, words string) {
	lowest := math.NaN()
	for i := max(0, q.rec.Ring.Len()-lastSamples); i < q.rec.Ring.Len(); i++ {
		if v := q.rec.Ring.Bucket(i).Stats[collector.DiskFree].Min; !(v >= lowest) && !math.IsNaN(v) {
			lowest = v
		}
	}

	filled := func(path string) bool { return q.filledByCore(host.FreeSpace{Path: path}) }
	if !(lowest < fullMB) || len(q.exit.DiskPaths) == 0 || slices.ContainsFunc(q.exit.DiskPaths, q.fullBefore) ||
		slices.ContainsFunc(q.exit.DiskPaths, filled) {
		return "", ""
	}

	where := text.Printable(strings.Join(q.exit.DiskPaths, ", "))
	q.evidence["path"] = where
	q.note("available_mb", lowest)
	return CauseDiskFull, q.endText() +
		", and no room was left on the file system of " + where + " in the last samples"
}

// fullBefore reports whether the file system of path was full before the job started.
func (q *verdictInput) fullBefore(path string) bool {
	return slices.ContainsFunc(q.exit.SpaceBefore, func(r host.FreeSpace) bool { return r.Path == path && IsFull(r) })
}

// alreadyFullText returns a remark on a file system that was full before the failed job started, or "" if there is
// none.
func (q *verdictInput) alreadyFullText() string {
	i := slices.IndexFunc(q.exit.Space, func(r host.FreeSpace) bool { return IsFull(r) && q.fullBefore(r.Path) })
	if i < 0 || q.code == 0 || q.endedOtherwise() {
		return ""
	}
	return "; the file system of " + text.Printable(path.Clean(q.exit.Space[i].Path)) +
		" was full before it began, and is"
}

// IsFull reports whether nothing more can be written. It returns false if the free space is unknown (NaN).
func IsFull(r host.FreeSpace) bool { return r.FreeMB < fullMB || r.Inodes == 0 }

// filledByCore reports whether the file system of r would have room without a core file of the job. Then the crash
// filled it, and its lack of room did not cause the crash.
func (q *verdictInput) filledByCore(r host.FreeSpace) bool {
	return slices.ContainsFunc(q.exit.Cores, func(c host.CoreFile) bool {
		return slices.Contains(c.Paths, r.Path) && !(r.FreeMB+c.MB < fullMB)
	})
}

// coreLost reports whether the kernel wrote a core of the job to an unknown place. The core may have filled any file
// system.
func (q *verdictInput) coreLost() bool {
	dumped := q.exit.CoreDumped || slices.ContainsFunc(q.deaths, func(d reporter.Death) bool { return d.CoreDumped })
	return dumped && q.exit.CoresWritten && len(q.exit.Cores) == 0
}

// noteCore adds to the evidence whether the main process dumped core, and the size of the job's largest core file.
func (q *verdictInput) noteCore() {
	if q.exit.CoreDumped {
		q.evidence["core_dumped"] = true
	}
	largest := 0.0
	for _, c := range q.exit.Cores {
		largest = max(largest, c.MB)
	}
	if largest > 0 {
		q.note("core_mb", largest)
	}
}

// coreText returns a remark on a core file that filled a file system, or "" if none did. It adds the core to the
// evidence.
func (q *verdictInput) coreText() string {
	q.noteCore()
	for _, r := range q.exit.Space {
		if !IsFull(r) || q.fullBefore(r.Path) {
			continue
		}
		where := text.Printable(path.Clean(r.Path))
		for _, c := range q.exit.Cores {
			if slices.Contains(c.Paths, r.Path) && q.filledByCore(r) {
				return "; a core file of " + text.SizeText(c.MB) + " filled the file system of " + where
			}
		}
		if q.coreLost() {
			return "; its core was dumped, and no room was left on the file system of " + where + " when it ended"
		}
	}
	return ""
}

// stoppedFirst reports whether a rule stopped the job before the kernel killed any of its processes for lack of memory,
// so nothing else can be the cause. A job that exited with 0 did not fail because of a kill.
func (q *verdictInput) stoppedFirst() bool {
	stop, first := q.account.Stop, q.account.OOMAt
	for _, v := range q.account.Victims {
		if !v.At.IsZero() && (first.IsZero() || v.At.Before(first)) {
			first = v.At
		}
	}

	return stop != nil && (q.code == 0 || first.IsZero() || first.After(stop.At))
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
	switch after := text.Seconds(max(0, q.job.End.Time.Sub(s.At).Seconds())); {
	case s.Killed && q.job.Signal == "SIGKILL":
		words += "; " + s.Signal + " did not end the job, SIGKILL did " + after + " later"
	case s.Killed:
		words += "; the job " + q.endText() + ", and what it left running was killed"
	default:
		words += "; the job " + q.endText()
	}

	return CauseStopped, words + q.notedKillsText("; its control group had ", q.jobKills())
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
	case !ok: // the metric is from a later version
		return text.Number(s.Value)
	case unit == collector.Mebibytes:
		return text.SizeText(s.Value)
	default:
		return text.Number(s.Value) + " " + unit.Symbol()
	}
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
