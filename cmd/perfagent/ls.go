package main

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

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
		Long: `List the runs below --out, starting with the newest: when each started, how it
ended, how long it took, its nodes and ranks if any run had several, its average
CPU use out of what it was allowed, its peak memory, and its command. A run with
several launches has a line for each, RUN-ID@K. With names, list only those
runs: RUN-IDs, RUN-ID@K, @latest, @-2, or directories of runs.

With STORE, the address of a store, list the runs there: how many nodes each
has, how many of them have only a partial report, the size, and when the newest
report was stored. With RUN-ID as well, list that run's reports and references.

On a terminal, lines are cut to its width. Below 100 columns START and CPU are
left out, and NODES where it would leave little room for the command. In a pipe
nothing is cut. With --json, print the summary object of each run.`,
		Example: `  perfagent ls
  perfagent ls --to index.html
  perfagent ls s3://bucket/runs
  perfagent ls --json | jq -r '.[] | select(.exit_code != 0) | .run_id'`,
		RunE: o.runE(o.list),
	}

	f := o.addTo(cmd)
	o.format = addFormat(f, formatTable, formatJSON)
	f.StringVar(&o.to, "to", "", "write the list as a page to `FILE` (.html), with links to the pages of the runs")
	f.BoolVar(&o.force, "force", false, "replace FILE if it exists")

	return cmd
}

func (o *lsOptions) list(names []string) error {
	if len(names) > 0 && isStore(names[0]) {
		return o.listStore(names)
	}

	if err := checkPageName(o.to, o.force); err != nil {
		return fmt.Errorf("ls: %w", err)
	}

	launches, err := o.launches(names)
	if err != nil {
		return err
	}
	if len(launches) == 0 {
		o.printNoRuns()
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
	x := plotter.Index{Title: "Runs in " + text.Printable(o.out)}
	for _, object := range objects {
		x.Rows = append(x.Rows, indexRowOf(object, filepath.Dir(o.to)))
	}

	return reportfile.WritePicture(o.to, o.force, func(w io.Writer) error { return plotter.WriteIndex(w, x) })
}

// indexRowOf returns the row for o in an index page in directory dir.
func indexRowOf(o summary.Overview, dir string) plotter.IndexRow {
	line := rowOf(o, 0, true)
	words := func(column int) string { return line.Cells[column].String() }
	row := plotter.IndexRow{
		Run: words(lsRun), Start: words(lsStart), Length: text.Absent, Nodes: words(lsNodes), End: words(lsEnd),
		Command: words(lsCommand), CPU: plotter.UsageBar{Words: words(lsCPU)},
		Memory: plotter.UsageBar{Words: words(lsMemory)},
	}
	if o.WallSeconds > 0 {
		row.Length = text.Seconds(o.WallSeconds)
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
	lsEnd
	lsTime
	lsNodes
	lsCPU
	lsMemory
	lsCommand
	lsColumns // number of columns
)

// wideColumns is the width of a terminal with room for all columns of ls.
const wideColumns = 100

// print writes the table, or nothing if there are no runs.
func (o *lsOptions) print(objects []summary.Overview) error {
	if len(objects) == 0 {
		return nil
	}

	return o.streams.printTable(runTable(objects, o.streams.columns()))
}

// commandCells is the minimum width of the command in terminal cells. NODES is omitted if the command would have less
// room.
const commandCells = 25

// runTable returns the table of runs for a terminal of the given width; 0 = any width.
func runTable(objects []summary.Overview, columns int) *table.Table {
	t := &table.Table{Columns: []table.Column{{Head: "RUN"}, {Head: "START", Optional: true}, {Head: "END"},
		{Head: "TIME", Right: true}, {Head: "NODES", Right: true, Optional: true}, {Head: "CPU", Optional: true},
		{Head: "MEMORY", Right: true}, {Head: "COMMAND"}}}
	several := slices.ContainsFunc(objects, func(o summary.Overview) bool { return o.Nodes > 1 || o.Ranks > 0 })
	for _, object := range objects {
		t.Rows = append(t.Rows, rowOf(object, columns, several))
	}
	if columns > 0 && strings.Index(t.Lines(0, 2)[0].Text, "COMMAND")+commandCells > columns {
		for _, row := range t.Rows {
			row.Cells[lsNodes] = table.Absent()
		}
	}
	return t
}

// columns returns the width of the terminal, or 0 for a pipe, which has no limit.
func (s streams) columns() int {
	if isTerminal(s.out) {
		return width(s.out)
	}
	return 0
}

// printTable prints t. On a terminal it uses colors, and cuts lines to the width of the terminal.
func (s streams) printTable(t *table.Table) error {
	return t.WriteText(s.out, s.columns(), colorful(s.out))
}

// rowOf returns the row of the run that o describes, for a table on a terminal of the given width; 0 = any width. The
// number of nodes is shown only if several is true.
func rowOf(o summary.Overview, columns int, several bool) table.Row {
	narrow := columns > 0 && columns < wideColumns
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
	set(lsEnd, endOf(o))
	set(lsCommand, summary.CommandLine(o.Command))
	if several {
		set(lsNodes, nodesOf(o))
	}
	if !o.Start.IsZero() && !narrow {
		set(lsStart, startText(o.Start.Time, columns))
	}
	if o.WallSeconds > 0 {
		cells[lsTime] = table.Bare(shortTime(o.WallSeconds))
	}
	if o.CPU != nil && !narrow {
		set(lsCPU, text.UsedCPUs(*o.CPU.Used)+" of "+text.CPUs(*o.CPU.Of))
	}
	switch {
	case o.Memory != nil:
		cells[lsMemory] = table.Number(text.Size(*o.Memory.UsedMB))
	case o.MaxRSSAtMostMB > 0:
		cells[lsMemory] = table.Cell{Sign: "≤", Quantity: text.Size(o.MaxRSSAtMostMB)}
	}

	row := table.Row{Cells: cells}
	if len(o.FailedNodes) > 0 || o.State == summary.StateIncomplete {
		row.Style = table.Bad
	}
	return row
}

// startText formats the local time of a start. On a terminal, it shows the year instead of the time of day if the start
// was more than 300 days ago or is in the future.
func startText(start time.Time, columns int) string {
	switch age := time.Since(start); {
	case columns == 0:
		return start.Local().Format("2006-01-02 15:04")
	case age < 0 || age > 300*24*time.Hour:
		return start.Local().Format("02 Jan  2006")
	}
	return start.Local().Format("02 Jan 15:04")
}

// shortTime formats seconds in the largest fitting unit: "45ms", "16.3s", "4.2m", "3.1h", "2.5d".
func shortTime(seconds float64) string {
	const round = 0.05 // 59.96 s are 1.0m, not 60.0s
	switch {
	case seconds < 60-round:
		return text.ShortSeconds(seconds)
	case seconds < (60-round)*60:
		return text.Fixed(seconds/60, 1) + "m"
	case seconds < (24-round)*3600:
		return text.Fixed(seconds/3600, 1) + "h"
	}
	return text.Fixed(seconds/86400, 1) + "d"
}

// nodesOf returns the number of nodes of a run and, if a node had several ranks, the number of ranks: "4 (16 ranks)".
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
	case o.Cause == diagnosis.CauseDiskFull:
		return "disk full"
	case o.Cause == diagnosis.CauseStopped:
		return "stopped"
	case o.Signal == "SIGKILL":
		return "killed"
	case summary.Stops(o.Signal):
		return "stopped (" + strings.TrimPrefix(o.Signal, "SIG") + ")"
	case o.Signal != "":
		return "killed (" + strings.TrimPrefix(o.Signal, "SIG") + ")"
	case o.ExitCode != nil && *o.ExitCode == 0:
		return "succeeded"
	case o.ExitCode != nil:
		return fmt.Sprintf("exit %d", *o.ExitCode)
	}
	return ""
}
