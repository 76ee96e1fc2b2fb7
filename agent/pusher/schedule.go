package pusher

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"github.com/perfagent/perfagent/internal/retry"
	"github.com/perfagent/perfagent/reporter"
)

// Total number of requests per second from all nodes of a launch, during the job and at its end. A server handles about
// 90 batches per second.
const (
	liveRate = 20
	endRate  = 40

	// maxNodes limits the node count read from an environment variable. With this many nodes, each node sends every 83
	// minutes.
	maxNodes = 100_000
)

// A pace spreads the requests of a launch's nodes over time, so that the server's load hardly depends on the number of
// nodes. The zero pace is for a node without peers, which does not wait.
type pace struct {
	nodes    int     // 0 means no peers
	fraction float64 // position of this node among them, in [0, 1)
}

// newPace returns the pace of a node. The fraction comes from the node's index or, without one, from a hash of host.
func newPace(id *reporter.Identity, host string) pace {
	nodes := min(countNodes(id), maxNodes)
	if nodes < 2 {
		return pace{}
	}
	if id.Node != nil && *id.Node >= 0 {
		return pace{nodes: nodes, fraction: float64(*id.Node%nodes) / float64(nodes)}
	}

	h := fnv.New32a()
	_, _ = h.Write([]byte(host)) // never fails (hash.Hash)

	return pace{nodes: nodes, fraction: float64(h.Sum32()) / (math.MaxUint32 + 1)}
}

// countNodes returns the number of nodes of a launch, or 0 if it is unknown. It computes the number from the ranks if
// the launcher sets only ranks.
func countNodes(id *reporter.Identity) int {
	switch {
	case id == nil:
		return 0
	case id.Nodes > 0:
		return id.Nodes
	case id.RanksOnNode > 0:
		return (id.WorldSize + id.RanksOnNode - 1) / id.RanksOnNode
	}
	return 0
}

// hasPeers reports whether there are other nodes.
func (p pace) hasPeers() bool { return p.nodes > 1 }

// period returns the time from one live push of the node to the next.
func (p pace) period() time.Duration {
	return max(windowLength, time.Duration(p.nodes)*time.Second/liveRate)
}

// slot returns the number of the node's latest slot for a live push that begins at or before the given time. Slots
// depend on the wall clock, not on the start of the node.
func (p pace) slot(at time.Time) int64 {
	since := at.Add(-p.offset()).UnixNano()
	return since / int64(p.period())
}

// begin returns the start of the given slot.
func (p pace) begin(slot int64) time.Time {
	return time.Unix(0, slot*int64(p.period())).Add(p.offset())
}

// slack returns the longest possible time, in windows, between this node's slot and the slot of the node that creates
// the run.
func (p pace) slack() int64 {
	if !p.hasPeers() {
		return 0
	}
	return int64((p.period() + windowLength - 1) / windowLength)
}

func (p pace) offset() time.Duration { return time.Duration(p.fraction * float64(p.period())) }

// A Schedule holds the times at which a node sends at the end of its job: first its queries, then the numbers, then the
// rest. In each of these turns, the nodes begin one after the other. A nil Schedule does not wait.
type Schedule struct {
	pace    pace
	began   time.Time
	from    time.Duration // start of the next turn, relative to began
	timeout time.Duration
	taken   int
}

// NewSchedule returns the schedule for the only node of a report. The push begins now and may take timeout. It is nil
// if the node has no peers, or if the report has several nodes.
func NewSchedule(r *reporter.Report, timeout time.Duration) *Schedule {
	names := r.NodeNames()
	if len(names) != 1 {
		return nil
	}
	n := r.Nodes[names[0]]
	p := newPace(n.Identity, hostOf(n))
	if !p.hasPeers() {
		return nil
	}

	return &Schedule{pace: p, began: time.Now(), timeout: timeout}
}

// wait waits for the next turn. The first turn takes, for all nodes, at most half of the timeout. Each later turn takes
// at most half of the remaining time.
func (t *Schedule) wait(ctx context.Context) error {
	if t == nil {
		return nil
	}

	requests := time.Duration(1)
	if t.taken > 0 {
		requests = 2 // a file and a query, for example
	}
	width := min(requests*time.Duration(t.pace.nodes)*time.Second/endRate, (t.timeout-t.from)/2)
	at := t.began.Add(t.from + time.Duration(t.pace.fraction*float64(width)))
	t.from += width
	t.taken++

	if err := retry.Wait(ctx, time.Until(at)); err != nil {
		return fmt.Errorf("wait for the turn of the node: %w", err)
	}
	return nil
}
