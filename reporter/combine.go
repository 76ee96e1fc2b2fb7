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
func Combine(pieces []Source) (*Report, error) {
	list, err := piecesOf(pieces)
	if err != nil {
		return nil, fmt.Errorf("combine: %w", err)
	}

	c := &combination{pieces: list}
	c.run = c.wholeRun()
	node := c.node()
	return &Report{Schema: Schema, Run: c.run, Nodes: map[string]*Node{list[0].name: node}}, nil
}

// A piece is the recording of a rank or, of a node that was put together before, of several.
type piece struct {
	*Node
	run   Run
	path  string
	name  string  // of the node
	ranks []*Rank // in order, at least one; copies, whose envelopes are on the time axis of the whole node

	times  timeline
	shares []share // of its points in those of the node's axis; nil if that is its own
	// offsets is what each counter of the host had come to, in the first holder's counting, when this one began.
	offsets map[collector.Column]float64
}

// piecesOf checks the pieces of a node. It returns each rank once, in order.
func piecesOf(sources []Source) ([]*piece, error) {
	var list, unnumbered []*piece
	for _, s := range sources {
		p, err := newPiece(s)
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

	slices.SortFunc(list, comparePieces)
	list, err := eachOnce(list)
	if err != nil {
		return nil, err
	}
	return numbered(list, unnumbered), nil
}

// newPiece returns the piece of a report. It has no ranks if the perfagent believed that it was alone on its node.
func newPiece(s Source) (*piece, error) {
	if s.Report == nil {
		return nil, fmt.Errorf("%s holds no report", s.Path)
	}
	if n := len(s.Report.Nodes); n != 1 {
		return nil, fmt.Errorf("%s holds %d nodes, and not one rank of one", s.Path, n)
	}

	p := &piece{run: s.Report.Run, path: s.Path, offsets: make(map[collector.Column]float64)}
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
	p.times = timesOf(p.Node, &p.run)

	if len(p.ranks) == 0 && p.Identity != nil && p.Identity.Rank != nil {
		p.number(*p.Identity.Rank)
	}
	return p, nil
}

// number makes the piece that of a rank.
func (p *piece) number(rank int) {
	r := newRank(&p.run, p.Node, rank)
	r.Envelope = make(Envelope)
	p.ranks = []*Rank{r}
}

// comparePieces orders pieces by their lowest rank. Of one rank, the piece that knows more comes first.
func comparePieces(a, b *piece) int {
	x, y := a.ranks[0], b.ranks[0]
	return cmp.Or(
		cmp.Compare(x.Rank, y.Rank),
		cmp.Compare(len(b.ranks), len(a.ranks)),
		cmp.Compare(len(x.Incomplete), len(y.Incomplete)),
		y.End.Compare(x.End.Time),
		-cmp.Compare(pushed(a.Push), pushed(b.Push)),
		cmp.Compare(a.path, b.path),
	)
}

// eachOnce drops pieces whose ranks another has, and knows better.
func eachOnce(list []*piece) ([]*piece, error) {
	var out []*piece
	taken := make(map[int]*piece)
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
func supersedes(p *piece, r *Rank) bool {
	if r.Incomplete != "" {
		return true
	}
	i := slices.IndexFunc(p.ranks, func(have *Rank) bool { return have.Rank == r.Rank })
	have := p.ranks[i]
	return have.Incomplete == "" && have.PID == r.PID && have.Start.Equal(r.Start.Time) && have.End.Equal(r.End.Time)
}

// numbered gives the lowest free ranks to pieces that have none, in the order in which they began, and returns all.
func numbered(list, unnumbered []*piece) []*piece {
	slices.SortFunc(unnumbered, func(a, b *piece) int {
		return cmp.Or(a.run.Start.Compare(b.run.Start.Time), cmp.Compare(a.path, b.path))
	})

	taken, next := numbersOf(list...), 0
	for _, p := range unnumbered {
		for slices.Contains(taken, next) {
			next++
		}
		p.number(next)
		next++
		list = append(list, p)
	}
	slices.SortFunc(list, comparePieces)
	return list
}

// A combination is a node that is being put together.
type combination struct {
	pieces []*piece // by their lowest rank
	run    Run

	// holders are the ranks whose series of the host is shown, hosts those whose numbers are, in order. They differ only
	// if no sample was taken.
	holders, hosts []hosting

	stretches []stretch // of the time axis
	axis      timeline
	workers   []*piece  // those that have operations
	lacking   []Missing // what the pieces have, and their node cannot have
}

// wholeRun returns the run that spans those of all ranks. Its exit code is that of the rank that failed first.
func (c *combination) wholeRun() Run {
	var run Run
	for _, p := range c.pieces {
		run.join(p.run)
	}
	run.Verdict = nil
	run.Incomplete = c.incomplete()
	run.ExitCode, run.Signal = c.exit()
	return run
}

// incomplete says which ranks have no end; "" if all have one.
func (c *combination) incomplete() string {
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

// numbersOf returns the ranks in pieces, in order.
func numbersOf(pieces ...*piece) []int {
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
func (c *combination) ranks() []*Rank {
	var out []*Rank
	for _, p := range c.pieces {
		out = append(out, p.ranks...)
	}
	slices.SortFunc(out, func(a, b *Rank) int { return cmp.Compare(a.Rank, b.Rank) })
	return out
}

// exit returns how the rank ended that failed first; 0 if all ended well, and nil if that is not known.
func (c *combination) exit() (code *int, signal string) {
	ranks := c.ranks()
	if first := firstFailed(ranks); first != nil {
		return first.ExitCode, first.Signal
	}
	if slices.ContainsFunc(ranks, func(r *Rank) bool { return r.ExitCode == nil }) {
		return nil, ""
	}
	return new(0), ""
}

// A remark is what some ranks say to be missing, in the same words.
type remark struct {
	Missing
	ranks []int
}

// missing returns what the node lacks: what its ranks lack, what of the job or the host has no value for it, and what
// cannot be put together. What only some ranks lack says which.
func (c *combination) missing(n *Node) []Missing {
	out := c.jointRemarks()
	if len(c.hosts) == 0 {
		out = append(out, Missing{What: "host", Code: HostByAnother, Why: "no rank's recording has measurements of the host"})
	}
	for _, h := range c.hosts {
		for _, m := range h.Missing {
			_, have := n.Metrics[m.What]
			_, metric := MetricNamed(m.What)
			if metric && !have && ofHost(m.What) && !slices.ContainsFunc(out, func(o Missing) bool { return o.What == m.What }) {
				out = append(out, m)
			}
		}
	}
	return append(out, c.lacking...)
}

// jointRemarks returns what the ranks lack, but for metrics. Of the host and of clocks, that of the ranks counts whose
// points the node has.
func (c *combination) jointRemarks() []Missing {
	var list []*remark
	for _, p := range c.pieces {
		for _, m := range p.Missing {
			if _, metric := MetricNamed(m.What); metric || m.Code == HostByAnother || !c.speaksOf(p, m.What) {
				continue
			}
			list = addRemark(list, p, m)
		}
	}

	var out []Missing
	for _, r := range list {
		if slices.Sort(r.ranks); !ofTheNode(r.What) && len(r.ranks) < len(c.ranks()) {
			r.Why = rankNames(r.ranks) + ": " + r.Why
		}
		if r.Of > 0 {
			r.Why += ofReadings(r.Count, r.Of)
		}
		out = append(out, r.Missing)
	}
	return out
}

// addRemark adds what a piece lacks to those that say the same.
func addRemark(list []*remark, p *piece, m Missing) []*remark {
	cause := CauseOf(m)
	i := slices.IndexFunc(list, func(r *remark) bool {
		return r.What == m.What && r.Code == m.Code && r.Why == cause && (r.Of > 0) == (m.Of > 0)
	})
	if i < 0 {
		i = len(list)
		list = append(list, &remark{Missing: Missing{What: m.What, Code: m.Code, Why: cause}})
	}

	r := list[i]
	r.Count, r.Of = r.Count+m.Count, r.Of+m.Of
	r.ranks = append(r.ranks, numbersOf(p)...)
	return list
}

// ofTheNode reports whether something is of the node, whoever says it.
func ofTheNode(what string) bool { return what == "clock" || ofHost(what) }

// speaksOf reports whether what a piece lacks is lacking of the node.
func (c *combination) speaksOf(p *piece, what string) bool {
	if !ofTheNode(what) {
		return true
	}
	return slices.ContainsFunc(c.hosts, func(h hosting) bool { return h.piece == p }) ||
		what == "clock" && slices.ContainsFunc(c.stretches, func(s stretch) bool { return s.piece == p })
}

// whyAbsent says why the node lacks a metric that some of its ranks lack.
func (c *combination) whyAbsent(name string) error {
	var first *Missing
	lack := c.which(func(p *piece) bool { _, ok := p.Metrics[name]; return !ok })
	for _, p := range lack {
		i := slices.IndexFunc(p.Missing, func(m Missing) bool { return m.What == name })
		if i >= 0 && first == nil {
			first = &p.Missing[i]
		}
	}

	numbers := numbersOf(lack...)
	switch {
	case first == nil:
		return &absence{NotCombined, rankNames(numbers) + " do not say why"}
	case len(numbers) == len(c.ranks()):
		return &absence{first.Code, first.Why}
	}
	return &absence{first.Code, fmt.Sprintf("%s: %s", rankNames(numbers), first.Why)}
}
