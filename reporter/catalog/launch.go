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
	Nth, Total int

	Nodes []Node // by index
	// OlderEntries are recordings of a node or rank that was recorded again in the same launch. They do not count.
	OlderEntries []*Entry

	key    launchKey
	hasKey bool      // the key
	inside bool      // of a rank of another launch, before which it comes
	order  time.Time // by which launches are sorted: Start, or that of the other launch
}

// ID returns what the launch is called: RUN-ID, or RUN-ID@K where the run has several.
func (l *Launch) ID() string {
	if l.Total <= 1 {
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
func keyOf(r *Entry) (k launchKey, ok bool) {
	k.run = r.head.Run.ID
	if id := r.head.Identity; id != nil {
		k.restart, k.launch = id.Restart, id.Launch
	}
	return k, r.head.Node != ""
}

// launchesOf divides recordings, which are in the order of their starts, into launches. All of them are pieces of their
// nodes until settle is called.
func launchesOf(list []*Entry) []*Launch {
	var all []*Launch
	for _, r := range list {
		l := choose(all, r)
		if l == nil {
			l = &Launch{Start: r.start}
			l.key, l.hasKey = keyOf(r)
			all = append(all, l)
		}
		l.add(r)
	}
	sortLaunches(all)

	return all
}

// choose returns the launch that a recording belongs to; nil if it begins one. Of several, it prefers one with the
// same command, because others may surround it, and then the newest.
func choose(all []*Launch, r *Entry) *Launch {
	var best *Launch
	high := 0
	for i, l := range slices.Backward(all) {
		fit := 0
		switch {
		case !l.admits(r):
		case l.key.launch != "" || l.overlaps(r):
			fit = 2
			if slices.Equal(l.Nodes[0].Entries[0].head.Run.Command, r.head.Run.Command) {
				fit = 3
			}
		case i == len(all)-1 && nodeKeyOf(r).hasIndex && l.nodeAt(nodeKeyOf(r)) == nil:
			fit = 1 // one node after the other
		}
		if fit > high {
			best, high = l, fit
		}
	}

	return best
}

// admits reports whether a recording may belong to the launch, apart from when it was made.
func (l *Launch) admits(r *Entry) bool {
	if key, known := keyOf(r); known && l.hasKey && key != l.key {
		return false
	}

	n := l.nodeAt(nodeKeyOf(r))
	switch {
	case n == nil, n.takesRank(r):
		return true
	case r.hasRanks():
		return false
	}

	// A pod that was started again while others went on.
	return l.key.launch == "" && !slices.ContainsFunc(n.Entries, r.overlaps) && l.overlaps(r)
}

// takesRank reports whether a recording is that of a rank of the node.
func (n *Node) takesRank(r *Entry) bool {
	other := func(o *Entry) bool { return !o.hasRanks() && !o.mayBeRank() }
	return r.hasRanks() && !slices.ContainsFunc(n.Entries, other)
}

// overlaps reports whether a recording went on at the same time as any of the launch.
func (l *Launch) overlaps(r *Entry) bool {
	return slices.ContainsFunc(l.Nodes, func(n Node) bool { return slices.ContainsFunc(n.Entries, r.overlaps) })
}

// nodeAt returns the node at a place; nil if there is none.
func (l *Launch) nodeAt(p nodeKey) *Node {
	i := slices.IndexFunc(l.Nodes, func(n Node) bool { return n.matches(p) })
	if i < 0 {
		return nil
	}
	return &l.Nodes[i]
}

// add adds a recording.
func (l *Launch) add(r *Entry) {
	p := nodeKeyOf(r)
	n := l.nodeAt(p)
	if n == nil {
		l.Nodes = append(l.Nodes, Node{nodeKey: p})
		n = &l.Nodes[len(l.Nodes)-1]
	}
	if n.boot == "" {
		n.host, n.boot = p.host, p.boot
	}
	n.Entries = append(n.Entries, r)
	if !l.hasKey {
		l.key, l.hasKey = keyOf(r)
	}
}

// hasRanks reports whether any node of the launch has.
func (l *Launch) hasRanks() bool {
	return slices.ContainsFunc(l.Nodes, func(n Node) bool {
		return slices.ContainsFunc(n.Entries, (*Entry).hasRanks)
	})
}

// sortLaunches sorts launches by start. What a perfagent inside of a rank recorded comes before the ranks: it is no
// launch of its own, and must not stand for the run.
func sortLaunches(all []*Launch) {
	for _, l := range all {
		l.order = l.Start
		for _, o := range all {
			if o != l && o.key == l.key && o.hasRanks() && !l.hasRanks() && o.isConcurrentWith(l) {
				l.order, l.inside = o.Start, true
			}
		}
	}

	slices.SortStableFunc(all, func(a, b *Launch) int {
		switch c := a.order.Compare(b.order); {
		case c != 0 || a.inside == b.inside:
			return c
		case a.inside:
			return -1
		}
		return 1
	})
}

// isConcurrentWith reports whether two launches of one key belong together.
func (l *Launch) isConcurrentWith(o *Launch) bool {
	return l.key.launch != "" || slices.ContainsFunc(o.Nodes, func(n Node) bool {
		return slices.ContainsFunc(n.Entries, l.overlaps)
	})
}

// resolveNodes leaves in the nodes what counts. What was replaced by newer recordings is Earlier.
func (l *Launch) resolveNodes() {
	for i := range l.Nodes {
		pieces, earlier := l.Nodes[i].resolve()
		l.Nodes[i].Entries = pieces
		l.OlderEntries = append(l.OlderEntries, earlier...)
	}
}
