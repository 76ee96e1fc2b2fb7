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

// maxEndTries limits how often endRun writes the end of a run. Nodes that end at the same time need fewer tries. More
// tries mean that two writers disagree.
const maxEndTries = 4

// endRun ends a run that perfagent created. If several nodes share the run, it keeps the worst status and the latest
// end. Each node's exit code has a separate tag, and each node reads the run again after writing, so the last node to
// read it finds all codes.
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

// endStatus returns the status of the run, from all its known nodes, and the result of exitCode. FINISHED does not
// replace the run's current FAILED or KILLED, unless the current status comes from a recording without a known end.
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

// exitCode returns the first exit code that is not 0, in the order of the nodes, among the tags of the run and of the
// report. It returns "0" if all are 0, and "" if there are none.
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

// endAmongNodes is endRun for a run with many nodes that end at about the same time (Options.Schedule is set). The
// nodes' exit codes are points of one metric, which is quick to read; reading the run, which has the series of all
// nodes, takes a server seconds. So only three nodes end the run: the node that creates it, the latest node to end so
// far, and the failed node with the lowest step.
func (p *Plan) endAmongNodes(ctx context.Context) error {
	codes, err := p.client.MetricHistory(ctx, p.Run.ID, MetricExitCode)
	if err != nil {
		return err
	}

	first := mlflow.Metric{Step: math.MaxInt64} // the failed node with the lowest step
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
		code := strconv.FormatInt(int64(first.Value), 10) // 0 if no node failed
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

// statusOf returns the final status of a run that perfagent created, according to r alone.
func statusOf(r *reporter.Report) mlflow.Status {
	switch {
	case r.Run.Incomplete != "" || r.Run.Signal != "":
		return mlflow.Killed
	case r.Run.ExitCode != nil && *r.Run.ExitCode != 0:
		return mlflow.Failed
	}
	return mlflow.Finished
}
