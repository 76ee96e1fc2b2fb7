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

// A Node holds the recordings of a node in one launch: one recording or, if the ranks are not combined yet, one for
// each rank.
type Node struct {
	Index   int // in the launch; may differ from the index in the file
	Entries []*Entry

	nodeKey
	merged bool   // whether the file has several nodes; this is the first of them
	dir    string // directory of the run; "" for files given by path
}

// Name returns the name of the node in a report of the launch: its index.
func (n *Node) Name() string { return n.nameOf(n.NameInFile()) }

// NameInFile returns the name that the node has in its files.
func (n *Node) NameInFile() string { return strconv.Itoa(n.index) }

// IsActive reports whether a perfagent on this machine is recording any part of the node.
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

// Path returns the file of the node. If the ranks are not combined yet, it returns the path of their future combined
// report.
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

// rereads is the maximum number of further attempts after a file disappeared before it was read.
const rereads = 5

// Retry calls read, which reads the files of the node. If a file is missing, Retry updates the node with the files that
// exist now, and calls read again, a few times at most. Files disappear because a rank that ends replaces its journal
// with a report, and the last rank to end replaces the reports of all ranks with one report of the node.
func (n *Node) Retry(read func() error) error {
	err := read()
	for i := 0; i < rereads && errors.Is(err, fs.ErrNotExist) && n.refresh(); i++ {
		err = read()
	}
	return err
}

// refresh updates the recordings of the node, and reports whether it found any.
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

// isSameAs reports whether now, which was read later than n, is the same node of the same launch.
func (n *Node) isSameAs(now *Node) bool {
	was, knownBefore := keyOf(n.Entries[0])
	is, known := keyOf(now.Entries[0])
	return n.matches(now.nodeKey) && was == is && knownBefore == known &&
		(is.launch != "" || slices.ContainsFunc(now.Entries, func(r *Entry) bool {
			return slices.ContainsFunc(n.Entries, r.overlaps)
		}))
}

// Read returns the report of the node, with its ranks combined. cpus has the same meaning as in reportfile.Read.
func (n *Node) Read(cpus int) (*reporter.Report, error) {
	return n.readEach(func(path string) (*reporter.Report, error) { return reportfile.Read(path, cpus) })
}

// ReadWithoutSeries returns the report of the node without its series, like reportfile.ReadWithoutSeries.
func (n *Node) ReadWithoutSeries(cpus int) (*reporter.Report, error) {
	report, err := n.readEach(func(path string) (*reporter.Report, error) {
		if len(n.Entries) > 1 { // combining needs the series
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

// readEach reads the files of the node with read and combines them.
func (n *Node) readEach(read func(path string) (*reporter.Report, error)) (report *reporter.Report, err error) {
	err = n.Retry(func() error {
		var sources []reporter.SourceReport
		for _, path := range n.Paths() {
			part, err := read(path)
			if err != nil {
				return err
			}
			sources = append(sources, reporter.SourceReport{Path: path, Report: part})
		}
		report, err = n.Combine(sources)
		return err
	})
	return report, err
}

// Combine combines the reports of the node's entries, and gives the node its name in the launch.
func (n *Node) Combine(sources []reporter.SourceReport) (*reporter.Report, error) {
	out := sources[0].Report
	if len(sources) > 1 {
		combined, err := diagnosis.Combine(sources)
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

// Scan calls take with the node, like reportfile.Scan. If the ranks are not combined yet, Scan reads all their reports
// into memory.
func (n *Node) Scan(cpus int, wanted reporter.ColumnFilter, take reporter.NodeFunc) (run *reporter.Run, err error) {
	var failed error
	begun := false
	err = n.Retry(func() (err error) {
		run, err = n.scan(cpus, wanted, func(run *reporter.Run, name string, node *reporter.Node) error {
			begun = true
			return take(run, name, node)
		})
		if begun { // take must not be called twice
			failed, err = err, nil
		}
		return err
	})
	return run, cmp.Or(failed, err)
}

// scan is Scan without Retry.
func (n *Node) scan(cpus int, wanted reporter.ColumnFilter, take reporter.NodeFunc) (*reporter.Run, error) {
	if len(n.Entries) == 1 {
		return reportfile.Scan(n.Path(), cpus, wanted, func(run *reporter.Run, name string, node *reporter.Node) error {
			return take(run, n.nameOf(name), node)
		})
	}

	report, err := n.Read(cpus)
	if err != nil {
		return nil, err
	}
	for _, name := range report.NodeNames() { // a single node
		if err := take(&report.Run, name, report.Nodes[name]); err != nil {
			return nil, err
		}
	}

	return &report.Run, nil
}

// nameOf returns the name in the launch for the node that is named inFile in its file. The nodes of a file with several
// nodes keep their names.
func (n *Node) nameOf(inFile string) string {
	if n.keepsIndex() || inFile != n.NameInFile() {
		return inFile
	}
	return strconv.Itoa(n.Index)
}

// resolve returns the current recordings of the node, and the older recordings that newer ones have replaced. A report
// with combined ranks takes precedence over remaining files of ranks.
func (n *Node) resolve() (current, older []*Entry) {
	last := len(n.Entries) - 1
	if last == 0 || !slices.ContainsFunc(n.Entries, (*Entry).hasRanks) { // all but the last were restarted
		return n.Entries[last:], n.Entries[:last]
	}

	taken := make(map[int]time.Time) // start of the current recording, by rank; zero if the report lacks it
	for _, r := range slices.Backward(n.Entries) {
		switch {
		case !r.isCombined():
		case len(current) > 0 || n.begunAfter(r):
			older = append(older, r)
		default:
			current = append(current, r)
			maps.Copy(taken, rankStarts(r))
		}
	}

	for _, r := range byAge(n.Entries) {
		rank, known := rankOf(r)
		switch start, ok := taken[rank]; {
		case !known:
			current = append(current, r)
		case !ok:
			current, taken[rank] = append(current, r), r.start
		case !start.IsZero() && !start.Equal(r.start):
			older = append(older, r)
		}
	}
	slices.SortFunc(current, compareByRank)

	return current, sortByStart(older)
}

// begunAfter reports whether any recording of the node started after the end of r.
func (n *Node) begunAfter(r *Entry) bool {
	return !r.end.IsZero() && slices.ContainsFunc(n.Entries, func(o *Entry) bool { return o.start.After(r.end) })
}

// byAge returns the recordings of single ranks in list, newest first. Of recordings with the same start, reports come
// before journals.
func byAge(list []*Entry) []*Entry {
	parts := slices.DeleteFunc(slices.Clone(list), (*Entry).isCombined)
	slices.SortStableFunc(parts, func(a, b *Entry) int {
		return cmp.Or(b.start.Compare(a.start), cmp.Compare(len(a.Journal), len(b.Journal)), cmp.Compare(a.Nth, b.Nth))
	})
	return parts
}

// compareByRank orders recordings by rank, then by start.
func compareByRank(a, b *Entry) int {
	x, _ := rankOf(a)
	y, _ := rankOf(b)
	return cmp.Or(cmp.Compare(x, y), a.start.Compare(b.start))
}

// rankOf returns the rank of a recording. known is false if the recording does not contain the rank yet.
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

// rankStarts returns the starts of the ranks in a recording. It returns none for an unreadable file.
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
