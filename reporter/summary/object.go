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

// OverviewSchema is the format of an Object. A change that breaks its readers gets a higher number.
const OverviewSchema = "perfagent.summary/1"

// The states of a run.
const (
	StateRunning    = "running"
	StateEnded      = "ended"
	StateIncomplete = "incomplete" // its perfagent is gone, and left no report
)

// An Overview is a whole run in a few numbers, for programs: what ls, --on-end and Python's Monitor give.
// What is not known is absent.
type Overview struct {
	Schema      string            `json:"schema"`
	ID          string            `json:"id,omitempty"` // RUN-ID or, of a run of several launches, RUN-ID@K
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
	Ranks       int               `json:"ranks"` // 0 unless a launcher started several on a node
	FailedNodes []int             `json:"failed_nodes"`
	FailedRanks []int             `json:"failed_ranks"`

	CPU       *Usage `json:"cpu,omitempty"`        // the mean
	Memory    *Usage `json:"memory,omitempty"`     // the peak, of the fullest node
	GPU       *Usage `json:"gpu,omitempty"`        // the mean
	GPUMemory *Usage `json:"gpu_memory,omitempty"` // the peak

	// MaxRSSAtMostMB bounds the memory of the largest process, where the job ended before its memory was looked at:
	// there is no Memory then, and the kernel counts what perfagent had at the fork, too.
	MaxRSSAtMostMB float64 `json:"max_rss_at_most_mb,omitzero"`

	// Dir, Report and Page are absolute paths: of the run's directory, and of the report and page of its
	// first failed node, or else of its lowest node.
	Dir    string `json:"dir,omitempty"`
	Report string `json:"report,omitempty"`
	Page   string `json:"page,omitempty"`

	// Push is reporter.PushPending if any node is still to be pushed, else the state of the nodes.
	Push string `json:"push,omitempty"`
}

// A Usage is a Bar as JSON, with the unit in the keys. Percentages have one decimal.
type Usage struct {
	Used    *float64 `json:"used,omitempty"` // CPUs
	Of      *float64 `json:"of,omitempty"`   // CPUs or GPUs
	UsedMB  *float64 `json:"used_mb,omitempty"`
	OfMB    *float64 `json:"of_mb,omitempty"`
	Percent float64  `json:"pct"`
}

// usage returns a bar as a Use.
func (b Bar) usage() *Usage {
	used, of := text.Round(b.Used, 3), text.Round(b.Of, 3)
	u := &Usage{Percent: text.Round(b.Percent, 1)}
	switch b.Key {
	case BarCPU:
		u.Used, u.Of = &used, &of
	case BarGPU:
		u.Of = &of
	default:
		u.UsedMB, u.OfMB = &used, &of
	}

	return u
}

// NewOverview returns the summary of a run whose report and page are at the given paths; "" is none. A
// report without an end is Incomplete: it does not tell whether the run goes on.
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
	if v := r.Run.Verdict; v != nil {
		o.Cause, o.Verdict = v.Cause, v.Text
	}

	uses := map[string]**Usage{BarCPU: &o.CPU, BarMemory: &o.Memory, BarGPU: &o.GPU, BarGPUMemory: &o.GPUMemory}
	for _, b := range Bars(r) {
		*uses[b.Key] = b.usage()
	}
	if o.Memory == nil {
		o.MaxRSSAtMostMB = text.Round(largestAtMost(r), 3)
	}
	for _, a := range Advice(r) {
		o.Advice = append(o.Advice, a.Text)
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

// largestAtMost returns the highest peak, MiB, of the largest process on any node; 0 if none is known.
func largestAtMost(r *reporter.Report) (most float64) {
	for _, n := range r.EachNode() {
		if n.Job != nil && !math.IsInf(n.Job.MaxRSSMB, 0) {
			most = max(most, n.Job.MaxRSSMB)
		}
	}
	return most
}

// rankCount returns how many ranks a run had; 0 if no node had several.
func rankCount(r *reporter.Report) int {
	ranks, several := 0, false
	for _, n := range r.Nodes {
		if n != nil && len(n.Ranks) > 0 {
			ranks, several = ranks+len(n.Ranks), true
		} else {
			ranks++
		}
	}
	if !several {
		return 0
	}
	return ranks
}

// Failed reports whether a run failed: an exit code other than 0, a signal, or a node that failed.
func Failed(r *reporter.Report) bool {
	if r.Run.Signal != "" || r.Run.ExitCode != nil && *r.Run.ExitCode != 0 {
		return true
	}
	return slices.ContainsFunc(slices.Collect(maps.Values(r.Nodes)), nodeFailed)
}

// shortRun is the time in seconds below which a run that did not fail gets no page, unless one is asked for.
const shortRun = 2

// WorthPage reports whether a run gets a page unasked.
func WorthPage(r *reporter.Report) bool { return r.Run.WallSeconds >= shortRun || Failed(r) }

// FailedNodes returns the names of the nodes that failed. A recording without an end proves no failure.
func FailedNodes(r *reporter.Report) []string {
	var out []string
	for name, n := range r.EachNode() {
		if nodeFailed(n) && !(r.Run.Incomplete != "" && n.Verdict != nil && knowsNothing(n.Verdict)) {
			out = append(out, name)
		}
	}

	return out
}

// nodeFailed reports whether the job of a node failed: it did not end with exit code 0, or the kernel killed
// one of its processes, even if the job then ended well. How an attached job ended is often known to its parent
// only, which is no failure.
func nodeFailed(n *reporter.Node) bool {
	if n == nil {
		return false
	}
	if n.Job != nil && n.Job.ExitCode != nil && *n.Job.ExitCode != 0 {
		return true
	}
	v := n.Verdict
	if v == nil || v.Number("oom_kills") > 0 {
		return v != nil
	}
	if n.Job != nil && n.Job.Attached && v.Cause == diagnosis.CauseUnknown {
		return false
	}

	return v.Cause != diagnosis.CauseExited || v.Number("exit_code") != 0
}

// pushOf returns how far the pushes of the nodes are, to MLflow and into stores: pending while any of them is, off if
// none was sent.
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

// absolute returns a path that holds in any directory; "" stays "".
func absolute(path string) string {
	if path == "" {
		return ""
	}
	whole, _ := filepath.Abs(path) // "" if the working directory is gone
	return cmp.Or(whole, path)
}
