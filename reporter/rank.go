package reporter

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/intake/aggregate"
)

// A Rank is one of several processes of a launch on a node, each wrapped by a separate perfagent. All
// numbers are of its job alone.
type Rank struct {
	Rank      int      `json:"rank"`                 // in the launch; without a launcher the order of arrival
	LocalRank *int     `json:"local_rank,omitempty"` // among the ranks of the node
	PID       int      `json:"pid"`
	Command   []string `json:"command,omitempty"`

	Start    Time   `json:"start"`
	End      Time   `json:"end,omitzero"` // of the job; time of the newest sample if Incomplete
	ExitCode *int   `json:"exit_code,omitempty"`
	Signal   string `json:"signal,omitempty"`

	// Incomplete is the reason for a missing end: the rank is still running, or its perfagent was killed.
	Incomplete string   `json:"incomplete,omitempty"`
	Verdict    *Verdict `json:"verdict,omitempty"`
	LogTail    *LogTail `json:"log_tail,omitempty"` // the report of a single rank has it in the node

	Job     *Job   `json:"job,omitempty"`
	Cgroup  string `json:"cgroup,omitempty"` // the control group of a job without an account
	Metrics Values `json:"metrics"`          // of the job
	// Envelope has the job's columns, on the time axis of the node's samples, except columns of a control group that
	// the rank shares with other ranks. The report of a single rank omits it, because it equals the node's.
	Envelope Envelope  `json:"envelope,omitempty"`
	Missing  []Missing `json:"missing"`

	// Phases, Operations and Transfers are set if several ranks of the node have them; otherwise they are in the node.
	Phases     []Phase                       `json:"phases,omitempty"`
	Operations *aggregate.Operations         `json:"operations,omitempty"`
	Transfers  map[string]aggregate.Transfer `json:"transfers,omitzero"`
}

// Ranks are the ranks of a node, by rank as decimal text.
type Ranks map[string]*Rank

// withEnvelopes returns copies of the ranks, each with the Envelope that envelope returns for it.
func (list Ranks) withEnvelopes(envelope func(name string, r *Rank) Envelope) Ranks {
	if list == nil {
		return nil
	}
	out := make(Ranks, len(list))
	for name, r := range list {
		out[name] = new(*r)
		out[name].Envelope = envelope(name, r)
	}
	return out
}

// A HostSpan is a span of time in which a rank measured the host.
type HostSpan struct {
	Rank  int  `json:"rank"`
	Start Time `json:"start"`
	End   Time `json:"end"`
}

// newRank returns the rank with the given number from the node of the rank's report.
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

// firstFailed returns the rank that failed first, or nil if none did. A rank without a recorded end may have been ended
// because another rank failed, so it is returned only if no rank with an end failed.
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

// Failed reports whether the rank failed, or its end is unknown.
func (r *Rank) Failed() bool { return r.Incomplete != "" || r.ExitCode != nil && *r.ExitCode != 0 }

// ofJob reports whether a metric, a sample key or a source, as in [Missing].What, concerns the job and not its host.
func ofJob(what string) bool {
	if c, ok := collector.ColumnByKey(what); ok {
		return c.Info().Scope == collector.ScopeJob
	}
	if m, ok := MetricByName(what); ok {
		return m.OfJob()
	}
	switch what {
	case host.SourceJob, host.SourceCgroup, collector.ProcessTable, "gpus.of_job", "exit_code",
		"orphans", "marks", "operations", "log_tail":
		return true
	}
	return false
}

// ofHost reports whether a metric, a sample key or a source concerns the host or its devices. Anything that concerns
// neither the job nor the host concerns perfagent itself.
func ofHost(what string) bool {
	if _, ok := SourceOf(what); ok {
		return !ofJob(what) && what != collector.Timestamp.Key()
	}
	m, ok := MetricByName(what)
	return ok && !m.OfJob()
}

// RankList returns the ranks of the node in order.
func (n *Node) RankList() []*Rank {
	if n == nil {
		return nil
	}
	var out []*Rank
	for _, r := range n.Ranks {
		if r != nil {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *Rank) int { return cmp.Compare(a.Rank, b.Rank) })
	return out
}

// RankValues returns the metrics of the node's ranks as "rank.3.job_cpu_seconds", and their exit codes as
// "rank.3.exit_code".
func (n *Node) RankValues() Values {
	out := make(Values)
	for _, r := range n.RankList() {
		for name, v := range r.Metrics {
			out[fmt.Sprintf("rank.%d.%s", r.Rank, name)] = v
		}
		if r.ExitCode != nil {
			out[fmt.Sprintf("rank.%d.exit_code", r.Rank)] = float64(*r.ExitCode)
		}
	}
	return out
}

// HostName returns the scheduler's name for the node, or else its host name; "" if neither is known.
func (n *Node) HostName() string {
	switch {
	case n == nil:
		return ""
	case n.Identity != nil && n.Identity.NodeName != "":
		return n.Identity.NodeName
	case n.Host != nil:
		return n.Host.Hostname
	}
	return ""
}

// asRank turns n into the recording of the given rank, one of several. It makes that rank the only rank of n, and keeps
// only the host measurements of that rank's perfagent.
func (n *Node) asRank(rec *collector.Recording, run *Run, rank string) {
	number, err := strconv.Atoi(rank)
	if err != nil || number < 0 { // in a damaged journal
		return
	}

	span, ok := hostSpanOf(rec, number)
	switch {
	case ok:
		n.Sampling.HostSpans = []HostSpan{span}
		if span.Start.After(rec.Start.Wall) { // another rank measured the host before
			n.Missing = slices.DeleteFunc(n.Missing, func(m Missing) bool {
				return m.Code == CountedLate && ofHost(m.What)
			})
		}
	case rec.Samples > 0:
		n.dropHost()
	}

	r := newRank(run, n, number)
	if n.Job == nil {
		r.Cgroup = rec.Account.Group
	}
	n.Ranks = map[string]*Rank{strconv.Itoa(number): r}
	for i := range n.Deaths {
		n.Deaths[i].Rank = &r.Rank
	}
}

// hostSpanOf returns the time in which a rank's perfagent measured the host. It starts with the run or, if the first
// sample has no host values, with the first sample that has host values. It ends with the last such sample. ok is false
// if no sample has any.
func hostSpanOf(rec *collector.Recording, rank int) (h HostSpan, ok bool) {
	columns := hostColumns(rec)
	if !slices.ContainsFunc(columns, func(c collector.Column) bool { return rec.Summaries[c].Count() > 0 }) {
		return h, false
	}

	h = HostSpan{Rank: rank, Start: Time{rec.Start.Wall}}
	for i := range rec.Ring.Len() {
		b := rec.Ring.Bucket(i)
		if !slices.ContainsFunc(columns, func(c collector.Column) bool { return b.Stats[c].Count > 0 }) {
			continue
		}

		at := b.Stats[collector.Timestamp]
		inFirst := func(c collector.Column) bool { return !math.IsNaN(b.Values[c]) }
		if !ok && !(i == 0 && slices.ContainsFunc(columns, inFirst)) {
			h.Start = Time{unixTime(at.Min)}
		}
		h.End, ok = Time{unixTime(at.Max)}, true
	}
	return h, ok
}

// hostColumns returns the columns that have values only if the rank's perfagent measures the host. Columns present in
// every reading of the host come first.
func hostColumns(rec *collector.Recording) []collector.Column {
	list := []collector.Column{collector.CPUAvg, collector.MemPercent, collector.NetExtRecv}
	for c := range rec.NumColumns() {
		if c.Info().Scope == collector.ScopeHost && c != collector.Timestamp {
			list = append(list, c)
		}
	}
	return list
}

// dropHost removes all data on the host, and adds the reason to Missing.
func (n *Node) dropHost() {
	maps.DeleteFunc(n.Metrics, func(name string, _ float64) bool { return ofHost(name) })
	maps.DeleteFunc(n.Summaries, func(key string, _ Summary) bool { return ofHost(key) })
	maps.DeleteFunc(n.Envelope, func(key string, _ Band) bool { return ofHost(key) })

	n.Samples = n.Samples.only(func(key string) bool { return !ofHost(key) })
	n.Missing = slices.DeleteFunc(n.Missing, func(m Missing) bool { return ofHost(m.What) })
	n.Missing = append(n.Missing, NewMissing("host", HostByAnother))
}

func (h HostSpan) seconds() float64 { return max(0, h.End.Sub(h.Start.Time).Seconds()) }
