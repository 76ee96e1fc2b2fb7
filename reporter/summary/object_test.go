package summary

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/reporter"
)

// ended returns a node with a job that ended with the given exit code, and with the given push state.
func ended(code int, push string) *reporter.Node {
	return &reporter.Node{
		Job:     &reporter.Job{ExitCode: &code},
		Verdict: &reporter.Verdict{Cause: "exited", Text: "exited with code", Evidence: map[string]any{"exit_code": float64(code)}},
		Push:    &reporter.Push{MLflow: reporter.PushState{State: push}},
	}
}

func TestNewOverview_NamesFailedNode(t *testing.T) {
	t.Parallel()
	code := 5
	r := &reporter.Report{
		Run: reporter.Run{ID: "4711", Command: []string{"python", "train.py"}, WallSeconds: 2, ExitCode: &code},
		Nodes: map[string]*reporter.Node{
			"0": ended(0, reporter.PushDone), "1": ended(5, reporter.PushPending), "2": ended(0, reporter.PushDone),
		},
	}

	o := NewOverview(r, "out/4711/node-1.json", "")
	wantValues(t, "state, exit code, nodes, failed nodes, push", StateEnded+" 5 3 [1] pending", o.State, *o.ExitCode,
		o.Nodes, o.FailedNodes, o.Push)
	if !filepath.IsAbs(o.Report) || o.Dir != filepath.Dir(o.Report) || o.Page != "" {
		t.Errorf("report %q, directory %q, page %q; want an absolute path, its directory, no page", o.Report, o.Dir,
			o.Page)
	}
	data, err := json.Marshal(o)
	check.Must(t, err)
	wantNone(t, "JSON", string(data), `"page"`, `"signal"`, `"start"`, `"end"`) // their values are unknown
	check.Contains(t, "JSON", string(data), `"schema":"perfagent.summary/1"`, `"tags":{}`,
		`"advice":["Read its own output: `, `"ranks":0`)
}

func TestNewOverview_RunWithoutEndIsIncomplete(t *testing.T) {
	t.Parallel()
	r := &reporter.Report{
		Run:   reporter.Run{ID: "x", Incomplete: "the run is still going on, or was lost"},
		Nodes: map[string]*reporter.Node{"0": {Verdict: &reporter.Verdict{Cause: "unknown", Text: "not known"}}, "1": nil},
	}
	o := NewOverview(r, "", "")
	wantValues(t, "state, failed nodes, directory", StateIncomplete+" [] ", o.State, o.FailedNodes, o.Dir)
}

// If only a bound on the memory is known, the overview has the bound and no memory.
func TestNewOverview_ReportsMemoryBoundSeparately(t *testing.T) {
	t.Parallel()
	job := func(mb float64) *reporter.Node {
		return &reporter.Node{Host: &reporter.Host{MemoryMB: 8192}, Job: &reporter.Job{MaxRSSMB: mb, MaxRSSAtMost: true}}
	}
	r := &reporter.Report{Run: reporter.Run{Command: []string{"true"}}, Nodes: map[string]*reporter.Node{"0": job(11.5), "1": job(12.25), "2": nil}}
	if o := NewOverview(r, "", ""); o.Memory != nil || o.MaxRSSAtMostMB != 12.25 {
		t.Errorf("memory %+v, bound %v MiB; want no memory, bound 12.25", o.Memory, o.MaxRSSAtMostMB)
	}
	r.Nodes["1"].Job.PeakMemoryMB = 3
	if o := NewOverview(r, "", ""); o.Memory == nil || *o.Memory.UsedMB != 3 || o.MaxRSSAtMostMB != 0 {
		t.Errorf("memory %+v, bound %v MiB; want 3 MiB used, no bound", o.Memory, o.MaxRSSAtMostMB)
	}
}

// A job counts as failed if the kernel killed one of its processes, even if the job itself succeeded.
func TestNewOverview_SurvivedKillCountsAsFailure(t *testing.T) {
	t.Parallel()
	code, n := 0, ended(0, reporter.PushOff)
	n.Verdict.Evidence["oom_kills"] = 1.0
	r := &reporter.Report{Run: reporter.Run{ExitCode: &code}, Nodes: map[string]*reporter.Node{"0": n}}
	wantValues(t, "whether it failed, failed nodes", "true [0]", HasFailed(r), NewOverview(r, "", "").FailedNodes)
}

// An unknown end of an attached job is not a failure, because only its parent gets the exit code. It is a failure if
// the kernel killed a process of the job.
func TestNewOverview_UnknownEndOfAttachedJobIsNotFailure(t *testing.T) {
	t.Parallel()
	n := &reporter.Node{
		Job:     &reporter.Job{Attached: true},
		Verdict: &reporter.Verdict{Cause: "unknown", Text: "how the job ended is not known", Evidence: map[string]any{}},
	}
	r := &reporter.Report{
		Run: reporter.Run{WallSeconds: 2, Verdict: n.Verdict}, Nodes: map[string]*reporter.Node{"0": n, "1": ended(0, reporter.PushOff)},
	}
	wantValues(t, "whether it failed, failed nodes", "false []", HasFailed(r), NewOverview(r, "", "").FailedNodes)
	check.Equal(t, Line(r, "x.html", nil), "perfagent: Ended after 2.0 s; how is not known. Page: x.html\n", "line")
	n.Verdict.Evidence["oom_kills"] = 1.0
	wantValues(t, "whether it failed after a kill, failed nodes", "true [0]", HasFailed(r),
		NewOverview(r, "", "").FailedNodes)
}
