package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/reporter/reportfile"
)

// ownFiles returns a function that reports whether name is the name of a file that perfagent wrote. If other programs
// may use the same name, the function returns true only if the run has a recording with that name.
func (r *Run) ownFiles() func(name string) bool {
	// As a package variable, the expression would be compiled at each start of the program.
	temporary := regexp.MustCompile(`^(?:\.(.+)\.\d+\.\d+|(.+\.jsonl))\.tmp$`)
	kinds := []string{reportExt, journalExt, pageExt, marksExt}

	return func(name string) bool {
		if m := temporary.FindStringSubmatch(name); m != nil {
			name = m[1] + m[2]
		}
		ext := filepath.Ext(name)
		base := strings.TrimSuffix(name, ext)
		n, ok := parseBase(base, ext)
		if !ok || !slices.Contains(kinds, ext) {
			return false
		}
		return n.IsUnambiguous() || slices.ContainsFunc(r.entries, func(one *Entry) bool {
			return filepath.Base(one.base()) == base
		})
	}
}

// HasPendingPush reports whether a push of any recording of the run is pending, including replaced recordings. A push
// of an unreadable report is considered pending.
func (r *Run) HasPendingPush() bool {
	for _, recording := range r.entries {
		report, err := reportfile.ReadWithoutSeries(recording.Path(), 0)
		if err != nil {
			return true
		}
		for _, n := range report.Nodes {
			if n.Push.Pending() {
				return true
			}
		}
	}

	return false
}

// Remove removes the files of the run that perfagent wrote, including temporary files, and then the directory if it is
// empty. If a recording has started since r was found, Remove removes nothing and returns an error.
func (r *Run) Remove() error {
	now, err := readEntries(r.Dir)
	if err != nil {
		return err
	}
	for _, n := range now {
		known := func(old *Entry) bool { return old.base() == n.base() }
		if !slices.ContainsFunc(r.entries, known) {
			return fmt.Errorf("remove run %s: %s was recorded meanwhile; nothing is removed", r.Name, n.Path())
		}
	}

	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		return fmt.Errorf("look for the files of run %s: %w", r.Name, err)
	}

	isOwn := r.ownFiles()
	var errs []error
	for _, e := range entries {
		if e.IsDir() || !isOwn(e.Name()) {
			continue
		}
		if err := os.Remove(filepath.Join(r.Dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove run %s: %w", r.Name, err))
		}
	}
	// Keep a directory with other files. os.Remove alone would remove a link to such a directory.
	if left, err := os.ReadDir(r.Dir); err == nil && len(left) == 0 {
		_ = os.Remove(r.Dir)
	}

	return errors.Join(errs...)
}
