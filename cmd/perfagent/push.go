package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/agent/pusher"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

type pushOptions struct {
	mlflow     string
	runID      string
	experiment string
	cpus       int
	dryRun     bool
	store      string
	runs       runFinder
	streams    streams
	told       string // the last server that was named
}

func newPush(s streams) *cobra.Command {
	o := &pushOptions{streams: s, runs: runFinder{streams: s}}
	cmd := &cobra.Command{
		Use:   "push [flags] RUN...",
		Short: "push runs to an MLflow server",
		Long: `Push runs to an MLflow server: the metrics, the time series, tags, and the
report itself as an artifact, of all nodes and ranks. RUN is a RUN-ID, RUN-ID@K
for its K-th launch, @latest, @-2, the directory of a run, a run in a store,
STORE#RUN-ID, or a file: a report, a merged one, a journal, or perf.py's JSON.
Each report goes to the MLflow run that it belongs to: the one recorded in a
pending report, else the one that the job created, else a new one. Only what the
server lacks is sent, so a push can be repeated, and it resumes where it was
interrupted.

With --store, put the reports into a store: a directory, a Redis server, a
bucket of S3, or a ProxyStore, where Python programs find them. Of each node the
first free name is taken, RUN-ID/node-N, RUN-ID/node-N.2 and so on; what is
there already stays as it is, and is not put again.

The server is --mlflow, else MLFLOW_TRACKING_URI, else the one recorded in the
report. The first line says which. All MLFLOW_* variables for authentication,
TLS, retries and workspaces are obeyed.

Exit code: 0 once the server or the store has everything; 1 otherwise.`,
		Example: `  perfagent push @latest
  perfagent push --dry-run --mlflow http://mlflow:5000 merged.json
  perfagent push --mlflow-experiment benchmarks --cpus 64 perf.json
  perfagent push --store proxystore+file:///shared/ps @latest`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.runs.settle(cmd); err != nil {
				return err
			}
			return o.runs.end(o.run(args))
		},
	}

	f := cmd.Flags()
	f.StringVar(&o.mlflow, "mlflow", "", "`URI` of the server")
	f.StringVar(&o.runID, "mlflow-run-id", "", "`ID` of the MLflow run that gets the numbers")
	f.StringVar(&o.experiment, "mlflow-experiment", "", "`NAME` of the experiment for a new run")
	f.IntVar(&o.cpus, "cpus", 0,
		"number of logical CPUs of the node; needed for perf.py's JSON, which does not record it")
	o.runs.addTo(cmd)
	f.BoolVar(&o.dryRun, "dry-run", false, "print what would be done; only read from the server")
	f.StringVar(&o.store, "store", "", "put the reports into the store at `ADDRESS`, not into MLflow")

	return cmd
}

func (o *pushOptions) run(names []string) error {
	if len(names) == 0 {
		return errors.New("push: name a run or a report; @latest is the newest")
	}
	if o.cpus < 0 {
		return fmt.Errorf("--cpus: %d is negative", o.cpus)
	}

	if o.mlflow != "" {
		if err := mlflow.CheckURI(o.mlflow); err != nil {
			return fmt.Errorf("--mlflow: %w", err)
		}
	}

	if err := o.checkStore(); err != nil {
		return err
	}
	nodes, err := o.runs.nodes("push", names)
	if err != nil {
		return err
	}

	ctx, stop := untilSignal()
	defer stop()
	failed := 0
	for i := range nodes {
		n := &nodes[i]
		if err := o.send(ctx, n); err != nil {
			o.runs.say("push", said(o.runs.copies.named(n.Path()), o.runs.copies.named(err.Error())))
			failed++
		}
		if ctx.Err() != nil {
			break
		}
	}

	switch {
	case ctx.Err() != nil:
		return errors.New("push: interrupted: run the same command again to resume")
	case failed > 0:
		return exitError{code: exitFailure}
	}

	return nil
}

// send pushes a node to MLflow, or into the store of --store.
func (o *pushOptions) send(ctx context.Context, n *catalog.Node) error {
	if o.store != "" {
		return o.storeNode(ctx, n)
	}
	return o.pushNode(ctx, n)
}

// fill fetches the series of nodes that were merged without them.
func (o *pushOptions) fill(report *reporter.Report) {
	series := o.runs.resolver("push")
	defer series.close()
	series.fill(report)
}

// pushNode pushes what was recorded of a node, or all nodes of a merged report. It pushes those that go to the same run
// together.
func (o *pushOptions) pushNode(ctx context.Context, n *catalog.Node) error {
	running := n.IsAtWork()
	if !o.dryRun && !running {
		// If a file cannot be locked, the server still stores the same point only once.
		for _, path := range n.Paths() {
			if release, err := reportfile.Lock(ctx, path); err == nil {
				defer release()
			}
		}
	}

	file, err := loadNode(n, o.cpus)
	if err != nil {
		return err
	}

	if !o.dryRun {
		o.fill(file.Report)
	}

	running = running && file.Report.Run.Incomplete != ""
	var errs []error
	for _, g := range o.groups(file.Report) {
		g.running = running
		errs = append(errs, o.pushGroup(ctx, file, g))
	}

	return errors.Join(errs...)
}

// A group is the part of a report that goes to one run.
type group struct {
	state   reporter.PushState // of the last push; State is "" if there was none
	server  server
	report  *reporter.Report
	running bool // the recording has not ended
}

// A server is where a group goes to, and who says so.
type server struct {
	uri  string // as given, perhaps with user info; "" if nobody says
	from string
}

// serverOf returns the server for nodes whose last push has a state. A tracking URI of the shell that is no server, such
// as a directory, is for other programs: the server that the report records goes before it.
func (o *pushOptions) serverOf(state reporter.PushState) server {
	shell := server{os.Getenv("MLFLOW_TRACKING_URI"), "MLFLOW_TRACKING_URI"}
	remembered := server{state.URI, "recorded in the report"}
	if state.State == reporter.PushOff { // a server that we cannot push to
		remembered.uri = ""
	}

	switch {
	case o.mlflow != "":
		return server{o.mlflow, "--mlflow"}
	case remembered.uri == "" || shell.uri != "" && mlflow.CheckURI(shell.uri) == nil:
		return shell
	}

	return remembered
}

// newGroup returns a group of a report, without nodes.
func newGroup(r *reporter.Report, state reporter.PushState, to server) *group {
	report := &reporter.Report{Schema: r.Schema, Run: r.Run, Nodes: make(map[string]*reporter.Node)}
	return &group{state: state, server: to, report: report}
}

// groups splits a report by the destination of its nodes.
func (o *pushOptions) groups(r *reporter.Report) []*group {
	var out []*group
	for _, name := range r.NodeNames() {
		n := r.Nodes[name]
		var state reporter.PushState
		if n.Push != nil {
			state = n.Push.MLflow
		}

		state.Error = ""
		i := slices.IndexFunc(out, func(g *group) bool { return g.joins(state) })
		if i < 0 {
			i = len(out)
			out = append(out, newGroup(r, state, o.serverOf(state)))
		}

		out[i].report.Nodes[name] = n
	}

	return out
}

// joins reports whether a node has the destination of the group: the same run or, if a run is not
// known yet, the one that the group will find.
func (g *group) joins(s reporter.PushState) bool {
	a, b := g.state, s
	if a.RunID == "" || b.RunID == "" {
		a.RunID, b.RunID = "", ""
	}
	return a.URI == b.URI && a.RunID == b.RunID &&
		a.ExperimentName == b.ExperimentName && a.ExperimentID == b.ExperimentID
}

// destination returns where a group goes, from the flags, the report and the environment.
func (o *pushOptions) destination(g *group) pusher.Destination {
	d := pusher.Destination{
		RunID: g.state.RunID, Given: g.state.Given, Invocation: g.state.Invocation,
		ExperimentName: g.state.ExperimentName, ExperimentID: g.state.ExperimentID,
		OtherServer: g.elsewhere(),
	}
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
		d.RunID, d.Given, d.ExperimentOnly = "", false, true // a run of that experiment
	}

	return d
}

// elsewhere reports whether the group goes to another server than the report records.
func (g *group) elsewhere() bool { return g.state.URI != mlflow.PublicURI(g.server.uri) }

// tell says where the push goes to, before anything is asked there: a server may take minutes to answer.
func (o *pushOptions) tell(to server) {
	line := fmt.Sprintf("pushing to %s (%s)", text.Printable(mlflow.PublicURI(to.uri)), to.from)
	if line != o.told {
		o.told = line
		fmt.Fprintln(o.streams.out, line)
	}
}

func (o *pushOptions) pushGroup(ctx context.Context, file *pushedFile, g *group) error {
	if g.server.uri == "" {
		return errors.New("the report records no server: use --mlflow URI or set MLFLOW_TRACKING_URI")
	}
	o.tell(g.server)

	cfg, err := pusher.ClientConfig(g.server.uri, agent.Version(), os.LookupEnv)
	if err != nil {
		return err
	}

	progress := &progress{to: o.streams.err, began: time.Now()}
	cfg.OnRetry, cfg.OnWait = progress.retry, progress.wait
	if o.dryRun {
		beBrief(&cfg)
	}
	client, err := mlflow.New(cfg)
	if err != nil {
		return err
	}

	defer client.Close()
	parts, err := o.splitGroup(ctx, client, g)
	if err != nil {
		return err
	}

	var errs []error
	for _, part := range parts {
		errs = append(errs, o.pushPart(ctx, client, file, part, progress))
	}

	return errors.Join(errs...)
}

// dryRunPatience is how long a dry run waits for an answer, unless MLFLOW_HTTP_REQUEST_TIMEOUT says how long.
const dryRunPatience = 30 * time.Second

// beBrief makes a client wait for one answer only, and not for long: nothing is lost if it does not come.
func beBrief(cfg *mlflow.Config) {
	if os.Getenv("MLFLOW_HTTP_REQUEST_TIMEOUT") == "" {
		cfg.Timeout = dryRunPatience
	}
	retry := cfg.OnRetry
	cfg.OnRetry = func(err error, wait time.Duration) bool {
		return !errors.Is(err, context.DeadlineExceeded) && retry(err, wait)
	}
}

// splitGroup splits a group further if the job of each node made a run of its own.
func (o *pushOptions) splitGroup(ctx context.Context, client *mlflow.Client, g *group) ([]*group, error) {
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
			out = append(out, newGroup(g.report, state, g.server))
			out[i].running = g.running
		}

		out[i].report.Nodes[name] = n
	}

	return out, nil
}

// pushPart pushes a group that goes to one run.
func (o *pushOptions) pushPart(
	ctx context.Context, client *mlflow.Client, file *pushedFile, g *group, progress *progress,
) error {
	options := pusher.Options{Destination: o.destination(g), Progress: progress.show, Running: g.running, Settle: true}
	options.Artifacts = artifactOf(file, g, client.URI(), options.Given)
	plan, err := pusher.Prepare(ctx, client, g.report, options)
	if err != nil {
		return errors.Join(err, o.noteFailure(file, g, plan, options.Destination, client.URI(), err))
	}

	if o.dryRun {
		o.describe(client, file, options, plan)
		return nil
	}

	err = plan.Send(ctx)
	progress.end()
	if err != nil {
		return errors.Join(err, o.noteFailure(file, g, plan, options.Destination, client.URI(), err))
	}

	fmt.Fprintf(o.streams.out, "%s: %s\n", text.Printable(o.runs.copies.named(file.Path)), text.Printable(plan.Outcome(client)))
	err = note(file, g.each(g.done(plan.Run.ID, client.URI(), plan.Given(), plan.Notes)))
	if errors.Is(err, reportfile.ErrReplaced) { // by a sidecar, say, whose later samples are not pushed yet
		return err
	}

	if err != nil {
		// The exit code says that the server has everything, and it has.
		o.streams.warn(err)
	}

	return nil
}

// artifactOf returns the file as it will be once the push is done.
func artifactOf(file *pushedFile, g *group, uri string, given bool) []pusher.Artifact {
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

// done returns the state of a group once the server has all of it.
func (g *group) done(runID, uri string, given bool, notes []string) reporter.PushState {
	return pusher.DoneState(reporter.PushState{RunID: runID, Given: given, URI: uri}, notes)
}

// noteFailure records in the report that a push failed. It changes nothing in a dry run, nor where
// flags or a variable sent a pending report somewhere else.
func (o *pushOptions) noteFailure(
	file *pushedFile, g *group, plan *pusher.Plan, d pusher.Destination, uri string, err error,
) error {
	named := o.mlflow != "" || o.runID != "" || o.experiment != "" || g.elsewhere()
	if o.dryRun || named && g.state.State == reporter.PushPending {
		return nil
	}
	return note(file, g.failed(plan, d, uri, err))
}

// failed returns the states of the group's nodes after an error. A push that was done before, to
// this server or another, stays done.
func (g *group) failed(
	plan *pusher.Plan, d pusher.Destination, uri string, err error,
) map[string]reporter.PushState {
	if g.state.State == reporter.PushDone {
		return nil
	}

	s := reporter.PushState{
		State: reporter.PushPending, RunID: d.RunID, Given: d.Given, URI: uri, Error: err.Error(),
		ExperimentName: d.ExperimentName, ExperimentID: d.ExperimentID,
	}
	if plan != nil && plan.Run != nil {
		s.RunID = plan.Run.ID
	}

	return g.each(s)
}

// each returns the state s for every node of the group. Each node keeps its own invocation.
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

// describe prints what a push would do.
func (o *pushOptions) describe(c *mlflow.Client, file *pushedFile, opts pusher.Options, plan *pusher.Plan) {
	out := o.streams.out
	line := func(label, format string, args ...any) {
		fmt.Fprintf(out, "  %-10s%s\n", label, text.Printable(fmt.Sprintf(format, args...)))
	}

	fmt.Fprintf(out, "%s would go to\n", text.Printable(o.runs.copies.named(file.Path)))
	line("server", "%s", c.URI())
	switch {
	case plan.Run != nil && plan.Own():
		line("run", "%s, made by perfagent: %s", plan.Run.Name, c.RunURL(plan.Run))
	case plan.Run != nil:
		line("run", "%s: %s", plan.Run.Name, c.RunURL(plan.Run))
	default:
		d := opts.Destination
		line(
			"run",
			"a new one, %q, in experiment %s",
			plan.RunName(),
			cmp.Or(d.ExperimentName, d.ExperimentID, "Default"),
		)
	}

	line("nodes", "%s", strings.Join(plan.Nodes(), ", "))
	line("metrics", "%d", plan.Metrics)
	line("series", "%s", text.Count(plan.Points, "point", "points"))
	if plan.Known > 0 {
		line("stored", "%s already", text.Count(plan.Known, "value", "values"))
	}

	line("tags", "%s", strings.Join(slices.Sorted(maps.Keys(plan.Tags())), ", "))
	line("artifact", "%s (%s)", plan.ArtifactName(0), text.SizeText(float64(len(file.Data))/(1<<20)))
	for _, n := range plan.Notes {
		line("note", "%s", n)
	}
}

// A progress shows how far a long push is: in place on a terminal, else as a line from time to time.
// A short push shows nothing.
type progress struct {
	to          io.Writer
	began, last time.Time

	mu    sync.Mutex // guards what follows, and the writing
	shown bool
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
		p.print(words, true)
	} else {
		p.print("perfagent: "+words+"\n", false)
	}
}

// wait prints what is waited for.
func (p *progress) wait(op string, limit time.Duration) {
	p.print(fmt.Sprintf("perfagent: waiting for the server to %s, for %v at most\n", text.Printable(op), limit), false)
}

// retry prints the reason for a long wait.
func (p *progress) retry(err error, wait time.Duration) bool {
	if wait >= 2*time.Second {
		again := wait.Round(time.Second)
		p.print(fmt.Sprintf("perfagent: %s; trying again in %v\n", text.Printable(err.Error()), again), false)
	}
	return true
}

func (p *progress) end() { p.print("", false) }

// print prints words in the place of those that were shown.
func (p *progress) print(words string, shown bool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.shown || shown {
		words = "\r\x1b[K" + words
	}
	p.shown = shown
	if words != "" {
		fmt.Fprint(p.to, words)
	}
}
