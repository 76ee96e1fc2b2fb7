package catalog

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// NodesOf returns the nodes in files that somebody named. The pieces of a node of one launch are one; else each file
// is one, even if another is of the same node: whoever puts them together says so.
func NodesOf(paths []string) []Node {
	var launches []*Launch
	for _, r := range recordingsOf(paths) {
		key, known := keyOf(r)
		i := slices.IndexFunc(launches, func(l *Launch) bool { return l.key == key && l.known == known })
		if i < 0 {
			i = len(launches)
			launches = append(launches, &Launch{key: key, known: known})
		}

		l := launches[i]
		if n := l.nodeAt(placeOf(r)); n != nil && n.takesRank(r) {
			n.Pieces = append(n.Pieces, r)
			continue
		}
		l.Nodes = append(l.Nodes, Node{place: placeOf(r), Pieces: []*Recording{r}})
	}

	var out []Node
	for _, l := range launches {
		l.settle()
		number(l.Nodes, mergedIn(l.Nodes))
		out = append(out, l.Nodes...)
	}

	return out
}

// recordingsOf returns the recordings in files of any name, in the order in which they began. A file that is given
// twice is there twice.
func recordingsOf(paths []string) []*Recording {
	out := make([]*Recording, len(paths))
	for i, path := range paths {
		name, ok := ParseName(filepath.Base(path))
		if !ok {
			name = Name{Rank: -1, Nth: 1, Ext: filepath.Ext(path)}
		}
		r := &Recording{Name: name, Report: path}
		if name.Ext == journalExt {
			r.Report, r.Journal = "", path
		} else if _, err := os.Stat(r.base() + journalExt); err == nil {
			r.Journal = r.base() + journalExt
		}
		r.look()
		out[i] = r
	}

	return inOrder(out)
}

// mergedIn returns the nodes in those files that have several: they keep their indices.
func mergedIn(nodes []Node) []place {
	if len(nodes) < 2 || !slices.ContainsFunc(nodes, func(n Node) bool { return !n.told }) {
		return nil
	}

	var out []place
	for i := range nodes {
		n := &nodes[i]
		if _, single := ParseName(filepath.Base(n.Path())); single || len(n.Pieces) > 1 {
			continue
		}

		var in []place
		add := func(_ *reporter.Run, name string, node *reporter.Node) error {
			in = append(in, newPlace(name, node.Identity, node.Host))
			return nil
		}
		if _, err := reportfile.Scan(n.Path(), 0, reporter.Wanted{}, add); err == nil && len(in) > 1 {
			n.merged = true
			out = append(out, in...)
		}
	}

	return out
}
