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
		tight := slices.ContainsFunc(n.Findings, func(f reporter.Finding) bool { return f.ID == MemoryTight })
		if tight || n.Verdict != nil && IsOutOfMemory(n.Verdict.Cause) {
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
			return comparesPeers(f.ID) || f.ID == ruleMemoryUnused && short // all nodes are given the same amount of memory
		})
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
		f.Text += "."
		n := r.Nodes[f.peer.node]
		n.Findings = append(n.Findings, rule.finding(f.Finding))
		sortFindings(n.Findings)
	}
}

// comparesPeers reports whether the rule with the given ID compares nodes or ranks.
func comparesPeers(id string) bool {
	return id == ruleImbalance || id == ruleOddNode || id == Straggler
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
// node without a rank table may also be one rank.
func rankPeers(r *reporter.Report) []peer {
	var out []peer
	several := false
	for name, n := range r.EachNode() {
		several = several || len(n.Ranks) > 1
		for _, rank := range ranksOn(n) {
			if rank.Incomplete != "" || rank.Start.IsZero() { // the run time is unknown
				continue
			}
			if seconds := rank.End.Sub(rank.Start.Time).Seconds(); seconds >= minRunSeconds {
				out = append(out, peer{node: name, rank: rank, end: rank.End.Time, seconds: seconds})
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

// latePeers returns the peers that ended long after the median. A failed run has none, because the first failure
// decides when the peers end.
func latePeers(peers []peer, r *reporter.Report) []peer {
	noEnd := func(p peer) bool { return p.end.IsZero() }
	length := r.Run.Wall()
	if len(peers) < 2 || slices.ContainsFunc(peers, noEnd) || r.Run.Incomplete != "" ||
		r.Run.ExitCode == nil || *r.Run.ExitCode != 0 || !positive(length) || length < findStragglerLength {
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

// lateBusy is the least mean number of CPUs used by a late peer that had too much to do, rather than waited.
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

	f := &reporter.Finding{Text: words, Evidence: p.evidence(of)}
	maps.Copy(f.Evidence, evidence("late", count, "late_seconds", late, "run_seconds", length, "cpus", cpus))
	return f
}

// measure is a quantity that nodes or ranks should share equally.
type measure struct {
	name   string // key in the evidence
	floor  float64
	of     func(*peer) float64
	format func(float64) text.Quantity
	words  string // noun after the value
	minor  bool   // slows nothing down by itself
	node   bool   // known for nodes only
}

func measures() []measure {
	return []measure{
		{
			name: "cpus", floor: findImbalanceCPUs, words: " CPUs",
			of:     func(p *peer) float64 { return p.metric(reporter.MetricJobCores) },
			format: func(v float64) text.Quantity { return text.Quantity{Number: text.CPUs(v)} },
		},
		{
			name: "memory_mb", floor: findImbalanceMB, words: " of memory", minor: true,
			of:     func(p *peer) float64 { return p.metric(reporter.MetricJobMemoryPeak) },
			format: text.TrimmedSize,
		},
		{
			name: "gpu_utilization_pct", floor: findImbalanceGPU, words: " of its GPUs' time", node: true,
			of:     func(p *peer) float64 { return p.input.gpuMean() },
			format: text.Percentage,
		},
	}
}

// gpuMean returns the mean utilization of the job's GPUs in percent, or NaN if it is unknown.
func (e *ruleInput) gpuMean() float64 {
	sum, n := 0.0, 0.0
	for i, g := range e.GPUs {
		if v := e.gpuUse(i); g.OfJob && v >= 0 {
			sum, n = sum+v, n+1
		}
	}
	return sum / n
}

// An outlier is a peer with a value too far from the median of all peers.
type outlier struct {
	peer
	value, median float64
	count         int // peers with a known value
	sameSideCount int // other outliers on the same side of the median
}

// outliers returns the peers with a value too far from the median, except peers that ended early.
func (m *measure) outliers(peers []peer) []outlier {
	var known []outlier
	var values []float64
	longest := 0.0
	for _, p := range peers {
		if v := m.of(&p); v >= 0 && !math.IsInf(v, 1) {
			values, known = append(values, v), append(known, outlier{peer: p, value: v})
			longest = max(longest, p.seconds)
		}
	}
	if len(known) < 2 {
		return nil
	}

	var out []outlier
	middle := median(values)
	for _, o := range known {
		if m.isOutlier(o.value, middle) && o.seconds >= findImbalanceLength*longest {
			o.median, o.count = middle, len(known)
			out = append(out, o)
		}
	}
	return out
}

// farthest returns the outlier farthest from the median, or the first of several at the same distance. ok is false if
// there is none.
func (m *measure) farthest(peers []peer) (farthest outlier, ok bool) {
	list, most := m.outliers(peers), 0.0
	for _, o := range list {
		if off := max(o.value/o.median, o.median/o.value); off > most {
			most, farthest = off, o
		}
	}

	farthest.sameSideCount = -1
	for _, o := range list {
		if o.low() == farthest.low() {
			farthest.sameSideCount++
		}
	}
	return farthest, most > 0
}

// low reports whether the value is below the median.
func (o *outlier) low() bool { return o.value < o.median }

// isOutlier reports whether v is too far from median.
func (m *measure) isOutlier(v, median float64) bool {
	low := median >= m.floor && v < findImbalanceLess*median
	return !math.IsInf(median, 0) && (low || v-median >= m.floor && v > findImbalanceMore*median)
}

// median returns the median of values, which must not be empty.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return sorted[(n-1)/2]/2 + sorted[n/2]/2
}

// imbalances finds the peer farthest from the median of each measure, and returns one finding for each such peer. It is
// a warning unless all measures in it are minor.
func imbalances(nodes, ranks []peer) []peerFinding {
	var out []peerFinding
	for _, m := range measures() {
		peers := nodes
		if len(ranks) > 0 && !m.node {
			peers = ranks
		}
		o, ok := m.farthest(peers)
		if !ok {
			continue
		}

		subject := "on this node the job"
		if o.rank != nil {
			subject = fmt.Sprintf("rank %d", o.rank.Rank)
		}
		head := fmt.Sprintf("Give the %s equal shares of the work, or use fewer of them: %s used ", o.kind(), subject)
		f := addTo(&out, o.peer, o.count, head, o.text(&m))
		f.Evidence[m.name], f.Evidence["median_"+m.name] = text.Round(o.value, 3), text.Round(o.median, 3)
		if o.sameSideCount > 0 {
			f.Evidence["more_"+m.name] = o.sameSideCount
		}
		if f.Severity == "" && m.minor {
			f.Severity = SeverityInfo
		} else if !m.minor {
			f.Severity = SeverityWarning
		}
	}
	return out
}

// addTo adds words to the finding on p in list and returns the finding. A new finding begins with head.
func addTo(list *[]peerFinding, p peer, count int, head, words string) *reporter.Finding {
	i := slices.IndexFunc(*list, func(f peerFinding) bool { return f.peer == p })
	if i < 0 {
		f := &reporter.Finding{Text: head + words, Evidence: p.evidence(count)}
		*list = append(*list, peerFinding{p, f})
		return f
	}
	f := (*list)[i].Finding
	f.Text += ", and " + words
	return f
}

// text returns how far the value is off: "1.2 CPUs where the median of 4 nodes is 6".
func (o *outlier) text(m *measure) string {
	words := fmt.Sprintf("%v%s where the median of %d %s is %v",
		m.format(o.value), m.words, o.count, o.kind(), m.format(o.median))
	if o.sameSideCount > 0 {
		side := "above"
		if o.low() {
			side = "below"
		}
		words += fmt.Sprintf(" (%d are that far %s it)", o.sameSideCount+1, side)
	}
	return words
}

// oddity is an event that may happen to one node of several.
type oddity struct {
	key   string // of the value in the evidence
	holds func(*ruleInput) bool
	value func(*ruleInput) float64
	show  func(float64) string // formats a value
	words string               // what happened to the node, with a verb for its value
}

func oddities() []oddity {
	return []oddity{
		{
			key: "throttled_periods_pct", holds: (*ruleInput).throttled, show: text.Percent,
			value: func(e *ruleInput) float64 { return e.Metric(reporter.MetricThrottled) },
			words: "was stopped by its CPU quota, in %s of the periods",
		},
		{
			key: "swapped_mb", holds: func(e *ruleInput) bool { return judgeSwapping(e) != nil },
			value: (*ruleInput).swapTraffic, show: text.TrimmedSizeText,
			words: "was short of memory: %s went to or came from its swap",
		},
		{
			key: "throttle_pct", holds: func(e *ruleInput) bool { return e.thermalThrottlePct() >= clockedMuch },
			value: (*ruleInput).thermalThrottlePct, show: text.Percent,
			words: "was too hot for %s of the run",
		},
		{
			key: "oom_kills", holds: (*ruleInput).ranOutOfMemory, value: (*ruleInput).oomKills,
			show:  func(v float64) string { return text.Count(v, "process", "processes") },
			words: "ran out of memory: the kernel killed %s of the job there",
		},
	}
}

// swapTraffic returns how much the node moved to and from its swap, in MiB.
func (e *ruleInput) swapTraffic() float64 {
	return finiteOrZero(e.Metric(reporter.MetricSwapIn)) + finiteOrZero(e.Metric(reporter.MetricSwapOut))
}

// ranOutOfMemory reports whether the kernel killed a process of the job for lack of memory.
func (e *ruleInput) ranOutOfMemory() bool {
	if e.Verdict == nil {
		return positive(e.Metric(reporter.MetricJobOOMKills))
	}
	verdicts := []*reporter.Verdict{e.Verdict}
	for _, r := range e.Ranks {
		verdicts = append(verdicts, r.Verdict)
	}
	// The metric also counts kills of other processes in the same group.
	return slices.ContainsFunc(verdicts, func(v *reporter.Verdict) bool {
		return v != nil && (IsOutOfMemory(v.Cause) || v.Number("oom_kills") > 0)
	})
}

// oomKills returns how many processes of the job the kernel killed for lack of memory, at least one if the verdict
// contains a kill.
func (e *ruleInput) oomKills() float64 {
	if !e.ranOutOfMemory() {
		return 0
	}
	return max(1, finiteOrZero(e.Metric(reporter.MetricJobOOMKills)))
}

// finiteOrZero returns v, or 0 if it is unknown or infinite.
func finiteOrZero(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// oddNodes returns a finding for each node that is the only one with some oddity.
func oddNodes(nodes []peer) []peerFinding {
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(p peer) bool { return len(p.input.Metrics) == 0 })
	if len(nodes) < 2 {
		return nil
	}

	var out []peerFinding
	head := fmt.Sprintf("Look at what is different on this node, or leave it out: only it of %d ", len(nodes))
	for _, o := range oddities() {
		odd, most, ok := o.only(nodes)
		if !ok {
			continue
		}
		v := finiteOrZero(o.value(odd.input))
		words := fmt.Sprintf(o.words, o.show(v))
		if most > 0 {
			words += fmt.Sprintf(" (%s at most %s)", text.Plural(len(nodes)-1, "on the other", "on the others"), o.show(most))
		}
		f := addTo(&out, odd, len(nodes), head, words)
		f.Evidence[o.key], f.Evidence["others_"+o.key] = text.Round(v, 3), text.Round(most, 3)
	}
	return out
}

// only returns the node for which the oddity holds, and the greatest value of the other nodes. ok is false unless there
// is exactly one such node.
func (o *oddity) only(nodes []peer) (odd peer, most float64, ok bool) {
	count := 0
	for _, p := range nodes {
		if o.holds(p.input) {
			odd, count = p, count+1
		} else {
			most = max(most, finiteOrZero(o.value(p.input)))
		}
	}
	return odd, most, count == 1
}
