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
)

// A Run is a directory with recordings. Its name is its RUN-ID.
type Run struct {
	Name  string
	Dir   string
	Start time.Time // start of the last launch

	Launches []Launch // sorted by start; there is at least one

	// Unreadable holds the journals without a readable line: the perfagent was killed, or the host was lost, before the
	// first line was on disk. These journals are in no launch. Unreadable is nil if the run has no other recordings.
	Unreadable []*Entry

	entries []*Entry
}

// Latest returns the launch that started last.
func (r *Run) Latest() *Launch { return &r.Launches[len(r.Launches)-1] }

// List returns the runs directly below out, newest start first. If out itself has recordings, it is also a run. If out
// does not exist, List returns no runs and no error.
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
		if st, err := os.Stat(dir); err != nil || !st.IsDir() { // Stat follows a link to a directory
			continue
		}
		if r, err := ReadRun(dir); err == nil && r != nil { // skip unreadable directories
			runs = append(runs, *r)
		}
	}

	sortRuns(runs)

	return runs, nil
}

// sortRuns sorts runs by start, newest first.
func sortRuns(runs []Run) {
	slices.SortFunc(runs, func(a, b Run) int {
		return cmp.Or(b.Start.Compare(a.Start), cmp.Compare(b.Name, a.Name))
	})
}

// Launches returns the launches of runs, newest first.
func Launches(runs []Run) []*Launch {
	var out []*Launch
	for i := range runs {
		for j := range slices.Backward(runs[i].Launches) {
			out = append(out, &runs[i].Launches[j])
		}
	}
	slices.SortStableFunc(out, func(a, b *Launch) int {
		return cmp.Or(b.order.Compare(a.order), cmp.Compare(b.RunID, a.RunID))
	})

	return out
}

// ListRecursive returns all runs in dir and anywhere below it, newest start first. It omits unreadable directories.
func ListRecursive(dir string) ([]Run, error) {
	var runs []Run
	// The separator makes WalkDir follow a directory that is a symbolic link.
	err := filepath.WalkDir(dir+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && filepath.Clean(path) == filepath.Clean(dir):
			return err
		case err != nil || !d.IsDir():
			return nil
		}
		if r, err := ReadRun(filepath.Clean(path)); err == nil && r != nil {
			runs = append(runs, *r)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for runs: %w", err)
	}

	sortRuns(runs)

	return runs, nil
}

// ReadRun returns the run in dir; nil if there are no recordings in dir.
func ReadRun(dir string) (*Run, error) { return readRunExcept(dir, nil) }

// readRunExcept is like ReadRun, but ignores the recordings in the given files.
func readRunExcept(dir string, files []string) (*Run, error) {
	all, err := readEntries(dir)
	all = slices.DeleteFunc(all, func(r *Entry) bool { return slices.Contains(files, r.Path()) })
	if err != nil || len(all) == 0 {
		return nil, err
	}

	r := &Run{Name: NameOf(dir), Dir: dir, entries: all}
	readable := slices.DeleteFunc(slices.Clone(all), (*Entry).isUnreadable)
	if len(readable) == 0 {
		readable = all
	} else {
		r.Unreadable = slices.DeleteFunc(slices.Clone(all), func(one *Entry) bool { return !one.isUnreadable() })
	}
	launches := launchesOf(readable)
	for i, l := range launches {
		l.resolveNodes()
		assignIndexes(l.Nodes, nil)
		l.RunID, l.Dir, l.Nth, l.Total = r.Name, dir, i+1, len(launches)
		for i := range l.Nodes {
			l.Nodes[i].dir = dir
		}
		r.Launches = append(r.Launches, *l)
	}
	r.Start = r.Latest().Start

	return r, nil
}

// NameOf returns the name of the run in a directory.
func NameOf(dir string) string {
	if whole, err := filepath.Abs(dir); err == nil { // even "." has a name
		dir = whole
	}
	return filepath.Base(dir)
}
