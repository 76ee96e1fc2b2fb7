package reportertest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/reporter"
)

// ReadFile reads the report at path. It fails the test if the report is incomplete or does not match the schema.
func ReadFile(t testing.TB, path string) *reporter.Report {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	if !json.Valid(data) || !bytes.HasSuffix(data, []byte("}\n")) {
		t.Fatalf("%s is not complete JSON:\n%s", path, data)
	}

	Validate(t, data)
	r := new(reporter.Report)
	if err := json.Unmarshal(data, r); err != nil {
		t.Fatal(err)
	}

	for name, n := range r.Nodes { // no node of a perfagent report is null
		for _, m := range n.Missing {
			if m.Code == "" {
				t.Errorf("%s: node %s: missing %+v has no code", path, name, m)
			}
		}
	}

	WantMeansInside(t, r)
	return r
}

// InDir lists the files of all runs in a directory of reports, except the pages of reports. Paths are sorted and
// relative to the directory.
func InDir(t testing.TB, out string) []string {
	t.Helper()
	var paths []string
	runs, _ := os.ReadDir(out) // treat a missing directory as empty
	for _, r := range runs {
		if !r.IsDir() {
			continue
		}
		files, err := os.ReadDir(filepath.Join(out, r.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			name := filepath.Join(r.Name(), f.Name())
			if report, isPage := strings.CutSuffix(name, ".html"); isPage &&
				isFile(filepath.Join(out, report+".json")) {
				continue // skip the page of a listed report
			}
			paths = append(paths, name)
		}
	}

	return paths
}

// ReadSingle reads the only report of a directory of reports, which must contain nothing else.
func ReadSingle(t testing.TB, out string) (*reporter.Report, string) {
	t.Helper()
	paths := InDir(t, out)
	if len(paths) != 1 || filepath.Ext(paths[0]) != ".json" {
		t.Fatalf("%s contains %q, want one report", out, paths)
	}
	path := filepath.Join(out, paths[0])
	return ReadFile(t, path), path
}

func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}
