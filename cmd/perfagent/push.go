package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/agent/pusher"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

type pushOptions struct {
	target pusher.Target
	store  string
	runFinder
	lastTarget string // the last line printed by printTarget
}

func newPush(s streams) *cobra.Command {
	o := &pushOptions{runFinder: runFinder{streams: s}}
	cmd := &cobra.Command{
		Use:   "push [flags] RUN...",
		Short: "push runs to an MLflow server",
		Long: `Push runs to an MLflow server: the metrics, time series and tags of all nodes
and ranks, and the report itself as an artifact. RUN is a RUN-ID, RUN-ID@K for
its K-th launch, @latest, @-2, the directory of a run, a run in a store
(STORE#RUN-ID), or a file: a report, a merged one, a journal, or perf.py's JSON.
Each report goes to its MLflow run: the one recorded in a pending report, the
one that the job created, or a new one. Only what the server lacks is sent, so a
repeated push resumes where it was interrupted.

With --store, put the reports into a store: a directory, a Redis server, an S3
bucket, or a ProxyStore, where Python programs find them. Each node gets the
first free name: RUN-ID/node-N, RUN-ID/node-N.2 and so on. A report that is
already there is not put again.

The server is --mlflow, MLFLOW_TRACKING_URI, or the one recorded in the report,
in this order. The first line of output names it. All MLFLOW_* variables for
authentication, TLS, retries and workspaces apply.

Exit code: 0 once the server or the store has everything; 1 otherwise.`,
		Example: `  perfagent push @latest
  perfagent push --dry-run --mlflow http://mlflow:5000 merged.json
  perfagent push --mlflow-experiment benchmarks --cpus 64 perf.json
  perfagent push --store proxystore+file:///shared/ps @latest`,
		RunE: o.runE(o.run),
	}

	f := o.addTo(cmd)
	f.StringVar(&o.target.URI, "mlflow", "", "`URI` of the server")
	f.StringVar(&o.target.RunID, "mlflow-run-id", "", "`ID` of the MLflow run that receives the metrics")
	f.StringVar(&o.target.Experiment, "mlflow-experiment", "", "`NAME` of the experiment for a new run")
	o.addCPUs("the node")
	f.BoolVar(&o.target.DryRun, "dry-run", false, "print what would be done, and change nothing on the server")
	f.StringVar(&o.store, "store", "", "put the reports into the store at `ADDRESS`, not into MLflow")

	return cmd
}

func (o *pushOptions) run(names []string) error {
	if len(names) == 0 {
		return errors.New("push: name a run or a report; @latest is the newest")
	}

	if o.target.URI != "" {
		if err := mlflow.CheckURI(o.target.URI); err != nil {
			return fmt.Errorf("--mlflow: %w", err)
		}
	}

	if err := o.checkStore(); err != nil {
		return err
	}
	nodes, err := o.nodesByName(names)
	if err != nil {
		return err
	}

	ctx, stop := signalContext()
	defer stop()
	failed := 0
	for i := range nodes {
		n := &nodes[i]
		if err := o.send(ctx, n); err != nil {
			o.printMessage(prefixName(o.copies.WithReferences(n.Path()), o.copies.WithReferences(err.Error())))
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

// send pushes n, or all nodes of a merged report, to MLflow or into the store of --store.
func (o *pushOptions) send(ctx context.Context, n *catalog.Node) error {
	running := n.IsActive()
	switch {
	case running && o.store != "":
		return errors.New("it is still running: put it when it has ended")
	case !running && !o.target.DryRun:
		// Prevent a concurrent push of the same file. If locking fails, push anyway: the server stores each point only
		// once.
		for _, path := range n.Paths() {
			if release, err := reportfile.Lock(ctx, path); err == nil {
				defer release()
			}
		}
	}

	file, err := pusher.Load(n, o.cpus)
	if err != nil {
		return err
	}
	if !o.target.DryRun {
		o.fill(file.Report)
	}
	if o.store != "" {
		return o.storeFile(ctx, file)
	}

	var errs []error
	for _, g := range o.target.Groups(file.Report, running && file.Report.Run.Incomplete != "") {
		errs = append(errs, o.pushGroup(ctx, file, g))
	}

	return errors.Join(errs...)
}

// printTarget prints the server of g before the first request, because a server may take minutes to respond. It does
// not print the same line twice in a row.
func (o *pushOptions) printTarget(g *pusher.Group) {
	line := fmt.Sprintf("pushing to %s (%s)", text.Printable(mlflow.PublicURI(g.URI)), g.From)
	if line != o.lastTarget {
		o.lastTarget = line
		fmt.Fprintln(o.streams.out, line)
	}
}

func (o *pushOptions) pushGroup(ctx context.Context, file *pusher.File, g *pusher.Group) error {
	if g.URI == "" {
		return errors.New("the report records no server: use --mlflow URI or set MLFLOW_TRACKING_URI")
	}
	o.printTarget(g)

	cfg, err := pusher.ClientConfig(g.URI, agent.Version(), os.LookupEnv)
	if err != nil {
		return err
	}

	progress := &progress{to: o.streams.err, began: time.Now()}
	cfg.OnRetry, cfg.OnWait = progress.retry, progress.wait
	if o.target.DryRun {
		limitForDryRun(&cfg)
	}
	client, err := mlflow.New(cfg)
	if err != nil {
		return err
	}

	defer client.Close()
	parts, err := g.Split(ctx, client)
	if err != nil {
		return err
	}

	var errs []error
	for _, part := range parts {
		errs = append(errs, o.pushPart(ctx, client, file, part, progress))
	}

	return errors.Join(errs...)
}

// dryRunTimeout is the request timeout of a dry run, unless MLFLOW_HTTP_REQUEST_TIMEOUT is set.
const dryRunTimeout = 30 * time.Second

// limitForDryRun shortens the timeout in cfg and allows no retry after a timeout, because a failed dry run loses
// nothing.
func limitForDryRun(cfg *mlflow.Config) {
	if os.Getenv("MLFLOW_HTTP_REQUEST_TIMEOUT") == "" {
		cfg.Timeout = dryRunTimeout
	}
	retry := cfg.OnRetry
	cfg.OnRetry = func(err error, wait time.Duration) bool {
		return !errors.Is(err, context.DeadlineExceeded) && retry(err, wait)
	}
}

// pushPart pushes g, which goes to a single MLflow run. In a dry run it prints the plan instead.
func (o *pushOptions) pushPart(
	ctx context.Context, client *mlflow.Client, file *pusher.File, g *pusher.Group, progress *progress,
) error {
	plan, err := g.Prepare(ctx, client, file, progress.show)
	if err != nil {
		return err
	}
	name := text.Printable(o.copies.WithReferences(file.Path))
	if o.target.DryRun {
		fmt.Fprintf(o.streams.out, "%s would go to\n", name)
		for _, row := range plan.Describe(text.SizeText(float64(len(file.Data)) / (1 << 20))) {
			fmt.Fprintf(o.streams.out, "  %-10s%s\n", row[0], text.Printable(row[1]))
		}
		return nil
	}

	err = g.Send(ctx, plan, file)
	progress.end()
	if err != nil {
		return err
	}
	fmt.Fprintf(o.streams.out, "%s: %s\n", name, text.Printable(plan.Outcome()))
	err = g.RecordDone(plan, file)
	if errors.Is(err, reportfile.ErrReplaced) { // e.g. by a sidecar, with later samples that are not pushed yet
		return err
	}
	if err != nil {
		// The exit code reports whether the server has everything, and it does.
		o.streams.warn(err)
	}
	return nil
}

// A progress shows how much of a long push is done. On a terminal it updates a single line; elsewhere it prints a line
// every 10 s. It shows nothing in the first second.
type progress struct {
	to          io.Writer
	began, last time.Time

	mu    sync.Mutex // guards shown, and to while writing
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

// wait prints that the client is waiting for op, and the time limit.
func (p *progress) wait(op string, limit time.Duration) {
	p.print(fmt.Sprintf("perfagent: waiting for the server to %s, for %v at most\n", text.Printable(op), limit), false)
}

// retry prints err before a wait of 2 s or more. It returns true, so that the client tries again.
func (p *progress) retry(err error, wait time.Duration) bool {
	if wait >= 2*time.Second {
		again := wait.Round(time.Second)
		p.print(fmt.Sprintf("perfagent: %s; trying again in %v\n", text.Printable(err.Error()), again), false)
	}
	return true
}

func (p *progress) end() { p.print("", false) }

// print writes words. If the previous call had shown set, words replace its text.
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
