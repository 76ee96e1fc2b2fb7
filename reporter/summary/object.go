package summary

import (
	"cmp"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// OverviewSchema is the format of an Overview. A change that breaks its readers gets a higher number.
const OverviewSchema = "perfagent.summary/1"

// The states of a run.
const (
	StateRunning    = "running"
	StateEnded      = "ended"
	StateIncomplete = "incomplete" // perfagent ended without a report
)

// Overview is the machine-readable summary of a run that ls --json, --on-end and Python's Monitor return. Unknown
// values are absent.
type Overview struct {
	Schema      string            `json:"schema"`
	ID          string            `json:"id,omitempty"` // RUN-ID or, for a run of several launches, RUN-ID@K
	RunID       string            `json:"run_id"`
	State       string            `json:"state"`
	Start       reporter.Time     `json:"start,omitzero"`
	End         reporter.Time     `json:"end,omitzero"`
	WallSeconds float64           `json:"wall_seconds,omitzero"`
	ExitCode    *int              `json:"exit_code,omitempty"`
	Signal      string            `json:"signal,omitempty"`
	Cause       string            `json:"cause,omitempty"`
	Verdict     string            `json:"verdict,omitempty"`
	Advice      []string          `json:"advice"`
	Command     []string          `json:"command,omitempty"`
	Tags        map[string]string `json:"tags"`
	Nodes       int               `json:"nodes"`
	Ranks       int               `json:"ranks"` // 0 unless a launcher started several ranks on a node
	FailedNodes []int             `json:"failed_nodes"`
	FailedRanks []int             `json:"failed_ranks"`

	CPU       *Usage `json:"cpu,omitempty"`        // mean
	Memory    *Usage `json:"memory,omitempty"`     // peak, of the fullest node
	GPU       *Usage `json:"gpu,omitempty"`        // mean
	GPUMemory *Usage `json:"gpu_memory,omitempty"` // peak

	// MaxRSSAtMostMB bounds the memory of the largest process of a job that ended before its memory was sampled. Memory
	// is then absent. The number is only a bound, because the kernel also counts perfagent's memory at the fork.
	MaxRSSAtMostMB float64 `json:"max_rss_at_most_mb,omitzero"`

	// Dir, Report and Page are absolute paths: the run's directory, and the report and page of its first failed node,
	// or else of its lowest node.
	Dir    string `json:"dir,omitempty"`
	Report string `json:"report,omitempty"`
	Page   string `json:"page,omitempty"`

	// Push is reporter.PushPending while the push of any node is pending, and otherwise the state of the nodes' pushes.
	Push string `json:"push,omitempty"`
}

// Usage is a Bar as JSON, with the unit in the keys. Percentages have one decimal.
type Usage struct {
	Used    *float64 `json:"used,omitempty"` // CPUs
	Of      *float64 `json:"of,omitempty"`   // CPUs or GPUs
	UsedMB  *float64 `json:"used_mb,omitempty"`
	OfMB    *float64 `json:"of_mb,omitempty"`
	Percent float64  `json:"pct"`
}

// usage converts a bar to a Usage.
func (b Bar) usage() *Usage {
	used, of, percent := text.Round(b.Used, 3), text.Round(b.Of, 3), text.Round(b.Percent, 1)
	switch b.Key {
	case BarCPU:
		return &Usage{Used: &used, Of: &of, Percent: percent}
	case BarGPU:
		return &Usage{Of: &of, Percent: percent}
	}
	return &Usage{UsedMB: &used, OfMB: &of, Percent: percent}
}

// NewOverview returns the overview of a run with its report and page at the given paths; "" = none. The state of a
// report without an end is StateIncomplete, because the report does not show whether the run is still running.
func NewOverview(r *reporter.Report, report, page string) Overview {
	o := Overview{
		Schema: OverviewSchema, RunID: r.Run.ID, State: StateEnded,
		Start: r.Run.Start, End: r.Run.End, WallSeconds: r.Run.WallSeconds,
		ExitCode: r.Run.ExitCode, Signal: r.Run.Signal, Command: r.Run.Command, Tags: r.Run.Tags,
		Nodes: len(r.Nodes), Ranks: rankCount(r), Advice: []string{}, FailedNodes: []int{}, FailedRanks: []int{},
		Push: pushOf(r),
	}
	if o.Tags == nil {
		o.Tags = map[string]string{}
	}
	if r.Run.Incomplete != "" {
		o.State, o.End = StateIncomplete, reporter.Time{}
	}
	c := Conclude(r)
	o.Verdict = c.Cause
	if v := r.Run.Verdict; v != nil {
		o.Cause = v.Cause
	}

	uses := map[string]**Usage{BarCPU: &o.CPU, BarMemory: &o.Memory, BarGPU: &o.GPU, BarGPUMemory: &o.GPUMemory}
	for _, b := range Bars(r) {
		if use := uses[b.Key]; use != nil {
			*use = b.usage()
		}
	}
	for _, n := range r.EachNode() {
		if o.Memory == nil && n.Job != nil && !math.IsInf(n.Job.MaxRSSMB, 0) {
			o.MaxRSSAtMostMB = max(o.MaxRSSAtMostMB, text.Round(n.Job.MaxRSSMB, 3))
		}
	}
	for _, words := range slices.Concat([]string{c.Action, c.Paste}, c.Notes, c.Other) {
		if words != "" {
			o.Advice = append(o.Advice, words)
		}
	}
	for _, name := range FailedNodes(r) {
		if index, err := strconv.Atoi(name); err == nil {
			o.FailedNodes = append(o.FailedNodes, index)
		}
	}
	for _, row := range rankRows(r) {
		if row.Failed {
			o.FailedRanks = append(o.FailedRanks, row.Rank)
		}
	}
	o.Report, o.Page = absolute(report), absolute(page)
	if o.Report != "" {
		o.Dir = filepath.Dir(o.Report)
	}

	return o
}

// rankCount returns the number of ranks of a run; 0 if no node has a rank table.
func rankCount(r *reporter.Report) int {
	ranks, several := len(r.Nodes), false
	for _, n := range r.EachNode() {
		if len(n.Ranks) > 0 {
			ranks, several = ranks+len(n.Ranks)-1, true
		}
	}
	if !several {
		return 0
	}
	return ranks
}

// HasFailed reports whether a run failed: an exit code other than 0, a signal, or a failed node.
func HasFailed(r *reporter.Report) bool {
	if r.Run.Signal != "" || r.Run.ExitCode != nil && *r.Run.ExitCode != 0 {
		return true
	}
	return slices.ContainsFunc(slices.Collect(maps.Values(r.Nodes)), nodeFailed)
}

// shortRun is the time in seconds below which a run that did not fail gets no page, unless a page is requested.
const shortRun = 2

// WorthPage reports whether a run gets a page even if none is requested.
func WorthPage(r *reporter.Report) bool { return r.Run.WallSeconds >= shortRun || HasFailed(r) }

// FailedNodes returns the names of the failed nodes. A node that merely lacks an end does not count as failed.
func FailedNodes(r *reporter.Report) []string {
	var out []string
	for name, n := range r.EachNode() {
		if nodeFailed(n) && !(r.Run.Incomplete != "" && n.Verdict != nil && knowsNothing(n.Verdict)) {
			out = append(out, name)
		}
	}

	return out
}

// nodeFailed reports whether the job of n failed: it did not end with exit code 0, or the kernel killed one of its
// processes, even if the job then succeeded. An unknown end of an attached job is not a failure: often only its parent
// gets the exit code.
func nodeFailed(n *reporter.Node) bool {
	if n == nil {
		return false
	}
	j, v := n.Job, n.Verdict
	switch {
	case j != nil && j.ExitCode != nil && *j.ExitCode != 0, v.Number("oom_kills") > 0:
		return true
	case v == nil, j != nil && j.Attached && v.Cause == diagnosis.CauseUnknown:
		return false
	}
	return v.Cause != diagnosis.CauseExited || v.Number("exit_code") != 0
}

// knowsNothing reports whether v contains no information except that the end is unknown.
func knowsNothing(v *reporter.Verdict) bool {
	known := func(key string) bool {
		return !slices.Contains([]string{"rank", "node", "host", "others_alike", "others_lost"}, key)
	}
	return v.Cause == diagnosis.CauseUnknown && len(v.Conditions) == 0 &&
		!slices.ContainsFunc(slices.Collect(maps.Keys(v.Evidence)), known)
}

// pushOf returns the state of the nodes' pushes, to MLflow and into stores: pending while any push is pending, off if
// no report was sent.
func pushOf(r *reporter.Report) string {
	for _, state := range []string{reporter.PushPending, reporter.PushDone, reporter.PushOff} {
		for _, n := range r.EachNode() {
			if p := n.Push; p != nil && (p.MLflow.State == state || p.Store != nil && p.Store.State == state) {
				return state
			}
		}
	}
	return ""
}

// absolute returns the absolute form of path; "" stays "".
func absolute(path string) string {
	if path == "" {
		return ""
	}
	whole, _ := filepath.Abs(path) // "" if the working directory is gone
	return cmp.Or(whole, path)
}
