package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/summary"
)

type pruneOptions struct {
	keep   int // newest runs to keep; -1 = not given
	older  age
	dryRun bool
	force  bool
	runFinder
}

func newPrune(s streams) *cobra.Command {
	o := &pruneOptions{runFinder: runFinder{streams: s}}
	cmd := &cobra.Command{
		Use:        "prune [flags] --keep N | --older AGE",
		SuggestFor: []string{"remove", "delete", "clean", "gc"},
		Short:      "remove old runs",
		Long: `Remove runs below --out that have ended: with --keep, all but the newest N runs;
with --older, those that ended longer ago than AGE; with both flags, the runs
that meet both conditions. All launches, nodes and ranks of a run are removed,
but only perfagent's own files, and the directory if nothing else is in it.

A run in progress is never removed. Runs with a pending push, and runs without a
report because their perfagent was killed, are kept and listed, unless --force
is given. On a terminal, prune asks before it removes anything.`,
		Example: `  perfagent prune --keep 20
  perfagent prune --older 30d --dry-run`,
		Args: noArguments,
		RunE: o.runE(o.prune),
	}

	f := o.addTo(cmd)
	f.IntVar(&o.keep, "keep", -1, "keep the newest `N` runs")
	f.Var(&o.older, "older", "remove runs that ended longer ago than `AGE`: 30d, 12h, 2w")
	f.BoolVar(&o.dryRun, "dry-run", false, "only print what would be removed")
	f.BoolVar(&o.force, "force", false, "also remove runs with a pending push, and those without a report")
	f.Lookup("keep").DefValue = ""

	return cmd
}

// An age is a duration flag that also takes days (d) and weeks (w).
type age time.Duration

// String implements pflag.Value.
func (a *age) String() string {
	if *a == 0 {
		return ""
	}
	return time.Duration(*a).String()
}

// Type implements pflag.Value.
func (a *age) Type() string { return "age" }

// Set implements pflag.Value.
func (a *age) Set(words string) error {
	const day = 24 * time.Hour
	units := map[string]time.Duration{"": time.Second, "d": day, "w": 7 * day}
	number := strings.TrimRight(words, "dw")
	n, err := strconv.ParseFloat(number, 64)
	unit, known := units[words[len(number):]]
	if err == nil && known {
		*a = age(n * float64(unit))
	} else if d, err := time.ParseDuration(words); err == nil {
		*a = age(d)
	} else {
		return fmt.Errorf("%q is not a time such as 30d, 12h or 2w", words)
	}
	if *a <= 0 {
		return fmt.Errorf("%q is not above 0", words)
	}

	return nil
}

func (o *pruneOptions) prune([]string) error {
	switch {
	case o.keep < 0 && o.older == 0:
		return errors.New("prune: say what to remove: --keep N, --older AGE, or both")
	case o.keep < -1:
		return fmt.Errorf("--keep: %d is negative", o.keep)
	}

	runs, err := catalog.List(o.out)
	if err != nil {
		return fmt.Errorf("prune: %w", err)
	}
	if len(runs) == 0 {
		o.printNoRuns()
	}

	chosen := o.choose(runs)
	if len(chosen) == 0 || !o.dryRun && !o.confirmed(len(chosen)) {
		return nil
	}

	return o.remove(chosen)
}

// A prunableRun is a run to remove, with its summary.
type prunableRun struct {
	catalog.Run
	about summary.Overview
}

// choose returns the runs to remove, oldest first. For each run that matched but is kept, it prints the reason to
// stderr.
func (o *pruneOptions) choose(runs []catalog.Run) []prunableRun {
	var out []prunableRun
	for i := len(runs) - 1; i >= max(0, o.keep); i-- {
		run, about := runs[i], runs[i].Latest().Summary()
		about.ID = run.Name // prune removes all launches of the run
		ended := about.End.Time
		if ended.IsZero() {
			ended = run.Start
		}
		if about.State == summary.StateRunning || run.IsActive() || time.Since(ended) < time.Duration(o.older) {
			continue
		}

		if why := keepBecause(&run, about); why != "" && !o.force {
			fmt.Fprintf(o.streams.err, "perfagent prune: keeps %s: %s; --force removes it\n", text.Printable(run.Name), why)
			continue
		}
		out = append(out, prunableRun{run, about})
	}

	return out
}

// keepBecause returns the reason for which an ended run is kept unless --force is given, or "" if there is no reason.
func keepBecause(run *catalog.Run, about summary.Overview) string {
	if about.State == summary.StateIncomplete {
		return "its perfagent is gone, and only its journal is left"
	}
	more := len(run.Launches) > 1 || len(run.Latest().OlderEntries) > 0
	if about.Push == reporter.PushPending || more && run.HasPendingPush() {
		return "its push is pending: perfagent push " + text.Printable(run.Name)
	}
	return ""
}

// confirmed asks the user whether to remove n runs. Without a terminal it returns true.
func (o *pruneOptions) confirmed(n int) bool {
	if !isTerminal(o.streams.err) || !isTerminal(o.streams.out) || o.streams.embedded {
		return true
	}

	fmt.Fprintf(o.streams.err, "Remove %s from %s? [y/N] ", text.Count(n, "run", "runs"), text.Printable(o.out))
	answer, _ := bufio.NewReader(io.LimitReader(os.Stdin, 80)).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))

	return answer == "y" || answer == "yes"
}

// remove removes the chosen runs and prints them. With --dry-run it only prints them.
func (o *pruneOptions) remove(chosen []prunableRun) error {
	verb, failed := "removed", 0
	if o.dryRun {
		verb = "would remove"
	}
	for i := range chosen {
		c := &chosen[i]
		if !o.dryRun {
			if err := c.Remove(); err != nil {
				fmt.Fprintf(o.streams.err, "perfagent prune: %s\n", text.Printable(err.Error()))
				failed++
				continue
			}
		}
		row := rowOf(c.about, 0, true).Cells
		fmt.Fprintf(o.streams.out, "%s %s  %s  %s  %s\n", verb, row[lsRun], row[lsStart], row[lsEnd],
			text.Clip(row[lsCommand].String(), 40))
	}
	if failed > 0 {
		return exitError{code: exitFailure}
	}

	return nil
}
