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

// Combine makes the report of one node of one launch from its pieces: the reports, or the journals so far, that the
// perfagents of its ranks have made. The order of the pieces makes no difference, and neither they nor what they
// point to is changed.
//
// A rank that several pieces hold is counted once: the piece that knows its end is taken. Two that both know it, and
// differ, are an error that names both files. docs/report.md says how each number is put together.
//
// The result lacks the verdict and the findings of the node: programs want diagnosis.Combine.
func Combine(pieces []SourceReport) (*Report, error) {
	list, err := newParts(pieces)
	if err != nil {
		return nil, fmt.Errorf("combine: %w", err)
	}

	c := &combiner{parts: list}
	c.run = c.wholeRun()
	node := c.node()
	return &Report{Schema: Schema, Run: c.run, Nodes: map[string]*Node{list[0].name: node}}, nil
}

// A rankPart is the recording of a rank or, of a node that was put together before, of several.
type rankPart struct {
	*Node
	run   Run
	path  string
	name  string  // of the node
	ranks []*Rank // in order, at least one; copies, whose envelopes are on the time axis of the whole node

	axis   timeAxis
	shares []share // of its points in those of the node's axis; nil if that is its own
	// offsets is what each counter of the host had come to, in the first holder's counting, when this one began.
	offsets map[collector.Column]float64
}

// newParts checks the pieces of a node. It returns each rank once, in order.
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
		return nil, errors.New("no report is given")
	}

	slices.SortFunc(list, compareParts)
	list, err := dropDuplicateRanks(list)
	if err != nil {
		return nil, err
	}
	return assignRanks(list, unnumbered), nil
}

// newPart returns the piece of a report. It has no ranks if the perfagent believed that it was alone on its node.
func newPart(s SourceReport) (*rankPart, error) {
	if s.Report == nil {
		return nil, fmt.Errorf("%s holds no report", s.Path)
	}
	if n := len(s.Report.Nodes); n != 1 {
		return nil, fmt.Errorf("%s holds %d nodes, and not one rank of one", s.Path, n)
	}

	p := &rankPart{run: s.Report.Run, path: s.Path, offsets: make(map[collector.Column]float64)}
	for p.name, p.Node = range s.Report.Nodes { // one
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

// setRank makes the piece that of a rank.
func (p *rankPart) setRank(rank int) {
	r := newRank(&p.run, p.Node, rank)
	r.Envelope = make(Envelope)
	p.ranks = []*Rank{r}
}

// compareParts orders pieces by their lowest rank. Of one rank, the piece that knows more comes first.
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

// dropDuplicateRanks drops pieces whose ranks another has, and knows better.
func dropDuplicateRanks(list []*rankPart) ([]*rankPart, error) {
	var out []*rankPart
	taken := make(map[int]*rankPart)
	for _, p := range list {
		held := 0
		for _, r := range p.ranks {
			other := taken[r.Rank]
			if other == nil {
				continue
			}
			if held++; !supersedes(other, r) {
				return nil, fmt.Errorf("rank %d is in %s and in %s: %w", r.Rank, other.path, p.path, errTwoRecordings)
			}
		}
		if held == len(p.ranks) {
			continue
		}
		if held > 0 {
			return nil, fmt.Errorf("ranks of %s are in other files, too, but not all: %w", p.path, errTwoRecordings)
		}

		for _, r := range p.ranks {
			taken[r.Rank] = p
		}
		out = append(out, p)
	}
	return out, nil
}

// supersedes reports whether a piece has all that there is of a rank's recording.
func supersedes(p *rankPart, r *Rank) bool {
	if r.Incomplete != "" {
		return true
	}
	i := slices.IndexFunc(p.ranks, func(have *Rank) bool { return have.Rank == r.Rank })
	have := p.ranks[i]
	return have.Incomplete == "" && have.PID == r.PID && have.Start.Equal(r.Start.Time) && have.End.Equal(r.End.Time)
}

// assignRanks gives the lowest free ranks to pieces that have none, in the order in which they began, and returns all.
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

// A combiner is a node that is being put together.
type combiner struct {
	parts []*rankPart // by their lowest rank
	run   Run

	// holders are the ranks whose series of the host is shown, hosts those whose numbers are, in order. They differ
	// only if no sample was taken.
	hostSeries, hostTotals []partSpan

	spans          []axisSpan // of the time axis
	axis           timeAxis
	operationParts []*rankPart // those that have operations
	nodeMissing    []Missing   // what the pieces have, and their node cannot have
}

// wholeRun returns the run that spans those of all ranks. Its exit code is that of the rank that failed first.
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

// incomplete says which ranks have no end; "" if all have one.
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

// rankNumbers returns the ranks in pieces, in order.
func rankNumbers(pieces ...*rankPart) []int {
	var out []int
	for _, p := range pieces {
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

// exit returns how the rank ended that failed first; 0 if all ended well, and nil if that is not known.
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

// A rankMissing is what some ranks say to be missing, in the same words.
type rankMissing struct {
	Missing
	ranks []int
}

// missing returns what the node lacks: what its ranks lack, what of the job or the host has no value for it, and what
// cannot be put together. What only some ranks lack says which.
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

// combineMissing returns what the ranks lack, but for metrics. Of the host and of clocks, that of the ranks counts
// whose points the node has.
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

// addRankMissing adds what a piece lacks to those that say the same.
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

// ofTheNode reports whether something is of the node, whoever says it.
func ofTheNode(what string) bool { return what == "clock" || ofHost(what) }

// countsFor reports whether what a piece lacks is lacking of the node.
func (c *combiner) countsFor(p *rankPart, what string) bool {
	if !ofTheNode(what) {
		return true
	}
	return slices.ContainsFunc(c.hostTotals, func(h partSpan) bool { return h.rankPart == p }) ||
		what == "clock" && slices.ContainsFunc(c.spans, func(s axisSpan) bool { return s.rankPart == p })
}

// whyMissing says why the node lacks a metric that some of its ranks lack.
func (c *combiner) whyMissing(name string) error {
	var first *Missing
	lack := c.partsWith(func(p *rankPart) bool { _, ok := p.Metrics[name]; return !ok })
	for _, p := range lack {
		i := slices.IndexFunc(p.Missing, func(m Missing) bool { return m.What == name })
		if i >= 0 && first == nil {
			first = &p.Missing[i]
		}
	}

	numbers := rankNumbers(lack...)
	switch {
	case first == nil:
		return &missingError{NotCombined, rankNames(numbers) + " do not say why"}
	case len(numbers) == len(c.ranks()):
		return &missingError{first.Code, first.Why}
	}
	return &missingError{first.Code, fmt.Sprintf("%s: %s", rankNames(numbers), first.Why)}
}
