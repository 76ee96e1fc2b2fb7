package catalog

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// The bounds of the search for earlier runs.
const (
	maxEarlier      = 5  // maximum number of runs in the summary
	maxEarlierHeads = 20 // maximum number of reports to read
)

// Earlier returns the usage of the newest successful runs of command below out on a node. A run is successful if its
// exit code is 0. node is the name of the node's report without its extension. Earlier returns nil if there are no such
// runs, or if it could not read them before the deadline: the end of a job must not wait for a slow directory.
func Earlier(out, node string, command []string, deadline time.Time) *reporter.Earlier {
	var heads []*reporter.Head
	for _, path := range newestReports(out, node, deadline) {
		if head, err := reportfile.ReadHead(path); err == nil && isComparable(head, command) {
			heads = append(heads, head)
		}
		if time.Now().After(deadline) {
			return nil
		}
		if len(heads) == maxEarlier {
			break
		}
	}
	return reporter.NewEarlier(heads)
}

// isComparable reports whether h is the head of a complete run of command with exit code 0.
func isComparable(h *reporter.Head, command []string) bool {
	run := &h.Run
	return run.ExitCode != nil && *run.ExitCode == 0 && run.Incomplete == "" && run.WallSeconds > 0 &&
		slices.Equal(run.Command, command)
}

// newestReports returns the paths of the newest reports of a node below out, the newest run first. It sorts runs by the
// modification times of their directories. It returns nil if the deadline passes before all directories are listed.
func newestReports(out, node string, deadline time.Time) []string {
	entries, err := os.ReadDir(out)
	if err != nil {
		return nil
	}
	var dirs []fs.FileInfo
	for _, e := range entries {
		if time.Now().After(deadline) {
			return nil
		}
		if info, err := e.Info(); err == nil && info.IsDir() {
			dirs = append(dirs, info)
		}
	}
	slices.SortFunc(dirs, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(b.Name(), a.Name()))
	})

	var paths []string
	for _, dir := range dirs[:min(len(dirs), maxEarlierHeads)] {
		if time.Now().After(deadline) || len(paths) >= maxEarlierHeads {
			break
		}
		paths = append(paths, reportsOf(filepath.Join(out, dir.Name()), node)...)
	}
	return paths[:min(len(paths), maxEarlierHeads)]
}

// reportsOf returns the paths of the reports of a node in dir, the newest launch first.
func reportsOf(dir, node string) []string {
	want, _ := ParseFileName(node + reportExt)
	entries, _ := os.ReadDir(dir) // treat an unreadable directory as empty
	type report struct {
		path string
		nth  int
	}
	var reports []report
	for _, e := range entries {
		name, ok := ParseFileName(e.Name())
		want.Nth = name.Nth
		if ok && name == want {
			reports = append(reports, report{filepath.Join(dir, e.Name()), name.Nth})
		}
	}
	slices.SortFunc(reports, func(a, b report) int { return b.nth - a.nth })

	paths := make([]string, len(reports))
	for i, r := range reports {
		paths[i] = r.path
	}
	return paths
}
