package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

type plotOptions struct {
	to     string
	kind   string // html, svg or png
	force  bool
	metric string
	node   int
	width  int
	runFinder
}

func newPlot(s streams) *cobra.Command {
	o := &plotOptions{runFinder: runFinder{streams: s}}
	cmd := &cobra.Command{
		Use:   "plot [flags] [RUN] [--to FILE]",
		Short: "draw a run as a page or a static picture",
		Long: `Draw a run: RUN-ID, RUN-ID@K for its K-th launch, @latest, @-2, the directory of
a run, a run in a store (STORE#RUN-ID), or a file: a report, a journal, or
perf.py's JSON. Without RUN, draw the run that started last.

FILE.html is the page that perfagent run writes next to its report, with all
nodes: one file that needs no network. FILE.svg and FILE.png are static pictures
of one node, for papers, issues and CI. They show the node's charts or, with
--metric, a single key of the samples or the envelope. Without --to, the picture
is RUN-ID.png in the working directory, and never replaces a file. FILE is
replaced only with --force.`,
		Example: `  perfagent plot
  perfagent plot trial-7 --to trial-7.html
  perfagent plot job-4711.json --to node-3.svg --node 3
  perfagent plot perf.json --to cpu.png --metric cpu_pct_per_cpu_avg --width 900`,
		Args: atMostOne,
		RunE: o.runE(o.plot),
	}

	f := o.addTo(cmd)
	f.StringVar(&o.to, "to", "", "`FILE` to write: .html, .svg or .png (default: RUN-ID.png)")
	f.BoolVar(&o.force, "force", false, "replace FILE if it exists")
	f.StringVar(&o.metric, "metric", "",
		"draw only this `KEY` of the samples or envelope, such as mem_used_mb or op:store.get:time_ms")
	f.IntVar(&o.node, "node", 0, "index of the node to draw (default: the lowest)")
	f.IntVar(&o.width, "width", 800, "width of a static picture in pixels, 300 to 8000")
	o.addCPUs("each node")

	return cmd
}

func (o *plotOptions) plot(args []string) error {
	found, err := o.findAndWarn(nameOf(args))
	if err != nil {
		return err
	}

	if !o.given("to") {
		o.to = found.Name() + ".png"
		if _, err := os.Lstat(o.to); err == nil || o.force {
			return fmt.Errorf("plot: %s is replaced only with --to %[1]s --force", o.to)
		}
	}
	if err := o.checkOutput(found); err != nil {
		return fmt.Errorf("plot: %w", err)
	}

	series := o.resolver()
	defer series.Close()
	var out bytes.Buffer
	if err := o.draw(&out, found, series.Resolve); err != nil {
		return err
	}
	err = reportfile.WritePicture(o.to, o.force, func(w io.Writer) error {
		_, err := out.WriteTo(w)
		return err
	})
	if err != nil {
		return err
	}
	if !o.given("to") {
		fmt.Fprintln(o.streams.out, text.Printable(o.to))
	}

	return nil
}

// checkOutput checks the format of --to, the flags that apply to it, and that the file may be written.
func (o *plotOptions) checkOutput(found *catalog.Match) error {
	var err error
	if o.kind, err = plotter.PictureFormat(o.to); err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	if err := o.check(); err != nil {
		return err
	}
	if err := checkReplaceable(o.to, o.force); err != nil {
		return err
	}
	if slices.ContainsFunc(found.Paths(), func(path string) bool { return sameFile(path, o.to) }) {
		return fmt.Errorf("--to %s is the report itself: name another file", o.to)
	}

	return nil
}

// sameFile reports whether a and b name the same existing file.
func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// check rejects bad flags and flags that do not apply to the format.
func (o *plotOptions) check() error {
	switch {
	case o.node < 0:
		return fmt.Errorf("--node: %d is negative", o.node)
	case o.width < plotter.MinWidth || o.width > plotter.MaxWidth:
		return fmt.Errorf("--width: %d is not between %d and %d", o.width, plotter.MinWidth, plotter.MaxWidth)
	case o.kind == "html" && (o.metric != "" || o.given("node") || o.given("width")):
		return errors.New("--metric, --node and --width are for .svg and .png; " +
			"a page shows all nodes")
	}
	return nil
}

// draw draws the found run into out. It reads a report node by node, because the report of a thousand nodes may not fit
// into memory. whole returns the given node with its series.
func (o *plotOptions) draw(out io.Writer, found *catalog.Match, whole func(*reporter.Node) *reporter.Node) error {
	if o.kind == "html" {
		return o.page(out, found, whole)
	}

	r, err := o.readPlottedNode(found)
	if err != nil {
		return err
	}
	for name, n := range r.Nodes {
		r.Nodes[name] = whole(n)
	}

	draw := plotter.WriteSVG
	if o.kind == "png" {
		draw = plotter.WritePNG
	}

	picture := plotter.PictureOptions{Metric: o.metric, Width: o.width}
	if o.given("node") {
		picture.Node = strconv.Itoa(o.node)
	}
	if err := draw(out, r, picture); err != nil {
		return fmt.Errorf("plot %v: %w", found, err)
	}

	return nil
}

func (o *plotOptions) page(out io.Writer, found *catalog.Match, whole func(*reporter.Node) *reporter.Node) error {
	if len(found.Paths()) > 1 {
		report, err := o.runFinder.readReport(found)
		if err != nil {
			return err
		}
		return plotter.WritePage(out, report, plotter.PageOptions{})
	}

	page := plotter.NewPage(plotter.PageOptions{})
	wanted := reporter.ColumnFilter{Samples: plotter.SampleKeys(), Envelope: plotter.SampleKeys(), Timelines: true}
	add := func(run *reporter.Run, name string, n *reporter.Node) error {
		page.Add(run, name, whole(n))
		return nil
	}
	nodes := found.Nodes()
	run, err := nodes[0].Scan(o.cpus, wanted, add)
	if err != nil {
		return err
	}

	return page.Write(out, run)
}

// readPlottedNode returns the report with only the node to draw, or without nodes if no node has the index --node.
func (o *plotOptions) readPlottedNode(found *catalog.Match) (*reporter.Report, error) {
	r := &reporter.Report{Nodes: make(map[string]*reporter.Node)}
	lowest := ""
	keep := func(run *reporter.Run, name string, n *reporter.Node) error {
		drawn := o.given("node") && name == strconv.Itoa(o.node)
		if !o.given("node") && (lowest == "" || reporter.CompareNodes(name, lowest) < 0) {
			delete(r.Nodes, lowest)
			drawn, lowest = true, name
		}

		if drawn {
			r.Nodes[name], r.Run = n, *run
		}

		return nil
	}

	nodes := found.Nodes()
	for i := range nodes {
		run, err := nodes[i].Scan(o.cpus, reporter.ColumnFilter{All: true}, keep)
		if err != nil {
			return nil, err
		}
		if len(r.Nodes) == 0 { // WriteSVG and WritePNG report the node as missing
			r.Run = *run
		}
	}

	return r, nil
}
