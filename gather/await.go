package gather

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/store"
)

// How long Await waits before it asks again: longer each time.
const (
	firstDelay = 500 * time.Millisecond
	lastDelay  = 10 * time.Second
)

// ErrUnknownNodes is the error of Await where no report says how many nodes the run has.
var ErrUnknownNodes = errors.New("no report says how many nodes the run has")

// An Awaited is what Await waits for.
type Awaited struct {
	Nodes int                 // so many nodes; 0 = as many as the reports say
	Limit time.Duration       // but not longer than this
	Tell  func(final, of int) // called when more of them are there; of is 0 as long as it is not known
}

// Await waits until nodes of a run have final reports in a store, or the time is up, and returns how long that took. What
// may pass by itself, as a server that is away for a while, it waits for, too, unless it is there at the end.
func Await(ctx context.Context, s *store.Store, run string, a Awaited) (time.Duration, error) {
	begun, told := time.Now(), -1
	for delay := firstDelay; ; delay = min(delay*3/2, lastDelay) {
		final, of, err := arrived(ctx, s, run, a.Nodes)
		left := a.Limit - time.Since(begun)
		switch {
		case ctx.Err() != nil:
			return time.Since(begun), context.Cause(ctx)
		case err != nil && (left <= 0 || !store.Temporary(err)):
			return time.Since(begun), err
		case err == nil && of > 0 && final >= of, left <= 0:
			return time.Since(begun), nil
		}
		if err == nil && final != told {
			a.Tell(final, of)
			told = final
		}

		select {
		case <-ctx.Done():
		case <-time.After(min(delay, left)):
		}
	}
}

// arrived returns how many nodes of a run have a final report, of how many. Unless somebody said, the first report does;
// before it is there it is 0.
func arrived(ctx context.Context, s *store.Store, run string, nodes int) (final, of int, err error) {
	list, err := names(ctx, s, run)
	if err != nil {
		return 0, 0, err
	}
	seen := make(map[string]bool)
	for _, n := range list {
		seen[n.node] = seen[n.node] || !n.partial
	}
	for _, is := range seen {
		if is {
			final++
		}
	}

	if nodes == 0 && len(list) > 0 {
		nodes, err = nodesOf(ctx, s, list[0])
	}
	return final, nodes, err
}

// nodesOf returns how many nodes the run of a report has.
func nodesOf(ctx context.Context, s *store.Store, n name) (int, error) {
	data, err := s.Get(ctx, n.String())
	if err != nil {
		return 0, err
	}
	head, err := reporter.ReadHead(bytes.NewReader(data))
	if err != nil || head.Identity == nil || head.Identity.Nodes == 0 {
		return 0, ErrUnknownNodes
	}
	return head.Identity.Nodes, nil
}
