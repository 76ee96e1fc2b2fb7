package store

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
)

// A Gatherer fetches a run from a store for a merge.
type Gatherer struct {
	Store  *Store
	Waited time.Duration

	run      string                     // RUN-ID or RUN-ID@K
	in       localCopy                  // directory with the run's files
	describe func(f FetchResult) string // returns the message about an object that could not be read
	files    map[string]FetchResult     // fetched objects, by file
	failed   []FetchResult              // objects that cannot be read
}

// NewGatherer returns a Gatherer for run, which is RUN-ID or RUN-ID@K. why returns the message about an object that
// could not be read.
func NewGatherer(s *Store, run string, why func(FetchResult) string) *Gatherer {
	return &Gatherer{Store: s, run: run, describe: why, files: make(map[string]FetchResult)}
}

// maxListedMissing limits how many missing nodes one line names.
const maxListedMissing = 20

// Fetch fetches the run and returns it. If optional is set, it returns nil for a run without objects in a store that is
// not a directory, because RUN-ID may be the name of an object instead: in a ProxyStore, any object may have such a
// name.
func (g *Gatherer) Fetch(ctx context.Context, c *Copies, optional bool) (*catalog.Match, error) {
	in, isDir, err := c.makeLocalDir(g.Store, g.run)
	if err != nil {
		return nil, err
	}
	g.in = in
	run, _ := RunIDOf(g.run)
	fetched, err := g.Store.FetchRun(ctx, run, in.dir)
	if err != nil || len(fetched) == 0 && optional && !isDir {
		return nil, err
	}
	without, err := c.externalLinks(g.run, in)
	if err != nil {
		return nil, err
	}
	for _, f := range fetched {
		if f.Err != nil {
			g.failed = append(g.failed, f)
			without = append(without, in.file(f.String()))
			continue
		}
		g.files[f.Path] = f
	}

	found, err := catalog.FindRun(in.dir, g.run, without...)
	switch {
	case err != nil && len(g.failed) > 0:
		return nil, g.UnreadableError()
	case err != nil:
		return nil, fmt.Errorf("no run %s in %s", text.Printable(g.run), g.Store.URL())
	}
	return found, nil
}

// WarnPartial warns about the nodes of the run that have only a partial report.
func (g *Gatherer) WarnPartial(c *Copies, l *catalog.Launch) { c.warnPartial(l, g.in) }

// UnreadableError returns the error for a run without a readable object. It lists the objects and the reasons.
func (g *Gatherer) UnreadableError() error {
	var whys []string
	for _, f := range g.failed {
		whys = append(whys, g.describe(f))
	}
	return fmt.Errorf("no object of run %s can be read: %s", g.run, text.List(whys, maxListedMissing))
}

// MarkFailed records that the fetched file at path could not be read. It returns false if the file is not from the
// store.
func (g *Gatherer) MarkFailed(path string, err error) bool {
	f, ok := g.files[path]
	if ok {
		delete(g.files, path)
		f.Err = err
		g.failed = append(g.failed, f)
	}
	return ok
}

// Summarize returns the information about the store for the merged report. nodes are the merged nodes. expected is the
// number of all nodes, or 0 if unknown.
func (g *Gatherer) Summarize(nodes []catalog.Node, expected int) *reporter.GatherResult {
	out := &reporter.GatherResult{
		Store: g.Store.URL(), NodesExpected: expected, Partial: []int{},
		WaitedSeconds: g.Waited.Seconds(), Metrics: g.Store.Metrics(),
	}
	there := make(map[int]bool)
	for i := range nodes {
		n := &nodes[i]
		there[n.Index] = true
		if g.isFinal(n) {
			out.NodesFound++
		} else {
			out.Partial = append(out.Partial, n.Index)
		}
	}
	slices.Sort(out.Partial)
	out.Missing = g.missing(there, expected)

	return out
}

// isFinal reports whether all reports of n are final. A directory of --out may also hold journals and reports of single
// ranks, which are not final.
func (g *Gatherer) isFinal(n *catalog.Node) bool {
	for _, path := range n.Paths() {
		f, known := g.files[path]
		if known && f.partial || !known && filepath.Ext(path) != ".json" {
			return false
		}
	}
	return true
}

// missing returns the missing nodes, first the ones with an unreadable object. A node without an index is listed by its
// host name.
func (g *Gatherer) missing(there map[int]bool, expected int) []reporter.Missing {
	out, left := []reporter.Missing{}, expected
	for _, f := range g.failed {
		out = append(out, reporter.Missing{What: f.Index(), Code: reporter.Unreadable, Why: g.describe(f)})
		if index, err := strconv.Atoi(f.Index()); err == nil {
			there[index] = true
		} else {
			left--
		}
	}

	run, _ := RunIDOf(g.run)
	left -= len(there)
	for index := 0; left > 0; index++ {
		if there[index] {
			continue
		}
		why := fmt.Sprintf("no object %s/node-%d in %s", run, index, g.Store.URL())
		out = append(out, reporter.Missing{What: strconv.Itoa(index), Code: reporter.NoReport, Why: why})
		left--
	}
	return out
}

// Evict deletes the objects of nodes, the merged nodes.
func (g *Gatherer) Evict(ctx context.Context, nodes []catalog.Node) error {
	for i := range nodes {
		for _, path := range nodes[i].Paths() {
			if f, ok := g.files[path]; ok {
				if err := g.Store.Evict(ctx, f.String()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// ResultOf returns the object that contains the series of n. The second result is false unless exactly one object of
// the store contains them.
func (g *Gatherer) ResultOf(n *catalog.Node) (FetchResult, bool) {
	paths := n.Paths()
	if g == nil || len(paths) != 1 {
		return FetchResult{}, false
	}
	f, ok := g.files[paths[0]]
	return f, ok
}

// MissingMessage returns the message about the nodes that are missing from a merged report, with the reasons.
func MissingMessage(g *reporter.GatherResult) string {
	var words []string
	for _, m := range g.Missing {
		words = append(words, fmt.Sprintf("%s (%s)", m.What, m.Why))
	}
	count := text.Count(len(g.Missing), "node", "nodes")
	if g.NodesExpected > 0 {
		count = fmt.Sprintf("%d of %s", len(g.Missing), text.Count(g.NodesExpected, "node", "nodes"))
	}
	return fmt.Sprintf("%s missing: %s", count, text.List(words, maxListedMissing))
}
