package pusher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// Artifact is a file that goes to the run, under perfagent/.
type Artifact struct {
	Name, ContentType string
	// Data makes the file's bytes, once the run is known.
	Data func(runID string) ([]byte, error)
}

// Options say how to push.
type Options struct {
	Destination
	Artifacts []Artifact
	// Recorded is what the recordings are known by, where it is not the run id: the
	// hash of a file of perf.py's.
	Recorded string
	// Settle looks, after a run was made, whether another process has made one for the
	// same recordings at the same time, and agrees on one of the two.
	Settle bool
	// GoesOn tells that the recording is not at its end: windows that are not full and
	// the end of the run are left to a later push.
	GoesOn bool
	// Patience is how long another node's run is waited for before one of our own
	// is made. Node 0 does not wait.
	Patience time.Duration
	// Live, if any, pushed this recording while it went on, and knows how far it came. Its
	// Run has ended.
	Live *Live
	// Progress, if any, is told how many values were sent of how many.
	Progress func(sent, all int)
}

// Plan is a push that knows what the server has and what it lacks. Making it only
// reads from the server.
type Plan struct {
	client *mlflow.Client
	report *reporter.Report
	opts   Options
	id     identity

	// Run is where the numbers go; nil = one of our own, yet to be made.
	Run *mlflow.Run
	// Metrics and Points count the values to send; Known those that the server has.
	Metrics, Points, Known int
	// Notes are what people should know and is no failure.
	Notes []string

	link    *mlflow.Run
	known   map[string]string // experiments by name
	metrics []mlflow.Metric
	dropped int
	moments []moment
}

// Prepare finds the run of a report and what the run lacks.
func Prepare(ctx context.Context, c *mlflow.Client, r *reporter.Report, o Options) (*Plan, error) {
	p := &Plan{client: c, report: r, opts: o, id: newIdentity(r, o.Destination, o.Recorded)}
	if err := p.findRun(ctx); err != nil {
		return nil, fmt.Errorf("find the MLflow run: %w", err)
	}
	if p.Run == nil {
		if err := o.check(ctx, c); err != nil {
			return nil, fmt.Errorf("find the experiment for a run: %w", err)
		}
	}
	if err := p.ask(ctx); err != nil {
		return nil, err
	}
	if p.dropped > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("values that are not finite or have no name, left out: %d", p.dropped))
	}
	return p, nil
}

// ask finds out what of the report the run lacks.
func (p *Plan) ask(ctx context.Context) error {
	p.metrics, p.dropped = metrics(p.report)
	p.moments, p.Known, p.Points = nil, 0, 0
	if err := p.askMetrics(ctx); err != nil {
		return fmt.Errorf("ask for the metrics that the run has: %w", err)
	}
	for _, name := range p.report.NodeNames() {
		t := nodeTrack(name, p.report.Nodes[name])
		t.goesOn = p.opts.GoesOn
		if err := p.askSeries(ctx, t); err != nil {
			return fmt.Errorf("ask how far the series of node %s are: %w", name, err)
		}
	}
	p.Metrics = len(p.metrics)
	for _, m := range p.moments {
		p.Points += len(m.points)
	}
	return nil
}

// RunName is the name of the run that is yet to be made.
func (p *Plan) RunName() string { return runName(p.report) }

// Own tells whether the run is, or will be, one that we made, and so is ours to end.
func (p *Plan) Own() bool {
	return p.Run == nil || p.Run.Tags[TagCreatedBy] == createdBy && !p.opts.Given
}

// Given tells whether the run was named by a person.
func (p *Plan) Given() bool { return p.opts.Given }

// Nodes lists the nodes that are pushed.
func (p *Plan) Nodes() []string { return p.report.NodeNames() }

// Tags are the tags that the run gets, or has.
func (p *Plan) Tags() map[string]string {
	out := make(map[string]string)
	said, _ := p.tags()
	if p.Run == nil {
		said = append(said, p.id.ownTags()...)
	}
	for _, t := range said {
		out[t.Key] = t.Value
	}
	return out
}

// ArtifactName is the path of an artifact in the run.
func (p *Plan) ArtifactName(i int) string { return p.artifactName(p.opts.Artifacts[i].Name) }

// findRun takes the given run, or searches.
func (p *Plan) findRun(ctx context.Context) error {
	d := p.opts.Destination
	if d.RunID != "" {
		run, err := p.client.Run(ctx, d.RunID)
		switch {
		case err == nil:
			p.Run = run
			return errors.Join(active(run), p.findLink(ctx))
		case !d.Elsewhere || !mlflow.NotFound(err):
			return err
		}
		p.opts.Given = false // that is another server's run
	}
	f, err := p.searchPatiently(ctx)
	p.known = f.experiments
	if err != nil || f.run == nil {
		return err
	}
	// A search does not bring all metrics on every server.
	p.link = f.link
	p.Run, err = p.client.Run(ctx, f.run.ID)
	return err
}

// findLink looks whether the job's own run turned up after ours was made.
func (p *Plan) findLink(ctx context.Context) error {
	if !p.Own() || p.Run.Tags[TagJobRun] != "" || p.opts.Invocation == "" {
		return nil
	}
	f, err := p.id.search(ctx, p.client, p.opts.Destination)
	if f.run != nil && f.run.ID == p.Run.ID {
		p.link = f.link
	}
	return err
}

// active refuses a run that was deleted.
func active(run *mlflow.Run) error {
	if run.LifecycleStage == "deleted" {
		return fmt.Errorf("run %s was deleted: restore it (MlflowClient().restore_run), or name another one with --mlflow-run-id", run.ID)
	}
	return nil
}

// searchPatiently searches; where another node may be about to make the run, again
// for a while.
func (p *Plan) searchPatiently(ctx context.Context) (found, error) {
	deadline := time.Now().Add(p.opts.Patience)
	for {
		f, err := p.id.search(ctx, p.client, p.opts.Destination)
		if err != nil || f.run != nil || p.id.first() || !time.Now().Before(deadline) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return f, ctx.Err()
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// first tells whether a run of our own is this recording's to make.
func (id identity) first() bool { return len(id.nodes) == 0 || id.nodes[0] == "0" }

// askMetrics leaves out the metrics that the run has.
func (p *Plan) askMetrics(ctx context.Context) error {
	there := newPast(p.client, p.Run, math.MinInt64, math.MaxInt64)
	var lacking []mlflow.Metric
	for _, m := range p.metrics {
		has, err := there.has(ctx, m)
		if err != nil {
			return err
		}
		if has {
			p.Known++
		} else {
			lacking = append(lacking, m)
		}
	}
	p.metrics = lacking
	return nil
}

// askSeries adds the points of a node that come after the run's last one.
func (p *Plan) askSeries(ctx context.Context, t track) error {
	all := t.moments()
	until, err := p.sentUntil(ctx, t, all)
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.at > until {
			p.moments = append(p.moments, m)
		} else {
			p.Known += len(m.points)
		}
	}
	return nil
}

// sentUntil is the time of the last point of a recording that the run has. Of a recording
// that was thinned the server cannot tell it for sure. But whoever sent the points while
// it went on knows, if nobody pushed the journal meanwhile.
func (p *Plan) sentUntil(ctx context.Context, t track, all []moment) (int64, error) {
	sent, sure := int64(-1), false
	if p.opts.Live != nil && p.Run != nil {
		sent, sure = p.opts.Live.sentUntil(p.Run.ID)
	}
	i, _ := slices.BinarySearchFunc(all, sent+1, func(m moment, at int64) int { return cmp.Compare(m.at, at) })
	rest := all[i:]
	if sure && t.thinned && p.Run.Tags[TagIncomplete] != "true" || len(rest) == 0 {
		return sent, nil
	}
	there := newPast(p.client, p.Run, rest[0].at, rest[len(rest)-1].at)
	there.alone = p.Own()
	asked, err := there.lastPoint(ctx, t, rest)
	return max(sent, asked), err
}

// Send sends what the run lacks. What was sent before an error stays: preparing and
// sending again goes on from there.
func (p *Plan) Send(ctx context.Context) error {
	if p.Run == nil {
		run, err := p.newRun(ctx)
		if err != nil {
			return fmt.Errorf("make a run: %w", err)
		}
		p.Run = run
	}
	if p.Run.Tags == nil {
		p.Run.Tags = make(map[string]string)
	}
	if err := p.sendValues(ctx); err != nil {
		return err
	}
	if err := p.settlePaths(ctx); err != nil {
		return err
	}
	if err := p.sendArtifacts(ctx); err != nil {
		return err
	}
	if err := p.sendLinks(ctx); err != nil {
		return err
	}
	if p.Own() && !p.opts.GoesOn {
		return p.endRun(ctx)
	}
	return nil
}

// newRunTries is how often a run is made whose making failed halfway.
const newRunTries = 8

// newRun makes a run of our own. Where the server may have made it although it did
// not say so, it is looked for before it is made again: there must not be two.
func (p *Plan) newRun(ctx context.Context) (*mlflow.Run, error) {
	for try := 0; ; try++ {
		run, err := p.id.create(ctx, p.client, p.opts.Destination, p.known, p.RunName())
		if err == nil && p.opts.Settle {
			return p.settle(ctx, run)
		}
		if err == nil || !mlflow.Temporary(err) || try == newRunTries-1 {
			return run, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(time.Second / 2 << try):
		}
		f, errSearch := p.id.search(ctx, p.client, p.opts.Destination)
		switch {
		case errSearch != nil:
			return nil, err
		case f.run != nil:
			return f.run, nil
		}
	}
}

// settleAfter is longer than what lies between a search that finds no run and the run
// that is made because of it.
const settleAfter = 300 * time.Millisecond

// settle agrees with other processes that made a run for the same recordings at the
// same time: the least id wins, and whoever made another one deletes it.
func (p *Plan) settle(ctx context.Context, made *mlflow.Run) (*mlflow.Run, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(settleAfter):
	}
	experiments := [][]string{{made.ExperimentID}}
	runs, err := query(ctx, p.client, experiments, tagIs(TagInvocation, p.id.invocation), firstRuns)
	if err != nil {
		return nil, err
	}
	winner := made
	for i, r := range runs {
		if r.Tags[TagCreatedBy] == createdBy && r.ID < winner.ID {
			winner = &runs[i]
		}
	}
	if winner.ID == made.ID {
		return made, nil
	}
	if err := p.client.DeleteRun(ctx, made.ID); err != nil {
		return nil, err
	}
	if p.Run, err = p.client.Run(ctx, winner.ID); err != nil {
		return nil, err
	}
	return p.Run, p.ask(ctx)
}

// sendValues sends metrics and points, and of the tags those that the run lacks.
func (p *Plan) sendValues(ctx context.Context) error {
	said, notes := p.tags()
	p.Notes = append(p.Notes, notes...)
	if p.Run.Tags[TagIncomplete] == "true" && p.report.Run.Incomplete == "" {
		said = append(said, mlflow.Tag{Key: TagIncomplete, Value: "false"})
	}
	if code := p.exitCode(); code != "" { // of all nodes that share the run
		said = append(slices.DeleteFunc(said, func(t mlflow.Tag) bool { return t.Key == TagExitCode }), mlflow.Tag{Key: TagExitCode, Value: code})
	}
	said = without(said, p.Run.Tags)
	sent, all := 0, p.Metrics+p.Points
	for _, b := range pack(p.metrics, said, p.moments) {
		if err := logBatch(ctx, p.client, p.Run.ID, b); err != nil {
			return err
		}
		sent += len(b.Metrics)
		for _, t := range b.Tags {
			p.Run.Tags[t.Key] = t.Value
		}
		if p.opts.Progress != nil {
			p.opts.Progress(sent, all)
		}
	}
	return nil
}

// tags are what is said of the report and of its files.
func (p *Plan) tags() (said []mlflow.Tag, notes []string) {
	said, notes = tags(p.report, p.dropped)
	for _, name := range p.id.nodes {
		said = append(said, mlflow.Tag{Key: tagRecording(name), Value: p.id.recordings[name]})
	}
	for _, a := range p.opts.Artifacts {
		if t := p.claim(a.Name); mlflow.CheckKey(t.Key) == nil {
			said = append(said, t)
		}
	}
	return said, notes
}

// without leaves out the tags that a run has.
func without(tags []mlflow.Tag, has map[string]string) (out []mlflow.Tag) {
	for _, t := range tags {
		if v, ok := has[t.Key]; !ok || v != t.Value {
			out = append(out, t)
		}
	}
	return out
}

// sendArtifacts sends the files. What the store does not take is a note.
func (p *Plan) sendArtifacts(ctx context.Context) error {
	for _, a := range p.opts.Artifacts {
		data, err := a.Data(p.Run.ID)
		if err != nil {
			return err
		}
		err = p.client.UploadArtifact(ctx, p.Run, p.artifactName(a.Name), a.ContentType, data)
		if refused := (*mlflow.ArtifactError)(nil); errors.As(err, &refused) {
			p.Notes = append(p.Notes, err.Error())
		} else if err != nil {
			return err
		}
	}
	return nil
}

// claim is the tag that gives a file its path in the run.
func (p *Plan) claim(name string) mlflow.Tag {
	return mlflow.Tag{Key: tagArtifact + name + "." + p.id.invocation, Value: p.artifactName(name)}
}

// artifactName gives a file a path that no other recording's file has in the run: the
// one that it has already, else the plain one, else one with the invocation.
func (p *Plan) artifactName(name string) string {
	plain := "perfagent/" + name
	if p.Run == nil {
		return plain
	}
	own := tagArtifact + name + "." + p.id.invocation
	if had := p.Run.Tags[own]; had != "" {
		return had
	}
	if p.taken(own, plain) {
		return p.uniqueName(name)
	}
	return plain
}

func (p *Plan) uniqueName(name string) string {
	ext := path.Ext(name)
	return "perfagent/" + name[:len(name)-len(ext)] + "." + p.id.invocation + ext
}

// taken tells whether another recording has a path.
func (p *Plan) taken(own, name string) bool {
	for key, value := range p.Run.Tags {
		if strings.HasPrefix(key, tagArtifact) && key != own && value == name {
			return true
		}
	}
	return false
}

// settlePaths looks, in a run that others may write to at this moment, whether a path
// that was claimed was claimed by another recording as well. Then both give it up.
func (p *Plan) settlePaths(ctx context.Context) error {
	if !p.opts.Given || len(p.opts.Artifacts) == 0 {
		return nil
	}
	run, err := p.client.Run(ctx, p.Run.ID)
	if err != nil {
		return err
	}
	p.Run = run
	for _, a := range p.opts.Artifacts {
		t := p.claim(a.Name)
		if !p.taken(t.Key, t.Value) || mlflow.CheckKey(t.Key) != nil {
			continue
		}
		t.Value = p.uniqueName(a.Name)
		if err := p.client.SetTag(ctx, run.ID, t); err != nil {
			return err
		}
		run.Tags[t.Key] = t.Value
	}
	return nil
}

// sendLinks ties a run of our own and the job's own, which turned up later, together.
func (p *Plan) sendLinks(ctx context.Context) error {
	if p.link == nil {
		return nil
	}
	if err := p.client.SetTag(ctx, p.link.ID, mlflow.Tag{Key: TagMetricsRun, Value: p.Run.ID}); err != nil {
		return err
	}
	return p.client.SetTag(ctx, p.Run.ID, mlflow.Tag{Key: TagJobRun, Value: p.link.ID})
}

// endRun ends a run of our own. Several nodes may share it: the worst status stands, and
// the latest end. Each node's exit code is a tag of its own, so that whoever looks last
// sees all of them, and everybody looks again after having written.
func (p *Plan) endRun(ctx context.Context) error {
	for range 4 { // more than that is a quarrel, not a race
		want, code := p.verdict()
		end := p.report.Run.End.Time
		if p.Run.EndTime.After(end) {
			end = p.Run.EndTime
		}
		had := p.Run.Tags[TagExitCode]
		if p.Run.Status == want && p.Run.EndTime.Equal(end.Truncate(time.Millisecond)) && (code == "" || code == had) {
			return nil
		}
		if err := p.client.UpdateRun(ctx, p.Run.ID, want, end); err != nil {
			return err
		}
		if code != "" && code != had {
			if err := p.client.SetTag(ctx, p.Run.ID, mlflow.Tag{Key: TagExitCode, Value: code}); err != nil {
				return err
			}
		}
		run, err := p.client.Run(ctx, p.Run.ID)
		if err != nil {
			return err
		}
		p.Run = run
	}
	return nil
}

// verdict is how a run ended on all nodes that are known of it, and its exit code: the
// first that is not 0. A status that stands is not made better, but for one of a
// recording whose end was not known.
func (p *Plan) verdict() (want mlflow.Status, code string) {
	want, code = status(p.report), p.exitCode()
	if want != mlflow.Finished {
		return want, code
	}
	stands := p.Run.Status == mlflow.Failed || p.Run.Status == mlflow.Killed
	switch {
	case stands && p.Run.Tags[TagIncomplete] != "true":
		want = p.Run.Status
	case code != "" && code != "0":
		want = mlflow.Failed
	}
	return want, code
}

// exitCode is the first exit code that is not 0, in the order of the nodes, over those
// that the run has and ours.
func (p *Plan) exitCode() string {
	codes := make(map[int]string)
	add := func(key, value string) {
		name, ok := strings.CutPrefix(key, "perfagent.node.")
		if name, ok2 := strings.CutSuffix(name, ".exit_code"); ok && ok2 {
			if n, err := strconv.Atoi(name); err == nil {
				codes[n] = value
			}
		}
	}
	for key, value := range p.Run.Tags {
		add(key, value)
	}
	said, _ := tags(p.report, 0)
	for _, t := range said {
		add(t.Key, t.Value)
	}
	code := ""
	for _, n := range slices.Sorted(maps.Keys(codes)) {
		if code == "" || code == "0" {
			code = codes[n]
		}
	}
	return code
}
