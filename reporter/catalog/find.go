package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/internal/scheduler"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// Latest is the name of the run that started last.
const Latest = "@latest"

// namedRuns is the maximum number of runs that an error lists.
const namedRuns = 5

// A Match is the file or the launch that a name refers to.
type Match struct {
	File string // "" for a launch

	Run      *Run // nil for a file
	Launch   *Launch
	wholeRun bool // whether the name refers to the whole run, not to one launch
}

// newMatch returns the match for the k-th launch of r, counted from 1. If k is 0, the match is for all of r.
func newMatch(r *Run, k int) *Match {
	if k == 0 {
		return &Match{Run: r, Launch: r.Latest(), wholeRun: true}
	}
	return &Match{Run: r, Launch: &r.Launches[k-1]}
}

// Launches returns the launches that the name refers to: either all launches of a run, newest first, or a single
// launch.
func (f *Match) Launches() []*Launch {
	switch {
	case f.Run == nil:
		return nil
	case f.wholeRun:
		return Launches([]Run{*f.Run})
	}
	return []*Launch{f.Launch}
}

// Name returns a base name for files made from the match: the RUN-ID or, for a file without one, the name of the file.
func (f *Match) Name() string {
	if f.Run != nil {
		return f.String()
	}
	if head, err := reportfile.ReadHead(f.File); err == nil && scheduler.CheckRunID(head.Run.ID) == nil {
		return head.Run.ID
	}
	base := filepath.Base(f.File)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// String returns the file, the RUN-ID or, for a launch other than the last one, RUN-ID@K.
func (f *Match) String() string {
	switch {
	case f.Run == nil:
		return f.File
	case f.Launch == f.Run.Latest():
		return f.Run.Name
	}
	return f.Launch.ID()
}

// Paths returns the files to read.
func (f *Match) Paths() []string {
	if f.Launch != nil {
		return f.Launch.Paths()
	}
	return []string{f.File}
}

// Nodes returns the nodes to read.
func (f *Match) Nodes() []Node {
	if f.Launch != nil {
		return f.Launch.Nodes
	}
	return NodesOf([]string{f.File})
}

// Find returns the match of a name. It tries, in this order: a report, or a directory with recordings; a run below out,
// named by RUN-ID, RUN-ID@K for its K-th launch, @latest, or @-K for the K-th newest launch; and any other file or
// directory. A directory without recordings stands for the newest run below it. Errors list the existing runs.
func Find(out, name string) (*Match, error) {
	if strings.HasPrefix(name, "@") {
		return findNewest(out, name)
	}

	st, err := os.Stat(name)
	isDir := err == nil && st.IsDir()
	switch {
	case isDir:
		if r, err := ReadRun(name); err == nil && r != nil {
			return newMatch(r, 0), nil
		}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}

	found, errFound := findNamed(out, name, nil)
	switch {
	case err == nil && !isDir && (found == nil || isReport(name)):
		return &Match{File: name}, nil
	case errFound != nil || found != nil:
		return found, errFound
	case isDir:
		return findNewestBelow(name)
	}

	return nil, notFoundError(out, fmt.Sprintf("no run or file %q", name))
}

// isReport reports whether the file at path is a report of any kind. Otherwise it may be a program with the same name
// as its run.
func isReport(path string) bool {
	_, err := reportfile.ReadHead(path)
	if err != nil {
		_, err = reportfile.Read(path, 0) // perf.py's JSON has no head
	}
	return err == nil
}

// FindRun returns the run below out with the RUN-ID name. If name is RUN-ID@K, FindRun returns the K-th launch of the
// run. It ignores the files in without.
func FindRun(out, name string, without ...string) (*Match, error) {
	found, err := findNamed(out, name, without)
	if err == nil && found == nil {
		err = notFoundError(out, fmt.Sprintf("no run %q", name))
	}
	return found, err
}

// findNamed is like FindRun, but returns nil if there is no such run.
func findNamed(out, name string, without []string) (*Match, error) {
	id, nth, picked := strings.Cut(name, "@")
	if scheduler.CheckRunID(id) != nil {
		return nil, nil
	}
	k := 0
	if picked {
		if k, picked = parseNumber(nth); !picked || k == 0 {
			return nil, nil
		}
	}

	r, errRead := readRunExcept(filepath.Join(out, id), without)
	switch {
	case errRead != nil || r == nil: // the directory is unreadable, or has no recordings
		return nil, nil
	case k > len(r.Launches):
		return nil, fmt.Errorf("no launch %s: run %s has %s", name, id, text.Count(len(r.Launches), "launch", "launches"))
	}

	return newMatch(r, k), nil
}

// findNewest returns the match for @latest or @-K.
func findNewest(out, name string) (*Match, error) {
	back := 1
	if name != Latest {
		digits, ok := strings.CutPrefix(name, "@-")
		k, known := parseNumber(digits)
		if !ok || !known || k == 0 {
			return nil, fmt.Errorf("%q is not %s or @-K, the K-th newest launch", name, Latest)
		}
		back = k
	}

	runs, err := List(out)
	if err != nil {
		return nil, err
	}
	launches := Launches(runs)
	switch {
	case len(launches) == 0:
		return nil, noRunsError(out)
	case back > len(launches):
		return nil, notFoundError(out, "no run @-"+strconv.Itoa(back))
	}

	l := launches[back-1]
	i := slices.IndexFunc(runs, func(r Run) bool { return r.Dir == l.Dir })

	return newMatch(&runs[i], l.Nth), nil
}

// findNewestBelow returns the newest run anywhere below dir.
func findNewestBelow(dir string) (*Match, error) {
	runs, err := ListRecursive(dir)
	switch {
	case err != nil:
		return nil, err
	case len(runs) == 0:
		return nil, noRunsError(dir)
	}
	return newMatch(&runs[0], 0), nil
}

func noRunsError(dir string) error {
	return fmt.Errorf("no report under %s: record one with perfagent run, or name a report", text.Printable(dir))
}

// notFoundError returns an error that lists the existing runs.
func notFoundError(out, what string) error {
	runs, err := List(out)
	if err != nil || len(runs) == 0 {
		return fmt.Errorf("%s; there are no runs in %s", what, text.Printable(out))
	}

	names := make([]string, min(len(runs), namedRuns))
	for i := range names {
		names[i] = text.Printable(runs[i].Name)
	}
	more := ""
	if left := len(runs) - len(names); left > 0 {
		more = fmt.Sprintf(" and %d older", left)
	}

	return fmt.Errorf("%s; the runs in %s are %s%s", what, text.Printable(out), strings.Join(names, ", "), more)
}
