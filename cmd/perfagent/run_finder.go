package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/reportfile"
	"github.com/perfagent/perfagent/store"
)

// A runFinder finds runs by name for one command, and holds the flags common to all commands that take run names.
type runFinder struct {
	cmd     *cobra.Command
	out     string // directory of the runs
	cpus    int    // CPUs of each node; 0 = unknown
	streams streams
	copies  store.Copies // finish removes them
}

// addTo declares --out on cmd and returns the flags of cmd.
func (f *runFinder) addTo(cmd *cobra.Command) *pflag.FlagSet {
	f.cmd, f.copies.Warn = cmd, f.printMessage
	cmd.Flags().StringVarP(&f.out, "out", "o", agent.DefaultOut, "look for runs in `DIR` [$PERFAGENT_OUT]")
	return cmd.Flags()
}

// addCPUs declares --cpus. of completes its description: "number of logical CPUs of …".
func (f *runFinder) addCPUs(of string) {
	f.cmd.Flags().IntVar(&f.cpus, "cpus", 0,
		"number of logical CPUs of "+of+"; needed for perf.py's JSON, which does not record it")
}

// given reports whether the given flag is on the command line.
func (f *runFinder) given(flag string) bool { return f.cmd.Flags().Changed(flag) }

// runE returns the cobra RunE of a command that finds runs: it applies the defaults, calls work and finishes the
// command.
func (f *runFinder) runE(work func(args []string) error) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error {
		if err := f.applyDefaults(); err != nil {
			return err
		}
		return f.finish(work(args))
	}
}

// applyDefaults applies PERFAGENT_OUT from the environment or the defaults files, and checks --out and --cpus.
func (f *runFinder) applyDefaults() error {
	from := "--out"
	if v := f.streams.defaultOf("PERFAGENT_OUT"); v.value != "" && !f.given("out") {
		f.out, from = v.value, v.source()
	}
	if err := checkOut(f.out); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if f.cpus < 0 {
		return fmt.Errorf("--cpus: %d is negative", f.cpus)
	}

	return nil
}

// checkOut returns an error unless out can be the directory of the runs. A file name was probably meant for --to.
func checkOut(out string) error {
	_, notPicture := plotter.PictureFormat(out)
	switch {
	case out == "":
		return errors.New("the directory name is empty")
	case notPicture != nil && !strings.EqualFold(filepath.Ext(out), ".json") || isDir(out):
		return nil
	}
	return fmt.Errorf("%s is not a directory: to write a file, use --to %[1]s", out)
}

// find returns the match for name, or the newest run if name is "". Errors begin with the command's name.
func (f *runFinder) find(name string) (*catalog.Match, error) {
	if name == "" {
		name = catalog.Latest
	}

	found, err := f.lookUp(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.cmd.Name(), err)
	}

	return found, nil
}

// lookUp returns the match for name, which may be a store reference.
func (f *runFinder) lookUp(name string) (*catalog.Match, error) {
	if address, object, ok := parseReference(name); ok {
		return f.findInStore(address, object)
	}
	found, err := catalog.Find(f.out, name)
	if err != nil && strings.Contains(name, "://") { // name may contain a password
		err = errors.New("an address is not the name of a run; STORE#RUN-ID is one, and perfagent ls STORE lists them")
	}
	return found, err
}

// finish removes the copies of stored runs and returns err, in which stored objects are named by their references. If
// err is nil but some objects could not be copied, finish returns exit code 1. Every command that looks up runs must
// call finish.
func (f *runFinder) finish(err error) error {
	f.copies.Remove()
	switch {
	case err == nil && f.copies.Incomplete:
		return exitError{code: exitFailure}
	case err == nil:
		return nil
	}
	words := f.copies.WithReferences(err.Error())
	exit, ok := errors.AsType[exitError](err)
	switch {
	case words == err.Error():
		return err
	case ok:
		return exitError{exit.code, errors.New(words)}
	}
	return errors.New(words)
}

// findAndWarn is like find, but also prints warnings about the run (see warnAbout).
func (f *runFinder) findAndWarn(name string) (*catalog.Match, error) {
	found, err := f.find(name)
	if err == nil && found.Launch != nil {
		f.warnAbout(found)
	}
	return found, err
}

// warnAbout warns about other launches of the run, nodes or ranks that were recorded more than once, unreadable files
// and clock skew.
func (f *runFinder) warnAbout(found *catalog.Match) {
	if found.Launch.Total > 1 {
		f.printMessage(otherLaunchesMessage(found))
	}
	if earlier := found.Launch.OlderEntries; len(earlier) > 0 {
		var paths []string
		for _, r := range earlier {
			paths = append(paths, r.Path())
		}
		f.printMessage(fmt.Sprintf("%s has earlier recordings of the same nodes or ranks, left out here: %s",
			found.Launch.ID(), text.List(paths, maxListedEarlier)))
	}
	if unreadable := found.Run.Unreadable; len(unreadable) > 0 {
		var reasons []string
		for _, r := range unreadable {
			reasons = append(reasons, r.Damaged().Error())
		}
		f.printMessage("left out: " + text.List(reasons, maxListedUnreadable))
	}
	f.warnClockSkew(found.Launch)
}

// warnClockSkew warns about nodes of l with a clock that seems to be wrong.
func (f *runFinder) warnClockSkew(l *catalog.Launch) {
	for _, c := range l.ClockWarnings() {
		f.printMessage(fmt.Sprintf("%s: %s", l.ID(), c))
	}
}

// printMessage prints words as a line on stderr, after the command's name.
func (f *runFinder) printMessage(words string) {
	fmt.Fprintf(f.streams.err, "perfagent %s: %s\n", f.cmd.Name(), text.Printable(f.copies.WithReferences(words)))
}

// Maximum lengths of lists in messages.
const (
	maxListedEarlier    = 3
	maxListedUnreadable = 3
	maxListedLaunches   = 5
)

// otherLaunchesMessage names the found launch and the other launches of the run, newest first.
func otherLaunchesMessage(found *catalog.Match) string {
	var others []string
	for i := range slices.Backward(found.Run.Launches) {
		if l := &found.Run.Launches[i]; l.Nth != found.Launch.Nth {
			others = append(others, l.ID()+" of "+l.Start.Local().Format("2006-01-02 15:04:05"))
		}
	}

	return fmt.Sprintf("run %s has %d launches; this is %s; %s %s", found.Run.Name, found.Launch.Total, found.Launch.ID(),
		text.Plural(len(others), "the other is", "the others are"), text.List(others, maxListedLaunches))
}

// printNoRuns prints that --out has no runs.
func (f *runFinder) printNoRuns() {
	words := "no runs are in "
	if !isDir(f.out) {
		words = "there is no directory "
	}
	f.printMessage(words + f.out + ": record a run with perfagent run, or name another directory with --out")
}

// nodesByName returns the nodes with the given names. Several files of a node become one node.
func (f *runFinder) nodesByName(names []string) ([]catalog.Node, error) {
	var files []string
	var out []catalog.Node
	for _, name := range names {
		if name == "" {
			return nil, fmt.Errorf("%s: a name is empty", f.cmd.Name())
		}
		found, err := f.findAndWarn(name)
		if err != nil {
			return nil, err
		}
		if found.Launch == nil {
			files = append(files, found.File)
		} else {
			out = append(out, found.Launch.Nodes...)
		}
	}

	return append(out, catalog.NodesOf(files)...), nil
}

// readReport returns the report of a file, or the merged report of a launch.
func (f *runFinder) readReport(found *catalog.Match) (*reporter.Report, error) {
	if found.Launch == nil {
		return reportfile.Read(found.File, f.cpus)
	}
	return catalog.ReadMerged(found.Nodes(), func(n *catalog.Node) (*reporter.Report, error) { return n.Read(f.cpus) })
}

// isDir reports whether path is a directory.
func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// atMostOne checks the arguments of a command that takes at most one run or report.
func atMostOne(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return fmt.Errorf("%s: one run, please; perfagent diff compares two, and perfagent merge puts several together",
			cmd.Name())
	case len(args) == 1 && args[0] == "":
		return fmt.Errorf("%s: the name is empty", cmd.Name())
	}
	return nil
}

// nameOf returns the only argument, or "".
func nameOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
