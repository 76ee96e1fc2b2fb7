package reporter

import (
	"cmp"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/intake/book"
)

// A Rank is one of several processes of a launch on a node, each wrapped by a perfagent of its own. All
// numbers are of its job alone.
type Rank struct {
	Rank      int      `json:"rank"`                 // of all of the launch; without a launcher the order of arrival
	LocalRank *int     `json:"local_rank,omitempty"` // among those of the node
	PID       int      `json:"pid"`
	Command   []string `json:"command,omitempty"`

	Start    Time   `json:"start"`
	End      Time   `json:"end,omitzero"` // of the job, or the newest sample if Incomplete
	ExitCode *int   `json:"exit_code,omitempty"`
	Signal   string `json:"signal,omitempty"`

	// Incomplete says why the end is missing: the rank is still running, or its perfagent was killed.
	Incomplete string   `json:"incomplete,omitempty"`
	Verdict    *Verdict `json:"verdict,omitempty"`

	Job     *Job   `json:"job,omitempty"`
	Cgroup  string `json:"cgroup,omitempty"` // the control group of a job that has no account
	Metrics Values `json:"metrics"`          // those of the job
	// Envelope has the job's columns, on the time axis of the node's samples; not those of a control group that it shares
	// with other ranks. It is left out of the report of a single rank, where it is that of the node.
	Envelope Envelope  `json:"envelope,omitempty"`
	Missing  []Missing `json:"missing"`

	// What the job said of its work, if several ranks of the node did; else the node has it.
	Phases     []Phase                  `json:"phases,omitempty"`
	Operations *book.Operations         `json:"operations,omitempty"`
	Transfers  map[string]book.Transfer `json:"transfers,omitzero"`
}

// Ranks are the ranks of a node, by number as decimal text.
type Ranks map[string]*Rank

// A Holder is a rank that measured the host for a time.
type Holder struct {
	Rank  int  `json:"rank"`
	Start Time `json:"start"`
	End   Time `json:"end"`
}

// newRank returns the rank that the job of a node was, from the node of its own report.
func newRank(run *Run, n *Node, number int) *Rank {
	r := &Rank{
		Rank: number, Command: run.Command, Start: run.Start, End: run.End,
		ExitCode: run.ExitCode, Signal: run.Signal, Incomplete: run.Incomplete, Verdict: n.Verdict,
		Job: n.Job, Metrics: make(Values), Missing: []Missing{},
	}
	if len(n.Command) > 0 {
		r.Command = n.Command
	}
	if n.Identity != nil {
		r.LocalRank = n.Identity.LocalRank
	}
	if j := n.Job; j != nil {
		r.PID, r.Start, r.End, r.ExitCode, r.Signal = j.PID, j.Start, j.End, j.ExitCode, j.Signal
	}

	for name, v := range n.Metrics {
		if ofJob(name) {
			r.Metrics[name] = v
		}
	}
	for _, m := range n.Missing {
		if ofJob(m.What) {
			r.Missing = append(r.Missing, m)
		}
	}
	return r
}

// firstFailed returns the rank that failed first, or nil if none did. One without an end may have been ended because
// another failed: it is taken only if no rank with an end did.
func firstFailed(ranks []*Rank) *Rank {
	open := func(r *Rank) int { return min(1, len(r.Incomplete)) }
	var first *Rank
	for _, r := range ranks {
		if r.Failed() && (first == nil || cmp.Or(cmp.Compare(open(r), open(first)), r.End.Compare(first.End.Time),
			cmp.Compare(r.Rank, first.Rank)) < 0) {
			first = r
		}
	}
	return first
}

// Failed reports whether the rank failed, or its end is not known.
func (r *Rank) Failed() bool { return r.Incomplete != "" || r.ExitCode != nil && *r.ExitCode != 0 }

// ofJob reports whether a metric, a sample key or a source, as a [Missing] names it, is of the job and not of
// its host.
func ofJob(what string) bool {
	if c, ok := collector.ColumnNamed(what); ok {
		return c.Info().Since == collector.Job
	}
	if m, ok := MetricNamed(what); ok {
		return m.OfJob()
	}
	switch what {
	case host.SourceJob, host.SourceCgroup, collector.ProcessTable, "gpus.of_job", "exit_code",
		"orphans", "marks", "operations":
		return true
	}
	return false
}

// ofHost reports whether a metric, a sample key or a source is of the host or of its devices. What is of
// neither the job nor the host is of perfagent itself.
func ofHost(what string) bool {
	if _, ok := SourceOf(what); ok {
		return !ofJob(what) && what != collector.Timestamp.Key()
	}
	m, ok := MetricNamed(what)
	return ok && !m.OfJob()
}
