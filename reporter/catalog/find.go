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

// Latest names the run that started last.
const Latest = "@latest"

// namedRuns is how many runs an error names.
const namedRuns = 5

// A Found is what a name stands for: a file, or a launch of a run.
type Found struct {
	File string // "" if it is a launch

	Run    *Run // nil if it is a file
	Launch *Launch
	whole  bool // the name is that of the run, whatever it holds
}

// newFound returns the K-th launch of a run, or its last one for 0.
func newFound(r *Run, k int) *Found {
	if k == 0 {
		return &Found{Run: r, Launch: r.Latest(), whole: true}
	}
	return &Found{Run: r, Launch: &r.Launches[k-1]}
}

// Launches returns the launches that the name stands for: all of a run, the last one first, or one of them.
func (f *Found) Launches() []*Launch {
	switch {
	case f.Run == nil:
		return nil
	case f.whole:
		return Launches([]Run{*f.Run})
	}
	return []*Launch{f.Launch}
}

// Name returns a name for files that are made of it: the RUN-ID, or the name of a file that does not say.
func (f *Found) Name() string {
	if f.Run != nil {
		return f.String()
	}
	if head, err := reportfile.ReadHead(f.File); err == nil && scheduler.CheckRunID(head.Run.ID) == nil {
		return head.Run.ID
	}
	base := filepath.Base(f.File)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// String returns the file, the RUN-ID or, of a launch that is not the last one, RUN-ID@K.
func (f *Found) String() string {
	switch {
	case f.Run == nil:
		return f.File
	case f.Launch == f.Run.Latest():
		return f.Run.Name
	}
	return f.Launch.ID()
}

// Paths returns the files to read.
func (f *Found) Paths() []string {
	if f.Launch != nil {
		return f.Launch.Paths()
	}
	return []string{f.File}
}

// Nodes returns what is to be read, node by node.
func (f *Found) Nodes() []Node {
	if f.Launch != nil {
		return f.Launch.Nodes
	}
	return NodesOf([]string{f.File})
}

// Find returns what a name stands for: a file or a directory with recordings, else a run below out: its
// RUN-ID, RUN-ID@K for its K-th launch, @latest, or @-K for the K-th newest launch. A directory that has no
// recordings itself stands for the newest run below it. Errors name what there is instead.
func Find(out, name string) (*Found, error) {
	if strings.HasPrefix(name, "@") {
		return newest(out, name)
	}

	st, err := os.Stat(name)
	isDir := err == nil && st.IsDir()
	switch {
	case isDir:
		if r, err := At(name); err != nil {
			return nil, err
		} else if r != nil {
			return newFound(r, 0), nil
		}
	case err == nil:
		return &Found{File: name}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}

	found, err := named(out, name, nil)
	switch {
	case err != nil || found != nil:
		return found, err
	case isDir:
		return newestBelow(name)
	}

	return nil, unknown(out, fmt.Sprintf("no run or file %q", name))
}

// FindRun returns the run below out with a RUN-ID, or its K-th launch for RUN-ID@K, without what is in some files.
func FindRun(out, name string, without ...string) (*Found, error) {
	found, err := named(out, name, without)
	if err == nil && found == nil {
		err = unknown(out, fmt.Sprintf("no run %q", name))
	}
	return found, err
}

// named is FindRun, but nil for a run that is not there.
func named(out, name string, without []string) (*Found, error) {
	id, nth, picked := strings.Cut(name, "@")
	if scheduler.CheckRunID(id) != nil {
		return nil, nil
	}
	k := 0
	if picked {
		if k, picked = count(nth); !picked || k == 0 {
			return nil, nil
		}
	}

	r, errRead := atWithout(filepath.Join(out, id), without)
	switch {
	case errRead != nil || r == nil: // it is not ours to read, or has no recordings
		return nil, nil
	case k > len(r.Launches):
		return nil, fmt.Errorf("no launch %s: run %s has %s", name, id, text.Count(len(r.Launches), "launch", "launches"))
	}

	return newFound(r, k), nil
}

// newest finds @latest and @-K.
func newest(out, name string) (*Found, error) {
	back := 1
	if name != Latest {
		digits, ok := strings.CutPrefix(name, "@-")
		k, known := count(digits)
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
		return nil, noRuns(out)
	case back > len(launches):
		return nil, unknown(out, "no run @-"+strconv.Itoa(back))
	}

	l := launches[back-1]
	i := slices.IndexFunc(runs, func(r Run) bool { return r.Dir == l.Dir })

	return newFound(&runs[i], l.Nth), nil
}

// newestBelow finds the newest run anywhere below a directory.
func newestBelow(dir string) (*Found, error) {
	runs, err := Below(dir)
	switch {
	case err != nil:
		return nil, err
	case len(runs) == 0:
		return nil, noRuns(dir)
	}
	return newFound(&runs[0], 0), nil
}

func noRuns(dir string) error {
	return fmt.Errorf("no report under %s: record one with perfagent run, or name a report", text.Printable(dir))
}

// unknown returns an error that says which runs there are.
func unknown(out, what string) error {
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
