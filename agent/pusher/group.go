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

// A Target is the destination that the user requested. Empty fields are taken from the report and the environment.
type Target struct {
	URI        string // of the server
	RunID      string
	Experiment string // name of the experiment
	DryRun     bool   // only read from the server
}

// A Group is a part of a report, with the nodes that are pushed to one run.
type Group struct {
	URI  string // of the server as given, perhaps with user info; "" if unknown
	From string // source of the URI, for messages

	target  Target
	running bool               // the recording has not ended
	state   reporter.PushState // of the last push; State is "" if there was none
	report  *reporter.Report
	dest    Destination // set by Prepare
}

// Groups splits r by the destinations of its nodes. running means that the recording has not ended.
func (t Target) Groups(r *reporter.Report, running bool) []*Group {
	groups := Group{target: t, running: running}.split(r, func(n *reporter.Node) reporter.PushState {
		state := lastPush(n)
		state.Error = ""
		return state
	}, haveOneRun)
	for _, g := range groups {
		g.URI, g.From = t.server(g.state)
	}
	return groups
}

// lastPush returns the state of n's last push, or the zero state.
func lastPush(n *reporter.Node) reporter.PushState { return cmp.Or(n.Push, &reporter.Push{}).MLflow }

// haveOneRun reports whether two nodes with the last pushes a and b belong to one run. If one node's run is unknown, a
// search in the same experiment will find it.
func haveOneRun(a, b reporter.PushState) bool {
	return a.URI == b.URI && (a.RunID == b.RunID || a.RunID == "" || b.RunID == "") &&
		a.ExperimentName == b.ExperimentName && a.ExperimentID == b.ExperimentID
}

// split distributes the nodes of r among copies of g. Nodes share a copy if together returns true for their states.
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

// server returns the URI of the server for nodes with the given state of their last push, and the source of the URI.
// The recorded server takes precedence over an MLFLOW_TRACKING_URI that is not a server. A directory, for instance, is
// meant for other programs.
func (t Target) server(state reporter.PushState) (uri, from string) {
	shell := os.Getenv("MLFLOW_TRACKING_URI")
	remembered := state.URI != "" && state.State != reporter.PushOff // off means a server that we cannot push to
	switch {
	case t.URI != "":
		return t.URI, "--mlflow"
	case !remembered || shell != "" && mlflow.CheckURI(shell) == nil:
		return shell, "MLFLOW_TRACKING_URI"
	}
	return state.URI, "recorded in the report"
}

// isOtherServer reports whether the group's server differs from the one in the report.
func (g *Group) isOtherServer() bool { return g.state.URI != mlflow.PublicURI(g.URI) }

// destination combines the target, the last push and the environment, in this order of precedence.
func (g *Group) destination() Destination {
	d := NewDestination(g.state)
	d.OtherServer, d.NoCreate = g.isOtherServer(), g.target.DryRun
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
		d.RunID, d.Given, d.ExperimentOnly = "", false, true // search for a run in that experiment
	}
	return d
}

// Split splits g further if the jobs of its nodes created separate runs.
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

// Prepare finds the run of the group's nodes, which are in f, and the values that the run lacks. It records a failure
// in f.
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

// Send sends the values that the run lacks. It records a failure in f.
func (g *Group) Send(ctx context.Context, p *Plan, f *File) error {
	return g.recordFailure(f, p.client, p, p.Send(ctx))
}

// RecordDone records in f that the server has everything.
func (g *Group) RecordDone(p *Plan, f *File) error {
	return f.recordPush(g.done(p.Run.ID, p.client, p.opts.Given, p.Notes))
}

// done returns the states of the group's nodes after a complete push to run runID.
func (g *Group) done(runID string, c *mlflow.Client, given bool, notes []string) map[string]reporter.PushState {
	return g.each(DoneState(reporter.PushState{RunID: runID, Given: given, URI: c.URI()}, notes))
}

// recordFailure records in f that a push failed with err, and returns err. It records nothing in a dry run, or if a
// push is pending and the failed push went to another destination, which the target or a variable named. A push that is
// done stays done, whatever its server.
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

// each returns state s for every node of the group. Each state keeps the node's invocation.
func (g *Group) each(s reporter.PushState) map[string]reporter.PushState {
	out := make(map[string]reporter.PushState)
	for name, n := range g.report.Nodes {
		s.Invocation = lastPush(n).Invocation
		out[name] = s
	}
	return out
}
