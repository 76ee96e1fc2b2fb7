package catalog

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// NodesOf returns the nodes in the given files. It groups the files of ranks that belong to the same node and launch
// into one Node. Every other file becomes a separate Node. If several of these are of the same node, the caller has to
// combine them.
func NodesOf(paths []string) []Node {
	var launches []*Launch
	for _, r := range entriesOf(paths) {
		key, known := keyOf(r)
		i := slices.IndexFunc(launches, func(l *Launch) bool { return l.key == key && l.hasKey == known })
		if i < 0 {
			i = len(launches)
			launches = append(launches, &Launch{key: key, hasKey: known})
		}

		l := launches[i]
		if n := l.nodeAt(nodeKeyOf(r)); n != nil && n.takesRank(r) {
			n.Entries = append(n.Entries, r)
			continue
		}
		l.Nodes = append(l.Nodes, Node{nodeKey: nodeKeyOf(r), Entries: []*Entry{r}})
	}

	var out []Node
	for _, l := range launches {
		l.resolveNodes()
		assignIndexes(l.Nodes, mergedNodeKeys(l.Nodes))
		out = append(out, l.Nodes...)
	}

	return out
}

// entriesOf returns the recordings in the files at paths, sorted by start. The files may have any name. A path that is
// given twice is listed twice.
func entriesOf(paths []string) []*Entry {
	out := make([]*Entry, len(paths))
	for i, path := range paths {
		name, ok := ParseFileName(filepath.Base(path))
		if !ok {
			name = FileName{Rank: -1, Nth: 1, Ext: filepath.Ext(path)}
		}
		r := &Entry{FileName: name, Report: path}
		if name.Ext == journalExt {
			r.Report, r.Journal = "", path
		} else if _, err := os.Stat(r.base() + journalExt); err == nil {
			r.Journal = r.base() + journalExt
		}
		r.readHead()
		out[i] = r
	}

	return sortByStart(out)
}

// mergedNodeKeys returns the keys of the nodes in files that contain several nodes. The indexes of these nodes must not
// change.
func mergedNodeKeys(nodes []Node) []nodeKey {
	if len(nodes) < 2 || !slices.ContainsFunc(nodes, func(n Node) bool { return !n.hasIndex }) {
		return nil
	}

	var out []nodeKey
	for i := range nodes {
		n := &nodes[i]
		if _, single := ParseFileName(filepath.Base(n.Path())); single || len(n.Entries) > 1 {
			continue
		}

		var in []nodeKey
		add := func(_ *reporter.Run, name string, node *reporter.Node) error {
			in = append(in, newNodeKey(name, node.Identity, node.Host))
			return nil
		}
		if _, err := reportfile.Scan(n.Path(), 0, reporter.ColumnFilter{}, add); err == nil && len(in) > 1 {
			n.merged = true
			out = append(out, in...)
		}
	}

	return out
}
