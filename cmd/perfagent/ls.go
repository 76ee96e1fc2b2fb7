package main

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/internal/parallel"
	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/diagnosis"
	"github.com/perfagent/perfagent/reporter/reportfile"
	"github.com/perfagent/perfagent/reporter/summary"
)

type lsOptions struct {
	format *format
	to     string // page of --to; "" = none
	force  bool
	runFinder
}

func newLs(s streams) *cobra.Command {
	o := &lsOptions{runFinder: runFinder{streams: s}}
	cmd := &cobra.Command{
		Use:        "ls [flags] [RUN... | STORE [RUN-ID]]",
		SuggestFor: []string{"list", "runs", "history"},
		Short:      "list the runs",
		Long: `List the runs below --out, the one that started last first: when, how long, on
how many nodes and ranks, how it ended, the CPUs that it used on average of
those that it may use, its peak memory, and the command. A run of several
launches has a line for each, RUN-ID@K. With names, list those runs only:
RUN-IDs, RUN-ID@K, @latest, @-2, or directories of runs.

With STORE, the address of a store, list the runs there: how many nodes, how
many of them have nothing but a partial report, the size, and when the newest
report was stored. With RUN-ID as well, list its reports with their references.

On a terminal, lines are cut to its width; in a pipe they are whole. With --json
the list has the summary object of each run.`,
		Example: `  perfagent ls
  perfagent ls --to index.html
  perfagent ls s3://bucket/runs
  perfagent ls --json | jq -r '.[] | select(.exit_code != 0) | .run_id'`,
		RunE: o.runE(o.list),
	}

	f := o.addTo(cmd)
	o.format = addFormat(f, formatTable, formatJSON)
	f.StringVar(&o.to, "to", "", "write the list to `FILE`, a page (.html) with links to the pages of the runs")
	f.BoolVar(&o.force, "force", false, "replace FILE if it exists")

	return cmd
}

func (o *lsOptions) list(names []string) error {
	if len(names) > 0 && isStore(names[0]) {
		return o.listStore(names)
	}

	launches, err := o.launches(names)
	if err != nil {
		return err
	}

	objects := make([]summary.Overview, 0, len(launches))
	err = parallel.InOrder(len(launches), func(i int, emit func(summary.Overview) error) error {
		return emit(launches[i].Summary())
	}, func(object summary.Overview) error {
		o.warnClockSkew(launches[len(objects)])
		objects = append(objects, object)
		return nil
	})
	if err != nil {
		return err
	}
	if o.to != "" {
		if err := o.writeIndex(objects); err != nil || !o.format.given {
			return err
		}
	}
	if o.format.name == formatJSON {
		return o.streams.printJSON(objects)
	}

	return o.print(objects)
}

// writeIndex writes the index page of --to atomically.
func (o *lsOptions) writeIndex(objects []summary.Overview) error {
	if err := checkPageName(o.to, o.force); err != nil {
		return fmt.Errorf("ls: %w", err)
	}

	x := plotter.Index{Title: "Runs in " + text.Printable(o.out)}
	for _, object := range objects {
		x.Rows = append(x.Rows, indexRowOf(object, filepath.Dir(o.to)))
	}

	return reportfile.WritePicture(o.to, o.force, func(w io.Writer) error { return plotter.WriteIndex(w, x) })
}

// indexRowOf returns the row for o of an index page that is in the directory dir.
func indexRowOf(o summary.Overview, dir string) plotter.IndexRow {
	line := rowOf(o)
	words := func(column int) string { return line.Cells[column].String() }
	row := plotter.IndexRow{
		Run: words(lsRun), Start: words(lsStart), Length: words(lsLength), Nodes: words(lsNodes), End: words(lsEnd),
		Command: words(lsCommand), CPU: plotter.UsageBar{Words: words(lsCPU)},
		Memory: plotter.UsageBar{Words: words(lsMemory)},
	}
	if o.CPU != nil {
		row.CPU.Percent = min(100, o.CPU.Percent)
	}
	if o.Memory != nil {
		row.Memory.Percent = min(100, o.Memory.Percent)
	}

	switch {
	case o.State == summary.StateRunning:
		row.State = "live"
	case line.Style == table.Bad:
		row.State = "failed"
	}
	if whole, err := filepath.Abs(dir); err == nil && o.Page != "" {
		if link, err := filepath.Rel(whole, o.Page); err == nil {
			row.Link = (&url.URL{Path: filepath.ToSlash(link)}).String()
		}
	}

	return row
}

// launches returns the launches of the named runs, or of all runs if names is empty, newest first.
func (f *runFinder) launches(names []string) ([]*catalog.Launch, error) {
	if len(names) == 0 {
		runs, err := catalog.List(f.out)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.cmd.Name(), err)
		}
		return catalog.Launches(runs), nil
	}

	var launches []*catalog.Launch
	for _, name := range names {
		found, err := f.find(name)
		if err != nil {
			return nil, err
		}
		if found.Run == nil {
			return nil, fmt.Errorf("%s: %s is a file, not a run", f.cmd.Name(), text.Printable(name))
		}
		launches = append(launches, found.Launches()...)
	}

	return launches, nil
}

// Columns of the table that ls prints.
const (
	lsRun = iota
	lsStart
	lsLength
	lsNodes
	lsEnd
	lsCPU
	lsMemory
	lsCommand
	lsColumns // number of columns
)

// print writes the table, or nothing if there are no runs.
func (o *lsOptions) print(objects []summary.Overview) error {
	if len(objects) == 0 {
		return nil
	}

	t := &table.Table{Columns: table.Left("RUN", "START", "LENGTH", "NODES", "END", "CPU", "MEMORY", "COMMAND")}
	for _, object := range objects {
		t.Rows = append(t.Rows, rowOf(object))
	}
	return o.streams.printTable(t)
}

// printTable prints t. On a terminal it uses colours, and cuts lines to the width of the terminal.
func (s streams) printTable(t *table.Table) error {
	columns := 0 // no limit, for a pipe
	if isTerminal(s.out) {
		columns = width(s.out)
	}
	return t.WriteText(s.out, columns, colorful(s.out))
}

// rowOf returns the row of the table for the run that o describes.
func rowOf(o summary.Overview) table.Row {
	cells := make([]table.Cell, lsColumns)
	for i := range cells {
		cells[i] = table.Absent()
	}
	set := func(column int, words string) {
		if words != "" {
			cells[column] = table.Untrusted(words)
		}
	}
	set(lsRun, cmp.Or(o.ID, o.RunID))
	set(lsNodes, nodesOf(o))
	set(lsEnd, endOf(o))
	set(lsCommand, summary.CommandLine(o.Command))
	if !o.Start.IsZero() {
		set(lsStart, o.Start.Local().Format("2006-01-02 15:04"))
	}
	if o.WallSeconds > 0 {
		cells[lsLength] = table.Number(text.Duration(o.WallSeconds))
	}
	if o.CPU != nil {
		set(lsCPU, text.UsedCPUs(*o.CPU.Used)+" of "+text.CPUs(*o.CPU.Of))
	}
	switch {
	case o.Memory != nil:
		cells[lsMemory] = table.Number(text.Size(*o.Memory.UsedMB))
	case o.MaxRSSAtMostMB > 0:
		cells[lsMemory] = table.Cell{Sign: "≤ ", Quantity: text.Size(o.MaxRSSAtMostMB)}
	}

	row := table.Row{Cells: cells}
	if len(o.FailedNodes) > 0 || o.State == summary.StateIncomplete {
		row.Style = table.Bad
	}
	return row
}

// nodesOf returns the number of nodes of a run and, if a node had several ranks, their number: "4 (16 ranks)".
func nodesOf(o summary.Overview) string {
	if o.Ranks == 0 {
		return strconv.Itoa(o.Nodes)
	}
	return fmt.Sprintf("%d (%s)", o.Nodes, text.Count(o.Ranks, "rank", "ranks"))
}

// endOf returns a few words on how a run ended, such as "out of memory", or "" if that is unknown.
func endOf(o summary.Overview) string {
	switch {
	case o.State == summary.StateRunning:
		return "running"
	// A nonzero exit code is handled below, because then at least one rank is known to have failed.
	case o.State == summary.StateIncomplete && (o.ExitCode == nil || *o.ExitCode == 0):
		return "lost"
	case diagnosis.IsOutOfMemory(o.Cause):
		return "out of memory"
	case o.Cause == diagnosis.CauseTimeLimit:
		return "time limit"
	case o.Signal != "":
		return o.Signal
	case o.ExitCode != nil:
		return fmt.Sprintf("exit %d", *o.ExitCode)
	}
	return ""
}
