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

// How long Await waits before it asks again: longer each time.
const (
	minPollDelay = 500 * time.Millisecond
	maxPollDelay = 10 * time.Second
)

// ErrUnknownNodes is the error of Await where no report says how many nodes the run has.
var ErrUnknownNodes = errors.New("no report says how many nodes the run has")

// An AwaitOptions is what Await waits for.
type AwaitOptions struct {
	Nodes    int                 // so many nodes; 0 = as many as the reports say
	Limit    time.Duration       // but not longer than this
	Progress func(final, of int) // called when more of them are there; of is 0 as long as it is not known
}

// Await waits until nodes of a run have final reports in a store, or the time is up, and returns how long that took.
// What may pass by itself, as a server that is away for a while, it waits for, too, unless it is there at the end.
func (s *Store) Await(ctx context.Context, run string, a AwaitOptions) (time.Duration, error) {
	begun, told := time.Now(), -1
	there := reportCounter{s, run, make(map[string]*reporter.Head)}
	for delay := minPollDelay; ; delay = min(delay*3/2, maxPollDelay) {
		final, of, err := there.count(ctx, a.Nodes)
		all := err == nil && of > 0 && final >= of
		if err == nil && !all && final != told { // also where counting took all of the time
			a.Progress(final, of)
			told = final
		}

		left := a.Limit - time.Since(begun)
		switch {
		case ctx.Err() != nil:
			return time.Since(begun), context.Cause(ctx)
		case err != nil && (left <= 0 || !Temporary(err)):
			return time.Since(begun), err
		case all, left <= 0:
			return time.Since(begun), nil
		}

		_ = retry.Wait(ctx, min(delay, left)) // the next round looks at ctx
	}
}

// reportCounter knows which reports of a run are there.
type reportCounter struct {
	store *Store
	run   string
	heads map[string]*reporter.Head // of those that were looked into, by name
}

// count returns how many nodes have a final report, of how many. Unless somebody said, the first report does; before it
// is there it is 0.
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

// countNodes returns how many nodes the final reports of one name are of: one that was recorded again or, where nobody
// gave it an index, several hosts. What cannot be read is of none of its own.
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

// nodes returns how many nodes the run has, as the first report says that can be read.
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

// head returns the head of a report. Of what is no report it is empty.
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
