package pusher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfagent/perfagent/internal/retry"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// An Artifact is a file that is uploaded to the run, below perfagent/.
type Artifact struct {
	Name, ContentType string

	// Data returns the content of the file. It is called once the run is known.
	Data func(runID string) ([]byte, error)
}

// Options configures a push.
type Options struct {
	Destination
	Artifacts []Artifact

	// RecordingID identifies the recordings across pushes if their run ID does not. It is the hash of perf.py's file.
	RecordingID string

	// ResolveDuplicates makes Send check, after it has created a run, whether another process has created one for the
	// same recordings at the same time. If so, both processes agree on one of the two runs.
	ResolveDuplicates bool

	// Running means that the recording has not ended. A later push sends the last window and the end of the run.
	Running bool

	// Schedule, if not nil, holds the times at which this node sends. It spreads the requests of many nodes that end at
	// the same time.
	Schedule *Schedule

	// RunTimeout limits the wait for another node's run before this node creates one. The node that creates the run
	// does not wait.
	RunTimeout time.Duration

	// Live, if not nil, is the live push of this recording, and has the time of the last point sent. Its Run method has
	// returned.
	Live *Live

	// Progress, if not nil, is called with the number of values sent so far and the number of all values.
	Progress func(sent, all int)
}

// A Plan is a prepared push: the values that the server lacks. Prepare only reads from the server.
type Plan struct {
	client *mlflow.Client
	report *reporter.Report
	opts   Options
	id     runIdentity

	// Run is the destination. It is nil if Send must create it.
	Run *mlflow.Run

	// Metrics and Points count the values to send, and AlreadyStored the values that the server has.
	Metrics, Points, AlreadyStored int

	// Notes are messages for the user that do not report failures.
	Notes []string

	sentLive    bool                // Run is from the live push, and was not read again
	jobRun      *mlflow.Run         // the job's run, if Run is ours and the two runs must be linked
	experiments []mlflow.Experiment // the experiments that a search has read

	metrics []mlflow.Metric
	dropped int // number of values that MLflow does not accept
	windows []window
}

// Prepare finds the run of r, and the values that the run lacks.
func Prepare(ctx context.Context, c *mlflow.Client, r *reporter.Report, o Options) (*Plan, error) {
	p := &Plan{client: c, report: r, opts: o, id: newRunIdentity(r, o.Destination, o.RecordingID)}
	if err := o.Schedule.wait(ctx); err != nil {
		return nil, err
	}
	if err := p.findRun(ctx); err != nil {
		return nil, fmt.Errorf("find the MLflow run: %w", err)
	}
	if p.Run == nil && (o.NoCreate || o.ExperimentID != "") {
		check := o.Destination
		check.NoCreate = true
		if _, err := check.experiment(ctx, c, p.experiments); err != nil {
			return nil, fmt.Errorf("find the experiment for a run: %w", err)
		}
	}
	if err := p.compare(ctx); err != nil {
		return nil, err
	}
	if p.dropped > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("left out: %d values that are not finite or have no name", p.dropped))
	}
	return p, nil
}

// Own reports whether perfagent created the run, or will create it, and so must end it.
func (p *Plan) Own() bool {
	return p.Run == nil || p.Run.Tags[tagCreatedBy] == createdBy && !p.opts.Given
}

// Describe returns a description of the planned push as pairs of a label and a text. size is the size of the first
// artifact, as text.
func (p *Plan) Describe(size string) [][2]string {
	run := fmt.Sprintf("a new one, %q, in experiment %s", runName(p.report),
		cmp.Or(p.opts.ExperimentName, p.opts.ExperimentID, "Default"))
	tags, _ := p.tags()
	if p.Run == nil {
		for _, t := range p.id.ownTags() {
			tags[t.Key] = t.Value
		}
	} else {
		run = p.Run.Name
		if p.Own() {
			run += ", created by perfagent"
		}
		run += ": " + p.client.RunURL(p.Run)
	}

	out := [][2]string{
		{"server", p.client.URI()},
		{"run", run},
		{"nodes", strings.Join(p.report.NodeNames(), ", ")},
		{"metrics", strconv.Itoa(p.Metrics)},
		{"series", text.Count(p.Points, "point", "points")},
	}
	if p.AlreadyStored > 0 {
		out = append(out, [2]string{"stored", text.Count(p.AlreadyStored, "value", "values") + " already"})
	}
	out = append(out, [2]string{"tags", strings.Join(slices.Sorted(maps.Keys(tags)), ", ")},
		[2]string{"artifact", fmt.Sprintf("%s (%s)", p.artifactPath(p.opts.Artifacts[0].Name), size)})
	for _, n := range p.Notes {
		out = append(out, [2]string{"note", n})
	}
	return out
}

// Outcome describes a finished push: the numbers of values sent, and the URL of the run.
func (p *Plan) Outcome() string {
	out := fmt.Sprintf("%s and %s sent to %s", text.Count(p.Metrics, "metric", "metrics"),
		text.Count(p.Points, "point", "points"), p.client.RunURL(p.Run))
	if p.AlreadyStored > 0 {
		out += fmt.Sprintf(" (%d were there)", p.AlreadyStored)
	}
	return strings.Join(append([]string{out}, p.Notes...), "; ")
}

// DoneState returns the state of a complete push. It keeps the fields of s that a later push needs.
func DoneState(s reporter.PushState, notes []string) reporter.PushState {
	s.State, s.Error, s.ExperimentName, s.ExperimentID = reporter.PushDone, strings.Join(notes, "; "), "", ""
	return s
}

// findRun sets p.Run to the run of the live push, to the given run, or to one that it finds by its tags. If there is
// none, p.Run stays nil.
func (p *Plan) findRun(ctx context.Context) error {
	d := p.opts.Destination
	if p.opts.Schedule != nil && p.opts.Live != nil {
		// A server takes seconds to return a run that has the series of many nodes, so if there are many nodes, each
		// node uses the run of its live push.
		if _, p.sentLive = p.opts.Live.sentUntil(d.RunID); p.sentLive {
			if p.Run = p.opts.Live.run; p.id.createsRun {
				return p.findJobRun(ctx)
			}
			return nil
		}
	}
	if d.RunID != "" {
		run, err := p.client.Run(ctx, d.RunID)
		switch {
		case err == nil:
			p.Run = run
			return errors.Join(checkActive(run), p.findJobRun(ctx))
		case !d.OtherServer || !mlflow.NotFound(err):
			return err
		}
		p.opts.Given = false // the given run is on another server
	}

	found, err := p.searchWithRetry(ctx)
	p.experiments = found.experiments
	if err != nil || found.run == nil {
		return err
	}
	// Not every server returns all metrics of the runs that a search finds.
	p.jobRun = found.jobRun
	p.Run, err = p.client.Run(ctx, found.run.ID)
	return err
}

// findJobRun looks for the job's run, which may have appeared after ours was created.
func (p *Plan) findJobRun(ctx context.Context) error {
	if !p.Own() || p.Run.Tags[tagJobRun] != "" || p.opts.Invocation == "" {
		return nil
	}
	found, err := p.id.search(ctx, p.client, p.opts.Destination)
	if found.run != nil && found.run.ID == p.Run.ID {
		p.jobRun = found.jobRun
	}
	return err
}

// checkActive returns an error if run was deleted.
func checkActive(run *mlflow.Run) error {
	if run.LifecycleStage == "deleted" {
		return fmt.Errorf("run %s was deleted: restore it (MlflowClient().restore_run),"+
			" or name another one with --mlflow-run-id", run.ID)
	}
	return nil
}

// searchWithRetry searches for the run. It repeats the search while another node may be about to create the run.
func (p *Plan) searchWithRetry(ctx context.Context) (searchResult, error) {
	deadline := time.Now().Add(p.opts.RunTimeout)
	for {
		found, err := p.id.search(ctx, p.client, p.opts.Destination)
		if err != nil || found.run != nil || p.id.createsRun || !time.Now().Before(deadline) {
			return found, err
		}
		if err := retry.Wait(ctx, 300*time.Millisecond); err != nil {
			return found, err
		}
	}
}

// compare finds out which values the run lacks.
func (p *Plan) compare(ctx context.Context) error {
	p.metrics, p.dropped = metrics(p.report)
	p.windows, p.AlreadyStored, p.Points = nil, 0, 0
	if err := p.compareMetrics(ctx); err != nil {
		return fmt.Errorf("get the run's metrics: %w", err)
	}
	for _, key := range p.report.NodeNames() {
		n := p.report.Nodes[key]
		s := newNodeSeries(nodeName(key, n), n)
		s.running = p.opts.Running
		compare := p.compareSeries
		if len(n.Ranks) > 0 {
			compare = p.compareRanks
		}
		if err := compare(ctx, s); err != nil {
			return fmt.Errorf("get the newest points of node %s: %w", s.node, err)
		}
	}

	p.Metrics = len(p.metrics)
	for _, w := range p.windows {
		p.Points += len(w.points)
	}
	return nil
}

// compareMetrics removes the metrics that the run has from p.metrics.
func (p *Plan) compareMetrics(ctx context.Context) error {
	state := newRemoteState(p.client, p.Run, math.MinInt64, math.MaxInt64)
	recorded := p.recordedSteps()
	var lacking []mlflow.Metric
	for _, m := range p.metrics {
		has := false
		if recorded[m.Step] {
			var err error
			if has, err = state.has(ctx, m); err != nil {
				return err
			}
		}
		if has {
			p.AlreadyStored++
		} else {
			lacking = append(lacking, m)
		}
	}
	p.metrics = lacking
	return nil
}

// recordedSteps returns the steps of the nodes with a recording in the run. The recording may be incomplete, or
// different from the report's. The run has no metrics of any other node, unless a push was interrupted.
func (p *Plan) recordedSteps() map[int64]bool {
	steps := make(map[int64]bool)
	for key, n := range p.report.Nodes {
		name := nodeName(key, n)
		if p.Run != nil && p.Run.Tags[tagRecording(name)] != "" {
			steps[nodeStep(key, n)] = true
		}
	}
	return steps
}

// compareSeries adds to p.windows the points of s that are later than the last point in the run.
func (p *Plan) compareSeries(ctx context.Context, s nodeSeries) error {
	all := s.windows()
	until, err := p.sentUntil(ctx, s, all)
	if err != nil {
		return err
	}
	for _, w := range all {
		if w.end > until {
			p.windows = append(p.windows, w)
		} else {
			p.AlreadyStored += len(w.points)
		}
	}
	return nil
}

// sentUntil returns the time of the last point of s in the run. If s was thinned, the points on the server do not show
// that time with certainty. The live push has the exact time, unless another process has pushed the journal since.
func (p *Plan) sentUntil(ctx context.Context, s nodeSeries, all []window) (int64, error) {
	sent, certain := int64(-1), false
	if p.opts.Live != nil && p.Run != nil {
		sent, certain = p.opts.Live.sentUntil(p.Run.ID)
	}

	i, _ := slices.BinarySearchFunc(all, sent+1, compareEnd)
	rest := all[i:]
	if certain && (s.thinned || p.sentLive) && p.Run.Tags[tagIncomplete] != "true" || len(rest) == 0 {
		return sent, nil
	}
	state := newRemoteState(p.client, p.Run, rest[0].end, rest[len(rest)-1].end)
	state.exclusive = p.Own()
	there, err := state.lastPoint(ctx, s, rest)
	return max(sent, there), err
}

// compareRanks adds to p.windows the points of a node with several ranks. The ranks that measured the host pushed the
// host's series live, each from a different start, so a window is considered stored if the run has a point within its
// time. The job's series are sent when all ranks have ended.
func (p *Plan) compareRanks(ctx context.Context, s nodeSeries) error {
	for _, part := range []seriesFilter{hostOnly, jobOnly} {
		s.filter = part
		all := s.windows()
		var there []int64
		if part == hostOnly || len(p.recordedSteps()) > 0 {
			var err error
			if there, err = p.times(ctx, all); err != nil {
				return err
			}
		}

		before := s.from
		for _, w := range all {
			i, _ := slices.BinarySearch(there, before+1)
			if i < len(there) && there[i] <= w.end {
				p.AlreadyStored += len(w.points)
			} else {
				p.windows = append(p.windows, w)
			}
			before = w.end
		}
	}

	return nil
}

// times returns the sorted times of the run's points in the anchor series of all, by which windows are recognized.
func (p *Plan) times(ctx context.Context, all []window) ([]int64, error) {
	if p.Run == nil {
		return nil, nil
	}

	var out []int64
	for _, key := range anchors(all) {
		if _, ok := p.Run.Metrics[key]; !ok && !p.sentLive {
			continue
		}
		points, err := p.client.MetricHistory(ctx, p.Run.ID, key)
		if err != nil {
			return nil, err
		}
		for _, m := range points {
			out = append(out, m.Timestamp)
		}
	}
	slices.Sort(out)

	return slices.Compact(out), nil
}
