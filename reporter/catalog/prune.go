package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/perfagent/perfagent/reporter"
)

// Files returns the files of the run that perfagent wrote, temporary ones included.
func (r *Run) Files() ([]string, error) {
	// Compiled here, because a package variable would be made at each start of the program.
	ownFile := regexp.MustCompile(`^(\.?node-\d+(\.\d+)?\.(json|jsonl|html|marks)(\.\d+\.\d+\.tmp)?)$`)
	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		return nil, fmt.Errorf("look for the files of run %s: %w", r.Name, err)
	}

	var out []string
	for _, e := range entries {
		if ownFile.MatchString(e.Name()) && !e.IsDir() {
			out = append(out, filepath.Join(r.Dir, e.Name()))
		}
	}

	return out, nil
}

// AnyPending reports whether a push of any recording of the run is pending, earlier ones included. A report that
// cannot be read may be pending.
func (r *Run) AnyPending() bool {
	for _, n := range slices.Concat(r.Nodes, r.Earlier) {
		report, err := numbersOf(n.Path())
		if err != nil {
			return true
		}
		for _, node := range report.Nodes {
			if node.Push != nil && node.Push.MLflow.State == reporter.PushPending {
				return true
			}
		}
	}

	return false
}

// Remove removes the files of the run that perfagent wrote, and the directory if it is empty then. It removes
// nothing if a recording has begun since r was found.
func (r *Run) Remove() error {
	now, err := recordingsIn(r.Dir)
	if err != nil {
		return err
	}
	for _, n := range now {
		known := func(old Recording) bool { return old.Node == n.Node && old.Nth == n.Nth }
		if !slices.ContainsFunc(slices.Concat(r.Nodes, r.Earlier), known) {
			return fmt.Errorf("remove run %s: %s was recorded meanwhile; nothing is removed", r.Name, n.Path())
		}
	}

	files, err := r.Files()
	if err != nil {
		return err
	}

	var errs []error
	for _, path := range files {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove run %s: %w", r.Name, err))
		}
	}
	// It stays if somebody else's files are in it. Of a link to such a directory the link would not.
	if left, err := os.ReadDir(r.Dir); err == nil && len(left) == 0 {
		_ = os.Remove(r.Dir)
	}

	return errors.Join(errs...)
}
