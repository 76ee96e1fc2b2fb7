package pusher

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/perfagent/perfagent/reporter"
)

// member returns the identity of one of several nodes.
func member(node, nodes int) *reporter.Identity {
	return &reporter.Identity{Node: &node, NodeFrom: "SLURM_NODEID", Nodes: nodes}
}

func TestPace_PeriodGrowsWithNodes(t *testing.T) {
	for nodes, want := range map[int]time.Duration{
		2: 10 * time.Second, 200: 10 * time.Second, 220: 11 * time.Second, 1000: 50 * time.Second,
		2_000_000_000: 5000 * time.Second,
	} {
		if got := newPace(member(0, nodes), "").period(); got != want {
			t.Errorf("period for %d nodes is %v, want %v", nodes, got, want)
		}
	}
}

func TestNewPace_SingleNodeHasNoPeers(t *testing.T) {
	for _, id := range []*reporter.Identity{
		nil, {}, member(0, 0), member(0, 1), {RanksOnNode: 4, WorldSize: 4}, {RanksOnNode: 4}, {WorldSize: 9},
	} {
		if p := newPace(id, "gpu7"); p.hasPeers() {
			t.Errorf("newPace(%+v) = %+v, want one without peers", id, p)
		}
	}
}

func TestNewPace_NodesWithoutIndexDifferByHost(t *testing.T) {
	id := &reporter.Identity{NodeFrom: "none", RanksOnNode: 3, WorldSize: 10}
	a, b := newPace(id, "gpu7"), newPace(id, "gpu8")
	if a.nodes != 4 || a.fraction < 0 || a.fraction >= 1 || a.fraction == b.fraction || a != newPace(id, "gpu7") {
		t.Errorf("paces %+v and %+v, want 4 nodes and a fraction in [0, 1) by host", a, b)
	}
}

// The slots of a node are one period apart. The slots of its neighbor are a twentieth of a second later.
func TestPace_SlotsAreAPeriodApart(t *testing.T) {
	first, second := newPace(member(7, 1000), ""), newPace(member(8, 1000), "")
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for range 100 {
		slot := first.slot(now)
		begin := first.begin(slot)
		if begin.After(now) || !first.begin(slot+1).Equal(begin.Add(50*time.Second)) || first.slot(begin) != slot {
			t.Fatalf("slot %d at %v begins at %v, want a begin that is not later, and 50 s before the next slot", slot, now, begin)
		}
		if got := second.begin(slot).Sub(begin); got != time.Second/20 {
			t.Fatalf("the neighbor's slot begins %v later, want 50ms", got)
		}
		now = now.Add(7919 * time.Millisecond)
	}
}

// Each turn takes a share of the time that grows with the number of nodes, and leaves at least half of the remaining
// time.
func TestSchedule_TurnsLeaveHalfOfTheRemainingTime(t *testing.T) {
	ms := time.Millisecond
	for _, tt := range []struct {
		node, nodes int
		timeout     time.Duration
		want        []time.Duration
	}{
		{0, 1000, 10 * time.Second, []time.Duration{0, 5000 * ms, 7500 * ms}},
		{500, 1000, 10 * time.Second, []time.Duration{2500 * ms, 6250 * ms, 8125 * ms}},
		{500, 1000, time.Hour, []time.Duration{12500 * ms, 50000 * ms, 100000 * ms}},
		{1, 2, 10 * time.Second, []time.Duration{25 * ms, 100 * ms, 200 * ms}},
		{0, 1, 10 * time.Second, []time.Duration{0, 0, 0}},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := &reporter.Report{Nodes: map[string]*reporter.Node{"0": {Identity: member(tt.node, tt.nodes)}}}
			turns, began := NewSchedule(r, tt.timeout), time.Now()
			for i, want := range tt.want {
				if err := turns.wait(t.Context()); err != nil || time.Since(began) != want {
					t.Errorf("node %d of %d: turn %d after %v (%v), want %v", tt.node, tt.nodes, i, time.Since(began), err, want)
				}
			}
		})
	}
}

func TestNodeName_IsIndexOrHostName(t *testing.T) {
	rank, local := 6, 2
	unindexed := &reporter.Identity{NodeFrom: "none", Rank: &rank, LocalRank: &local, WorldSize: 8}
	common := &reporter.Identity{NodeFrom: "none", WorldSize: 16}
	arrived := &reporter.Identity{NodeFrom: "none", Rank: &local} // without a launcher
	host := &reporter.Host{Hostname: "gpu7.example"}
	for _, tt := range []struct {
		node *reporter.Node
		name string
		step int64
	}{
		{&reporter.Node{Host: host}, "3", 3},
		{&reporter.Node{Host: host, Identity: member(3, 9)}, "3", 3},
		{&reporter.Node{Host: host, Identity: arrived}, "3", 3},
		{&reporter.Node{Host: host, Identity: common}, "gpu7.example", 3},
		{&reporter.Node{Host: host, Identity: unindexed}, "gpu7.example", 6},
		{&reporter.Node{Identity: unindexed}, "3", 3},
		{&reporter.Node{Host: &reporter.Host{Hostname: "a'b"}, Identity: unindexed}, "3", 3},
		{&reporter.Node{Host: host, Identity: common, Ranks: map[string]*reporter.Rank{
			"12": {Rank: 12}, "4": {Rank: 4}, "9": nil,
		}}, "gpu7.example", 4},
		{&reporter.Node{Host: host, Identity: common, Ranks: map[string]*reporter.Rank{"9": nil}}, "gpu7.example", 3},
	} {
		if name, step := nodeName("3", tt.node), nodeStep("3", tt.node); name != tt.name || step != tt.step {
			t.Errorf("node %+v: name %s, step %d; want %s, %d", tt.node, name, step, tt.name, tt.step)
		}
	}
}

func TestCreatesRun_IsTrueOnFirstNode(t *testing.T) {
	zero, two, three := 0, 2, 3
	for _, tt := range []struct {
		node int
		id   *reporter.Identity
		want bool
	}{
		{0, nil, true}, {1, nil, false},
		{0, member(0, 5), true}, {4, member(4, 5), false},
		{0, &reporter.Identity{NodeFrom: "none"}, true},
		{0, &reporter.Identity{NodeFrom: "none", WorldSize: 8, Rank: &zero}, true},
		{0, &reporter.Identity{NodeFrom: "none", WorldSize: 8, Rank: &two}, false},
		{0, &reporter.Identity{NodeFrom: "none", WorldSize: 8, Rank: &two, LocalRank: &two}, true},
		{0, &reporter.Identity{NodeFrom: "none", WorldSize: 8, Rank: &three, LocalRank: &two}, false},
	} {
		if got := createsRun(tt.node, tt.id); got != tt.want {
			t.Errorf("createsRun(%d, %+v) = %v, want %v", tt.node, tt.id, got, tt.want)
		}
	}
}
