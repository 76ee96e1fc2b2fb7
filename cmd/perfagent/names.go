package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/diagnosis"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// A runFinder finds runs by name.
type runFinder struct {
	out     string // the directory of the runs
	streams streams
}

// addTo declares --out.
func (f *runFinder) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.out, "out", "perfagent-out", "look for runs in `DIR` [$PERFAGENT_OUT]")
}

// settle reads PERFAGENT_OUT, and the files of defaults.
func (f *runFinder) settle(cmd *cobra.Command) error {
	from := "--out"
	if v, found := f.streams.outDefault(); found && !cmd.Flags().Changed("out") {
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

	found, err := catalog.Find(f.out, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}

	return found, nil
}

// findNewest is find, and names on stderr the earlier recordings of the same nodes, which Paths leaves out.
func (f *runFinder) findNewest(command, name string) (*catalog.Found, error) {
	found, err := f.find(command, name)
	if err != nil || found.Run == nil || len(found.Run.Earlier) == 0 {
		return found, err
	}

	earlier := text.Printable(text.List(pathsOf(found.Run.Earlier), namedEarlier))
	fmt.Fprintf(f.streams.err, "perfagent %s: run %s has earlier recordings of the same nodes, left out here: %s\n",
		command, text.Printable(found.Run.Name), earlier)

	return found, nil
}

// namedEarlier is how many earlier recordings are named.
const namedEarlier = 3

// pathsOf returns the files of recordings.
func pathsOf(list []catalog.Recording) []string {
	out := make([]string, len(list))
	for i, r := range list {
		out[i] = r.Path()
	}
	return out
}

// paths returns the files of several names.
func (f *runFinder) paths(command string, names []string) ([]string, error) {
	var out []string
	for _, name := range names {
		if name == "" {
			return nil, fmt.Errorf("%s: a name is empty", command)
		}
		found, err := f.findNewest(command, name)
		if err != nil {
			return nil, err
		}
		out = append(out, found.Paths()...)
	}

	return out, nil
}

// read returns the report of a file or of all nodes of a run.
func read(found *catalog.Found, cpus int) (*reporter.Report, error) {
	var sources []reporter.Source
	for _, path := range found.Paths() {
		report, err := reportfile.Read(path, cpus)
		if err != nil {
			return nil, err
		}
		sources = append(sources, reporter.Source{Path: path, Report: report})
	}
	if len(sources) == 1 { // as it is in the file
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
