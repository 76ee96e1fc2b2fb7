package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/agent/pusher"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/journal"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

type pushOptions struct {
	mlflow     string
	runID      string
	experiment string
	cpus       int
	dryRun     bool
	streams    streams
}

func newPush(s streams) *cobra.Command {
	o := &pushOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "push [flags] REPORT...",
		Short: "push reports to an MLflow server",
		Long: `Push reports to an MLflow server: the metrics, the time series, tags, and the
report itself as an artifact. A report may be perfagent's own, a merged one, a
journal, or perf.py's JSON. Each goes to the run that it belongs to: the one
recorded in a pending report, else the one that the job created, else a new one.
Only what the server lacks is sent, so a push can be repeated, and it resumes
where it was interrupted.

The server is --mlflow, else the one recorded in the report, else
MLFLOW_TRACKING_URI. All MLFLOW_* variables for authentication, TLS, retries and
workspaces are obeyed.

Exit code: 0 once the server has everything; 1 otherwise.`,
		Example: `  perfagent push perfagent-out/20260131-120000-a1b2c3/node-0.json
  perfagent push --dry-run --mlflow http://mlflow:5000 merged.json
  perfagent push --mlflow-experiment benchmarks --cpus 64 perf.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(args) },
	}

	f := cmd.Flags()
	f.StringVar(&o.mlflow, "mlflow", "", "`URI` of the server")
	f.StringVar(&o.runID, "mlflow-run-id", "", "`ID` of the MLflow run that gets the numbers")
	f.StringVar(&o.experiment, "mlflow-experiment", "", "`NAME` of the experiment for a new run")
	f.IntVar(&o.cpus, "cpus", 0,
		"number of logical CPUs of the node; needed for perf.py's JSON, which does not record it")
	f.BoolVar(&o.dryRun, "dry-run", false, "print what would be done; only read from the server")

	return cmd
}

func (o *pushOptions) run(paths []string) error {
	if o.cpus < 0 {
		return fmt.Errorf("--cpus: %d is negative", o.cpus)
	}

	if o.mlflow != "" {
		if err := mlflow.CheckURI(o.mlflow); err != nil {
			return fmt.Errorf("--mlflow: %w", err)
		}
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	failed := 0
	for _, path := range paths {
		if err := o.pushFile(ctx, path); err != nil {
			fmt.Fprintf(o.streams.err, "perfagent: push %s: %s\n", text.Printable(path), text.Printable(err.Error()))
			failed++
		}
		if ctx.Err() != nil {
			break
		}
	}

	switch {
	case ctx.Err() != nil:
		return errors.New("push: interrupted: the same command goes on from here")
	case failed > 0:
		return exitError{code: exitFailure}
	}

	return nil
}

// pushFile pushes what one file holds: all nodes that go to the same run at once.
func (o *pushOptions) pushFile(ctx context.Context, path string) error {
	goesOn := journal.Running(journalBeside(path))
	if !o.dryRun && !goesOn {
		// Where a file cannot be locked, the server still stores the same point once.
		if release, err := reportfile.Lock(ctx, path); err == nil {
			defer release()
		}
	}

	file, err := reportfile.Load(path, o.cpus)
	if err != nil {
		return err
	}

	goesOn = goesOn && file.Report.Run.Incomplete != ""
	var errs []error
	for _, g := range o.groups(file.Report) {
		g.goesOn = goesOn
		errs = append(errs, o.pushGroup(ctx, file, g))
	}

	return errors.Join(errs...)
}

// journalBeside is the journal of a report, or the journal itself.
func journalBeside(path string) string {
	if filepath.Ext(path) == ".jsonl" {
		return path
	}
	return strings.TrimSuffix(path, filepath.Ext(path)) + ".jsonl"
}

// group is the part of a report that goes to one run.
type group struct {
	state  reporter.PushState // as it stands; State is "" where none is noted
	uri    string             // as given, perhaps with user info
	report *reporter.Report
	goesOn bool // the recording is not at its end
}

// newGroup is a group of a report, without nodes yet.
func newGroup(r *reporter.Report, state reporter.PushState, uri string) *group {
	return &group{state: state, uri: uri, report: &reporter.Report{Schema: r.Schema, Run: r.Run, Nodes: make(map[string]*reporter.Node)}}
}

// groups parts a report by where its nodes go.
func (o *pushOptions) groups(r *reporter.Report) []*group {
	var out []*group
	for _, name := range r.NodeNames() {
		n := r.Nodes[name]
		var state reporter.PushState
		if n.Push != nil {
			state = n.Push.MLflow
		}

		remembered := state.URI
		state.Error = ""
		if state.State == reporter.PushOff { // one that we cannot push to
			remembered = ""
		}

		i := slices.IndexFunc(out, func(g *group) bool { return g.joins(state) })
		if i < 0 {
			i = len(out)
			out = append(out, newGroup(r, state, cmp.Or(o.mlflow, remembered, os.Getenv("MLFLOW_TRACKING_URI"))))
		}

		out[i].report.Nodes[name] = n
	}

	return out
}

// joins tells whether a node goes where those of the group go: to the same run, or,
// where none is known, to the one that one of them will find.
func (g *group) joins(s reporter.PushState) bool {
	a, b := g.state, s
	if a.RunID == "" || b.RunID == "" {
		a.RunID, b.RunID = "", ""
	}
	return a.URI == b.URI && a.RunID == b.RunID && a.ExperimentName == b.ExperimentName && a.ExperimentID == b.ExperimentID
}

// destination is where a group goes, by the flags, what the report remembers, and the
// environment.
func (o *pushOptions) destination(g *group) pusher.Destination {
	d := pusher.Destination{RunID: g.state.RunID, ExperimentName: g.state.ExperimentName, ExperimentID: g.state.ExperimentID,
		Given: g.state.Given, Invocation: g.state.Invocation, OtherServer: g.state.URI != mlflow.PublicURI(g.uri)}
	if d.RunID == "" && g.state.URI == "" {
		d.RunID = os.Getenv("MLFLOW_RUN_ID")
		d.Given = d.RunID != ""
	}

	if d.ExperimentName == "" && d.ExperimentID == "" {
		d.ExperimentName, d.ExperimentID = os.Getenv("MLFLOW_EXPERIMENT_NAME"), os.Getenv("MLFLOW_EXPERIMENT_ID")
	}
	if o.experiment != "" {
		d.ExperimentName, d.ExperimentID = o.experiment, ""
	}

	d.CheckFirst = o.dryRun
	if o.runID != "" {
		d.RunID, d.Given, d.OtherServer = o.runID, true, false
	} else if o.experiment != "" {
		d.RunID, d.Given, d.ExperimentOnly = "", false, true // a run there, then
	}

	return d
}

func (o *pushOptions) pushGroup(ctx context.Context, file *reportfile.File, g *group) error {
	if g.uri == "" {
		return errors.New("the report remembers no server: give --mlflow URI, or set MLFLOW_TRACKING_URI")
	}

	cfg, err := pusher.ClientConfig(g.uri, agent.Version(), os.LookupEnv)
	if err != nil {
		return err
	}

	progress := &progress{to: o.streams.err, began: time.Now()}
	cfg.OnRetry = progress.retry
	client, err := mlflow.New(cfg)
	if err != nil {
		return err
	}

	defer client.Close()
	parts, err := o.parts(ctx, client, g)
	if err != nil {
		return err
	}

	var errs []error
	for _, part := range parts {
		errs = append(errs, o.pushPart(ctx, client, file, part, progress))
	}

	return errors.Join(errs...)
}

// parts parts a group further where the job of each node made a run of its own.
func (o *pushOptions) parts(ctx context.Context, client *mlflow.Client, g *group) ([]*group, error) {
	var invocations []string
	for _, n := range g.report.Nodes {
		if n.Push != nil && n.Push.MLflow.Invocation != "" {
			invocations = append(invocations, n.Push.MLflow.Invocation)
		}
	}

	slices.Sort(invocations)
	d := o.destination(g)
	if invocations = slices.Compact(invocations); len(invocations) < 2 || d.RunID != "" {
		return []*group{g}, nil
	}

	runs, err := pusher.JobRuns(ctx, client, d, invocations)
	if err != nil {
		return nil, fmt.Errorf("find the runs of the nodes: %w", err)
	}

	var out []*group
	for _, name := range g.report.NodeNames() {
		n, state := g.report.Nodes[name], g.state
		if n.Push != nil {
			state.Invocation = n.Push.MLflow.Invocation
		}

		state.RunID = runs[state.Invocation]
		i := slices.IndexFunc(out, func(p *group) bool { return p.state.RunID == state.RunID })
		if i < 0 {
			i = len(out)
			out = append(out, newGroup(g.report, state, g.uri))
			out[i].goesOn = g.goesOn
		}

		out[i].report.Nodes[name] = n
	}

	return out, nil
}

// pushPart pushes what goes to one run.
func (o *pushOptions) pushPart(ctx context.Context, client *mlflow.Client, file *reportfile.File, g *group, progress *progress) error {
	options := pusher.Options{Destination: o.destination(g), Progress: progress.show, Running: g.goesOn, Settle: true}
	options.Artifacts = artifactOf(file, g, client.URI(), options.Given)
	plan, err := pusher.Prepare(ctx, client, g.report, options)
	if err != nil {
		return errors.Join(err, o.noteFailure(file, g, plan, options.Destination, client.URI(), err))
	}

	if o.dryRun {
		o.tell(client, file, options, plan)
		return nil
	}

	err = plan.Send(ctx)
	progress.end()
	if err != nil {
		return errors.Join(err, o.noteFailure(file, g, plan, options.Destination, client.URI(), err))
	}

	fmt.Fprintf(o.streams.out, "%s: %s\n", text.Printable(file.Path), text.Printable(plan.Outcome(client)))
	err = note(file, g.each(g.done(plan.Run.ID, client.URI(), plan.Given(), plan.Notes)))
	if errors.Is(err, reportfile.ErrReplaced) { // a sidecar's, say: its later samples are still to be pushed
		return err
	}

	if err != nil {
		// The server has everything: that is what the exit code tells.
		fmt.Fprintf(o.streams.err, "perfagent: %s\n", text.Printable(err.Error()))
	}

	return nil
}

// artifactOf is the file, as it will be when the push is done.
func artifactOf(file *reportfile.File, g *group, uri string, given bool) []pusher.Artifact {
	a := pusher.Artifact{Name: filepath.Base(file.Path), ContentType: "application/json"}
	if file.Kind == reportfile.KindJournal {
		a.ContentType = "application/jsonl"
	}

	a.Data = func(runID string) ([]byte, error) {
		if file.Kind != reportfile.KindReport {
			return file.Data, nil
		}
		return reporter.WithPush(file.Data, g.each(g.done(runID, uri, given, nil)))
	}

	return []pusher.Artifact{a}
}

// done is how the group stands that the server has all of.
func (g *group) done(runID, uri string, given bool, notes []string) reporter.PushState {
	return pusher.DoneState(reporter.PushState{RunID: runID, Given: given, URI: uri}, notes)
}

// noteFailure writes down that a push failed. What the report remembers stays where
// flags named another place, and all of it in a dry run.
func (o *pushOptions) noteFailure(file *reportfile.File, g *group, plan *pusher.Plan, d pusher.Destination, uri string, err error) error {
	named := o.mlflow != "" || o.runID != "" || o.experiment != ""
	if o.dryRun || named && g.state.State == reporter.PushPending {
		return nil
	}
	return note(file, g.failed(plan, d, uri, err))
}

// failed is how the group stands after an error. What another server has all of, or
// this one had, stays done.
func (g *group) failed(plan *pusher.Plan, d pusher.Destination, uri string, err error) map[string]reporter.PushState {
	if g.state.State == reporter.PushDone {
		return nil
	}

	s := reporter.PushState{State: reporter.PushPending, RunID: d.RunID, Given: d.Given, URI: uri, Error: err.Error(),
		ExperimentName: d.ExperimentName, ExperimentID: d.ExperimentID}
	if plan != nil && plan.Run != nil {
		s.RunID = plan.Run.ID
	}

	return g.each(s)
}

// each is one state for every node of the group, which keeps its own invocation.
func (g *group) each(s reporter.PushState) map[string]reporter.PushState {
	out := make(map[string]reporter.PushState)
	for name, n := range g.report.Nodes {
		s.Invocation = ""
		if n.Push != nil {
			s.Invocation = n.Push.MLflow.Invocation
		}
		out[name] = s
	}

	return out
}

// note writes down in one of our reports how the push stands.
func note(file *reportfile.File, states map[string]reporter.PushState) error {
	if file.Kind != reportfile.KindReport || len(states) == 0 {
		return nil
	}

	data, err := reporter.WithPush(file.Data, states)
	if err != nil || string(data) == string(file.Data) {
		return err
	}
	if err := reportfile.Rewrite(file.Path, file.Data, data); err != nil {
		return fmt.Errorf("note how the push stands: %w", err)
	}

	file.Data = data
	return nil
}

// tell says what a push would do.
func (o *pushOptions) tell(c *mlflow.Client, file *reportfile.File, opts pusher.Options, plan *pusher.Plan) {
	out := o.streams.out
	line := func(label, format string, args ...any) {
		fmt.Fprintf(out, "  %-10s%s\n", label, text.Printable(fmt.Sprintf(format, args...)))
	}

	fmt.Fprintf(out, "%s would go to\n", text.Printable(file.Path))
	line("server", "%s", c.URI())
	switch {
	case plan.Run != nil && plan.Own():
		line("run", "%s, made by perfagent: %s", plan.Run.Name, c.RunURL(plan.Run))
	case plan.Run != nil:
		line("run", "%s: %s", plan.Run.Name, c.RunURL(plan.Run))
	default:
		d := opts.Destination
		line("run", "a new one, %q, in experiment %s", plan.RunName(), cmp.Or(d.ExperimentName, d.ExperimentID, "Default"))
	}

	line("nodes", "%s", strings.Join(plan.Nodes(), ", "))
	line("metrics", "%d", plan.Metrics)
	line("series", "%s", text.Count(plan.Points, "point", "points"))
	if plan.Known > 0 {
		line("there", "%s already", text.Count(plan.Known, "value", "values"))
	}

	line("tags", "%s", strings.Join(slices.Sorted(maps.Keys(plan.Tags())), ", "))
	line("artifact", "%s (%s)", plan.ArtifactName(0), size(len(file.Data)))
	for _, n := range plan.Notes {
		line("note", "%s", n)
	}
}

// size is a number of bytes for people.
func size(n int) string {
	if n < 1<<20 {
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// progress shows how far a long push is: on a terminal in place, elsewhere as a line
// now and then. A push of a few seconds shows nothing.
type progress struct {
	to          io.Writer
	began, last time.Time
	shown       bool
}

func (p *progress) show(sent, all int) {
	now, every := time.Now(), 10*time.Second
	terminal := isTerminal(p.to)
	if terminal {
		every = 200 * time.Millisecond
	}
	if sent <= 0 || sent >= all || now.Sub(p.began) < time.Second || now.Sub(p.last) < every {
		return
	}

	p.last = now
	left := time.Duration(float64(now.Sub(p.began)) / float64(sent) * float64(all-sent)).Round(time.Second)
	words := fmt.Sprintf("%d of %d values sent (%d %%), %v left", sent, all, 100*sent/all, left)
	if terminal {
		fmt.Fprintf(p.to, "\r\x1b[K%s", words)
		p.shown = true
		return
	}

	fmt.Fprintf(p.to, "perfagent: %s\n", words)
}

// retry says why nothing moves where the wait is long.
func (p *progress) retry(err error, wait time.Duration) bool {
	if wait >= 2*time.Second {
		p.end()
		fmt.Fprintf(p.to, "perfagent: %s; trying again in %v\n", text.Printable(err.Error()), wait.Round(time.Second))
	}
	return true
}

func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}
