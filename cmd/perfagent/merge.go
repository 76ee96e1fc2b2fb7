package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/internal/parallel"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/diagnosis"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

type mergeOptions struct {
	output  string
	force   bool
	html    string
	cpus    int
	runs    runFinder
	streams streams
}

func newMerge(s streams) *cobra.Command {
	o := &mergeOptions{streams: s, runs: runFinder{streams: s}}
	cmd := &cobra.Command{
		Use:   "merge [flags] RUN... -o FILE",
		Short: "merge the nodes of a run into one report",
		Long: `Merge the nodes and ranks of a run, or of several reports, into one report of
the same format, and write its page beside it (FILE with .html). The other
commands take a run of many nodes as it is: merge makes one file to copy or to
send. RUN is a RUN-ID, RUN-ID@K for its K-th launch, @latest, @-2, the directory
of a run, or a file: a report, a journal, or perf.py's JSON. Two different
recordings of one node are an error. An existing file is replaced only with
--force.`,
		Example: `  perfagent merge 4711 -o job-4711.json
  perfagent merge perfagent-out/4711/node-*.json -o job-4711.json
  perfagent show job-4711.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.runs.settle(cmd); err != nil {
				return err
			}
			return o.runs.end(o.merge(args))
		},
	}

	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "`FILE` to write (required)")
	f.BoolVar(&o.force, "force", false, "replace FILE if it exists")
	o.runs.addTo(cmd)
	addHTMLFlag(f, &o.html)
	f.IntVar(&o.cpus, "cpus", 0,
		"number of logical CPUs of each node; needed for perf.py's JSON, which does not record it")

	return cmd
}

func (o *mergeOptions) merge(names []string) error {
	switch {
	case len(names) == 0:
		return errors.New("merge: name a run, or two reports or more")
	case o.output == "":
		return errors.New("merge: -o FILE is missing")
	case strings.EqualFold(filepath.Ext(o.output), ".html"):
		return fmt.Errorf("merge: -o %s: name the report, %s.json; its page is written beside it",
			o.output, o.output[:len(o.output)-len(".html")])
	case o.cpus < 0:
		return fmt.Errorf("--cpus: %d is negative", o.cpus)
	case o.html != "auto" && o.html != "never":
		return fmt.Errorf("--html: %q is not auto or never", o.html)
	}

	nodes, err := o.runs.nodes("merge", names)
	if err != nil {
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

	spool, err := reporter.NewSpool(filepath.Dir(o.output))
	if err != nil {
		return err
	}
	defer spool.Close()
	if err := o.read(spool, nodes); err != nil {
		return err
	}
	merged, err := diagnosis.Merge(spool.Sources())
	if err != nil {
		return err
	}

	return o.write(spool, merged, page)
}

// read reads the nodes of all reports, several at a time.
func (o *mergeOptions) read(spool *reporter.Spool, nodes []catalog.Node) error {
	type part struct {
		path   string
		run    *reporter.Run
		packed *reporter.Packed
	}
	return parallel.InOrder(len(nodes), func(i int, emit func(part) error) error {
		add := func(run *reporter.Run, name string, n *reporter.Node) error {
			packed, err := spool.Pack(name, n)
			if err != nil {
				return err
			}
			return emit(part{nodes[i].Path(), run, packed})
		}
		_, err := nodes[i].Scan(o.cpus, reporter.Wanted{All: true}, add)
		return err
	}, func(p part) error { return spool.Add(p.path, p.run, p.packed) })
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

	var html bytes.Buffer
	if err := drawn.Write(&html, &merged.Run); err != nil {
		return err
	}

	return reportfile.WritePicture(page, html.Bytes(), o.force)
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
