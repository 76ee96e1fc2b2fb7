package reporter

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/text"
)

const (
	// maxProcesses is the number of processes with the most CPU time in a job's table, and also the number with the
	// most memory.
	maxProcesses = 20
	// maxMarks is the maximum number of marks that a node keeps.
	maxMarks = 1000
)

// node returns the combined node. It adds a Missing if some ranks of the node have no recording.
func (c *combiner) node() *Node {
	var n *Node
	if len(c.parts) == 1 {
		n = c.singlePart()
	} else {
		n = c.combineParts()
	}

	n.Identity = c.identity()
	if id := n.Identity; id != nil && id.RanksOnNode > len(n.Ranks) {
		lacks := int64(id.RanksOnNode - len(n.Ranks))
		n.Missing = append(n.Missing, Missing{What: "ranks", Code: NoRecording, Count: lacks, Total: int64(id.RanksOnNode),
			Why: fmt.Sprintf("%d of the node's %d ranks %s no recording", lacks, id.RanksOnNode,
				text.Plural(int(lacks), "has", "have"))})
	}
	return n
}

// singlePart returns the node of the only part, with the envelopes of the ranks and without a verdict or findings.
func (c *combiner) singlePart() *Node {
	p := c.parts[0]
	n := *p.Node
	n.Verdict, n.Findings, n.Missing = nil, nil, slices.Clone(n.Missing)
	if n.Job != nil {
		n.Job = new(*n.Job)
	}

	if len(p.ranks) > 1 {
		for _, r := range p.ranks {
			r.Envelope = p.Ranks[strconv.Itoa(r.Rank)].Envelope
		}
	} else {
		for key, band := range n.Envelope {
			if ofJob(key) {
				p.ranks[0].Envelope[key] = band
			}
		}
	}
	n.Ranks = c.ranksByName()
	return &n
}

func (c *combiner) combineParts() *Node {
	c.alignGPUs()
	c.findHostSpans()
	c.findOffsets()

	base := c.base()
	n := &Node{
		Host: base.Host, Agent: c.agent(), Job: c.wholeJob(), Limits: c.limits(), GPUs: c.gpus(), Mounts: c.mounts(),
		Metrics: make(Values), Summaries: make(map[string]Summary), Processes: c.processes(),
		Missing: []Missing{}, Push: c.push(),
	}
	c.addDeaths(n)
	c.addMarksAndOperations(n)
	for _, p := range c.parts {
		if p.LogTail != nil {
			p.ranks[0].LogTail = p.LogTail // it is the only rank of its part
		}
	}
	c.series(n)
	n.Sampling = c.sampling(n)
	c.hostMetrics(n)
	c.hostSummaries(n)
	c.jobMetrics(n)
	c.jobSummaries(n)
	n.Missing = c.missing(n)
	n.Ranks = c.ranksByName()
	for n.Sampling != nil && n.Samples.Len() > max(2, n.Sampling.MaxLength) {
		n.halve()
	}
	return n
}

// identity returns the part of the identity that the ranks of the node have in common.
func (c *combiner) identity() *Identity {
	common := joinedOf(c.parts, func(p *rankPart) *Identity { return p.Identity }, func(_, _ *Identity) {})
	if common != nil {
		common.Rank, common.LocalRank = nil, nil
	}
	return common
}

// agent returns the sum of the CPU times of the perfagents, and their highest memory.
func (c *combiner) agent() *Agent {
	return joinedOf(c.parts, func(p *rankPart) *Agent { return p.Agent }, func(have, more *Agent) {
		have.CPUSeconds += more.CPUSeconds
		have.MaxRSSMB = max(have.MaxRSSMB, more.MaxRSSMB)
	})
}

// push returns the push state of the part with the most advanced push.
func (c *combiner) push() *Push {
	return slices.MaxFunc(c.parts, func(a, b *rankPart) int {
		return cmp.Compare(pushProgress(a.Push),
			pushProgress(b.Push))
	}).Push
}

// hostSeconds returns the number of seconds for which the part's perfagent measured the host.
func (p *rankPart) hostSeconds() (seconds float64) {
	if p.Sampling == nil {
		return 0
	}
	for _, h := range p.Sampling.HostSpans {
		seconds += h.seconds()
	}
	return seconds
}

// sampling returns the Sampling of the node, from the ranks that supply its points.
func (c *combiner) sampling(n *Node) *Sampling {
	base := c.base().Sampling
	if base == nil {
		return nil
	}

	out := *base
	out.HostSpans, out.ClockSteps, out.Suspends = nil, nil, nil
	out.Samples, out.MissedTicks, out.Stride = 0, 0, max(1, base.Stride)
	if len(c.axis.ends) > 0 {
		out.Start = Time{unixTime(c.axis.begin)}
	}
	for _, h := range c.hostSeries {
		out.HostSpans = append(out.HostSpans, h.Sampling.HostSpans...)
		out.Disks = union(out.Disks, h.Sampling.Disks)
		out.NICs = union(out.NICs, h.Sampling.NICs)
	}
	for i := 1; i < len(c.hostSeries); i++ {
		gap := c.hostSeries[i].start.Sub(c.hostSeries[i-1].end.Time).Seconds()
		out.LongestGapSeconds = max(out.LongestGapSeconds, gap)
	}

	for _, s := range c.spans {
		of := s.Sampling
		if of == nil {
			continue
		}
		out.Stride = max(out.Stride, of.Stride)
		out.LongestGapSeconds = max(out.LongestGapSeconds, of.LongestGapSeconds)
		out.Samples += min(of.Samples, int64(s.j-s.i)*max(1, of.Stride))
		if all := len(s.axis.ends); s.j-s.i == all {
			out.MissedTicks += of.MissedTicks
		} else {
			out.MissedTicks += of.MissedTicks * int64(s.j-s.i) / int64(all)
		}
		out.ClockSteps = append(out.ClockSteps, s.within(of.ClockSteps)...)
		out.Suspends = append(out.Suspends, s.within(of.Suspends)...)
	}
	return &out
}

// within returns the events that are within the span.
func (s axisSpan) within(events []ClockEvent) []ClockEvent {
	var out []ClockEvent
	for _, e := range events {
		at := float64(e.At.UnixMicro()) / 1e6
		if (s.i == 0 || at > s.axis.from(s.i)) && (s.j == len(s.axis.ends) || at <= s.axis.ends[s.j-1]) {
			out = append(out, e)
		}
	}
	return out
}

// gpus returns the GPUs of all parts, without duplicates. OfJob is set if any rank could see the GPU.
func (c *combiner) gpus() []GPU {
	var out []GPU
	parts := slices.Clone(c.parts) // the parts that measured the host come first
	slices.SortStableFunc(parts, func(a, b *rankPart) int { return cmp.Compare(b.hostSeconds(), a.hostSeconds()) })
	for _, p := range parts {
		for _, g := range p.GPUs {
			i := slices.IndexFunc(out, g.same)
			if i < 0 {
				out = append(out, g)
				continue
			}
			have := &out[i]
			have.OfJob, have.MIG = have.OfJob || g.OfJob, have.MIG || g.MIG
			have.Throttle = union(have.Throttle, g.Throttle)
			if g.ClockMHz > have.ClockMHz || !have.ClockMHz.Known() {
				have.ClockMHz = g.ClockMHz
			}
			have.Idle = have.Idle.plus(g.Idle)
		}
	}
	return out
}

// same reports whether g and o describe the same device.
func (g GPU) same(o GPU) bool {
	if g.UUID != "" && o.UUID != "" {
		return g.UUID == o.UUID
	}
	return g.Index == o.Index
}

// plus combines the idle times of a GPU from two ranks that measured it one after the other.
func (i *GPUIdle) plus(o *GPUIdle) *GPUIdle {
	if i == nil || o == nil {
		return cmp.Or(i, o)
	}
	mean := func(a, b series.Optional) series.Optional {
		x, y := float64(a), float64(b)
		return series.Optional(*weighted(&x, i.Seconds, &y, o.Seconds))
	}
	return &GPUIdle{
		Seconds: i.Seconds + o.Seconds, Gaps: i.Gaps + o.Gaps,
		LongestGapSeconds:  max(i.LongestGapSeconds, o.LongestGapSeconds),
		JobCPUs:            mean(i.JobCPUs, o.JobCPUs),
		DiskMBPerSecond:    mean(i.DiskMBPerSecond, o.DiskMBPerSecond),
		WaitingForStorePct: mean(i.WaitingForStorePct, o.WaitingForStorePct),
	}
}

// processes joins the process tables of the ranks, and cuts the result to the size of one job's table.
func (c *combiner) processes() []Process {
	var all []Process
	for _, p := range c.parts {
		all = append(all, p.Processes...)
	}
	slices.SortStableFunc(all, func(a, b Process) int { return cmp.Compare(b.PeakMemoryMB, a.PeakMemoryMB) })
	largest := slices.Clone(all[:min(maxProcesses, len(all))])
	slices.SortStableFunc(all, compareProcesses)

	out := slices.Clone(all[:min(maxProcesses, len(all))])
	for _, p := range largest {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, compareProcesses)
	return out
}

// addDeaths joins the deaths of the ranks, in the order of time.
func (c *combiner) addDeaths(n *Node) {
	var all []Death
	more := int64(0)
	for _, p := range c.parts {
		all, more = append(all, p.Deaths...), more+p.MoreDeaths
		n.QuietExits += p.QuietExits
	}
	slices.SortStableFunc(all, func(a, b Death) int { return a.End.Compare(b.End.Time) })
	n.setDeaths(all, more)
}

// compareProcesses orders processes by CPU time, highest first.
func compareProcesses(a, b Process) int {
	return cmp.Or(cmp.Compare(b.CPUSeconds, a.CPUSeconds),
		cmp.Compare(b.EndedChildrenCPUSeconds, a.EndedChildrenCPUSeconds),
		cmp.Compare(b.PeakMemoryMB, a.PeakMemoryMB), cmp.Compare(a.PID, b.PID))
}

// addMarksAndOperations adds the marks, phases and operations of the ranks. Marks are added to n, in order of time; if
// several ranks set marks, the text of each mark begins with its rank. Phases and operations are added to n if only one
// rank has them. Otherwise they cannot be combined, and stay with their ranks.
func (c *combiner) addMarksAndOperations(n *Node) {
	marked := c.partsWith(func(p *rankPart) bool { return len(p.Marks) > 0 })
	for _, p := range marked {
		for _, m := range p.Marks {
			if len(marked) > 1 {
				m.Text = rankNames(rankNumbers(p)) + ": " + m.Text
			}
			n.Marks = append(n.Marks, m)
		}
	}
	slices.SortStableFunc(n.Marks, func(a, b Mark) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
	if beyond := len(n.Marks) - maxMarks; beyond > 0 {
		n.Marks = n.Marks[:maxMarks]
		c.nodeMissing = append(c.nodeMissing, Missing{What: "marks", Code: MarksBeyond, Count: int64(beyond),
			Why: fmt.Sprintf("%d marks are beyond the limit for all ranks together", beyond)})
	}

	if phased := c.partsWith(func(p *rankPart) bool { return len(p.Phases) > 0 }); c.keepPerRank("phases", phased) {
		for _, p := range phased {
			p.ranks[0].Phases = p.Phases
		}
	} else if len(phased) > 0 {
		n.Phases = phased[0].Phases
	}

	c.operationParts = c.partsWith((*rankPart).hasOperations)
	if c.keepPerRank("operations", c.operationParts) {
		for _, p := range c.operationParts {
			p.ranks[0].Operations, p.ranks[0].Transfers = p.Operations, p.Transfers
		}
	} else if len(c.operationParts) > 0 {
		n.Operations, n.Transfers = c.operationParts[0].Operations, c.operationParts[0].Transfers
	}
}

// partsWith returns the parts for which has returns true.
func (c *combiner) partsWith(has func(*rankPart) bool) []*rankPart {
	var out []*rankPart
	for _, p := range c.parts {
		if has(p) {
			out = append(out, p)
		}
	}
	return out
}

// keepPerRank reports whether several parts have data of the kind what, which cannot be combined. If so, it adds a
// Missing.
func (c *combiner) keepPerRank(what string, parts []*rankPart) bool {
	if len(parts) < 2 {
		return false
	}
	c.nodeMissing = append(c.nodeMissing, Missing{What: what, Code: NotCombined,
		Why: rankNames(rankNumbers(parts...)) + " have separate values, which are with the ranks"})
	return true
}

// hasOperations reports whether the job of the part reported operations or transfers.
func (p *rankPart) hasOperations() bool {
	o := p.Operations
	return len(p.Transfers) > 0 || o != nil && len(o.Times)+len(o.Counters)+len(o.Gauges)+len(o.Values)+len(o.Sets)+
		len(o.Attributes)+len(o.Keys) > 0
}

// ranksByName returns all ranks, keyed by rank as decimal text.
func (c *combiner) ranksByName() map[string]*Rank {
	out := make(map[string]*Rank)
	for _, r := range c.ranks() {
		out[strconv.Itoa(r.Rank)] = r
	}
	return out
}

// alignGPUs gives each GPU the same index in all parts, because names of metrics and sample keys contain the index.
// Parts that already have the common order of devices, as is usual on one host, stay unchanged.
func (c *combiner) alignGPUs() {
	all := c.gpus()
	for _, p := range c.parts {
		moved := false
		places := make([]int, len(p.GPUs))
		for i, g := range p.GPUs {
			places[i] = slices.IndexFunc(all, g.same)
			moved = moved || places[i] != i
		}
		if moved {
			p.moveGPUs(places)
		}
	}
}

// moveGPUs renames the metrics and series of GPU i to the index places[i].
func (p *rankPart) moveGPUs(places []int) {
	n := *p.Node
	n.Metrics, n.Summaries, n.Envelope = moved(n.Metrics, places), moved(n.Summaries, places), moved(n.Envelope, places)
	n.Samples = Samples{Keys: slices.Clone(n.Samples.Keys), Columns: n.Samples.Columns}
	for i, key := range n.Samples.Keys {
		n.Samples.Keys[i] = cmp.Or(movedKey(key, places), key)
	}
	p.Node = &n
}

// moved returns a copy of from with the new indexes of the GPUs in the keys.
func moved[M ~map[string]E, E any](from M, places []int) M {
	to := make(M, len(from))
	for key, e := range from {
		if key = movedKey(key, places); key != "" {
			to[key] = e
		}
	}
	return to
}

// movedKey returns key, the name of a GPU's metric or column, with the new index; "" if the new index is too large. It
// returns other keys unchanged.
func movedKey(key string, places []int) string {
	column, ok := columnOf(key)
	i, _, gpu := column.GPU()
	switch {
	case !ok || !gpu || i >= len(places):
		return key
	case places[i] >= collector.MaxGPUs:
		return ""
	}
	return strings.Replace(key, fmt.Sprintf("gpu_%d_", i), fmt.Sprintf("gpu_%d_", places[i]), 1)
}
