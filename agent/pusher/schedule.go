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

// How many requests a second all nodes of a launch send together. A server takes about 90 batches a second.
const (
	liveRate = 20
	endRate  = 40

	// maxNodes bounds what a variable may say. With so many a node sends every hour and a half.
	maxNodes = 100_000
)

// A pace spreads the requests of the nodes of a launch over time, so that a server sees about as many a second
// however many nodes there are. The zero pace is that of a node by itself: it waits for nothing.
type pace struct {
	nodes    int     // 0: the node is by itself
	fraction float64 // of this node among them, from 0 to less than 1
}

// newPace returns the pace of a node. Without an index its place comes from the name of the host.
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

// countNodes returns how many nodes a launch has; 0 if that is not known. Some launchers tell only the ranks.
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

// period is the time from one live push of the node to the next.
func (p pace) period() time.Duration {
	return max(windowLength, time.Duration(p.nodes)*time.Second/liveRate)
}

// slot returns the number of the node's last slot for a live push that has begun at a time. Slots are a matter of
// the wall clock, so that it does not matter when the nodes began.
func (p pace) slot(at time.Time) int64 {
	since := at.Add(-p.offset()).UnixNano()
	return since / int64(p.period())
}

// begin returns when a slot begins.
func (p pace) begin(slot int64) time.Time {
	return time.Unix(0, slot*int64(p.period())).Add(p.offset())
}

// slack is how many windows the slot of the node that creates the run may be away.
func (p pace) slack() int64 {
	if !p.hasPeers() {
		return 0
	}
	return int64((p.period() + windowLength - 1) / windowLength)
}

func (p pace) offset() time.Duration { return time.Duration(p.fraction * float64(p.period())) }

// Schedule are the times at which a node sends at the end of its job: first what is asked for, then the numbers,
// then the rest. Each turn is spread over all nodes. A nil Turns waits for nothing.
type Schedule struct {
	pace    pace
	began   time.Time
	from    time.Duration // begin of the next turn
	timeout time.Duration
	taken   int
}

// NewSchedule returns the turns of the only node of a report in a push that begins now and may take as long as
// timeout. It is nil if the node is by itself.
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

// wait waits for the next turn. The first one takes at most half of the time, and each of the others half of
// what is left then.
func (t *Schedule) wait(ctx context.Context) error {
	if t == nil {
		return nil
	}

	requests := time.Duration(1)
	if t.taken > 0 {
		requests = 2 // a file and a question, say
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
