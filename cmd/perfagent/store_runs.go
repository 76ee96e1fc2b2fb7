package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/perfagent/perfagent/agent/pusher"
	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/store"
)

// parseReference splits STORE#NAME. ok is false for other arguments, and if a file of that name exists.
func parseReference(argument string) (address, object string, ok bool) {
	address, object, ok = store.SplitReference(argument)
	if _, err := os.Lstat(argument); err == nil {
		return "", "", false
	}
	return address, object, ok
}

// needsCopy reports whether name is a reference to a store that is not a directory, so its objects must be copied
// before they can be read.
func (f *runFinder) needsCopy(name string) bool {
	address, _, ok := parseReference(name)
	if !ok {
		return false
	}
	s, err := f.openStore(address, false)
	if err != nil {
		return false // looking up the name reports the error
	}
	defer s.Close()
	_, isDir := s.Dir()
	return !isDir
}

// findInStore returns the match for the run named by object in the store at address.
func (f *runFinder) findInStore(address, object string) (*catalog.Match, error) {
	s, err := f.openStore(address, false)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	ctx, stop := signalContext()
	defer stop()
	return f.copies.Find(ctx, s, object)
}

// openStore opens the store at address, with the password in PERFAGENT_STORE if address has none.
func (f *runFinder) openStore(address string, metrics bool) (*store.Store, error) {
	return store.Open(address, store.Options{Metrics: metrics, Credentials: f.streams.defaultOf(storeVariable).value})
}

// resolver returns a resolver that fetches the series of nodes. The caller must close it.
func (f *runFinder) resolver() *store.Resolver {
	return &store.Resolver{
		Open: func(address string) (*store.Store, error) { return f.openStore(address, false) },
		Warn: f.printMessage,
	}
}

// fill fetches the series of nodes that were merged without them.
func (f *runFinder) fill(report *reporter.Report) {
	series := f.resolver()
	defer series.Close()
	series.Fill(report)
}

// publicName returns name without the user and password that a store reference may contain.
func (f *runFinder) publicName(name string) string {
	address, object, ok := parseReference(name)
	if !ok {
		return name
	}
	s, err := f.openStore(address, false)
	if err != nil {
		return "#" + object
	}
	defer s.Close()
	return s.Reference(object)
}

// prefixName returns "name: words", or only words if they contain the name.
func prefixName(name, words string) string {
	if strings.Contains(words, name) {
		return words
	}
	return name + ": " + words
}

// isStore reports whether an argument of ls is a store: an address that is not the directory of a run.
func isStore(argument string) bool {
	if !store.IsAddress(argument) {
		return false
	}
	run, err := catalog.ReadRun(argument)
	return err != nil || run == nil
}

// listStore lists the runs of the store names[0] or, with names[1], the reports of that run.
func (o *lsOptions) listStore(names []string) error {
	if len(names) > 2 || o.to != "" {
		return errors.New("ls: of a store, name one RUN-ID at most, without --to")
	}
	s, err := o.openStore(names[0], false)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, stop := signalContext()
	defer stop()

	if len(names) == 2 {
		nodes, err := s.Nodes(ctx, names[1])
		if err != nil {
			return err
		}
		if len(nodes) == 0 {
			return fmt.Errorf("ls: no run %s in %s", text.Printable(names[1]), s.URL())
		}
		return o.printNodes(nodes)
	}

	runs, err := s.Runs(ctx)
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		o.printMessage("no report is in " + s.URL())
	}
	return o.printRuns(runs)
}

// printRuns prints a line for each run of a store.
func (o *lsOptions) printRuns(runs []store.Run) error {
	if o.format.name == formatJSON {
		return o.streams.printJSON(runs)
	}
	if len(runs) == 0 {
		return nil
	}

	t := &table.Table{Columns: table.Left("RUN", "NODES", "SIZE", "MODIFIED")}
	for _, r := range runs {
		nodes := fmt.Sprint(r.Nodes)
		if r.Partial > 0 {
			nodes += fmt.Sprintf(" (%d partial)", r.Partial)
		}
		t.Add(table.Texts(r.ID, nodes, text.SizeText(float64(r.Bytes)/(1<<20)), modified(r.Modified))...)
	}
	return o.streams.printTable(t)
}

// printNodes prints a line for each report of a run in a store.
func (o *lsOptions) printNodes(nodes []store.Node) error {
	if o.format.name == formatJSON {
		return o.streams.printJSON(nodes)
	}

	t := &table.Table{Columns: table.Left("NODE", "SIZE", "MODIFIED", "REFERENCE")}
	for _, n := range nodes {
		node := n.Node
		if !n.Final {
			node += " (partial)"
		}
		t.Add(table.Texts(node, text.SizeText(float64(n.Bytes)/(1<<20)), modified(n.Modified), pasted(n.Reference))...)
	}
	return o.streams.printTable(t)
}

// pasted returns reference, quoted for a shell if necessary.
func pasted(reference string) string {
	plain := strings.ReplaceAll(reference, "#", "") // inside a word # has no special meaning
	if pusher.ShellCommand([]string{plain}) == plain {
		return reference
	}
	return pusher.ShellCommand([]string{reference})
}

// modified formats the modification time of an object for a table.
func modified(t time.Time) string {
	if t.IsZero() {
		return text.Absent
	}
	return t.Local().Format("2006-01-02 15:04")
}

// gather fetches the run named by object from the store at address, and returns the nodes of the run. With --wait, it
// first waits for the nodes. If the store has no object of the run and no store flag was given, gather returns nil,
// because any object in a ProxyStore may have that name.
func (o *mergeOptions) gather(address, object string) ([]catalog.Node, error) {
	s, err := o.openStore(address, true)
	if err != nil {
		return nil, err
	}
	ctx, stop := signalContext()
	defer stop()
	g := store.NewGatherer(s, object, func(f store.FetchResult) string {
		return prefixName(s.Reference(f.String()), o.copies.WithReferences(f.Err.Error()))
	})
	o.gatherer = g
	run, _ := store.RunIDOf(object)
	if o.wait > 0 {
		g.Waited, err = s.Await(ctx, run, o.awaitOptions(run))
		if errors.Is(err, store.ErrUnknownNodes) {
			err = fmt.Errorf("--wait: %w: give it with --nodes", err)
		}
		if err != nil {
			return nil, err
		}
	}

	found, err := g.Fetch(ctx, &o.copies, len(o.storeFlags()) == 0)
	if err != nil {
		return nil, err
	}
	if found == nil {
		o.close()
		o.gatherer = nil
		return nil, nil
	}
	o.warnAbout(found)
	g.WarnPartial(&o.copies, found.Launch)
	return found.Launch.Nodes, nil
}

// awaitOptions returns the options for waiting for run, from --nodes and --wait.
func (o *mergeOptions) awaitOptions(run string) store.AwaitOptions {
	return store.AwaitOptions{Nodes: o.nodes, Limit: o.wait, Progress: func(final, of int) {
		words := "?"
		if of > 0 {
			words = strconv.Itoa(of)
		}
		o.printMessage(fmt.Sprintf("%d of %s nodes of %s are there; waiting for up to %v", final, words, run, o.wait))
	}}
}
