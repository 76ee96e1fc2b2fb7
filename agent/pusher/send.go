package pusher

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/perfagent/perfagent/internal/retry"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter/diagnosis"
	"github.com/perfagent/perfagent/reporter/summary"
)

// Send sends the values that the run lacks. Values sent before an error stay on the server: another Prepare and Send
// continue from there.
func (p *Plan) Send(ctx context.Context) error {
	if p.Run == nil {
		run, err := p.newRun(ctx)
		if err != nil {
			return fmt.Errorf("create a run: %w", err)
		}
		p.Run = run
	}
	if p.Run.Tags == nil {
		p.Run.Tags = make(map[string]string)
	}

	// resolvePaths checks the claims that sendValues sends as tags. The files have a separate turn.
	turn := p.opts.Schedule.wait
	steps := []func(context.Context) error{p.sendValues, p.resolvePaths, turn, p.sendArtifacts, p.linkRuns}
	if !p.sentLive { // no node sends before all nodes have found the run
		steps = slices.Insert(steps, 0, turn)
	}
	switch {
	case p.opts.Schedule != nil:
		steps = append(steps, p.endAmongNodes)
	case p.Own() && !p.opts.Running:
		steps = append(steps, p.endRun)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// maxRunTries limits how often newRun tries to create a run.
const maxRunTries = 8

// newRun creates a run. If the server may have created it although the request failed, newRun searches for it before it
// tries again, because there must not be two runs.
func (p *Plan) newRun(ctx context.Context) (*mlflow.Run, error) {
	for try := 0; ; try++ {
		run, err := p.id.create(ctx, p.client, p.opts.Destination, p.experiments, runName(p.report))
		if err == nil && p.opts.ResolveDuplicates {
			return p.resolveDuplicate(ctx, run)
		}
		if err == nil || !mlflow.Temporary(err) || try == maxRunTries-1 {
			return run, err
		}

		if retry.Wait(ctx, time.Second/2<<try) != nil {
			return nil, err
		}
		found, searchErr := p.id.search(ctx, p.client, p.opts.Destination)
		switch {
		case searchErr != nil:
			return nil, err
		case found.run != nil:
			return found.run, nil
		}
	}
}

// resolveDelay is longer than the time from a search that finds no run to the creation of the run.
const resolveDelay = 300 * time.Millisecond

// resolveDuplicate agrees on one run with other processes that created a run for the same recordings at the same time.
// The run with the lowest ID wins, and each of the other processes deletes its run.
func (p *Plan) resolveDuplicate(ctx context.Context, created *mlflow.Run) (*mlflow.Run, error) {
	if err := retry.Wait(ctx, resolveDelay); err != nil {
		return nil, err
	}
	here := []mlflow.Experiment{{ID: created.ExperimentID}}
	runs, err := findRuns(ctx, p.client, here, tagFilter(TagInvocation, p.id.invocation), maxOfInvocation)
	if err != nil {
		return nil, err
	}
	winner := created
	for i, r := range runs {
		if r.Tags[tagCreatedBy] == createdBy && r.ID < winner.ID {
			winner = &runs[i]
		}
	}
	if winner.ID == created.ID {
		return created, nil
	}

	if err := p.client.DeleteRun(ctx, created.ID); err != nil {
		return nil, err
	}
	if p.Run, err = p.client.Run(ctx, winner.ID); err != nil {
		return nil, err
	}
	return p.Run, p.compare(ctx)
}

// sendValues sends metrics and points, and the tags that the run lacks.
func (p *Plan) sendValues(ctx context.Context) error {
	wanted, notes := p.tags()
	p.Notes = append(p.Notes, notes...)
	p.amend(wanted)
	var tags []mlflow.Tag
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if v, ok := p.Run.Tags[key]; !ok || v != wanted[key] {
			tags = append(tags, mlflow.Tag{Key: key, Value: wanted[key]})
		}
	}

	sent, all := 0, p.Metrics+p.Points
	batches := pack(p.metrics, tags, p.windows)
	for i, b := range batches {
		err := logBatch(ctx, p.client, p.Run.ID, b)
		if refused(err) {
			return p.sendWithinLimit(ctx, batches[i:], err)
		}
		if err != nil {
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

// tags returns the tags of the report and its files, by key.
func (p *Plan) tags() (all map[string]string, notes []string) {
	all, notes = tags(p.report, p.dropped)
	for _, name := range p.id.nodes {
		all[tagRecording(name)] = p.id.recordings[name]
	}
	for _, a := range p.opts.Artifacts {
		if t := p.claim(a.Name); mlflow.CheckKey(t.Key) == nil {
			all[t.Key] = t.Value
		}
	}
	return all, notes
}

// amend changes tags so that they agree with the tags that the run has from other nodes and earlier pushes.
func (p *Plan) amend(tags map[string]string) {
	if p.Run.Tags[tagIncomplete] == "true" && p.report.Run.Incomplete == "" {
		tags[tagIncomplete] = "false"
	}
	if (p.Run.Tags[tagCommand] != "" || p.opts.Schedule != nil) && !p.id.createsRun { // the creator of the run sets it
		delete(tags, tagCommand)
	}
	// A description by the job is kept. A node that succeeded or was ended by its launcher does not hide another node
	// that failed.
	described := p.Run.Tags[tagNote] != "" && p.Run.Tags[tagIncomplete] != "true"
	explains := summary.HasFailed(p.report) && !diagnosis.EndedByLauncher(p.report)
	if _, given := p.report.Run.Tags[tagNote]; !given && (!p.Own() || described && !explains) {
		delete(tags, tagNote)
	}
	code := p.exitCode() // the exit code of all nodes that share the run
	switch {
	case code == "":
	case p.opts.Schedule == nil:
		tags[TagExitCode] = code
	default: // endAmongNodes sets it
		delete(tags, TagExitCode)
	}
}

// linkRuns links a run that perfagent created with the job's run, which appeared later.
func (p *Plan) linkRuns(ctx context.Context) error {
	if p.jobRun == nil {
		return nil
	}
	if err := p.client.SetTag(ctx, p.jobRun.ID, mlflow.Tag{Key: tagMetricsRun, Value: p.Run.ID}); err != nil {
		return err
	}
	return p.client.SetTag(ctx, p.Run.ID, mlflow.Tag{Key: tagJobRun, Value: p.jobRun.ID})
}

// sendArtifacts uploads the files. If the artifact store does not accept a file, a note is added.
func (p *Plan) sendArtifacts(ctx context.Context) error {
	for _, a := range p.opts.Artifacts {
		data, err := a.Data(p.Run.ID)
		if err != nil {
			return err
		}
		err = p.client.UploadArtifact(ctx, p.Run, p.artifactPath(a.Name), a.ContentType, data)
		if _, refused := errors.AsType[*mlflow.ArtifactError](err); refused {
			p.Notes = append(p.Notes, err.Error())
		} else if err != nil {
			return err
		}
	}
	return nil
}

// claim returns the tag that claims a path in the run for the file with the given name.
func (p *Plan) claim(name string) mlflow.Tag {
	return mlflow.Tag{Key: tagArtifact + name + "." + p.id.invocation, Value: p.artifactPath(name)}
}

// artifactPath returns a path in the run that no file of another recording has: the path already claimed for this file;
// else perfagent/NAME if no other recording has claimed that; else a path with the invocation.
func (p *Plan) artifactPath(name string) string {
	own, plain := tagArtifact+name+"."+p.id.invocation, "perfagent/"+name
	switch {
	case p.Run == nil:
		return plain
	case p.Run.Tags[own] != "":
		return p.Run.Tags[own]
	case p.isPathClaimed(own, plain):
		return p.uniquePath(name)
	}
	return plain
}

// uniquePath returns a path with the invocation.
func (p *Plan) uniquePath(name string) string {
	ext := path.Ext(name)
	return "perfagent/" + strings.TrimSuffix(name, ext) + "." + p.id.invocation + ext
}

// isPathClaimed reports whether another recording has claimed path. own is the key of our claim.
func (p *Plan) isPathClaimed(own, path string) bool {
	for key, value := range p.Run.Tags {
		if strings.HasPrefix(key, tagArtifact) && key != own && value == path {
			return true
		}
	}
	return false
}

// resolvePaths checks whether another recording has claimed the same path in a given run, because other processes may
// be writing to that run. If so, each of the two recordings uses a path with its invocation instead.
func (p *Plan) resolvePaths(ctx context.Context) error {
	if !p.opts.Given || len(p.opts.Artifacts) == 0 || p.sentLive {
		return nil
	}

	run, err := p.client.Run(ctx, p.Run.ID)
	if err != nil {
		return err
	}
	p.Run = run
	for _, a := range p.opts.Artifacts {
		t := p.claim(a.Name)
		if !p.isPathClaimed(t.Key, t.Value) || mlflow.CheckKey(t.Key) != nil {
			continue
		}
		t.Value = p.uniquePath(a.Name)
		if err := p.client.SetTag(ctx, run.ID, t); err != nil {
			return err
		}
		run.Tags[t.Key] = t.Value
	}
	return nil
}

const (
	// maxItems is MLflow's limit for one request.
	maxItems = 1000

	// maxTagBytes limits the tags in a request with points. A request full of our points stays below MLflow's size
	// limit, but long tags could exceed it.
	maxTagBytes = 100_000
)

// pack fills requests with the metrics and tags, and then with whole windows.
func pack(metrics []mlflow.Metric, tags []mlflow.Tag, windows []window) []mlflow.Batch {
	out := mlflow.Split(mlflow.Batch{Metrics: metrics, Tags: tags})
	var open mlflow.Batch
	if n := len(out); n > 0 && tagBytes(out[n-1].Tags) < maxTagBytes {
		open, out = out[n-1], out[:n-1]
	}

	for _, w := range windows {
		if len(open.Metrics)+len(open.Tags)+len(w.points) > maxItems {
			out = append(out, open)
			open = mlflow.Batch{}
		}
		open.Metrics = append(open.Metrics, w.points...)
	}
	if len(open.Metrics)+len(open.Tags) > 0 {
		out = append(out, open)
	}
	return out
}

func tagBytes(tags []mlflow.Tag) (n int) {
	for _, t := range tags {
		n += len(t.Key) + len(t.Value)
	}
	return n
}

// maxDeduplicated is the largest number of points in a request for which every version of MLflow recognizes points that
// it has stored.
const maxDeduplicated = 100

// logBatch sends a request. MLflow 2.x and the first 3.x on a database refuse a request with more than maxDeduplicated
// points if some of its points are already stored. That happens if another process sent them, if a response was lost,
// or if another recording has the same points. Then logBatch sends the request in parts, which may split a window. The
// anchor, the last point of the request, is still sent last.
func logBatch(ctx context.Context, c *mlflow.Client, runID string, b mlflow.Batch) error {
	err := c.LogBatch(ctx, runID, b)
	if !partlyStored(err) {
		return err
	}

	for part := range slices.Chunk(b.Metrics, maxDeduplicated) {
		if err := logPart(ctx, c, runID, part); err != nil {
			return err
		}
	}
	if len(b.Tags) == 0 {
		return nil
	}
	return c.LogBatch(ctx, runID, mlflow.Batch{Tags: b.Tags})
}

// logPart sends one part of a request. It tries again if points are already stored, because another process may be
// sending the same points at this moment.
func logPart(ctx context.Context, c *mlflow.Client, runID string, part []mlflow.Metric) error {
	for try := time.Duration(1); ; try++ {
		err := c.LogBatch(ctx, runID, mlflow.Batch{Metrics: part})
		if !partlyStored(err) || try == 4 {
			return err
		}
		if retry.Wait(ctx, try*50*time.Millisecond) != nil {
			return err
		}
	}
}

// partlyStored reports whether err means that a database refused points because it has some of them.
func partlyStored(err error) bool {
	e, ok := errors.AsType[*mlflow.Error](err)
	return ok && (strings.Contains(e.Message, "IntegrityError") || strings.Contains(e.Message, "UniqueViolation"))
}
