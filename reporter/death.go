package reporter

import (
	"cmp"
	"slices"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
)

// Death is the end of a process of the job other than the main process.
type Death struct {
	PID  int `json:"pid"`
	PPID int `json:"ppid,omitempty"` // 0 = unknown
	// Command is as in Process. Without a sample, it is the kernel's name of the process; "" = unknown.
	Command string `json:"command,omitempty"`
	Rank    *int   `json:"rank,omitempty"` // nil if the node has no ranks
	Start   Time   `json:"start,omitzero"` // omitted if unknown
	End     Time   `json:"end"`
	// ExitCode and Signal state how the process ended; both are absent if that is unknown.
	ExitCode   *int   `json:"exit_code,omitempty"`
	Signal     string `json:"signal,omitempty"`
	CoreDumped bool   `json:"core_dumped,omitzero"`
	// How is the source: wait, zombie, connector, pidfd or unknown.
	How string `json:"how"`
	// CPUSeconds and PeakMemoryMB are of the process itself, as last seen; 0 = unknown.
	CPUSeconds   float64 `json:"cpu_seconds,omitzero"`
	PeakMemoryMB float64 `json:"peak_memory_mb,omitzero"`
}

// maxDeaths is the maximum length of Node.Deaths.
const maxDeaths = 100

// NewDeaths returns the deaths of the processes of job, which may be nil, in the order in which the processes began to
// end, and the number of quiet ones. No death is later than end, the run's end.
func NewDeaths(rec *collector.Recording, job *Job, end Time) (list []Death, quiet int64) {
	pid, failed := 0, false
	if job != nil {
		pid, failed = job.PID, job.ExitCode != nil && *job.ExitCode != 0
	}
	found, quiet := rec.Deaths.Of(pid, failed, rec.Start.Boot+end.Sub(rec.Start.Wall))
	for _, d := range found {
		out := Death{
			PID: d.PID, PPID: d.PPID, Command: d.Command, End: Time{wallTime(rec, d.End)}, Signal: d.Signal,
			CoreDumped: d.CoreDumped, How: d.How, CPUSeconds: text.Round(d.CPUSeconds, 6),
			PeakMemoryMB: text.Round(d.PeakMemory/collector.MiB, 3),
		}
		if d.Start > 0 {
			out.Start = Time{wallTime(rec, d.Start)}
		}
		if out.End.After(end.Time) {
			out.End = end
		}
		if d.Signal == "" && d.How != collector.DeathUnknown {
			out.ExitCode = &d.ExitCode
		}
		list = append(list, out)
	}
	return list, quiet
}

// setDeaths sets the deaths of n. Of too many, it keeps those by a signal, then those with the most CPU time, then the
// newest, and counts the others.
func (n *Node) setDeaths(list []Death, more int64) {
	if surplus := len(list) - maxDeaths; surplus > 0 {
		slices.Reverse(list)
		weight := func(d Death) float64 { return d.CPUSeconds + 1e12*float64(min(len(d.Signal), 1)) }
		slices.SortStableFunc(list, func(a, b Death) int { return cmp.Compare(weight(b), weight(a)) })
		list, more = list[:maxDeaths], more+int64(surplus)
		slices.SortFunc(list, func(a, b Death) int { return cmp.Or(a.End.Compare(b.End.Time), cmp.Compare(a.PID, b.PID)) })
	}
	n.Deaths, n.MoreDeaths = list, more
}

// addDeaths adds the deaths of a recording that ended at end.
func (n *Node) addDeaths(rec *collector.Recording, end Time) {
	var deaths []Death
	if deaths, n.QuietExits = NewDeaths(rec, n.Job, end); rec.Deaths != nil {
		n.setDeaths(deaths, rec.Deaths.Dropped)
	}
}

// deathsMissing returns the reason for which deaths may be missing, if there is one.
func deathsMissing(rec *collector.Recording) []Missing {
	if rec.Deaths == nil || rec.Deaths.Missing == "" {
		return nil
	}
	return []Missing{{What: "deaths", Code: NoExitStatus, Why: rec.Deaths.Missing}}
}

// DiedOf returns how the process ended: "was killed by SIGSEGV", "exited with code 3", "vanished".
func (d *Death) DiedOf() string {
	switch {
	case d.Signal != "":
		return "was killed by " + text.Printable(d.Signal)
	case d.ExitCode != nil:
		return "exited with code " + text.Fixed(float64(*d.ExitCode), 0)
	}
	return "vanished"
}
