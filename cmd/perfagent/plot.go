package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

type plotOptions struct {
	output string
	force  bool
	metric string
	node   int
	width  int
	cpus   int
	given  struct{ node, width bool }
}

func newPlot(_ streams) *cobra.Command {
	o := &plotOptions{}
	cmd := &cobra.Command{
		Use:   "plot [flags] REPORT -o FILE.html|.svg|.png",
		Short: "draw a report as a page or a static picture",
		Long: `Draw a report of perfagent, perf.py's JSON, or a journal. FILE.html is the page
that run writes beside its report: one file that needs no network. FILE.svg and
FILE.png are static pictures of one node, for papers, issues and CI. They have
the node's charts or, with --metric, a single key of the samples or of the
envelope. An existing file is replaced only with --force.`,
		Example: `  perfagent plot perfagent-out/trial-7/node-0.json -o trial-7.html
  perfagent plot job-4711.json -o node-3.svg --node 3
  perfagent plot perf.json -o cpu.png --metric cpu_pct_per_cpu_avg --width 1200`,
		Args: takes(1, 1, errors.New("one run or report, please")),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.given.node, o.given.width = cmd.Flags().Changed("node"), cmd.Flags().Changed("width")
			return o.plot(args[0])
		},
	}

	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "`FILE` to write (required): .html, .svg or .png")
	f.BoolVar(&o.force, "force", false, "replace FILE if it exists")
	f.StringVar(&o.metric, "metric", "",
		"draw this `KEY` of samples or envelope instead of the charts: mem_used_mb, op:store.get:time_ms")
	f.IntVar(&o.node, "node", 0, "index of the node to draw (default: the lowest)")
	f.IntVar(&o.width, "width", 800, "width of a static picture in pixels, 300 to 8000")
	f.IntVar(&o.cpus, "cpus", 0,
		"number of logical CPUs of each node; needed for perf.py's JSON, which does not record it")

	return cmd
}

func (o *plotOptions) plot(path string) error {
	if o.output == "" {
		return errors.New("plot: -o FILE is missing")
	}

	kind, err := plotter.Extension(o.output)
	if err != nil {
		return fmt.Errorf("plot: -o: %w", err)
	}
	if err := o.check(kind); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	if err := replaceable("plot", o.output, o.force); err != nil {
		return err
	}
	if sameFile(path, o.output) {
		return fmt.Errorf("plot: -o %s is the report itself: name another file", o.output)
	}

	var out bytes.Buffer
	if err := o.draw(&out, kind, path); err != nil {
		return err
	}

	return reportfile.WritePicture(o.output, out.Bytes(), o.force)
}

// sameFile reports whether a and b name the same existing file.
func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// check rejects bad flags, and flags that do not apply to the kind of picture.
func (o *plotOptions) check(kind string) error {
	switch {
	case o.cpus < 0:
		return fmt.Errorf("--cpus: %d is negative", o.cpus)
	case o.node < 0:
		return fmt.Errorf("--node: %d is negative", o.node)
	case o.width < plotter.MinWidth || o.width > plotter.MaxWidth:
		return fmt.Errorf("--width: %d is not between %d and %d", o.width, plotter.MinWidth, plotter.MaxWidth)
	case kind == "html" && (o.metric != "" || o.given.node || o.given.width):
		return errors.New("--metric, --node and --width are for .svg and .png; " +
			"a page shows everything: open it with #node=N to see one node")
	}
	return nil
}

// draw draws the report into out. It reads the report node by node: a whole report of a thousand
// nodes may not fit in memory.
func (o *plotOptions) draw(out io.Writer, kind, path string) error {
	if kind == "html" {
		return o.page(out, path)
	}

	r, err := o.read(path)
	if err != nil {
		return err
	}

	draw := plotter.WriteSVG
	if kind == "png" {
		draw = plotter.WritePNG
	}

	picture := plotter.PictureOptions{Metric: o.metric, Width: o.width}
	if o.given.node {
		picture.Node = strconv.Itoa(o.node)
	}
	if err := draw(out, r, picture); err != nil {
		return fmt.Errorf("plot %s: %w", path, err)
	}

	return nil
}

func (o *plotOptions) page(out io.Writer, path string) error {
	page := plotter.NewPage(plotter.PageOptions{})
	wanted := reporter.Wanted{Samples: plotter.Keys(), Envelope: plotter.Keys(), Work: true}
	run, err := reportfile.Scan(path, o.cpus, wanted, func(run *reporter.Run, name string, n *reporter.Node) error {
		page.Add(run, name, n)
		return nil
	})
	if err != nil {
		return err
	}

	return page.Write(out, run)
}

// read returns the report with only the node to draw.
func (o *plotOptions) read(path string) (*reporter.Report, error) {
	r := &reporter.Report{Nodes: make(map[string]*reporter.Node)}
	lowest := ""
	keep := func(_ *reporter.Run, name string, n *reporter.Node) error {
		drawn := o.given.node && name == strconv.Itoa(o.node)
		if !o.given.node && (lowest == "" || reporter.CompareNodes(name, lowest) < 0) {
			delete(r.Nodes, lowest)
			drawn, lowest = true, name
		}

		if drawn {
			r.Nodes[name] = n
		}

		return nil
	}

	run, err := reportfile.Scan(path, o.cpus, reporter.Wanted{All: true}, keep)
	if err != nil {
		return nil, err
	}

	r.Run = *run
	return r, nil
}
