package pusher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// A Target says where a person wants reports to go. What it leaves empty is up to the reports and to the environment.
type Target struct {
	URI        string // of the server
	RunID      string
	Experiment string // its name
	DryRun     bool   // the server is only read
}

// A Group is the part of a report that goes to one run.
type Group struct {
	URI  string // of the server as given, perhaps with user info; "" if it is not known
	From string // where the URI comes from

	target  Target
	running bool               // the recording has not ended
	state   reporter.PushState // of the last push; State is "" if there was none
	report  *reporter.Report
	dest    Destination // once there is a plan
}

// Groups splits a report by the destinations of its nodes. running is set if the recording has not ended.
func (w Target) Groups(r *reporter.Report, running bool) []*Group {
	groups := Group{target: w, running: running}.split(r, func(n *reporter.Node) reporter.PushState {
		state := lastPush(n)
		state.Error = ""
		return state
	}, haveOneRun)
	for _, g := range groups {
		g.URI, g.From = w.server(g.state)
	}
	return groups
}

// lastPush returns the state of a node's last push.
func lastPush(n *reporter.Node) reporter.PushState { return cmp.Or(n.Push, &reporter.Push{}).MLflow }

// haveOneRun reports whether nodes with these states have one destination: the same run or, if a run is not known yet,
// the one that will be found.
func haveOneRun(a, b reporter.PushState) bool {
	return a.URI == b.URI && (a.RunID == b.RunID || a.RunID == "" || b.RunID == "") &&
		a.ExperimentName == b.ExperimentName && a.ExperimentID == b.ExperimentID
}

// split returns groups like g with the nodes of a report, one for all nodes with states that belong together.
func (g Group) split(
	r *reporter.Report, stateOf func(*reporter.Node) reporter.PushState, together func(a, b reporter.PushState) bool,
) []*Group {
	var out []*Group
	for _, name := range r.NodeNames() {
		state := stateOf(r.Nodes[name])
		i := slices.IndexFunc(out, func(o *Group) bool { return together(o.state, state) })
		if i < 0 {
			i = len(out)
			part := g
			part.state = state
			part.report = &reporter.Report{Schema: r.Schema, Run: r.Run, Nodes: make(map[string]*reporter.Node)}
			out = append(out, &part)
		}
		out[i].report.Nodes[name] = r.Nodes[name]
	}
	return out
}

// server returns the server for nodes with this state of their last push, and where its URI comes from. A tracking URI
// of the shell that is no server, such as a directory, is for other programs: the server that the report records goes
// before it.
func (w Target) server(state reporter.PushState) (uri, from string) {
	shell := os.Getenv("MLFLOW_TRACKING_URI")
	remembered := state.URI != "" && state.State != reporter.PushOff // else it is a server that we cannot push to
	switch {
	case w.URI != "":
		return w.URI, "--mlflow"
	case !remembered || shell != "" && mlflow.CheckURI(shell) == nil:
		return shell, "MLFLOW_TRACKING_URI"
	}
	return state.URI, "recorded in the report"
}

// isOtherServer reports whether the group goes to another server than the report records.
func (g *Group) isOtherServer() bool { return g.state.URI != mlflow.PublicURI(g.URI) }

// destination returns where a group goes, from the wish, the report and the environment.
func (g *Group) destination() Destination {
	d := Destination{
		RunID: g.state.RunID, Given: g.state.Given, Invocation: g.state.Invocation,
		ExperimentName: g.state.ExperimentName, ExperimentID: g.state.ExperimentID,
		OtherServer: g.isOtherServer(), NoCreate: g.target.DryRun,
	}
	if d.RunID == "" && g.state.URI == "" {
		d.RunID = os.Getenv("MLFLOW_RUN_ID")
		d.Given = d.RunID != ""
	}
	if d.ExperimentName == "" && d.ExperimentID == "" {
		d.ExperimentName, d.ExperimentID = os.Getenv("MLFLOW_EXPERIMENT_NAME"), os.Getenv("MLFLOW_EXPERIMENT_ID")
	}

	if g.target.Experiment != "" {
		d.ExperimentName, d.ExperimentID = g.target.Experiment, ""
	}
	if g.target.RunID != "" {
		d.RunID, d.Given, d.OtherServer = g.target.RunID, true, false
	} else if g.target.Experiment != "" {
		d.RunID, d.Given, d.ExperimentOnly = "", false, true // a run of that experiment
	}
	return d
}

// Split splits a group further if the job of each node made a run of its own.
func (g *Group) Split(ctx context.Context, c *mlflow.Client) ([]*Group, error) {
	var invocations []string
	for _, n := range g.report.Nodes {
		if of := lastPush(n).Invocation; of != "" {
			invocations = append(invocations, of)
		}
	}
	slices.Sort(invocations)
	d := g.destination()
	if invocations = slices.Compact(invocations); len(invocations) < 2 || d.RunID != "" {
		return []*Group{g}, nil
	}

	runs, err := jobRuns(ctx, c, d, invocations)
	if err != nil {
		return nil, fmt.Errorf("find the runs of the nodes: %w", err)
	}
	return g.split(g.report, func(n *reporter.Node) reporter.PushState {
		state := g.state
		if n.Push != nil {
			state.Invocation = n.Push.MLflow.Invocation
		}
		state.RunID = runs[state.Invocation]
		return state
	}, func(a, b reporter.PushState) bool { return a.RunID == b.RunID }), nil
}

// Prepare finds the run of the group's nodes, which are in a file, and what the run lacks. A failure is recorded in the
// file.
func (g *Group) Prepare(ctx context.Context, c *mlflow.Client, f *File, progress func(sent, all int)) (*Plan, error) {
	g.dest = g.destination()
	plan, err := Prepare(ctx, c, g.report, Options{
		Destination: g.dest, Progress: progress, Running: g.running, ResolveDuplicates: true,
		Artifacts: []Artifact{f.artifact(func(runID string) map[string]reporter.PushState {
			return g.done(runID, c, g.dest.Given, nil)
		})},
	})
	return plan, g.recordFailure(f, c, plan, err)
}

// Send sends what the run lacks. A failure is recorded in the file.
func (g *Group) Send(ctx context.Context, p *Plan, f *File) error {
	return g.recordFailure(f, p.client, p, p.Send(ctx))
}

// RecordDone records in the file that the server has everything.
func (g *Group) RecordDone(p *Plan, f *File) error {
	return f.recordPush(g.done(p.Run.ID, p.client, p.opts.Given, p.Notes))
}

// done returns the states of the group's nodes once the server has all of them.
func (g *Group) done(runID string, c *mlflow.Client, given bool, notes []string) map[string]reporter.PushState {
	return g.each(DoneState(reporter.PushState{RunID: runID, Given: given, URI: c.URI()}, notes))
}

// recordFailure records in the file that a push failed with err, which it returns. It changes nothing in a dry run, nor
// where the wish or a variable sent a pending report somewhere else. A push that was done before, to this server or
// another, stays done.
func (g *Group) recordFailure(f *File, c *mlflow.Client, p *Plan, err error) error {
	named := g.target != Target{} || g.isOtherServer()
	if err == nil || g.target.DryRun || named && g.state.State == reporter.PushPending ||
		g.state.State == reporter.PushDone {
		return err
	}

	s := reporter.PushState{
		State: reporter.PushPending, RunID: g.dest.RunID, Given: g.dest.Given, URI: c.URI(), Error: err.Error(),
		ExperimentName: g.dest.ExperimentName, ExperimentID: g.dest.ExperimentID,
	}
	if p != nil && p.Run != nil {
		s.RunID = p.Run.ID
	}
	return errors.Join(err, f.recordPush(g.each(s)))
}

// each returns the state s for every node of the group. Each node keeps its own invocation.
func (g *Group) each(s reporter.PushState) map[string]reporter.PushState {
	out := make(map[string]reporter.PushState)
	for name, n := range g.report.Nodes {
		s.Invocation = lastPush(n).Invocation
		out[name] = s
	}
	return out
}
