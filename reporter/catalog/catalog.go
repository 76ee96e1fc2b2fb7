package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/perfagent/perfagent/reporter/reportfile"
)

// A Run is a directory with recordings. Its name is its RUN-ID.
type Run struct {
	Name  string
	Dir   string
	Start time.Time // the earliest of its nodes; of a file that does not say, when it was written

	// Nodes are the newest recordings of each node, by node; Earlier are the others.
	Nodes   []Recording
	Earlier []Recording
}

// Paths returns the files to read: one for each node.
func (r *Run) Paths() []string {
	out := make([]string, len(r.Nodes))
	for i, n := range r.Nodes {
		out[i] = n.Path()
	}
	return out
}

// List returns the runs directly below a directory, the one that started last first; a directory that has
// recordings itself is one of them. A directory that is not there has none.
func List(out string) ([]Run, error) {
	entries, err := os.ReadDir(out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for runs: %w", err)
	}

	dirs := []string{out}
	for _, e := range entries {
		dirs = append(dirs, filepath.Join(out, e.Name()))
	}

	var runs []Run
	for _, dir := range dirs {
		if st, err := os.Stat(dir); err != nil || !st.IsDir() { // a link to a directory is one
			continue
		}
		if r, err := runAt(dir); err == nil && len(r.Nodes) > 0 { // else it is not ours to read
			runs = append(runs, r)
		}
	}

	sortRuns(runs)

	return runs, nil
}

// sortRuns sorts the run that started last first.
func sortRuns(runs []Run) {
	slices.SortFunc(runs, func(a, b Run) int {
		if c := b.Start.Compare(a.Start); c != 0 {
			return c
		}
		return cmp.Compare(b.Name, a.Name)
	})
}

// Below returns all runs at a directory or anywhere below it, the one that started last first. It leaves
// out what it may not read.
func Below(dir string) ([]Run, error) {
	var runs []Run
	// The separator makes WalkDir follow a directory that is a symbolic link.
	err := filepath.WalkDir(dir+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && filepath.Clean(path) == filepath.Clean(dir):
			return err
		case err != nil || !d.IsDir():
			return nil
		}
		if r, err := runAt(filepath.Clean(path)); err == nil && len(r.Nodes) > 0 {
			runs = append(runs, r)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for runs: %w", err)
	}

	sortRuns(runs)

	return runs, nil
}

// runAt returns the run in a directory; without recordings it has no nodes.
func runAt(dir string) (Run, error) {
	all, err := recordingsIn(dir)
	if err != nil {
		return Run{}, err
	}

	r := Run{Name: NameOf(dir), Dir: dir}
	for i, recording := range all {
		if i+1 < len(all) && all[i+1].Node == recording.Node {
			r.Earlier = append(r.Earlier, recording)
			continue
		}
		r.Nodes = append(r.Nodes, recording)
		if start := startOf(recording); r.Start.IsZero() || start.Before(r.Start) {
			r.Start = start
		}
	}

	return r, nil
}

// NameOf returns the name of the run in a directory.
func NameOf(dir string) string {
	if whole, err := filepath.Abs(dir); err == nil { // . has a name, too
		dir = whole
	}
	return filepath.Base(dir)
}

// startOf returns when a recording began. It reads the beginning of the file only.
func startOf(r Recording) time.Time {
	if run, err := reportfile.ReadRun(r.Path()); err == nil && !run.Start.IsZero() {
		return run.Start.Time
	}
	if st, err := os.Stat(r.Path()); err == nil {
		return st.ModTime()
	}

	return time.Time{}
}
