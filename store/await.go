package store

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/perfagent/perfagent/internal/retry"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
)

// Await polls the store at intervals that grow from minPollDelay to maxPollDelay.
const (
	minPollDelay = 500 * time.Millisecond
	maxPollDelay = 10 * time.Second
)

// ErrUnknownNodes is returned by Await if the first readable report does not state how many nodes the run has.
var ErrUnknownNodes = errors.New("no report has the number of nodes of the run")

// AwaitOptions configures Await.
type AwaitOptions struct {
	Nodes    int                 // number of nodes; 0: the number in the reports
	Limit    time.Duration       // longest wait
	Progress func(final, of int) // called when more nodes have final reports; of is 0 while it is unknown
}

// Await waits until all nodes of run have final reports in the store, or until the time limit, and returns the time
// waited. A temporary error, such as an unreachable server, is returned only if it persists at the time limit.
func (s *Store) Await(ctx context.Context, run string, a AwaitOptions) (time.Duration, error) {
	start, reported := time.Now(), -1
	there := reportCounter{s, run, make(map[string]*reporter.Head)}
	for delay := minPollDelay; ; delay = min(delay*3/2, maxPollDelay) {
		final, of, err := there.count(ctx, a.Nodes)
		all := err == nil && of > 0 && final >= of
		if err == nil && !all && final != reported { // report the progress even if the time is up
			a.Progress(final, of)
			reported = final
		}

		left := a.Limit - time.Since(start)
		switch {
		case ctx.Err() != nil:
			return time.Since(start), context.Cause(ctx)
		case err != nil && (left <= 0 || !Temporary(err)):
			return time.Since(start), err
		case all, left <= 0:
			return time.Since(start), nil
		}

		_ = retry.Wait(ctx, min(delay, left)) // the next iteration checks ctx
	}
}

// A reportCounter counts the nodes of a run with final reports.
type reportCounter struct {
	store *Store
	run   string
	heads map[string]*reporter.Head // of the reports read so far, by name
}

// count returns the number of nodes with a final report, and the number of all nodes: nodes or, if that is 0, the
// number in the first readable report. of is 0 while there is no such report.
func (a *reportCounter) count(ctx context.Context, nodes int) (final, of int, err error) {
	list, err := a.store.listReports(ctx, a.run+"/")
	if err != nil {
		return 0, 0, err
	}

	byNode := make(map[string][]listedReport)
	for _, r := range list {
		if !r.partial {
			byNode[r.node] = append(byNode[r.node], r)
		}
	}
	for _, of := range byNode {
		places, err := a.countNodes(ctx, of)
		if err != nil {
			return 0, 0, err
		}
		final += places
	}

	if nodes == 0 {
		nodes, err = a.nodes(ctx, list)
	}
	return final, nodes, err
}

// countNodes returns the number of nodes in list, the final reports with the same node-N. They are recordings of one
// node or, if nodes have no index, of several hosts. Unreadable reports add no node.
func (a *reportCounter) countNodes(ctx context.Context, list []listedReport) (int, error) {
	if len(list) == 1 {
		return 1, nil
	}

	var different []*reporter.Head
	for _, r := range list {
		head, err := a.head(ctx, r.String())
		if err != nil {
			return 0, err
		}
		same := func(o *reporter.Head) bool { return catalog.SameNode(head, o) }
		if head.Node != "" && !slices.ContainsFunc(different, same) {
			different = append(different, head)
		}
	}
	return max(1, len(different)), nil
}

// nodes returns the number of the run's nodes according to the first readable report.
func (a *reportCounter) nodes(ctx context.Context, list []listedReport) (int, error) {
	for _, r := range list {
		head, err := a.head(ctx, r.String())
		switch {
		case err != nil:
			return 0, err
		case head.Identity != nil && head.Identity.Nodes > 0:
			return head.Identity.Nodes, nil
		case head.Node != "":
			return 0, ErrUnknownNodes
		}
	}
	return 0, nil
}

// head returns the head of the report called name. It is empty for an object that is not a report.
func (a *reportCounter) head(ctx context.Context, name string) (*reporter.Head, error) {
	if head := a.heads[name]; head != nil {
		return head, nil
	}

	data, err := a.store.Get(ctx, name)
	if err != nil && (ctx.Err() != nil || Temporary(err)) {
		return nil, err
	}
	head, err := reporter.ReadHead(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		head = new(reporter.Head)
	}
	a.heads[name] = head
	return head, nil
}
