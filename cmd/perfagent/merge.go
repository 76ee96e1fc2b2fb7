package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
	output string
	force  bool
	html   string
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
		Use:   "merge [flags] RUN... -o FILE",
		Short: "merge the nodes of a run into one report",
		Long: `Merge the nodes and ranks of a run, or of several reports, into one report of
the same format, and write its page beside it (FILE with .html). The other
commands take a run of many nodes as it is: merge makes one file to copy or to
send. RUN is a RUN-ID, RUN-ID@K for its K-th launch, @latest, @-2, the directory
of a run, or a file: a report, a journal, or perf.py's JSON. Two different
recordings of one node are an error. An existing file is replaced only with
--force.

Of a run in a store, STORE#RUN-ID, merge writes what is there. It names what is
missing, and then its exit code is 1.`,
		Example: `  perfagent merge 4711 -o job-4711.json
  perfagent merge perfagent-out/4711/node-*.json -o job-4711.json
  perfagent merge redis://cache#4711 --nodes 4 --wait 2m -o job-4711.json
  perfagent show job-4711.json`,
		RunE: o.runE(o.merge),
	}

	f := o.addTo(cmd)
	f.StringVarP(&o.output, "output", "o", "", "`FILE` to write (required)")
	f.BoolVar(&o.force, "force", false, "replace FILE if it exists")
	f.StringVar(&o.html, "html", "auto", "the page beside the report: auto or always (write it), or never")
	o.addCPUs("each node")
	f.IntVar(&o.nodes, "nodes", 0, "expect `N` nodes in the store (default: what the reports say)")
	f.DurationVar(&o.wait, "wait", 0, "wait so long for their reports")
	f.BoolVar(&o.evict, "evict", false, "delete from the store what was merged")
	f.BoolVar(&o.lazy, "lazy", false, "leave the series in the store, and name where they are")

	return cmd
}

func (o *mergeOptions) merge(names []string) error {
	if err := o.check(names); err != nil {
		return err
	}
	page := plotter.PagePath(o.output)
	if o.html == "never" {
		page = ""
	}
	for _, path := range []string{o.output, page} {
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

	merger, err := reporter.NewMerger(filepath.Dir(o.output))
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

// check returns an error for arguments that are missing and for flags with bad values.
func (o *mergeOptions) check(names []string) error {
	switch {
	case len(names) == 0:
		return errors.New("merge: name a run, or two reports or more")
	case o.output == "":
		return errors.New("merge: -o FILE is missing")
	case strings.EqualFold(filepath.Ext(o.output), ".html"):
		return fmt.Errorf("merge: -o %s: name the report, %s.json; its page is written beside it",
			o.output, o.output[:len(o.output)-len(".html")])
	case o.nodes < 0 || o.nodes == 0 && o.given("nodes"):
		return fmt.Errorf("--nodes: %d is not a number of nodes", o.nodes)
	case o.wait < 0:
		return fmt.Errorf("--wait: %v is negative", o.wait)
	case o.html != "auto" && o.html != "always" && o.html != "never":
		return fmt.Errorf("--html: %q is not auto, always or never", o.html)
	}
	return nil
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

// storeFlags returns the flags on the command line that only apply to a run in a store.
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
		var parts []scannedNode // of a node in a store: all are added, or none
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
		return n.WithReference(o.gatherer.Store.Reference(f.Name), f.Bytes, f.SHA256)
	}
	return n
}

// expected returns the number of nodes of the run, from --nodes or the reports; 0 if unknown.
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

// finishGather deletes the merged objects from the store if --evict is given. If nodes are missing, it prints which and
// returns exit code 1.
func (o *mergeOptions) finishGather(nodes []catalog.Node, found *reporter.GatherResult) error {
	if o.evict {
		ctx, stop := signalContext()
		defer stop()
		if err := o.gatherer.Evict(ctx, nodes); err != nil {
			return fmt.Errorf("merge: %s is written; --evict: %w", o.output, err)
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
	err := reportfile.WriteStream(o.output, o.force, func(w io.Writer) error {
		return merger.Encode(w, merged, func(name string, n *reporter.Node) {
			if page != "" {
				drawn.Add(&merged.Run, name, n)
			}
		})
	})
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("merge: %s exists: use --force to replace it", o.output)
	}
	if err != nil || page == "" {
		return err
	}

	return reportfile.WritePicture(page, o.force, func(w io.Writer) error { return drawn.Write(w, &merged.Run) })
}

// checkReplaceable returns an error unless path may be written: nothing exists there, or force is set and it is a
// regular file. An empty path is accepted.
func checkReplaceable(path string, force bool) error {
	st, err := os.Lstat(path)
	switch {
	case path == "" || err != nil:
		return nil
	case !force:
		return fmt.Errorf("%s exists: use --force to replace it", path)
	case !st.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file and is not replaced", path)
	}

	return nil
}
