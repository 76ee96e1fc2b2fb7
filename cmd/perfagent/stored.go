package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/perfagent/perfagent/agent/pusher"
	"github.com/perfagent/perfagent/gather"
	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/store"
)

// copies are the reports of a store that a command has copied to this machine. They go when it ends.
type copies struct {
	list []copied
	lost bool // something could not be copied
}

// copied is a directory with what was copied for one reference.
type copied struct{ dir, store, object string }

// nameOf returns the reference of a file below the directory.
func (c copied) nameOf(path string) string {
	rest := strings.TrimSuffix(filepath.ToSlash(strings.TrimPrefix(path, c.dir+string(filepath.Separator))), ".json")
	if rest == gather.Object {
		rest = c.object
	}
	return c.store + "#" + rest
}

// referenceIn splits STORE#NAME. The name of a file is that, whatever it looks like.
func referenceIn(argument string) (address, object string, ok bool) {
	address, object, ok = store.SplitReference(argument)
	if _, err := os.Lstat(argument); err == nil {
		return "", "", false
	}
	return address, object, ok
}

// isCopied reports whether a name is a reference whose objects are copied to be read: to a store that is not a
// directory.
func (f *runFinder) isCopied(name string) bool {
	address, _, ok := referenceIn(name)
	if !ok {
		return false
	}
	s, err := f.openStore(address, false)
	if err != nil {
		return false // it is said when the name is looked up
	}
	defer s.Close()
	_, isDir := s.Dir()
	return !isDir
}

// findStored returns what a reference stands for. The layout of a directory is that of --out, so nothing is copied from
// one.
func (f *runFinder) findStored(command, address, object string) (*catalog.Found, error) {
	s, err := f.openStore(address, false)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	ctx, stop := untilSignal()
	defer stop()
	if dir, ok := s.Dir(); ok {
		return f.findInDirectory(ctx, command, s, object, copied{dir: dir, store: s.URL()})
	}

	dir, err := f.copies.add(s.URL(), object)
	if err != nil {
		return nil, err
	}

	if run, ok := gather.RunIn(object); ok {
		fetched, err := gather.FetchRun(ctx, s, run, dir)
		if err != nil {
			return nil, err
		}
		if f.tellLost(command, s, fetched) < len(fetched) {
			return f.findRun(command, object, copied{dir: dir, store: s.URL()})
		}
	}

	path, err := gather.Fetch(ctx, s, object, dir)
	if err != nil {
		return nil, err
	}
	return &catalog.Found{File: path}, nil
}

// openStore opens a store. If its address has no password, that of PERFAGENT_STORE will do.
func (f *runFinder) openStore(address string, metrics bool) (*store.Store, error) {
	return store.Open(address, store.Options{Metrics: metrics, Credentials: f.streams.defaultOf(storeVariable).value})
}

// resolver returns what fetches the series of nodes for a command, which closes it.
func (f *runFinder) resolver(command string) *gather.Resolver {
	return &gather.Resolver{
		Open: func(address string) (*store.Store, error) { return f.openStore(address, false) },
		Say:  func(words string) { f.say(command, words) },
	}
}

// add makes a directory for what is copied for a reference.
func (c *copies) add(store, object string) (dir string, err error) {
	dir, err = os.MkdirTemp("", "perfagent-store-*")
	if err == nil {
		c.list = append(c.list, copied{dir, store, object})
	}
	return dir, err
}

// findInDirectory returns what the name of an object stands for in a directory that is a store.
func (f *runFinder) findInDirectory(
	ctx context.Context, command string, s *store.Store, object string, in copied,
) (*catalog.Found, error) {
	if _, ok := gather.RunIn(object); ok {
		return f.findRun(command, object, in)
	}

	reference := text.Printable(s.Reference(object))
	if !store.IsName(object) {
		return nil, fmt.Errorf("%s: %w", reference, store.ErrName)
	}
	there, err := s.Exists(ctx, object)
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, fmt.Errorf("no object %s", reference)
	}
	return &catalog.Found{File: filepath.Join(in.dir, filepath.FromSlash(object)+".json")}, nil
}

// findRun returns a run in a directory with what is in a store, and says what is partial.
func (f *runFinder) findRun(command, run string, in copied) (*catalog.Found, error) {
	outside, err := f.outside(command, run, in)
	if err != nil {
		return nil, err
	}
	found, err := catalog.FindRun(in.dir, run, outside...)
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), in.dir, in.store))
	}
	f.tellPartial(command, found.Launch, in)
	return found, nil
}

// outside returns the files of a run that are links out of the directory that is a store, and says so: a store has
// nothing but what lies in it. It returns an error if all of the run is such a link.
func (f *runFinder) outside(command, object string, in copied) ([]string, error) {
	run, _ := gather.RunIn(object)
	if !store.IsName(run + "/node-0") {
		return nil, nil // nor is it the name of a run
	}
	dir := filepath.Join(in.dir, run)
	if err := store.CheckInside(in.dir, dir); err != nil {
		return nil, fmt.Errorf("%s: %w", text.Printable(in.store+"#"+run), err)
	}

	var out []string
	entries, _ := os.ReadDir(dir) // what is wrong with it shows when the run is read
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if _, ours := catalog.ParseName(e.Name()); !ours || e.Type()&os.ModeSymlink == 0 {
			continue
		}
		if err := store.CheckInside(in.dir, path); err != nil {
			f.say(command, fmt.Sprintf("left out: %s: %v", in.nameOf(path), err))
			out = append(out, path)
		}
	}
	return out, nil
}

// tellLost says what could not be fetched, and returns how much that is.
func (f *runFinder) tellLost(command string, s *store.Store, fetched []gather.Fetched) (lost int) {
	for _, one := range fetched {
		if one.Err != nil {
			f.say(command, fmt.Sprintf("%s: %v", s.Reference(one.Name), one.Err))
			lost++
		}
	}
	f.copies.lost = f.copies.lost || lost > 0
	return lost
}

// public returns a name as it may be shown: a reference without user and password.
func (f *runFinder) public(name string) string {
	address, object, ok := referenceIn(name)
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

// onlyPartial follows the reference of a partial report.
const onlyPartial = " is what was known while the node ran; there is no other report of it"

// tellPartial says which nodes of a launch, in the directory that is a store, have nothing but a partial report.
func (f *runFinder) tellPartial(command string, l *catalog.Launch, in copied) {
	for _, path := range l.Paths() {
		if n, ok := catalog.ParseName(filepath.Base(path)); ok && n.Partial {
			f.say(command, in.nameOf(path)+onlyPartial)
		}
	}
}

// named returns a text in which files that were copied have the names that people know: their references.
func (c *copies) named(words string) string {
	for _, of := range c.list {
		parts := strings.Split(words, of.dir+string(filepath.Separator))
		for i := 1; i < len(parts); i++ {
			rest := strings.TrimLeft(parts[i], copiedLetters)
			name := strings.TrimSuffix(parts[i], rest)
			parts[i] = of.nameOf(filepath.Join(of.dir, name)) + rest
		}
		words = strings.Join(parts, "")
	}
	return words
}

// copiedLetters are what the names of copied files are made of.
const copiedLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/\\"

// said returns what is said of something: its name, unless the words have it, and the words.
func said(name, words string) string {
	if strings.Contains(words, name) {
		return words
	}
	return name + ": " + words
}

// end removes the copies. It returns the error of the command, in which files have the names that people know. If
// something could not be copied the command has failed.
func (c *copies) end(err error) error {
	for _, of := range c.list {
		_ = os.RemoveAll(of.dir)
	}
	if err != nil {
		if words := c.named(err.Error()); words != err.Error() {
			err = renamed(err, words)
		}
	}
	if err == nil && c.lost {
		return exitError{code: exitFailure}
	}
	return err
}

// renamed returns an error with other words and the same exit code.
func renamed(err error, words string) error {
	var exit exitError
	if errors.As(err, &exit) {
		return exitError{code: exit.code, err: errors.New(words)}
	}
	return errors.New(words)
}

// isStore reports whether an argument of ls is a store: an address that is not the directory of a run.
func isStore(argument string) bool {
	if !store.IsAddress(argument) {
		return false
	}
	run, err := catalog.At(argument)
	return err != nil || run == nil
}

// listStore lists the runs of a store, or the reports of one run.
func (o *lsOptions) listStore(names []string) error {
	if len(names) > 2 || o.html != "" {
		return errors.New("ls: of a store, name one RUN-ID at most, without --html")
	}
	s, err := o.runs.openStore(names[0], false)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, stop := untilSignal()
	defer stop()

	if len(names) == 2 {
		nodes, err := gather.Nodes(ctx, s, names[1])
		if err != nil {
			return err
		}
		if len(nodes) == 0 {
			return fmt.Errorf("ls: no run %s in %s", text.Printable(names[1]), s.URL())
		}
		return o.printNodes(nodes)
	}

	runs, err := gather.Runs(ctx, s)
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		o.runs.say("ls", "no report is in "+s.URL())
	}
	return o.printRuns(runs)
}

// printRuns prints a line for each run of a store.
func (o *lsOptions) printRuns(runs []gather.Run) error {
	if o.json {
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
		t.Add(table.Words(r.ID, nodes, text.SizeText(float64(r.Bytes)/(1<<20)), modified(r.Modified))...)
	}
	return o.streams.printTable(t)
}

// printNodes prints a line for each report of a run.
func (o *lsOptions) printNodes(nodes []gather.Node) error {
	if o.json {
		return o.streams.printJSON(nodes)
	}

	t := &table.Table{Columns: table.Left("NODE", "SIZE", "MODIFIED", "REFERENCE")}
	for _, n := range nodes {
		node := n.Node
		if !n.Final {
			node += " (partial)"
		}
		t.Add(table.Words(node, text.SizeText(float64(n.Bytes)/(1<<20)), modified(n.Modified), pasted(n.Reference))...)
	}
	return o.streams.printTable(t)
}

// pasted returns a reference as a shell takes it: quoted if it has options.
func pasted(reference string) string {
	plain := strings.ReplaceAll(reference, "#", "") // within a word it means nothing to a shell
	if pusher.CommandLine([]string{plain}) == plain {
		return reference
	}
	return pusher.CommandLine([]string{reference})
}

// modified returns when an object was stored, for a table.
func modified(t time.Time) string {
	if t.IsZero() {
		return text.Absent
	}
	return t.Local().Format("2006-01-02 15:04")
}
