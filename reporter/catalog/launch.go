package catalog

import (
	"slices"
	"strconv"
	"time"
)

// A Launch is a part of a run: a step, an mpirun, or a repetition of the run. Most runs have one Launch.
type Launch struct {
	RunID string
	Dir   string
	Start time.Time // earliest start of the nodes; the modification time is used for files without a start

	// Nth is the number of the launch among the Total launches of the run, counted from 1 in the order of starts.
	Nth, Total int

	Nodes []Node // sorted by index
	// OlderEntries holds recordings that newer recordings of the same node or rank in the launch have replaced.
	OlderEntries []*Entry

	key    launchKey
	hasKey bool      // whether key is known
	inside bool      // whether it was recorded inside a rank of another launch, before which it is then sorted
	order  time.Time // the sort key: Start, or the start of the surrounding launch
}

// ID returns RUN-ID, or RUN-ID@K if the run has several launches.
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

// A launchKey is the key that all recordings of a launch have in common.
type launchKey struct {
	run     string
	restart int
	launch  string // "" if launches have no key and only time separates them
}

// keyOf returns the launch key of r. ok is false if the file has none.
func keyOf(r *Entry) (k launchKey, ok bool) {
	k.run = r.head.Run.ID
	if id := r.head.Identity; id != nil {
		k.restart, k.launch = id.Restart, id.Launch
	}
	return k, r.head.Node != ""
}

// launchesOf groups recordings into launches. The recordings must be sorted by start. Until resolveNodes is called, the
// Entries of a node include replaced recordings.
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

// choose returns the launch that r belongs to, or nil if r starts a new launch. Among several candidates it prefers
// launches with the same command, because r may have been recorded inside a rank of another launch. Among these it
// prefers the newest.
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
			fit = 1 // nodes that ran one after another
		}
		if fit > high {
			best, high = l, fit
		}
	}

	return best
}

// admits reports whether r may belong to the launch. It does not consider the time of r, except for restarted pods.
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

	// The node may be a pod that was restarted while other pods were running.
	return l.key.launch == "" && !slices.ContainsFunc(n.Entries, r.overlaps) && l.overlaps(r)
}

// takesRank reports whether r can be added to the node as the recording of a rank.
func (n *Node) takesRank(r *Entry) bool {
	other := func(o *Entry) bool { return !o.hasRanks() && !o.mayBeRank() }
	return r.hasRanks() && !slices.ContainsFunc(n.Entries, other)
}

// overlaps reports whether r was active at the same time as any recording of the launch.
func (l *Launch) overlaps(r *Entry) bool {
	return slices.ContainsFunc(l.Nodes, func(n Node) bool { return slices.ContainsFunc(n.Entries, r.overlaps) })
}

// nodeAt returns the node with a key that matches p; nil if there is none.
func (l *Launch) nodeAt(p nodeKey) *Node {
	i := slices.IndexFunc(l.Nodes, func(n Node) bool { return n.matches(p) })
	if i < 0 {
		return nil
	}
	return &l.Nodes[i]
}

// add adds r to its node, and creates the node if necessary.
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

// hasRanks reports whether any node of the launch has ranks.
func (l *Launch) hasRanks() bool {
	return slices.ContainsFunc(l.Nodes, func(n Node) bool {
		return slices.ContainsFunc(n.Entries, (*Entry).hasRanks)
	})
}

// sortLaunches sorts launches by start. A recording made inside a rank comes before the launch of that rank, because it
// is not a separate launch, and must not represent the run.
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

// isConcurrentWith reports whether l and o, which must have the same key, belong together: because the key identifies
// a launch, or because they overlap.
func (l *Launch) isConcurrentWith(o *Launch) bool {
	return l.key.launch != "" || slices.ContainsFunc(o.Nodes, func(n Node) bool {
		return slices.ContainsFunc(n.Entries, l.overlaps)
	})
}

// resolveNodes moves replaced entries from the nodes to OlderEntries.
func (l *Launch) resolveNodes() {
	for i := range l.Nodes {
		current, older := l.Nodes[i].resolve()
		l.Nodes[i].Entries = current
		l.OlderEntries = append(l.OlderEntries, older...)
	}
}
