package pusher

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// maxEndTries limits how often the end of a run is written. More is a quarrel, not a race.
const maxEndTries = 4

// endRun ends a run of our own. If several nodes share it, the worst status and the latest end
// stay. Each node's exit code is a tag of its own, so that whoever looks last sees all of them, and
// each node looks again after it has written.
func (p *Plan) endRun(ctx context.Context) error {
	for range maxEndTries {
		status, code := p.endStatus()
		end := p.report.Run.End.Time
		if p.Run.EndTime.After(end) {
			end = p.Run.EndTime
		}

		newCode := code != "" && code != p.Run.Tags[TagExitCode]
		if p.Run.Status == status && p.Run.EndTime.Equal(end.Truncate(time.Millisecond)) && !newCode {
			return nil
		}
		if err := p.client.UpdateRun(ctx, p.Run.ID, status, end); err != nil {
			return err
		}
		if newCode {
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

// endStatus returns how a run ended on all nodes that are known of it, and its exit code, which is
// the first that is not 0. It does not improve on the status that the run has, unless that is from
// a recording whose end was not known.
func (p *Plan) endStatus() (status mlflow.Status, code string) {
	status, code = statusOf(p.report), p.exitCode()
	if status != mlflow.Finished {
		return status, code
	}
	failed := p.Run.Status == mlflow.Failed || p.Run.Status == mlflow.Killed
	switch {
	case failed && p.Run.Tags[tagIncomplete] != "true":
		status = p.Run.Status
	case code != "" && code != "0":
		status = mlflow.Failed
	}
	return status, code
}

// exitCode returns the first exit code that is not 0, in the order of the nodes, of those that the
// run has and ours.
func (p *Plan) exitCode() string {
	codes := make(map[string]string)
	for _, tags := range []map[string]string{p.Run.Tags, ownTags(p.report, 0)} {
		for key, value := range tags {
			node, isNode := strings.CutPrefix(key, nodePrefix)
			if node, isExit := strings.CutSuffix(node, exitSuffix); isNode && isExit && node != "" {
				codes[node] = value
			}
		}
	}

	code := ""
	for _, node := range slices.SortedFunc(maps.Keys(codes), reporter.CompareNodes) {
		if code == "" || code == "0" {
			code = codes[node]
		}
	}
	return code
}

// endAmongNodes settles the exit code and the end of the run among nodes that end at about the same time. Their
// exit codes are points of one metric. That is quick to ask for, while the run itself, with the series of all of
// them, takes a server seconds. The node that leads ends the run, so does the one that ended last so far, and of
// those that failed the first in the order of nodes.
func (p *Plan) endAmongNodes(ctx context.Context) error {
	codes, err := p.client.MetricHistory(ctx, p.Run.ID, MetricExitCode)
	if err != nil {
		return err
	}

	first := mlflow.Metric{Step: math.MaxInt64} // that failed
	var last mlflow.Metric
	for _, m := range codes {
		if m.Value != 0 && m.Step < first.Step {
			first = m
		}
		if m.Timestamp > last.Timestamp || m.Timestamp == last.Timestamp && m.Step > last.Step {
			last = m
		}
	}
	failed := statusOf(p.report) != mlflow.Finished
	if !p.id.createsRun && last.Step != p.step() && !(failed && first.Step >= p.step()) {
		return nil
	}

	if !p.Own() {
		code := strconv.FormatInt(int64(first.Value), 10) // 0 if none failed
		return p.client.SetTag(ctx, p.Run.ID, mlflow.Tag{Key: TagExitCode, Value: code})
	}
	if p.Run, err = p.client.Run(ctx, p.Run.ID); err != nil {
		return err
	}

	return p.endRun(ctx)
}

// step returns the step of the report's only node.
func (p *Plan) step() (step int64) {
	for key, n := range p.report.Nodes {
		step = nodeStep(key, n)
	}
	return step
}

// statusOf returns how a run of our own ended.
func statusOf(r *reporter.Report) mlflow.Status {
	switch {
	case r.Run.Incomplete != "" || r.Run.Signal != "":
		return mlflow.Killed
	case r.Run.ExitCode != nil && *r.Run.ExitCode != 0:
		return mlflow.Failed
	}
	return mlflow.Finished
}
