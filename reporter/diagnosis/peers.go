package diagnosis

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// A peer is a node or rank that is compared with the other nodes or ranks of the run.
type peer struct {
	node    string
	input   *ruleInput     // of the node; nil for a rank
	rank    *reporter.Rank // nil for a node
	end     time.Time
	seconds float64 // run time
}

// peerFinding is a finding on one peer.
type peerFinding struct {
	peer peer
	*reporter.Finding
}

// memoryRanShort reports whether any node had too little memory.
func memoryRanShort(r *reporter.Report) bool {
	for _, n := range r.EachNode() {
		if v := n.Verdict; v != nil && IsOutOfMemory(v.Cause) {
			return true
		}
		if slices.ContainsFunc(n.Findings, func(f reporter.Finding) bool { return f.ID == MemoryTight }) {
			return true
		}
	}

	return false
}

// addPeerFindings computes the findings that compare nodes or ranks, and replaces the results of earlier merges. The
// result depends only on the nodes' numbers, so the order and the steps of merging make no difference. Each node gets a
// new list of findings, which is not nil.
func addPeerFindings(r *reporter.Report) {
	short := memoryRanShort(r)
	for _, n := range r.EachNode() {
		n.Findings = slices.DeleteFunc(append([]reporter.Finding{}, n.Findings...), func(f reporter.Finding) bool {
			return comparesPeers(f.ID) || f.ID == ruleMemoryUnused && short // all nodes get the same amount
		})
	}

	if !hasPeers(r) {
		return
	}
	nodes, ranks := nodePeers(r), rankPeers(r)
	addRuleFindings(r, ruleImbalance, imbalances(nodes, ranks))
	addRuleFindings(r, ruleOddNode, oddNodes(nodes))
	if len(ranks) == 0 {
		ranks = nodes
	}
	addRuleFindings(r, Straggler, stragglers(ranks, r))
}

// addRuleFindings adds the findings in list, which are of the rule with the given ID, to their nodes.
func addRuleFindings(r *reporter.Report, id string, list []peerFinding) {
	rule := ruleOf(id)
	for _, f := range list {
		n := r.Nodes[f.peer.node]
		n.Findings = append(n.Findings, rule.finding(f.Finding))
		sortFindings(n.Findings)
	}
}

// comparesPeers reports whether the rule with the given ID compares nodes or ranks.
func comparesPeers(id string) bool {
	return id == ruleImbalance || id == ruleOddNode || id == Straggler
}

// hasPeers reports whether r has several nodes, or a node with several ranks.
func hasPeers(r *reporter.Report) bool {
	for _, n := range r.Nodes {
		if n != nil && len(n.Ranks) > 1 {
			return true
		}
	}

	return len(r.Nodes) > 1
}

// nodePeers returns the nodes to which rules apply.
func nodePeers(r *reporter.Report) []peer {
	var out []peer
	for name, n := range r.EachNode() {
		e := newRuleInput(n, &r.Run)
		if e == nil {
			continue
		}
		p := peer{node: name, input: e, seconds: e.wall}
		if n.Job != nil {
			p.end = n.Job.End.Time
		}
		out = append(out, p)
	}
	return out
}

// rankPeers returns the ranks of all nodes that ran for at least minRunSeconds, or nil if no node has several ranks. A
// node without a rank table may be one rank, too.
func rankPeers(r *reporter.Report) []peer {
	var out []peer
	several := false
	for name, n := range r.EachNode() {
		several = several || len(n.Ranks) > 1
		for _, rank := range ranksOn(n) {
			if p := newRankPeer(name, rank); p.seconds >= minRunSeconds {
				out = append(out, p)
			}
		}
	}
	if !several {
		return nil
	}
	return out
}

// ranksOn returns the ranks of n in order. Without a rank table, the node's job counts as a rank if its environment
// gave it a number.
func ranksOn(n *reporter.Node) []*reporter.Rank {
	id, j := n.Identity, n.Job
	if len(n.Ranks) > 0 || id == nil || id.Rank == nil || j == nil {
		return n.RankList()
	}
	return []*reporter.Rank{{Rank: *id.Rank, Start: j.Start, End: j.End, ExitCode: j.ExitCode, Metrics: n.Metrics}}
}

// newRankPeer returns r as a peer. A rank without a known start and end has a run time of 0.
func newRankPeer(node string, r *reporter.Rank) peer {
	p := peer{node: node, rank: r}
	if r.Incomplete == "" && !r.Start.IsZero() {
		p.end, p.seconds = r.End.Time, r.End.Sub(r.Start.Time).Seconds()
	}
	return p
}

// metric returns the named metric of the peer, or NaN if it is unknown.
func (p *peer) metric(name string) float64 {
	if p.rank == nil {
		return p.input.Metric(name)
	}
	if v, ok := p.rank.Metrics[name]; ok {
		return v
	}
	return math.NaN()
}

// kind returns "nodes" or "ranks".
func (p *peer) kind() string {
	if p.rank != nil {
		return "ranks"
	}
	return "nodes"
}

// evidence returns evidence with the number of peers and, for a rank, which one this is.
func (p *peer) evidence(count int) map[string]any {
	e := evidence(p.kind(), count)
	if p.rank != nil {
		e["rank"] = p.rank.Rank
	}
	return e
}

// OddRanks returns the ranks that are too far from the median of CPUs or memory, or ended too late, by the
// thresholds of the rules imbalance and straggler.
func OddRanks(r *reporter.Report) map[*reporter.Rank]bool {
	ranks := rankPeers(r)
	out := make(map[*reporter.Rank]bool)
	for _, m := range measures() {
		if m.node {
			continue
		}
		for _, o := range m.outliers(ranks) {
			out[o.rank] = true
		}
	}
	for _, p := range latePeers(ranks, r) {
		out[p.rank] = true
	}
	return out
}

// stragglers returns the finding on the peer that ended last, if that was long after the median.
func stragglers(peers []peer, r *reporter.Report) []peerFinding {
	late := latePeers(peers, r)
	if len(late) == 0 {
		return nil
	}

	last := slices.MaxFunc(late, func(a, b peer) int { return a.end.Compare(b.end) })
	after := last.end.Sub(medianEnd(peers)).Seconds()
	return []peerFinding{{last, lateFinding(&last, after, r.Run.Wall(), len(late), len(peers))}}
}

// latePeers returns the peers that ended long after the median. A failed run has none, because there the first failure
// decides when the peers end.
func latePeers(peers []peer, r *reporter.Report) []peer {
	noEnd := func(p peer) bool { return p.end.IsZero() }
	length := r.Run.Wall()
	switch {
	case len(peers) < 2 || slices.ContainsFunc(peers, noEnd) || r.Run.Incomplete != "":
		return nil
	case r.Run.ExitCode == nil || *r.Run.ExitCode != 0:
		return nil
	case !positive(length) || length < findStragglerLength:
		return nil
	}

	middle := medianEnd(peers)
	return slices.DeleteFunc(slices.Clone(peers), func(p peer) bool {
		return p.end.Sub(middle).Seconds() <= findStragglerShare*length
	})
}

// medianEnd returns the median of the peers' ends.
func medianEnd(peers []peer) time.Time {
	times := make([]time.Time, 0, len(peers))
	for _, p := range peers {
		times = append(times, p.end)
	}
	slices.SortFunc(times, time.Time.Compare)
	low, high := times[(len(times)-1)/2], times[len(times)/2]
	return low.Add(high.Sub(low) / 2)
}

// lateBusy is how many CPUs a late peer used on average if it had too much to do, rather than waited.
const lateBusy = 0.7

// lateFinding returns the finding on p, which ended last: late seconds after the median. Of all peers, count were late.
func lateFinding(p *peer, late, length float64, count, of int) *reporter.Finding {
	subject := "the job of this node"
	if p.rank != nil {
		subject = fmt.Sprintf("rank %d", p.rank.Rank)
	}
	cpus := p.metric(reporter.MetricJobCores)
	words := "Find what " + subject + " waited for: "
	used := "it used " + text.CPUs(cpus) + " " + text.Plural(cpus, "CPU", "CPUs") + ", and "
	switch {
	case cpus >= lateBusy:
		words = "Give " + subject + " less to do: "
	case math.IsNaN(cpus):
		used = ""
	case cpus < 0.995:
		used = "it used " + text.WholePercent(100*cpus) + " of a CPU, and "
	}
	words += used + "the other " + strconv.Itoa(of-count) + " had nothing to do for " +
		text.WholePercent(100*late/length) + " of the run"
	if count > 1 {
		words += " (" + text.Count(count, "was", "were") + " late)"
	}

	f := &reporter.Finding{Text: words + ".", Evidence: p.evidence(of)}
	maps.Copy(f.Evidence, evidence("late", count, "late_seconds", late, "run_seconds", length, "cpus", cpus))
	return f
}
