package catalog

import (
	"cmp"
	"errors"
	"io/fs"
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
	Index   int // in the launch; not always that in the file
	Entries []*Entry

	nodeKey
	merged bool   // the file has several nodes, of which this is the first
	dir    string // of the run; "" for files that somebody named
}

// Name returns what the node is called in a report of the launch: its index.
func (n *Node) Name() string { return n.nameOf(n.NameInFile()) }

// NameInFile returns what the node is called in its files.
func (n *Node) NameInFile() string { return strconv.Itoa(n.index) }

// IsActive reports whether any of it is being recorded by a perfagent on this machine.
func (n *Node) IsActive() bool {
	return slices.ContainsFunc(n.Entries, func(r *Entry) bool { return r.Journal != "" && journal.IsLocked(r.Journal) })
}

// Paths returns the files to read.
func (n *Node) Paths() []string {
	out := make([]string, len(n.Entries))
	for i, r := range n.Entries {
		out[i] = r.Path()
	}
	return out
}

// Path returns the file of the node or, of several pieces, the one that the node would have.
func (n *Node) Path() string {
	first := n.Entries[0]
	if len(n.Entries) == 1 {
		return first.Path()
	}

	name := first.Host
	if name == "" {
		name = strconv.Itoa(first.Node)
	}
	return filepath.Join(filepath.Dir(first.Path()), "node-"+name+reportExt)
}

// rereads is how often what is there is looked for again, where a file is gone before it was read.
const rereads = 5

// Retry calls a function that reads the files of the node and, while that finds one of them gone, calls it again with
// those that are there then: a rank that ends replaces its journal by a report, and the last one out of the node
// replaces the reports of all ranks by that of the node.
func (n *Node) Retry(read func() error) error {
	err := read()
	for i := 0; i < rereads && errors.Is(err, fs.ErrNotExist) && n.refresh(); i++ {
		err = read()
	}
	return err
}

// refresh looks for the recordings of the node again, and reports whether there are some.
func (n *Node) refresh() bool {
	if n.dir == "" {
		return false
	}
	run, err := ReadRun(n.dir)
	if err != nil || run == nil {
		return false
	}

	for i := range run.Launches {
		for j := range run.Launches[i].Nodes {
			if now := &run.Launches[i].Nodes[j]; n.isSameAs(now) {
				n.Entries = now.Entries
				return true
			}
		}
	}
	return false
}

// isSameAs reports whether the recordings of a node that was found later are of the same node and launch.
func (n *Node) isSameAs(now *Node) bool {
	was, knownBefore := keyOf(n.Entries[0])
	is, known := keyOf(now.Entries[0])
	return n.matches(now.nodeKey) && was == is && knownBefore == known &&
		(is.launch != "" || slices.ContainsFunc(now.Entries, func(r *Entry) bool {
			return slices.ContainsFunc(n.Entries, r.overlaps)
		}))
}

// Read returns the report of the node, of its ranks together. cpus is as for reportfile.Read.
func (n *Node) Read(cpus int) (*reporter.Report, error) {
	return n.readEach(func(path string) (*reporter.Report, error) { return reportfile.Read(path, cpus) })
}

// ReadWithoutSeries reads the report of the node without its series, as reportfile.Numbers does.
func (n *Node) ReadWithoutSeries(cpus int) (*reporter.Report, error) {
	report, err := n.readEach(func(path string) (*reporter.Report, error) {
		if len(n.Entries) > 1 { // what they have in common follows from their series
			return reportfile.Read(path, cpus)
		}
		return reportfile.ReadWithoutSeries(path, cpus)
	})
	if err != nil || len(n.Entries) == 1 {
		return report, err
	}
	for name, node := range report.Nodes {
		report.Nodes[name] = node.WithoutSeries()
	}
	return report, nil
}

// readEach returns the report of the node from those that a function reads in its files.
func (n *Node) readEach(read func(path string) (*reporter.Report, error)) (report *reporter.Report, err error) {
	err = n.Retry(func() error {
		var pieces []reporter.SourceReport
		for _, path := range n.Paths() {
			piece, err := read(path)
			if err != nil {
				return err
			}
			pieces = append(pieces, reporter.SourceReport{Path: path, Report: piece})
		}
		report, err = n.Combine(pieces)
		return err
	})
	return report, err
}

// Combine puts together what was read of each piece, and gives the node its name in the launch.
func (n *Node) Combine(pieces []reporter.SourceReport) (*reporter.Report, error) {
	out := pieces[0].Report
	if len(pieces) > 1 {
		combined, err := diagnosis.Combine(pieces)
		if err != nil {
			return nil, err
		}
		out = combined
	}

	from, to := n.NameInFile(), n.Name()
	if node, there := out.Nodes[from]; there && to != from {
		delete(out.Nodes, from)
		out.Nodes[to] = node
	}

	return out, nil
}

// Scan hands over the node as reportfile.Scan does. It reads ranks that were not put together yet whole.
func (n *Node) Scan(cpus int, wanted reporter.ColumnFilter,
	take func(run *reporter.Run, name string, n *reporter.Node) error) (run *reporter.Run, err error) {
	var failed error
	begun := false
	err = n.Retry(func() (err error) {
		run, err = n.scan(cpus, wanted, func(run *reporter.Run, name string, node *reporter.Node) error {
			begun = true
			return take(run, name, node)
		})
		if begun { // nothing is handed over twice
			failed, err = err, nil
		}
		return err
	})
	return run, cmp.Or(failed, err)
}

// scan is Scan of the files that were found.
func (n *Node) scan(cpus int, wanted reporter.ColumnFilter,
	take func(run *reporter.Run, name string, n *reporter.Node) error) (*reporter.Run, error) {
	if len(n.Entries) == 1 {
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
	if n.keepsIndex() || inFile != n.NameInFile() {
		return inFile
	}
	return strconv.Itoa(n.Index)
}

// resolve returns the recordings of the node that count, and those that were replaced by newer ones. A node whose ranks
// were put together beats what is left of its pieces.
func (n *Node) resolve() (pieces, earlier []*Entry) {
	last := len(n.Entries) - 1
	if last == 0 || !slices.ContainsFunc(n.Entries, (*Entry).hasRanks) { // each but the last was started again
		return n.Entries[last:], n.Entries[:last]
	}

	taken := make(map[int]time.Time) // when the rank that counts began; zero if its report does not tell
	for _, r := range slices.Backward(n.Entries) {
		switch {
		case !r.isCombined():
		case len(pieces) > 0 || n.begunAfter(r):
			earlier = append(earlier, r)
		default:
			pieces = append(pieces, r)
			maps.Copy(taken, rankStarts(r))
		}
	}

	for _, r := range byAge(n.Entries) {
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
	slices.SortFunc(pieces, compareByRank)

	return pieces, sortByStart(earlier)
}

// begunAfter reports whether a rank of the node was started after the end of a recording.
func (n *Node) begunAfter(r *Entry) bool {
	return !r.end.IsZero() && slices.ContainsFunc(n.Entries, func(o *Entry) bool { return o.start.After(r.end) })
}

// byAge returns the pieces of a node, the newest first. Of one that is there twice, the report comes first.
func byAge(list []*Entry) []*Entry {
	pieces := slices.DeleteFunc(slices.Clone(list), (*Entry).isCombined)
	slices.SortStableFunc(pieces, func(a, b *Entry) int {
		return cmp.Or(b.start.Compare(a.start), cmp.Compare(len(a.Journal), len(b.Journal)), cmp.Compare(a.Nth, b.Nth))
	})
	return pieces
}

// compareByRank orders pieces by rank.
func compareByRank(a, b *Entry) int {
	x, _ := rankOf(a)
	y, _ := rankOf(b)
	return cmp.Or(cmp.Compare(x, y), a.start.Compare(b.start))
}

// rankOf returns the rank of a piece. known is false if it has none yet.
func rankOf(r *Entry) (rank int, known bool) {
	if r.Rank >= 0 {
		return r.Rank, true
	}
	if rank, ok := parseNumber(r.head.Rank); ok {
		return rank, true
	}
	if id := r.head.Identity; id != nil && id.Rank != nil {
		return *id.Rank, true
	}
	return 0, false
}

// rankStarts returns when the ranks in a recording began. Of a file that cannot be read it returns none.
func rankStarts(r *Entry) map[int]time.Time {
	ranks := make(map[int]time.Time)
	if !r.isCombined() {
		if rank, known := rankOf(r); known {
			ranks[rank] = r.start
		}
		return ranks
	}

	if report, err := reportfile.ReadWithoutSeries(r.Path(), 0); err == nil {
		for _, rank := range report.Nodes[r.head.Node].RankList() {
			ranks[rank.Rank] = rank.Start.Time
		}
	}
	return ranks
}
