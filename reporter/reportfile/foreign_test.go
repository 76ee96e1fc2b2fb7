package reportfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
)

// The error for a file that is not a report explains the problem. For a page, it names the report of the page.
func TestRead_ExplainsFilesThatAreNotReports(t *testing.T) {
	dir := t.TempDir()
	check.Must(t, os.WriteFile(filepath.Join(dir, "node-0.json"), []byte("{}"), 0o600))
	for name, c := range map[string]struct{ words, want string }{
		"node-0.html": {"<!doctype html>", "is the page; the report is node-0.json in the same directory"},
		"alone.HTML":  {"<html>", "is a page, not a report"},
		"notes.txt":   {"to do:\n{", "is not a report of perfagent or perf.py"},
		"list.json":   {"[1]", "is not a report of perfagent or perf.py"},
	} {
		path := filepath.Join(dir, name)
		check.Must(t, os.WriteFile(path, []byte(c.words), 0o600))
		if err := errorOf(t, path); err.Error() != path+" "+c.want {
			t.Errorf("%s: error %v, want %s", name, err, c.want)
		}
	}
}
