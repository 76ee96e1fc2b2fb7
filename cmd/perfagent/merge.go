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
	nodes  int // how many are expected in a store; 0 = as many as the reports say
	wait   time.Duration
	evict  bool
	lazy   bool
	runFinder

	gathered *store.Gathering // nil unless a run in a store is merged
	series   *store.Resolver
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
		RunE: o.call(o.merge),
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
		if err := replaceable(path, o.force); err != nil {
			return fmt.Errorf("merge: %w", err)
		}
	}

	o.series = o.resolver()
	defer o.close()
	nodes, err := o.findNodes(names)
	if err != nil {
		return err
	}

	spool, err := reporter.NewSpool(filepath.Dir(o.output))
	if err != nil {
		return err
	}
	defer spool.Close()
	if nodes, err = o.read(spool, nodes); err != nil {
		return err
	}
	merged, err := diagnosis.Merge(spool.Sources())
	if err != nil {
		return err
	}
	if o.gathered != nil {
		merged.Run.Gather = o.gathered.Account(nodes, o.expected(merged))
	}
	if err := o.write(spool, merged, page); err != nil || o.gathered == nil {
		return err
	}

	return o.conclude(nodes, merged.Run.Gather)
}

// check rejects what cannot be merged.
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

// findNodes finds the nodes to merge, in a store or elsewhere.
func (o *mergeOptions) findNodes(names []string) ([]catalog.Node, error) {
	if len(names) == 1 {
		address, object, ok := referenceIn(names[0])
		if _, isRun := store.RunIn(object); ok && isRun {
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
	return o.nodesNamed(names)
}

// storeFlags returns the flags on the command line that are for a run in a store.
func (o *mergeOptions) storeFlags() []string {
	var given []string
	for _, name := range []string{"nodes", "wait", "evict", "lazy"} {
		if o.given(name) {
			given = append(given, "--"+name)
		}
	}
	return given
}

// A nodeRead is a node on its way into the spool.
type nodeRead struct {
	node   catalog.Node
	run    *reporter.Run
	packed *reporter.Packed
	lost   error // of a node in a store that cannot be read; then there is nothing else
}

// read reads the nodes of all reports, several at a time. It returns those that could be read.
func (o *mergeOptions) read(spool *reporter.Spool, nodes []catalog.Node) ([]catalog.Node, error) {
	var out []catalog.Node
	err := parallel.InOrder(len(nodes), func(i int, emit func(nodeRead) error) error {
		var parts []nodeRead // of a store; the whole object counts or nothing
		add := func(run *reporter.Run, name string, n *reporter.Node) error {
			packed, err := spool.Pack(name, o.held(&nodes[i], n))
			if err != nil {
				return err
			}
			if o.gathered == nil {
				return emit(nodeRead{nodes[i], run, packed, nil})
			}
			parts = append(parts, nodeRead{nodes[i], run, packed, nil})
			return nil
		}

		_, err := nodes[i].Scan(o.cpus, reporter.Wanted{All: true}, add)
		if err != nil && o.gathered != nil {
			parts = []nodeRead{{node: nodes[i], lost: err}}
			err = nil
		}
		for _, p := range parts {
			if err := emit(p); err != nil {
				return err
			}
		}
		return err
	}, func(p nodeRead) error {
		if p.lost != nil {
			if !o.gathered.Lose(p.node.Path(), p.lost) {
				return p.lost
			}
			return nil
		}
		if k := len(out); k == 0 || out[k-1].Path() != p.node.Path() {
			out = append(out, p.node)
		}
		return spool.Add(p.node.Path(), p.run, p.packed)
	})

	if err == nil && len(out) == 0 {
		err = fmt.Errorf("merge: %w", o.gathered.Unreadable())
	}
	return out, err
}

// held returns a node as it is merged: with its series or, with --lazy, with their reference.
func (o *mergeOptions) held(of *catalog.Node, n *reporter.Node) *reporter.Node {
	if !o.lazy {
		return o.series.Resolve(n).WithoutReference()
	}
	if f, ok := o.gathered.Reference(of); ok {
		return n.ByReference(o.gathered.Store.Reference(f.Name), f.Bytes, f.SHA256)
	}
	return n
}

// expected returns how many nodes the run has; 0 if nobody says.
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

// conclude deletes what was merged, if it is to be, and says what was missing.
func (o *mergeOptions) conclude(nodes []catalog.Node, found *reporter.Gather) error {
	if o.evict {
		ctx, stop := untilSignal()
		defer stop()
		if err := o.gathered.Evict(ctx, nodes); err != nil {
			return fmt.Errorf("merge: %s is written; --evict: %w", o.output, err)
		}
	}
	if len(found.Missing) > 0 {
		o.say(store.MissingWords(found))
		return exitError{code: exitFailure}
	}
	return nil
}

// close closes the stores.
func (o *mergeOptions) close() {
	if o.gathered != nil {
		o.gathered.Store.Close()
	}
	o.series.Close()
}

// write writes the report, then its page; "" is none.
func (o *mergeOptions) write(spool *reporter.Spool, merged *reporter.Report, page string) error {
	drawn := plotter.NewPage(plotter.PageOptions{})
	err := reportfile.WriteStream(o.output, o.force, func(w io.Writer) error {
		return spool.Encode(w, merged, func(name string, n *reporter.Node) {
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

// replaceable returns an error unless path may be written: it does not exist, or force is set and it
// is a regular file. An empty path is not a file.
func replaceable(path string, force bool) error {
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
