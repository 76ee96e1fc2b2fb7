package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/gather"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/store"
)

// A gathering is a run in a store that is being merged.
type gathering struct {
	store  *store.Store
	copies *copies
	run    string                    // RUN-ID or RUN-ID@K
	files  map[string]gather.Fetched // what was fetched, by the file that has it
	lost   []gather.Fetched          // what cannot be read
	waited time.Duration
}

// gather fetches a run from a store and returns its nodes, after it has waited for them. It returns nil if there is no
// object of such a run, unless a flag says that there is to be one: in a ProxyStore the name may be that of any object.
func (o *mergeOptions) gather(address, object string) ([]catalog.Node, error) {
	s, err := o.runs.openStore(address, true)
	if err != nil {
		return nil, err
	}
	ctx, stop := untilSignal()
	defer stop()
	g := &gathering{store: s, copies: &o.runs.copies, run: object, files: make(map[string]gather.Fetched)}
	o.gathered = g
	run, _ := runIn(object)
	if o.wait > 0 {
		g.waited, err = gather.Await(ctx, s, run, o.awaited(run))
		if errors.Is(err, gather.ErrUnknownNodes) {
			err = fmt.Errorf("--wait: %w: say it with --nodes", err)
		}
		if err != nil {
			return nil, err
		}
	}

	dir, isDir := s.Dir()
	if !isDir {
		if dir, err = o.runs.copies.add(s.URL(), object); err != nil {
			return nil, err
		}
	}
	fetched, err := gather.FetchRun(ctx, s, run, dir)
	if err != nil {
		return nil, err
	}
	if len(fetched) == 0 && len(o.given) == 0 && !isDir {
		o.close()
		o.gathered = nil
		return nil, nil
	}

	outside, err := o.runs.outside("merge", object, copied{dir: dir, store: s.URL()})
	if err != nil {
		return nil, err
	}
	found, err := g.find(dir, fetched, outside)
	if err != nil {
		return nil, err
	}
	o.runs.tell("merge", found)
	for i := range found.Launch.Nodes {
		if f, ok := g.reference(&found.Launch.Nodes[i]); ok && !f.Final {
			o.runs.say("merge", referenceOf(s, f.Name)+onlyPartial)
		}
	}
	return found.Launch.Nodes, nil
}

// awaited says what is waited for.
func (o *mergeOptions) awaited(run string) gather.Awaited {
	return gather.Awaited{Nodes: o.nodes, Limit: o.wait, Tell: func(final, of int) {
		words := "?"
		if of > 0 {
			words = strconv.Itoa(of)
		}
		o.runs.say("merge", fmt.Sprintf("%d of %s nodes of %s are there; waiting for up to %v", final, words, run, o.wait))
	}}
}

// find returns the run in a directory that has what was fetched, without what is in some files.
func (g *gathering) find(dir string, fetched []gather.Fetched, without []string) (*catalog.Found, error) {
	for _, f := range fetched {
		if f.Err != nil {
			g.lost = append(g.lost, f)
			without = append(without, filepath.Join(dir, filepath.FromSlash(f.Name)+".json"))
			continue
		}
		g.files[f.Path] = f
	}

	found, err := catalog.FindRun(dir, g.run, without...)
	if err != nil && len(g.lost) > 0 {
		return nil, fmt.Errorf("nothing of run %s can be read: %s", g.run, text.List(g.whys(), namedLost))
	}
	if err != nil {
		return nil, fmt.Errorf("no run %s in %s", text.Printable(g.run), g.store.URL())
	}
	return found, nil
}

// namedLost is how many nodes that are missing one line names.
const namedLost = 20

// whys says of each object that was lost why.
func (g *gathering) whys() []string {
	var out []string
	for _, f := range g.lost {
		out = append(out, g.why(f))
	}
	return out
}

func (g *gathering) why(f gather.Fetched) string {
	return said(referenceOf(g.store, f.Name), g.copies.named(f.Err.Error()))
}

// lose notes that a file could not be read after all. It reports false for one that is not from the store.
func (g *gathering) lose(path string, err error) bool {
	f, ok := g.files[path]
	if ok {
		delete(g.files, path)
		f.Err = err
		g.lost = append(g.lost, f)
	}
	return ok
}

// account returns what the merged report says of the store. nodes are those that were merged; expected is 0 if nobody said
// how many there are.
func (g *gathering) account(nodes []catalog.Node, expected int) *reporter.Gather {
	out := &reporter.Gather{
		Store: g.store.URL(), NodesExpected: expected, Partial: []int{},
		WaitedSeconds: g.waited.Seconds(), Metrics: g.store.Metrics(),
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

// isFinal reports whether all of a node is in reports of the time after its end. In a directory that is --out there may be
// journals and pieces of ranks, too.
func (g *gathering) isFinal(n *catalog.Node) bool {
	for _, path := range n.Paths() {
		f, known := g.files[path]
		if known && !f.Final || !known && filepath.Ext(path) != ".json" {
			return false
		}
	}
	return true
}

// missing returns the nodes that are not there. What could not be read comes first; of a node without an index it has the
// name of the host.
func (g *gathering) missing(there map[int]bool, expected int) []reporter.Missing {
	out := []reporter.Missing{}
	for _, f := range g.lost {
		out = append(out, reporter.Missing{What: f.Node, Code: reporter.Unreadable, Why: g.why(f)})
		if index, err := strconv.Atoi(f.Node); err == nil {
			there[index] = true
		}
	}

	run, _ := runIn(g.run)
	left := expected - len(there) - g.unnumbered()
	for index := 0; left > 0; index++ {
		if there[index] {
			continue
		}
		why := fmt.Sprintf("no object %s/node-%d in %s", run, index, g.store.URL())
		out = append(out, reporter.Missing{What: strconv.Itoa(index), Code: reporter.NoReport, Why: why})
		left--
	}
	return out
}

// unnumbered returns how many nodes without an index could not be read.
func (g *gathering) unnumbered() (n int) {
	for _, f := range g.lost {
		if _, err := strconv.Atoi(f.Node); err != nil {
			n++
		}
	}
	return n
}

// evict deletes what was merged.
func (g *gathering) evict(ctx context.Context, nodes []catalog.Node) error {
	for i := range nodes {
		for _, path := range nodes[i].Paths() {
			if f, ok := g.files[path]; ok {
				if err := g.store.Evict(ctx, f.Name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// reference returns what stands for the series of a node; false if the store has it not in one object.
func (g *gathering) reference(n *catalog.Node) (gather.Fetched, bool) {
	paths := n.Paths()
	if g == nil || len(paths) != 1 {
		return gather.Fetched{}, false
	}
	f, ok := g.files[paths[0]]
	return f, ok
}

// sayMissing says in one line which nodes are missing, and why.
func (o *mergeOptions) sayMissing(g *reporter.Gather) {
	var words []string
	for _, m := range g.Missing {
		words = append(words, fmt.Sprintf("%s (%s)", m.What, m.Why))
	}
	count := text.Count(len(g.Missing), "node", "nodes")
	if g.NodesExpected > 0 {
		count = fmt.Sprintf("%d of %s", len(g.Missing), text.Count(g.NodesExpected, "node", "nodes"))
	}
	o.runs.say("merge", fmt.Sprintf("%s missing: %s", count, text.List(words, namedLost)))
}
