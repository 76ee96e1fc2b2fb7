package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/internal/parallel"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/diagnosis"
	"github.com/perfagent/perfagent/reporter/reportfile"
	"github.com/perfagent/perfagent/store"
)

type mergeOptions struct {
	to     string
	force  bool
	noPage bool
	nodes  int // expected in the store; 0 = the number in the reports
	wait   time.Duration
	evict  bool
	lazy   bool
	runFinder

	gatherer       *store.Gatherer // for a run in a store; else nil
	seriesResolver *store.Resolver
}

func newMerge(s streams) *cobra.Command {
	o := &mergeOptions{runFinder: runFinder{streams: s}}
	cmd := &cobra.Command{
		Use:   "merge [flags] RUN... --to FILE",
		Short: "merge the nodes of a run into one report",
		Long: `Merge the nodes and ranks of a run, or several reports, into one report in the
same format, and write its page next to it (FILE with .html). No other command
needs a merged report: merge makes one file to copy or to send.

RUN is a RUN-ID, RUN-ID@K for its K-th launch, @latest, @-2, the directory of a
run, or a file: a report, a journal, or perf.py's JSON. Two different recordings
of one node are an error. An existing file is replaced only with --force.

For a run in a store, STORE#RUN-ID, merge writes what the store has. If nodes
are missing, merge names them, and its exit code is 1.`,
		Example: `  perfagent merge 4711 --to job-4711.json
  perfagent merge perfagent-out/4711/node-*.json --to job-4711.json
  perfagent merge redis://cache#4711 --nodes 4 --wait 2m --to job-4711.json
  perfagent show job-4711.json`,
		RunE: o.runE(o.merge),
	}

	f := o.addTo(cmd)
	f.StringVar(&o.to, "to", "", "`FILE` to write (required)")
	f.BoolVar(&o.force, "force", false, "replace FILE if it exists")
	f.BoolVar(&o.noPage, noPage, false, "write no page next to the report [$"+noPageVariable+"]")
	o.addCPUs("each node")
	f.IntVar(&o.nodes, "nodes", 0, "expect `N` nodes in the store (default: the number in the reports)")
	f.DurationVar(&o.wait, "wait", 0, "wait up to `TIME` for the reports in the store")
	f.BoolVar(&o.evict, "evict", false, "delete the merged reports from the store")
	f.BoolVar(&o.lazy, "lazy", false, "leave the series in the store, and write references to them")

	return cmd
}

func (o *mergeOptions) merge(names []string) error {
	if err := o.check(names); err != nil {
		return err
	}
	page := plotter.PagePath(o.to)
	if o.noPage {
		page = ""
	}
	for _, path := range []string{o.to, page} {
		if err := checkReplaceable(path, o.force); err != nil {
			return fmt.Errorf("merge: %w", err)
		}
	}

	o.seriesResolver = o.resolver()
	defer o.close()
	nodes, err := o.findNodes(names)
	if err != nil {
		return err
	}

	merger, err := reporter.NewMerger(filepath.Dir(o.to))
	if err != nil {
		return err
	}
	defer merger.Close()
	if nodes, err = o.readNodes(merger, nodes); err != nil {
		return err
	}
	merged, err := diagnosis.Merge(merger.Sources())
	if err != nil {
		return err
	}
	if o.gatherer != nil {
		merged.Run.Gather = o.gatherer.Summarize(nodes, o.expected(merged))
	}
	if err := o.write(merger, merged, page); err != nil || o.gatherer == nil {
		return err
	}

	return o.finishGather(nodes, merged.Run.Gather)
}

// check returns an error for missing arguments and for bad flag values.
func (o *mergeOptions) check(names []string) error {
	switch {
	case len(names) == 0:
		return errors.New("merge: name a run, or two reports or more")
	case o.to == "":
		return errors.New("merge: name the file with --to FILE; --out is the directory of the runs")
	case strings.EqualFold(filepath.Ext(o.to), ".html"):
		return fmt.Errorf("merge: --to %s: name the report, %s.json; its page is written next to it",
			o.to, o.to[:len(o.to)-len(".html")])
	case o.nodes < 0 || o.nodes == 0 && o.given("nodes"):
		return fmt.Errorf("--nodes: %d is not a number of nodes", o.nodes)
	case o.wait < 0:
		return fmt.Errorf("--wait: %v is negative", o.wait)
	case o.given(noPage):
		return nil
	}

	var err error
	if v := o.streams.defaultOf(noPageVariable); v.value != "" {
		if o.noPage, err = strconv.ParseBool(v.value); err != nil {
			err = fmt.Errorf("%s: %q is not true or false", v.source(), v.value)
		}
	}
	return err
}

// findNodes returns the nodes to merge, from a store or from files.
func (o *mergeOptions) findNodes(names []string) ([]catalog.Node, error) {
	if len(names) == 1 {
		address, object, ok := parseReference(names[0])
		if _, isRun := store.RunIDOf(object); ok && isRun {
			nodes, err := o.gather(address, object)
			if err != nil {
				return nil, fmt.Errorf("merge: %w", err)
			}
			if nodes != nil {
				return nodes, nil
			}
		}
	}

	if given := o.storeFlags(); len(given) > 0 {
		return nil, fmt.Errorf("merge: %s: name one run in a store, STORE#RUN-ID; the directory of --out is one, too",
			strings.Join(given, ", "))
	}
	return o.nodesByName(names)
}

// storeFlags returns the given flags that apply only to a run in a store.
func (o *mergeOptions) storeFlags() []string {
	var given []string
	for _, name := range []string{"nodes", "wait", "evict", "lazy"} {
		if o.given(name) {
			given = append(given, "--"+name)
		}
	}
	return given
}

// A scannedNode is a node that was read and encoded for the Merger.
type scannedNode struct {
	node   catalog.Node
	run    *reporter.Run
	packed *reporter.PackedNode
	err    error // read error of a node in a store; run and packed are then nil
}

// readNodes reads all nodes in parallel into merger and returns the readable ones. An unreadable node is an error,
// unless it comes from a store: then the gatherer records it.
func (o *mergeOptions) readNodes(merger *reporter.Merger, nodes []catalog.Node) ([]catalog.Node, error) {
	var out []catalog.Node
	err := parallel.InOrder(len(nodes), func(i int, emit func(scannedNode) error) error {
		var parts []scannedNode // of a node in a store; either all or none are added
		add := func(run *reporter.Run, name string, n *reporter.Node) error {
			packed, err := merger.Pack(name, o.nodeToMerge(&nodes[i], n))
			if err != nil {
				return err
			}
			if o.gatherer == nil {
				return emit(scannedNode{nodes[i], run, packed, nil})
			}
			parts = append(parts, scannedNode{nodes[i], run, packed, nil})
			return nil
		}

		_, err := nodes[i].Scan(o.cpus, reporter.ColumnFilter{All: true}, add)
		if err != nil && o.gatherer != nil {
			parts = []scannedNode{{node: nodes[i], err: err}}
			err = nil
		}
		for _, p := range parts {
			if err := emit(p); err != nil {
				return err
			}
		}
		return err
	}, func(p scannedNode) error {
		if p.err != nil {
			if !o.gatherer.MarkFailed(p.node.Path(), p.err) {
				return p.err
			}
			return nil
		}
		if k := len(out); k == 0 || out[k-1].Path() != p.node.Path() {
			out = append(out, p.node)
		}
		return merger.Add(p.node.Path(), p.run, p.packed)
	})

	if err == nil && len(out) == 0 {
		err = fmt.Errorf("merge: %w", o.gatherer.UnreadableError())
	}
	return out, err
}

// nodeToMerge returns n with its series or, with --lazy, with a reference to them in the store.
func (o *mergeOptions) nodeToMerge(of *catalog.Node, n *reporter.Node) *reporter.Node {
	if !o.lazy {
		return o.seriesResolver.Resolve(n).WithoutReference()
	}
	if f, ok := o.gatherer.ResultOf(of); ok {
		return n.WithReference(o.gatherer.Store.Reference(f.String()), f.Bytes, f.SHA256)
	}
	return n
}

// expected returns the number of nodes of the run from --nodes or the reports, or 0 if it is unknown.
func (o *mergeOptions) expected(merged *reporter.Report) int {
	most := o.nodes
	if most == 0 {
		for _, n := range merged.Nodes {
			if n.Identity != nil {
				most = max(most, n.Identity.Nodes)
			}
		}
	}
	return most
}

// finishGather deletes the merged objects from the store if --evict is given. If nodes are missing, it lists them and
// returns exit code 1.
func (o *mergeOptions) finishGather(nodes []catalog.Node, found *reporter.GatherResult) error {
	if o.evict {
		ctx, stop := signalContext()
		defer stop()
		if err := o.gatherer.Evict(ctx, nodes); err != nil {
			return fmt.Errorf("merge: %s is written; --evict: %w", o.to, err)
		}
	}
	if len(found.Missing) > 0 {
		o.printMessage(store.MissingMessage(found))
		return exitError{code: exitFailure}
	}
	return nil
}

// close closes the store of the run and the stores from which series were fetched.
func (o *mergeOptions) close() {
	if o.gatherer != nil {
		o.gatherer.Store.Close()
	}
	o.seriesResolver.Close()
}

// write writes the report, and then its page unless page is "".
func (o *mergeOptions) write(merger *reporter.Merger, merged *reporter.Report, page string) error {
	drawn := plotter.NewPage(plotter.PageOptions{})
	err := reportfile.WriteStream(o.to, o.force, func(w io.Writer) error {
		return merger.Encode(w, merged, func(name string, n *reporter.Node) {
			if page != "" {
				drawn.Add(&merged.Run, name, n)
			}
		})
	})
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("merge: %s exists: use --force to replace it", o.to)
	}
	if err != nil || page == "" {
		return err
	}

	return reportfile.WritePicture(page, o.force, func(w io.Writer) error { return drawn.Write(w, &merged.Run) })
}

// checkPageName is like checkReplaceable, but also rejects a path that does not end in .html.
func checkPageName(path string, force bool) error {
	if path != "" && !strings.EqualFold(filepath.Ext(path), ".html") {
		return fmt.Errorf("--to %s: a page is written, so the name ends in .html", path)
	}
	return checkReplaceable(path, force)
}

// checkReplaceable returns an error unless path may be written. Its directory must exist. An existing path must be a
// regular file, and force must be set. An empty path is accepted.
func checkReplaceable(path string, force bool) error {
	st, err := os.Lstat(path)
	switch {
	case path == "":
		return nil
	case err != nil:
		if dir := filepath.Dir(path); !isDir(dir) {
			return fmt.Errorf("%s cannot be written: there is no directory %s", path, dir)
		}
		return nil
	case !force:
		return fmt.Errorf("%s exists: use --force to replace it", path)
	case !st.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file and is not replaced", path)
	}

	return nil
}
