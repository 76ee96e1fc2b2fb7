package reporter

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
)

// Combine combines the reports of a node's ranks in one launch into the report of the node. A source is the report of a
// rank's perfagent, or a report built from its journal so far. The order of the sources makes no difference. Combine
// modifies neither the sources nor the data that they point to.
//
// If a rank is in several sources, Combine uses the source that records the end of the rank. If two sources record its
// end but differ, Combine returns an error that contains both paths. docs/report.md describes how each number is
// combined.
//
// The result has no verdict and no findings. Programs use diagnosis.Combine, which adds them.
func Combine(sources []SourceReport) (*Report, error) {
	list, err := newParts(sources)
	if err != nil {
		return nil, fmt.Errorf("combine: %w", err)
	}

	c := &combiner{parts: list}
	c.run = c.wholeRun()
	node := c.node()
	return &Report{Schema: Schema, Run: c.run, Nodes: map[string]*Node{list[0].name: node}}, nil
}

// A rankPart is the recording of one rank or, if it was combined before, of several ranks.
type rankPart struct {
	*Node
	run   Run
	path  string
	name  string  // of the node
	ranks []*Rank // in order, at least one; copies with envelopes on the time axis of the whole node

	axis   timeAxis
	shares []share // overlaps with the points of the node's axis; nil if both axes are the same
	// offsets holds the growth of each host counter from the start of the first host span to the start of this part's
	// host span.
	offsets map[collector.Column]float64
}

// newParts returns the parts of the sources, sorted by rank, with each rank in only one part.
func newParts(sources []SourceReport) ([]*rankPart, error) {
	var list, unnumbered []*rankPart
	for _, s := range sources {
		p, err := newPart(s)
		switch {
		case err != nil:
			return nil, err
		case len(p.ranks) == 0:
			unnumbered = append(unnumbered, p)
		default:
			list = append(list, p)
		}
	}
	if len(list)+len(unnumbered) == 0 {
		return nil, errors.New("no report was given")
	}

	slices.SortFunc(list, compareParts)
	list, err := dropDuplicateRanks(list)
	if err != nil {
		return nil, err
	}
	return assignRanks(list, unnumbered), nil
}

// newPart returns the part for s. The part has no ranks if its perfagent seemed to be the only one on the node.
func newPart(s SourceReport) (*rankPart, error) {
	if s.Report == nil {
		return nil, fmt.Errorf("%s has no report", s.Path)
	}
	if n := len(s.Report.Nodes); n != 1 {
		return nil, fmt.Errorf("%s has %d nodes, not one rank of one node", s.Path, n)
	}

	p := &rankPart{run: s.Report.Run, path: s.Path, offsets: make(map[collector.Column]float64)}
	for p.name, p.Node = range s.Report.Nodes { // exactly one
	}
	if p.Node == nil {
		p.Node = &Node{}
	}
	for _, r := range p.RankList() {
		r = new(*r)
		r.Envelope = make(Envelope)
		p.ranks = append(p.ranks, r)
	}
	p.axis = newTimeAxis(p.Node, &p.run)

	if len(p.ranks) == 0 && p.Identity != nil && p.Identity.Rank != nil {
		p.setRank(*p.Identity.Rank)
	}
	return p, nil
}

// setRank turns p, which has no ranks, into the recording of the given rank.
func (p *rankPart) setRank(rank int) {
	r := newRank(&p.run, p.Node, rank)
	r.Envelope = make(Envelope)
	p.ranks = []*Rank{r}
}

// compareParts orders parts by their lowest rank. For the same rank, the more complete part comes first.
func compareParts(a, b *rankPart) int {
	x, y := a.ranks[0], b.ranks[0]
	return cmp.Or(
		cmp.Compare(x.Rank, y.Rank),
		cmp.Compare(len(b.ranks), len(a.ranks)),
		cmp.Compare(len(x.Incomplete), len(y.Incomplete)),
		y.End.Compare(x.End.Time),
		-cmp.Compare(pushProgress(a.Push), pushProgress(b.Push)),
		cmp.Compare(a.path, b.path),
	)
}

// dropDuplicateRanks drops the parts that contain only ranks of earlier, more complete parts. Conflicting recordings of
// a rank are an error.
func dropDuplicateRanks(list []*rankPart) ([]*rankPart, error) {
	var out []*rankPart
	taken := make(map[int]*rankPart)
	for _, p := range list {
		duplicates := 0
		for _, r := range p.ranks {
			other := taken[r.Rank]
			if other == nil {
				continue
			}
			if duplicates++; !supersedes(other, r) {
				return nil, fmt.Errorf("rank %d is in %s and in %s: %w", r.Rank, other.path, p.path, errTwoRecordings)
			}
		}
		if duplicates == len(p.ranks) {
			continue
		}
		if duplicates > 0 {
			return nil, fmt.Errorf("some ranks of %s, but not all, are in other files, too: %w", p.path, errTwoRecordings)
		}

		for _, r := range p.ranks {
			taken[r.Rank] = p
		}
		out = append(out, p)
	}
	return out, nil
}

// supersedes reports whether p, which contains the same rank as r, has all the data of r.
func supersedes(p *rankPart, r *Rank) bool {
	if r.Incomplete != "" {
		return true
	}
	i := slices.IndexFunc(p.ranks, func(have *Rank) bool { return have.Rank == r.Rank })
	have := p.ranks[i]
	return have.Incomplete == "" && have.PID == r.PID && have.Start.Equal(r.Start.Time) && have.End.Equal(r.End.Time)
}

// assignRanks gives unnumbered parts the lowest ranks that list does not use, in the order of their starts, and returns
// all parts, sorted.
func assignRanks(list, unnumbered []*rankPart) []*rankPart {
	slices.SortFunc(unnumbered, func(a, b *rankPart) int {
		return cmp.Or(a.run.Start.Compare(b.run.Start.Time), cmp.Compare(a.path, b.path))
	})

	taken, next := rankNumbers(list...), 0
	for _, p := range unnumbered {
		for slices.Contains(taken, next) {
			next++
		}
		p.setRank(next)
		next++
		list = append(list, p)
	}
	slices.SortFunc(list, compareParts)
	return list
}

// A combiner combines the parts of a node.
type combiner struct {
	parts []*rankPart // by their lowest rank
	run   Run

	// hostSeries are the spans that supply the host's time series, and hostTotals are the spans that supply its totals,
	// both in order of time. They differ only if no sample was taken.
	hostSeries, hostTotals []partSpan

	spans          []axisSpan // of the time axis
	axis           timeAxis
	operationParts []*rankPart // parts with operations
	nodeMissing    []Missing   // entries for data that could not be combined
}

// wholeRun returns the run that spans all ranks. Its exit code is from the rank that failed first.
func (c *combiner) wholeRun() Run {
	var run Run
	for _, p := range c.parts {
		run.join(p.run)
	}
	run.Verdict = nil
	run.Incomplete = c.incomplete()
	run.ExitCode, run.Signal = c.exit()
	return run
}

// incomplete returns a text that lists the ranks without a recorded end, with the reason, or "" if there are none.
func (c *combiner) incomplete() string {
	var open []int
	why := ""
	for _, r := range c.ranks() {
		if r.Incomplete != "" {
			open = append(open, r.Rank)
			why = cmp.Or(why, r.Incomplete)
		}
	}
	if len(open) == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s no end: %s", rankNames(open), text.Plural(len(open), "has", "have"), why)
}

// rankNumbers returns the ranks in parts, in order.
func rankNumbers(parts ...*rankPart) []int {
	var out []int
	for _, p := range parts {
		for _, r := range p.ranks {
			out = append(out, r.Rank)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// rankNames returns a text such as "ranks 1, 2 and 5".
func rankNames(list []int) string {
	const shown = 8

	var words []string
	for _, r := range list {
		words = append(words, strconv.Itoa(r))
	}
	return text.Plural(len(list), "rank ", "ranks ") + text.List(words, shown)
}

// ranks returns all ranks in order.
func (c *combiner) ranks() []*Rank {
	var out []*Rank
	for _, p := range c.parts {
		out = append(out, p.ranks...)
	}
	slices.SortFunc(out, func(a, b *Rank) int { return cmp.Compare(a.Rank, b.Rank) })
	return out
}

// exit returns the exit code and the signal of the rank that failed first. code is 0 if all ranks succeeded, and nil if
// it is unknown.
func (c *combiner) exit() (code *int, signal string) {
	ranks := c.ranks()
	if first := firstFailed(ranks); first != nil {
		return first.ExitCode, first.Signal
	}
	if slices.ContainsFunc(ranks, func(r *Rank) bool { return r.ExitCode == nil }) {
		return nil, ""
	}
	return new(0), ""
}

// A rankMissing is a Missing that some ranks share.
type rankMissing struct {
	Missing
	ranks []int
}

// missing returns the Missing of n: the entries of its ranks, an entry for the host if no rank measured it, and entries
// for values that cannot be combined. An entry that concerns only some ranks lists them.
func (c *combiner) missing(n *Node) []Missing {
	out := c.combineMissing()
	if len(c.hostTotals) == 0 {
		out = append(out, Missing{What: "host", Code: HostByAnother, Why: "no rank's recording has measurements of the host"})
	}
	for _, h := range c.hostTotals {
		for _, m := range h.Missing {
			_, have := n.Metrics[m.What]
			_, metric := MetricByName(m.What)
			if metric && !have && ofHost(m.What) && !slices.ContainsFunc(out, func(o Missing) bool { return o.What == m.What }) {
				out = append(out, m)
			}
		}
	}
	return append(out, c.nodeMissing...)
}

// combineMissing merges the Missing of the ranks, except for metrics. For the host and the clock, it uses only the
// parts that supply points of the node's series.
func (c *combiner) combineMissing() []Missing {
	var list []*rankMissing
	for _, p := range c.parts {
		for _, m := range p.Missing {
			if _, metric := MetricByName(m.What); metric || m.Code == HostByAnother || !c.countsFor(p, m.What) {
				continue
			}
			list = addRankMissing(list, p, m)
		}
	}

	var out []Missing
	for _, r := range list {
		if slices.Sort(r.ranks); !ofTheNode(r.What) && len(r.ranks) < len(c.ranks()) {
			r.Why = rankNames(r.ranks) + ": " + r.Why
		}
		if r.Total > 0 {
			r.Why += ofReadings(r.Count, r.Total)
		}
		out = append(out, r.Missing)
	}
	return out
}

// addRankMissing adds m, a Missing of p, to the entry of list with the same cause, or appends an entry.
func addRankMissing(list []*rankMissing, p *rankPart, m Missing) []*rankMissing {
	cause := CauseOf(m)
	i := slices.IndexFunc(list, func(r *rankMissing) bool {
		return r.What == m.What && r.Code == m.Code && r.Why == cause && (r.Total > 0) == (m.Total > 0)
	})
	if i < 0 {
		i = len(list)
		list = append(list, &rankMissing{Missing: Missing{What: m.What, Code: m.Code, Why: cause}})
	}

	r := list[i]
	r.Count, r.Total = r.Count+m.Count, r.Total+m.Total
	r.ranks = append(r.ranks, rankNumbers(p)...)
	return list
}

// ofTheNode reports whether what, as in [Missing].What, concerns the whole node, no matter which rank reports it.
func ofTheNode(what string) bool { return what == "clock" || ofHost(what) }

// countsFor reports whether what, missing from p, is also missing from the node.
func (c *combiner) countsFor(p *rankPart, what string) bool {
	if !ofTheNode(what) {
		return true
	}
	return slices.ContainsFunc(c.hostTotals, func(h partSpan) bool { return h.rankPart == p }) ||
		what == "clock" && slices.ContainsFunc(c.spans, func(s axisSpan) bool { return s.rankPart == p })
}

// whyMissing returns the reason why the node lacks a metric that some of its ranks lack.
func (c *combiner) whyMissing(name string) error {
	lack := c.partsWith(func(p *rankPart) bool { _, ok := p.Metrics[name]; return !ok })
	numbers := rankNumbers(lack...)
	for _, p := range lack {
		for _, m := range p.Missing {
			switch {
			case m.What != name:
			case len(numbers) == len(c.ranks()):
				return &missingError{m.Code, m.Why}
			default:
				return &missingError{m.Code, rankNames(numbers) + ": " + m.Why}
			}
		}
	}
	return &missingError{NotCombined, rankNames(numbers) + text.Plural(len(numbers), " does", " do") + " not say why"}
}
