package pusher

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perfagent/perfagent/mlflow"
)

// Send sends what the run lacks. What was sent before an error stays there: to prepare and send
// again continues from that point.
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

	turn := p.opts.Turns.wait
	steps := []func(context.Context) error{p.sendValues, p.settlePaths, turn, p.sendArtifacts, p.linkRuns}
	if !p.sentLive { // nobody sends before all nodes have looked for the run
		steps = slices.Insert(steps, 0, turn)
	}
	switch {
	case p.opts.Turns != nil:
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

// maxRunTries limits how often a run is created whose creation failed halfway.
const maxRunTries = 8

// newRun creates a run of our own. If the server may have created it although it did not say so, it
// is looked for before it is created again: there must not be two.
func (p *Plan) newRun(ctx context.Context) (*mlflow.Run, error) {
	for try := 0; ; try++ {
		run, err := p.id.create(ctx, p.client, p.opts.Destination, p.experiments, p.RunName())
		if err == nil && p.opts.Settle {
			return p.settle(ctx, run)
		}
		if err == nil || !mlflow.Temporary(err) || try == maxRunTries-1 {
			return run, err
		}

		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(time.Second / 2 << try):
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

// settleAfter is longer than the time between a search that finds no run and the run that is
// created because of it.
const settleAfter = 300 * time.Millisecond

// settle agrees with other processes that created a run for the same recordings at the same time.
// The lowest ID wins, and whoever created another run deletes it.
func (p *Plan) settle(ctx context.Context, created *mlflow.Run) (*mlflow.Run, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(settleAfter):
	}

	here := experiments{client: p.client, ids: [][]string{{created.ExperimentID}}}
	runs, err := here.findRuns(ctx, tagIs(TagInvocation, p.id.invocation), maxOfInvocation)
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
	tags, notes := p.tags()
	p.Notes = append(p.Notes, notes...)
	tags = missingTags(p.amend(tags), p.Run.Tags)

	sent, all := 0, p.Metrics+p.Points
	batches := pack(p.metrics, tags, p.windows)
	for i, b := range batches {
		err := logBatch(ctx, p.client, p.Run.ID, b)
		if refused(err) {
			return p.sendWithin(ctx, batches[i:], err)
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

// tags returns what is said of the report and of its files.
func (p *Plan) tags() (all []mlflow.Tag, notes []string) {
	all, notes = tags(p.report, p.dropped)
	for _, name := range p.id.nodes {
		all = append(all, mlflow.Tag{Key: tagRecording(name), Value: p.id.recordings[name]})
	}
	for _, a := range p.opts.Artifacts {
		if t := p.claim(a.Name); mlflow.CheckKey(t.Key) == nil {
			all = append(all, t)
		}
	}
	return all, notes
}

// amend makes tags agree with those that other nodes and earlier pushes gave to the run.
func (p *Plan) amend(tags []mlflow.Tag) []mlflow.Tag {
	if p.Run.Tags[tagIncomplete] == "true" && p.report.Run.Incomplete == "" {
		tags = append(tags, mlflow.Tag{Key: tagIncomplete, Value: "false"})
	}
	if said := p.Run.Tags[tagCommand] != "" || p.opts.Turns != nil; said && !p.id.leads { // by the node that leads
		tags = slices.DeleteFunc(tags, func(t mlflow.Tag) bool { return t.Key == tagCommand })
	}
	code := p.exitCode() // of all nodes that share the run
	if code != "" {
		tags = slices.DeleteFunc(tags, func(t mlflow.Tag) bool { return t.Key == TagExitCode })
	}
	if code != "" && p.opts.Turns == nil { // else endAmongNodes settles it
		tags = append(tags, mlflow.Tag{Key: TagExitCode, Value: code})
	}
	return tags
}

// missingTags returns the tags that a run does not have.
func missingTags(tags []mlflow.Tag, has map[string]string) (out []mlflow.Tag) {
	for _, t := range tags {
		if v, ok := has[t.Key]; !ok || v != t.Value {
			out = append(out, t)
		}
	}
	return out
}

// linkRuns links a run of our own and the job's own, which turned up later.
func (p *Plan) linkRuns(ctx context.Context) error {
	if p.jobRun == nil {
		return nil
	}
	if err := p.client.SetTag(ctx, p.jobRun.ID, mlflow.Tag{Key: tagMetricsRun, Value: p.Run.ID}); err != nil {
		return err
	}
	return p.client.SetTag(ctx, p.Run.ID, mlflow.Tag{Key: tagJobRun, Value: p.jobRun.ID})
}
