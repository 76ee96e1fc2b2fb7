//go:build e2e

package campaign

import (
	"flag"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

const (
	// beside is the CPU time that a job may use before its first line and after its last one.
	beside = 60 * time.Millisecond
	// lastLine is the number of blocks that the last line of a job may take.
	lastLine = 64
	// rounding is the tolerance between accounts of the kernel.
	rounding = time.Millisecond
)

// wantReport checks that a report is complete, valid and consistent with the job's story. killed means that the job was
// killed.
func wantReport(t testing.TB, path string, s story, code int, killed bool) *reporter.Report {
	t.Helper()
	r := reportertest.ReadFile(t, path)
	n := r.Nodes["0"]
	if n == nil || n.Job == nil || r.Run.ExitCode == nil || r.Run.Incomplete != "" {
		t.Errorf("%s: run %+v, want the complete report of a job that has ended", path, r.Run)
		return r
	}
	if killed {
		code = 128 + 9
	}
	if *r.Run.ExitCode != code || *n.Job.ExitCode != code || (n.Job.Signal == "SIGKILL") != killed {
		t.Errorf("%s: exit code %d, signal %q; want %d", path, *r.Run.ExitCode, n.Job.Signal, code)
	}
	wantJob(t, n.Job, s, path)
	return r
}

// wantJob checks the account of a job that has begun, and that ended by itself unless its story has no end.
func wantJob(t testing.TB, got *reporter.Job, s story, path string) {
	t.Helper()
	if s.begun == 0 {
		return // killed before its first output
	}
	if got.PID != s.pid || got.Start.After(s.begin.Add(rounding)) {
		t.Errorf("%s: process %d started at %v, want %d at %v", path, got.PID, got.Start, s.pid, s.begin)
	}
	if s.ended == 0 {
		return
	}
	if got.End.Before(s.end.Add(-rounding)) {
		t.Errorf("%s: the job ended at %v, want %v", path, got.End, s.end)
	}
	used := time.Duration((got.UserSeconds + got.SystemSeconds) * float64(time.Second))
	if used < s.cpu-rounding || used > s.cpu+beside {
		t.Errorf("%s: main process used %v of CPU time, want %v, at most %v more", path, used, s.cpu, beside)
	}
	if all := time.Duration(got.CPUSeconds * float64(time.Second)); all < s.cpu-rounding || all > s.cpu+beside {
		t.Errorf("%s: job used %v of CPU time, want %v, at most %v more", path, all, s.cpu, beside)
	}
	if wrote := int64(got.BlockWriteMB * (1 << 20) / 512); wrote < s.blocks || wrote > s.blocks+lastLine {
		t.Errorf("%s: %d blocks written, want %d, at most %d more", path, wrote, s.blocks, lastLine)
	}
}

// reportsSaid returns the reports that stderr names, itself or by the page, except those that it could not write.
func reportsSaid(dir, stderr string) (paths []string) {
	for _, word := range regexp.MustCompile(`\S+/node-0\.(?:json|html)\b`).FindAllString(stderr, -1) {
		path := strings.TrimSuffix(strings.TrimSuffix(word, ".json"), ".html") + ".json"
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if clitest.Exists(path) || !strings.Contains(stderr, "write report "+word) {
			paths = append(paths, path)
		}
	}
	return paths
}

// writeTable writes a table into the documentation, unless only some trials were run.
func writeTable(t *testing.T, name, text string) {
	t.Helper()
	if strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		return
	}
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	path := testenv.Repository(t, "docs/dev/testing.md")
	before, rest, found := strings.Cut(clitest.Read(t, path), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no part for the table %s", path, name)
	}
	clitest.Write(t, path, before+begin+text+end+after, 0o644)
}
