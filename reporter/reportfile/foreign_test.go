package reportfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/reporter"
)

// The error for a file that is not a report names that problem, and for a page also its report.
func TestRead_NamesTheProblemOfOtherFiles(t *testing.T) {
	dir := t.TempDir()
	for name, words := range map[string]string{
		"node-0.html": "<!doctype html>", "node-0.json": "{}", "alone.HTML": "<html>", "notes.txt": "to do:\n{", "list.json": "[1]",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(words), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	for name, want := range map[string]string{
		"node-0.html": "is the page; the report is node-0.json in the same directory",
		"alone.HTML":  "is a page, not a report",
		"notes.txt":   "is not a report of perfagent or perf.py",
		"list.json":   "is not a report of perfagent or perf.py",
	} {
		path := filepath.Join(dir, name)
		_, err := Read(path, 0)
		_, _, scanErr := scanned(t, path, 0, reporter.ColumnFilter{All: true})
		if err == nil || err.Error() != path+" "+want || scanErr == nil || scanErr.Error() != err.Error() {
			t.Errorf("%s: Read: error %v, Scan: error %v, want %s", strings.TrimPrefix(path, dir), err, scanErr, want)
		}
	}
}
