package catalog

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
	"github.com/perfagent/perfagent/reporter/journal"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// A Node is what was recorded of a node in one launch: one recording or, of ranks that were not put together yet, a
// piece of each.
type Node struct {
	Index  int // in the launch; not always that in the file
	Pieces []*Recording

	place
	merged bool // the file has several nodes, of which this is the first
}

// Name returns what the node is called in a report of the launch: its index.
func (n *Node) Name() string { return n.nameOf(n.InFile()) }

// InFile returns what the node is called in its files.
func (n *Node) InFile() string { return strconv.Itoa(n.index) }

// IsAtWork reports whether any of it is being recorded by a perfagent on this machine.
func (n *Node) IsAtWork() bool {
	return slices.ContainsFunc(n.Pieces, func(r *Recording) bool { return r.Journal != "" && journal.Running(r.Journal) })
}

// Paths returns the files to read.
func (n *Node) Paths() []string {
	out := make([]string, len(n.Pieces))
	for i, r := range n.Pieces {
		out[i] = r.Path()
	}
	return out
}

// Path returns the file of the node or, of several pieces, the one that the node would have.
func (n *Node) Path() string {
	first := n.Pieces[0]
	if len(n.Pieces) == 1 {
		return first.Path()
	}

	name := first.Host
	if name == "" {
		name = strconv.Itoa(first.Node)
	}
	return filepath.Join(filepath.Dir(first.Path()), "node-"+name+reportExt)
}

// Read returns the report of the node, of its ranks together. cpus is as for reportfile.Read.
func (n *Node) Read(cpus int) (*reporter.Report, error) {
	var pieces []reporter.Source
	for _, r := range n.Pieces {
		report, err := reportfile.Read(r.Path(), cpus)
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, reporter.Source{Path: r.Path(), Report: report})
	}

	return n.Combine(pieces)
}

// Numbers reads the report of the node without its series, as reportfile.Numbers does.
func (n *Node) Numbers(cpus int) (*reporter.Report, error) {
	if len(n.Pieces) == 1 {
		report, err := reportfile.Numbers(n.Path(), cpus)
		if err != nil {
			return nil, err
		}
		return n.Combine([]reporter.Source{{Path: n.Path(), Report: report}})
	}

	report, err := n.Read(cpus)
	if err != nil {
		return nil, err
	}
	for name, node := range report.Nodes {
		report.Nodes[name] = node.WithoutSeries()
	}
	return report, nil
}

// Combine puts together what was read of each piece, and gives the node its name in the launch.
func (n *Node) Combine(pieces []reporter.Source) (*reporter.Report, error) {
	out := pieces[0].Report
	if len(pieces) > 1 {
		combined, err := diagnosis.Combine(pieces)
		if err != nil {
			return nil, err
		}
		out = combined
	}

	from, to := n.InFile(), n.Name()
	if node, there := out.Nodes[from]; there && to != from {
		delete(out.Nodes, from)
		out.Nodes[to] = node
	}

	return out, nil
}

// Scan hands over the node as reportfile.Scan does. It reads ranks that were not put together yet whole.
func (n *Node) Scan(cpus int, wanted reporter.Wanted,
	take func(run *reporter.Run, name string, n *reporter.Node) error) (*reporter.Run, error) {
	if len(n.Pieces) == 1 {
		return reportfile.Scan(n.Path(), cpus, wanted, func(run *reporter.Run, name string, node *reporter.Node) error {
			return take(run, n.nameOf(name), node)
		})
	}

	report, err := n.Read(cpus)
	if err != nil {
		return nil, err
	}
	for _, name := range report.NodeNames() { // one
		if err := take(&report.Run, name, report.Nodes[name]); err != nil {
			return nil, err
		}
	}

	return &report.Run, nil
}

// nameOf returns the name of a node that has another one in the file. A file of several nodes keeps their names.
func (n *Node) nameOf(inFile string) string {
	if n.keepsIndex() || inFile != n.InFile() {
		return inFile
	}
	return strconv.Itoa(n.Index)
}

// resolve returns the recordings of the node that count, and those that were replaced by newer ones. A node whose ranks
// were put together beats what is left of its pieces.
func (n *nodeGroup) resolve() (pieces, earlier []*Recording) {
	last := len(n.list) - 1
	if last == 0 || !slices.ContainsFunc(n.list, (*Recording).hasRanks) { // each but the last was started again
		return n.list[last:], n.list[:last]
	}

	taken := make(map[int]time.Time) // when the rank that counts began; zero if its report does not tell
	for _, r := range slices.Backward(n.list) {
		switch {
		case !r.isClosed():
		case len(pieces) > 0 || n.begunAfter(r):
			earlier = append(earlier, r)
		default:
			pieces = append(pieces, r)
			maps.Copy(taken, ranksOf(r))
		}
	}

	for _, r := range byAge(n.list) {
		rank, known := rankOf(r)
		switch start, ok := taken[rank]; {
		case !known:
			pieces = append(pieces, r)
		case !ok:
			pieces, taken[rank] = append(pieces, r), r.start
		case !start.IsZero() && !start.Equal(r.start):
			earlier = append(earlier, r)
		}
	}
	slices.SortFunc(pieces, comparePieces)

	return pieces, inOrder(earlier)
}

// begunAfter reports whether a rank of the node was started after the end of a recording.
func (n *nodeGroup) begunAfter(r *Recording) bool {
	return !r.end.IsZero() && slices.ContainsFunc(n.list, func(o *Recording) bool { return o.start.After(r.end) })
}

// byAge returns the pieces of a node, the newest first. Of one that is there twice, the report comes first.
func byAge(list []*Recording) []*Recording {
	pieces := slices.DeleteFunc(slices.Clone(list), (*Recording).isClosed)
	slices.SortStableFunc(pieces, func(a, b *Recording) int {
		return cmp.Or(b.start.Compare(a.start), cmp.Compare(len(a.Journal), len(b.Journal)), cmp.Compare(a.Nth, b.Nth))
	})
	return pieces
}

// comparePieces orders pieces by rank.
func comparePieces(a, b *Recording) int {
	x, _ := rankOf(a)
	y, _ := rankOf(b)
	return cmp.Or(cmp.Compare(x, y), a.start.Compare(b.start))
}

// rankOf returns the rank of a piece. known is false if it has none yet.
func rankOf(r *Recording) (rank int, known bool) {
	if r.Rank >= 0 {
		return r.Rank, true
	}
	if rank, ok := count(r.head.Rank); ok {
		return rank, true
	}
	if id := r.head.Identity; id != nil && id.Rank != nil {
		return *id.Rank, true
	}
	return 0, false
}

// ranksOf returns when the ranks in a recording began. Of a file that cannot be read it returns none.
func ranksOf(r *Recording) map[int]time.Time {
	ranks := make(map[int]time.Time)
	if !r.isClosed() {
		if rank, known := rankOf(r); known {
			ranks[rank] = r.start
		}
		return ranks
	}

	starts, _ := reportfile.ReadRanks(r.Path())
	for name, start := range starts {
		if rank, ok := count(name); ok {
			ranks[rank] = start
		}
	}
	return ranks
}
