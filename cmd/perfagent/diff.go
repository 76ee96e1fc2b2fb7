package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/comparer"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

type diffOptions struct {
	failIf []string
	format *format
	all    bool
	to     string // page of --to; "" = none
	force  bool
	runFinder
}

func newDiff(s streams) *cobra.Command {
	o := &diffOptions{runFinder: runFinder{streams: s}}
	cmd := &cobra.Command{
		Use:        "diff [flags] A... -- B...",
		SuggestFor: []string{"compare"},
		Short:      "compare two sets of runs of the same job",
		Long: `Compare two sets of runs of the same job, for example A before a change and B
after it. The first line sums up how long B took and what else changed. The
table shows the wall time, the CPU time, the peak memory and whatever else about
the job changed, with medians and noise. With --all it also shows the node and
the other metrics, with ~ where the difference may be noise. If each side is one
run, it shows only differences of 5 % or more.

A and B are RUN-IDs below --out, RUN-ID@K, @latest, @-2, anything that perfagent
show can read, or directories. From a RUN-ID or a directory diff takes all
reports node-*.json at any depth or, if there are none, all *.json files
directly in it. Between exactly two names, -- can be left out. Four runs on each
side are enough to estimate the noise; ten are better.

With --fail-if the exit code is 1 if a condition is true. A condition is METRIC
OP VALUE: OP is one of > >= < <=, and VALUE is a signed change, such as +10%, or
an amount in the metric's unit, such as 90. A change in percent must also be
significant; with too few runs to test, the plain difference counts. The exit
code is 2 if the runs cannot be compared.

METRIC is a name that perfagent metrics lists, or a number from the job, such as
phase.train.seconds, op.store.get.p90_time_ms or counter.rows.`,
		Example: `  perfagent diff before.json after.json
  perfagent diff before after
  perfagent diff @-2 @latest
  perfagent diff --fail-if 'job_cpu_seconds > +10%' old/*.json -- new/*.json
  perfagent diff --fail-if 'op.store.get.p90_time_ms > +10%' before after
  perfagent diff --format md before after >> "$GITHUB_STEP_SUMMARY"`,
		Args: cobra.ArbitraryArgs,
		RunE: o.runE(o.run),
	}

	f := o.addTo(cmd)
	f.StringArrayVar(&o.failIf, "fail-if", nil,
		"exit with code 1 if this `CONDITION` is true, such as 'job_cpu_seconds > +10%'; repeatable")
	o.format = addFormat(f, formatTable, formatMarkdown, formatJSON)
	f.BoolVar(&o.all, "all", false, "also show the node's metrics, and what did not change")
	f.StringVar(&o.to, "to", "", "also write the comparison as a page to `FILE` (.html)")
	f.BoolVar(&o.force, "force", false, "replace FILE if it exists")
	o.addCPUs("each node")

	return cmd
}

// run compares the two sides, prints the comparison and writes the page. It returns the results of --fail-if as an
// error, see reportGates.
func (o *diffOptions) run(args []string) error {
	gates, err := o.gates()
	if err != nil {
		return err
	}

	c, err := o.compare(args)
	if err != nil {
		return err
	}

	for _, g := range gates {
		c.CheckGate(g)
	}

	if err := o.writePage(c); err != nil {
		return err
	}
	if err := o.print(c); err != nil {
		return err
	}

	return o.reportGates(c)
}

// gates parses --fail-if and checks the other flags.
func (o *diffOptions) gates() ([]comparer.Gate, error) {
	if err := checkPageName(o.to, o.force); err != nil {
		return nil, err
	}

	gates := make([]comparer.Gate, len(o.failIf))
	for i, words := range o.failIf {
		var err error
		if gates[i], err = comparer.ParseGate(words); err != nil {
			return nil, fmt.Errorf("--fail-if %q: %w", words, err)
		}
	}

	return gates, nil
}

// compare reads the two sides that args name, and compares them.
func (o *diffOptions) compare(args []string) (*comparer.Comparison, error) {
	namesA, namesB, err := sides(args, o.cmd.ArgsLenAtDash())
	if err != nil {
		return nil, err
	}

	a, notesA, err := o.readSide(namesA)
	if err != nil {
		return nil, err
	}

	b, notesB, err := o.readSide(namesB)
	if err != nil {
		return nil, err
	}

	c := comparer.Compare(a, b)
	c.Notes = append(c.Notes, append(notesA, notesB...)...)
	return c, nil
}

// sides splits the arguments at the "--". atDash is the number of arguments before it, or -1 if there is none.
func sides(args []string, atDash int) (a, b []string, err error) {
	if atDash < 0 {
		if len(args) != 2 {
			return nil, nil, fmt.Errorf(
				"diff: need two names, or a -- between A and B, not %d names: perfagent diff A... -- B", len(args))
		}
		atDash = 1
	}

	a, b = args[:atDash], args[atDash:]
	switch {
	case len(a) == 0:
		return nil, nil, errors.New("diff: no report before the --: perfagent diff A... -- B")
	case len(b) == 0:
		return nil, nil, errors.New("diff: no report after the --: perfagent diff A... -- B")
	}

	return a, b, nil
}

// readSide reads the reports that names stand for, as one side of the comparison.
func (o *diffOptions) readSide(names []string) (side comparer.Side, notes []string, err error) {
	nodes, notes, err := o.expandNames(names)
	if err != nil {
		return side, nil, err
	}
	side.Name = o.publicName(names[0])
	if len(names) > 1 {
		side.Name += fmt.Sprintf(" … %s (%d names)", o.publicName(names[len(names)-1]), len(names))
	}
	for i := range nodes {
		report, err := o.readOne(&nodes[i])
		if err != nil {
			return side, nil, err
		}
		side.Reports = append(side.Reports, reporter.SourceReport{Path: nodes[i].Path(), Report: report})
	}

	return side, notes, nil
}

// expandNames returns the nodes that names stand for. A directory or a run stands for all reports in it, because
// repetitions of a job under one RUN-ID count as several runs.
func (o *diffOptions) expandNames(names []string) (nodes []catalog.Node, notes []string, err error) {
	var files []string
	for _, name := range names {
		if strings.HasPrefix(name, "-") { // a misplaced flag, see readOne
			files = append(files, name)
			continue
		}
		file, below, remarks, err := o.expandName(name)
		if err != nil {
			return nil, nil, err
		}
		files, nodes, notes = append(files, file...), append(nodes, below...), append(notes, remarks...)
	}

	return append(catalog.NodesOf(files), nodes...), notes, nil
}

// expandName returns the files or the nodes that name stands for: all reports at any depth of a directory, a file, a
// run, or the *.json files directly in a directory.
func (o *diffOptions) expandName(name string) (files []string, nodes []catalog.Node, notes []string, err error) {
	dir := isDir(name)
	if dir {
		if nodes, notes, err = reportsBelow(name); err != nil || len(nodes) > 0 {
			return nil, nodes, notes, err
		}
	}

	found, err := o.find(name)
	switch {
	case err != nil && dir:
		files, err = jsonIn(name)
		return files, nil, append(notes, fmt.Sprintf("%s: no node-*.json below it; took all *.json in it: %d",
			name, len(files))), err
	case err != nil:
		return nil, nil, nil, err
	case found.Run == nil:
		return []string{found.File}, nil, nil, nil
	}
	nodes, journals := nodesWithReport(found.Launches())
	if len(nodes) == 0 { // only journals
		return nil, found.Nodes(), nil, nil
	}

	return nil, nodes, skippedJournalsNote(found.Run.Dir, journals), nil
}

// readOne reads the report of node without its series. diff does not compare series, and the series of a thousand runs
// would need as much memory as their files.
func (o *diffOptions) readOne(node *catalog.Node) (*reporter.Report, error) {
	report, err := node.Read(o.cpus)
	if err != nil {
		if path := node.Path(); strings.HasPrefix(path, "-") && errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("diff: no report %s: flags go before the --", path)
		}
		return nil, err
	}

	for name, n := range report.Nodes {
		report.Nodes[name] = n.WithoutSeries()
	}

	return report, nil
}

// reportsBelow finds the reports node-*.json in dir, at any depth.
func reportsBelow(dir string) (nodes []catalog.Node, notes []string, err error) {
	runs, err := catalog.ListRecursive(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("diff: %w", err)
	}
	nodes, journals := nodesWithReport(catalog.Launches(runs))
	return nodes, skippedJournalsNote(dir, journals), nil
}

// nodesWithReport returns the nodes that have a report, the oldest launch first, and the number of journals of the
// nodes that have none.
func nodesWithReport(launches []*catalog.Launch) (nodes []catalog.Node, journals int) {
	hasReport := func(r *catalog.Entry) bool { return r.Report != "" }
	for _, l := range slices.Backward(launches) {
		for _, n := range l.Nodes {
			if slices.ContainsFunc(n.Entries, hasReport) {
				nodes = append(nodes, n)
			} else {
				journals += len(n.Entries)
			}
		}
	}

	return nodes, journals
}

// skippedJournalsNote returns a note on the number of journals in dir that were left out, or nil if there were none.
func skippedJournalsNote(dir string, journals int) []string {
	if journals == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: journals of unfinished runs left out: %d", dir, journals)}
}

// jsonIn lists the *.json files directly in dir, sorted by name. It is an error if there are none.
func jsonIn(dir string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("diff: look for reports: %w", err)
	}

	for _, e := range entries {
		if strings.EqualFold(filepath.Ext(e.Name()), ".json") && !strings.HasPrefix(e.Name(), ".") && !e.IsDir() {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("diff: no report node-*.json below %s and no other *.json in it: name the files", dir)
	}

	return paths, nil
}

// writePage writes the page of --to, if given.
func (o *diffOptions) writePage(c *comparer.Comparison) error {
	if o.to == "" {
		return nil
	}

	return reportfile.WritePicture(o.to, o.force, func(w io.Writer) error {
		return plotter.WriteDiffPage(w, c, agent.Version())
	})
}

func (o *diffOptions) print(c *comparer.Comparison) error {
	switch o.format.name {
	case formatMarkdown:
		return comparer.WriteMarkdown(o.streams.rawOut(), c, comparer.Options{All: o.all})
	case formatJSON:
		var data bytes.Buffer
		enc := json.NewEncoder(&data)
		enc.SetEscapeHTML(false) // conditions have < and >
		enc.SetIndent("", "  ")
		if err := enc.Encode(c); err != nil {
			return err
		}
		_, err := fmt.Fprintf(o.streams.rawOut(), "%s\n", visibleJSON(bytes.TrimSpace(data.Bytes())))
		return err
	}
	return comparer.WriteTable(o.streams.out, c,
		comparer.Options{All: o.all, Color: colorful(o.streams.out), Width: o.streams.columns()})
}

// reportGates prints one line on stderr for each gate that fired or cannot be judged, and returns the exit code as an
// error. A gate that cannot be judged outweighs one that fired, because the requested comparison was not made.
func (o *diffOptions) reportGates(c *comparer.Comparison) error {
	code := 0
	for _, v := range c.Gates {
		switch {
		case v.Fired == nil:
			code = exitTrouble
		case *v.Fired:
			code = max(code, exitGate)
		default:
			continue
		}
		fmt.Fprintf(o.streams.err, "perfagent: gate %s\n", text.Printable(v.String()))
	}

	if code == 0 {
		return nil
	}

	return exitError{code, nil}
}
