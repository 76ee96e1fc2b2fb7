package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/internal/parallel"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/diagnosis"
	"github.com/perfagent/perfagent/reporter/reportfile"
	"github.com/perfagent/perfagent/store"
)

// A runFinder finds runs by name.
type runFinder struct {
	out     string // the directory of the runs
	streams streams
	copies  store.Copies
}

// addTo declares --out.
func (f *runFinder) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.out, "out", "perfagent-out", "look for runs in `DIR` [$PERFAGENT_OUT]")
}

// settle reads PERFAGENT_OUT, and the files of defaults.
func (f *runFinder) settle(cmd *cobra.Command) error {
	from := "--out"
	if v := f.streams.defaultOf("PERFAGENT_OUT"); v.value != "" && !cmd.Flags().Changed("out") {
		f.out, from = v.value, v.source()
	}
	if f.out == "" {
		return fmt.Errorf("%s: the directory name is empty", from)
	}

	return nil
}

// find returns what a name stands for; the newest run for no name. Errors begin with the command.
func (f *runFinder) find(command, name string) (*catalog.Found, error) {
	if name == "" {
		name = catalog.Latest
	}

	found, err := f.look(command, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}

	return found, nil
}

// look returns what a name or a reference stands for.
func (f *runFinder) look(command, name string) (*catalog.Found, error) {
	if address, object, ok := referenceIn(name); ok {
		return f.findStored(command, address, object)
	}
	found, err := catalog.Find(f.out, name)
	if err != nil && strings.Contains(name, "://") { // it may have a password
		err = errors.New("an address is not the name of a run; STORE#RUN-ID is one, and perfagent ls STORE lists them")
	}
	return found, err
}

// end ends a command with an error or none. Each command that finds runs calls it.
func (f *runFinder) end(err error) error {
	f.copies.Remove()
	switch {
	case err == nil && f.copies.Lost:
		return exitError{code: exitFailure}
	case err == nil:
		return nil
	}
	if words := f.copies.Named(err.Error()); words != err.Error() {
		return renamed(err, words)
	}
	return err
}

// findTold is find, and says on stderr which other launches the run has, what was recorded again, and whose
// clock is off.
func (f *runFinder) findTold(command, name string) (*catalog.Found, error) {
	found, err := f.find(command, name)
	if err == nil && found.Launch != nil {
		f.tell(command, found)
	}
	return found, err
}

// tell says what findTold says of a launch.
func (f *runFinder) tell(command string, found *catalog.Found) {
	if found.Launch.Of > 1 {
		f.say(command, othersOf(found))
	}
	if earlier := found.Launch.Earlier; len(earlier) > 0 {
		f.say(command, fmt.Sprintf("%s has earlier recordings of the same nodes or ranks, left out here: %s",
			found.Launch.ID(), text.List(pathsOf(earlier), namedEarlier)))
	}
	if blank := found.Run.Blank; len(blank) > 0 {
		var whys []string
		for _, r := range blank {
			whys = append(whys, r.Damaged().Error())
		}
		f.say(command, "left out: "+text.List(whys, namedBlank))
	}
	f.sayClocks(command, found.Launch)
}

// sayClocks says which nodes have a clock that is off.
func (f *runFinder) sayClocks(command string, l *catalog.Launch) {
	for _, c := range l.Clocks() {
		f.say(command, fmt.Sprintf("%s: %s", l.ID(), c))
	}
}

// say prints a line on stderr.
func (f *runFinder) say(command, words string) {
	fmt.Fprintf(f.streams.err, "perfagent %s: %s\n", command, text.Printable(f.copies.Named(words)))
}

// The most that one line names.
const (
	namedEarlier  = 3
	namedBlank    = 3
	namedLaunches = 5
)

// othersOf says which launch was found, and which others the run has, the newest first.
func othersOf(found *catalog.Found) string {
	var others []string
	for i := range slices.Backward(found.Run.Launches) {
		if l := &found.Run.Launches[i]; l.Nth != found.Launch.Nth {
			others = append(others, l.ID()+" of "+l.Start.Local().Format("2006-01-02 15:04:05"))
		}
	}

	return fmt.Sprintf("run %s has %d launches; this is %s; %s %s", found.Run.Name, found.Launch.Of, found.Launch.ID(),
		text.Plural(len(others), "the other is", "the others are"), text.List(others, namedLaunches))
}

// pathsOf returns the files of recordings.
func pathsOf(list []*catalog.Recording) []string {
	out := make([]string, len(list))
	for i, r := range list {
		out[i] = r.Path()
	}
	return out
}

// nodes returns the nodes that several names stand for. Files are grouped: the pieces of a node are one.
func (f *runFinder) nodes(command string, names []string) ([]catalog.Node, error) {
	var files []string
	var out []catalog.Node
	for _, name := range names {
		if name == "" {
			return nil, fmt.Errorf("%s: a name is empty", command)
		}
		found, err := f.findTold(command, name)
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

// read returns the report of a file or of all nodes of a launch.
func read(found *catalog.Found, cpus int) (*reporter.Report, error) {
	if found.Launch == nil {
		return reportfile.Read(found.File, cpus)
	}
	return readNodes(found.Nodes(), func(n *catalog.Node) (*reporter.Report, error) { return n.Read(cpus) })
}

// readNumbers is read without the series, which of a thousand nodes do not fit into memory.
func readNumbers(found *catalog.Found, cpus int) (*reporter.Report, error) {
	return readNodes(found.Nodes(), func(n *catalog.Node) (*reporter.Report, error) { return n.Numbers(cpus) })
}

// readNodes returns the report of nodes together, several of which are read at a time. One is as it is in its file.
func readNodes(
	nodes []catalog.Node, read func(*catalog.Node) (*reporter.Report, error),
) (*reporter.Report, error) {
	var sources []reporter.Source
	err := parallel.InOrder(len(nodes), func(i int, emit func(reporter.Source) error) error {
		report, err := read(&nodes[i])
		if err != nil {
			return err
		}
		return emit(reporter.Source{Path: nodes[i].Path(), Report: report})
	}, func(s reporter.Source) error {
		sources = append(sources, s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(sources) == 1 {
		return sources[0].Report, nil
	}

	return diagnosis.Merge(sources)
}

// isDir reports whether path is a directory.
func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// atMostOne checks the arguments of a command that takes one run or report.
func atMostOne(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return fmt.Errorf("%s: one run or report, please; perfagent merge puts several together", cmd.Name())
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
