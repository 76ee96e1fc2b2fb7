package catalog

import (
	"slices"
	"strconv"
	"time"
)

// A Launch is a part of a run: a step, an mpirun, a repetition of the run. Most runs have one.
type Launch struct {
	RunID string
	Dir   string
	Start time.Time // the earliest of its nodes; of files that do not say, when they were written

	// Nth is its place among the Of launches of the run, by start, from 1 on.
	Nth, Of int

	Nodes []Node // by index
	// Earlier are recordings of a node or rank that was recorded again in the same launch. They do not count.
	Earlier []*Recording

	order time.Time // by which launches are sorted
}

// ID returns what the launch is called: RUN-ID, or RUN-ID@K where the run has several.
func (l *Launch) ID() string {
	if l.Of <= 1 {
		return l.RunID
	}
	return l.RunID + "@" + strconv.Itoa(l.Nth)
}

// Paths returns the files to read.
func (l *Launch) Paths() []string {
	var out []string
	for i := range l.Nodes {
		out = append(out, l.Nodes[i].Paths()...)
	}
	return out
}

// A launchKey is what the recordings of one launch have in common.
type launchKey struct {
	run     string
	restart int
	launch  string // "" if nobody tells launches apart; then time does
}

// keyOf returns the key of a recording. ok is false if the file does not say.
func keyOf(r *Recording) (k launchKey, ok bool) {
	k.run = r.head.Run.ID
	if id := r.head.Identity; id != nil {
		k.restart, k.launch = id.Restart, id.Launch
	}
	return k, r.head.Node != ""
}

// A group is a launch that is being put together.
type group struct {
	key   launchKey
	known bool // the key
	nodes []*nodeGroup
	start time.Time

	inside bool      // of a rank of another launch, before which it comes
	order  time.Time // start, or that of the other launch
}

// A nodeGroup is a node of a group, and what was recorded of it, in the order of the starts.
type nodeGroup struct {
	place
	list []*Recording
}

// groupsOf divides recordings, which are in the order of their starts, into launches.
func groupsOf(list []*Recording) []*group {
	var all []*group
	for _, r := range list {
		g := choose(all, r)
		if g == nil {
			g = &group{start: r.start}
			g.key, g.known = keyOf(r)
			all = append(all, g)
		}
		g.add(r)
	}
	sortGroups(all)

	return all
}

// choose returns the launch that a recording belongs to; nil if it begins one. Of several, it prefers one with the
// same command, because others may surround it, and then the newest.
func choose(all []*group, r *Recording) *group {
	var best *group
	high := 0
	for i, g := range slices.Backward(all) {
		fit := 0
		switch {
		case !g.admits(r):
		case g.key.launch != "" || g.overlaps(r):
			fit = 2
			if slices.Equal(g.nodes[0].list[0].head.Run.Command, r.head.Run.Command) {
				fit = 3
			}
		case i == len(all)-1 && placeOf(r).told && g.nodeAt(placeOf(r)) == nil:
			fit = 1 // one node after the other
		}
		if fit > high {
			best, high = g, fit
		}
	}

	return best
}

// admits reports whether a recording may belong to the launch, apart from when it was made.
func (g *group) admits(r *Recording) bool {
	if key, known := keyOf(r); known && g.known && key != g.key {
		return false
	}

	n := g.nodeAt(placeOf(r))
	switch {
	case n == nil, n.takesRank(r):
		return true
	case r.hasRanks():
		return false
	}

	// A pod that was started again while others went on.
	return g.key.launch == "" && !slices.ContainsFunc(n.list, r.overlaps) && g.overlaps(r)
}

// takesRank reports whether a recording is that of a rank of the node.
func (n *nodeGroup) takesRank(r *Recording) bool {
	return r.hasRanks() && !slices.ContainsFunc(n.list, func(o *Recording) bool { return !o.hasRanks() && !o.mayBeRank() })
}

// overlaps reports whether a recording went on at the same time as any of the launch.
func (g *group) overlaps(r *Recording) bool {
	return slices.ContainsFunc(g.nodes, func(n *nodeGroup) bool { return slices.ContainsFunc(n.list, r.overlaps) })
}

// nodeAt returns the node at a place; nil if there is none.
func (g *group) nodeAt(p place) *nodeGroup {
	i := slices.IndexFunc(g.nodes, func(n *nodeGroup) bool { return n.is(p) })
	if i < 0 {
		return nil
	}
	return g.nodes[i]
}

// add adds a recording.
func (g *group) add(r *Recording) {
	p := placeOf(r)
	n := g.nodeAt(p)
	if n == nil {
		n = &nodeGroup{place: p}
		g.nodes = append(g.nodes, n)
	}
	if n.boot == "" {
		n.host, n.boot = p.host, p.boot
	}
	n.list = append(n.list, r)
	if !g.known {
		g.key, g.known = keyOf(r)
	}
}

// hasRanks reports whether any node of the launch has.
func (g *group) hasRanks() bool {
	return slices.ContainsFunc(g.nodes, func(n *nodeGroup) bool {
		return slices.ContainsFunc(n.list, (*Recording).hasRanks)
	})
}

// sortGroups sorts launches by start. What a perfagent inside of a rank recorded comes before the ranks: it is no
// launch of its own, and must not stand for the run.
func sortGroups(all []*group) {
	for _, g := range all {
		g.order = g.start
		for _, o := range all {
			if o != g && o.key == g.key && o.hasRanks() && !g.hasRanks() && o.meets(g) {
				g.order, g.inside = o.start, true
			}
		}
	}

	slices.SortStableFunc(all, func(a, b *group) int {
		switch c := a.order.Compare(b.order); {
		case c != 0 || a.inside == b.inside:
			return c
		case a.inside:
			return -1
		}
		return 1
	})
}

// meets reports whether two groups of one key belong together.
func (g *group) meets(o *group) bool {
	return g.key.launch != "" || slices.ContainsFunc(o.nodes, func(n *nodeGroup) bool {
		return slices.ContainsFunc(n.list, g.overlaps)
	})
}

// resolve returns the nodes of the launch, and the recordings that were replaced by newer ones.
func (g *group) resolve() (nodes []Node, earlier []*Recording) {
	for _, n := range g.nodes {
		pieces, replaced := n.resolve()
		nodes = append(nodes, Node{Pieces: pieces, place: n.place})
		earlier = append(earlier, replaced...)
	}
	return nodes, earlier
}

// launch returns the launch.
func (g *group) launch() Launch {
	l := Launch{Start: g.start, order: g.order}
	l.Nodes, l.Earlier = g.resolve()
	number(l.Nodes, nil)

	return l
}
