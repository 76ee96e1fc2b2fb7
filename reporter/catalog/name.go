package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// A Found is what a name stands for: a file, or a run.
type Found struct {
	File string // "" if it is a run
	Run  *Run   // nil if it is a file
}

// Name returns a name for files that are made of it: the RUN-ID, or the name of a file that does not say.
func (f *Found) Name() string {
	if f.Run != nil {
		return f.Run.Name
	}
	if run, err := reportfile.ReadRun(f.File); err == nil && scheduler.CheckRunID(run.ID) == nil {
		return run.ID
	}
	base := filepath.Base(f.File)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// String returns the file, or the RUN-ID.
func (f *Found) String() string {
	if f.Run != nil {
		return f.Run.Name
	}
	return f.File
}

// Paths returns the files to read.
func (f *Found) Paths() []string {
	if f.Run != nil {
		return f.Run.Paths()
	}
	return []string{f.File}
}

// Find returns what a name stands for: a file or a directory with recordings, else a run below out: its
// RUN-ID, @latest, or @-K for the K-th newest. A directory that has no recordings itself stands for the newest
// run below it. Errors name what there is instead.
func Find(out, name string) (*Found, error) {
	if strings.HasPrefix(name, "@") {
		return newest(out, name)
	}

	st, err := os.Stat(name)
	switch {
	case err == nil && !st.IsDir():
		return &Found{File: name}, nil
	case err == nil:
		if r, err := runAt(name); err != nil || len(r.Nodes) > 0 {
			return &Found{Run: &r}, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}

	if scheduler.CheckRunID(name) == nil {
		if r, err := runAt(filepath.Join(out, name)); err == nil && len(r.Nodes) > 0 {
			return &Found{Run: &r}, nil
		}
	}
	if err == nil {
		return newestBelow(name)
	}

	return nil, unknown(out, fmt.Sprintf("no run or file %q", name))
}

// newest finds @latest and @-K.
func newest(out, name string) (*Found, error) {
	back := 1
	if name != Latest {
		digits, ok := strings.CutPrefix(name, "@-")
		k, known := count(digits)
		if !ok || !known || k == 0 {
			return nil, fmt.Errorf("%q is not %s or @-K, the K-th newest run", name, Latest)
		}
		back = k
	}

	runs, err := List(out)
	switch {
	case err != nil:
		return nil, err
	case len(runs) == 0:
		return nil, noRuns(out)
	case back > len(runs):
		return nil, unknown(out, "no run @-"+strconv.Itoa(back))
	}

	return &Found{Run: &runs[back-1]}, nil
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
	return &Found{Run: &runs[0]}, nil
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
