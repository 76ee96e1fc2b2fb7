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
	// beside is the maximum CPU time that a job uses before its first line and after its last line.
	beside = 150 * time.Millisecond
	// lastLine is the maximum number of blocks that the last line of a job takes.
	lastLine = 64
	// rounding is the tolerance between different accounts of the kernel.
	rounding = time.Millisecond
)

// wantReport checks that a report is complete, valid and consistent with the job's story. If killed is set, the job
// must have been killed by SIGKILL.
func wantReport(t testing.TB, path string, s story, code int, killed bool) *reporter.Report {
	t.Helper()
	r := reportertest.ReadFile(t, path)
	n := r.Nodes["0"]
	if n == nil || n.Job == nil || r.Run.ExitCode == nil || r.Run.Incomplete != "" {
		t.Errorf("%s: run %+v, want a complete run with an exit code", path, r.Run)
		return r
	}
	if killed {
		code = 128 + 9
	}
	if *r.Run.ExitCode != code || *n.Job.ExitCode != code || (n.Job.Signal == "SIGKILL") != killed {
		t.Errorf("%s: exit code %d, signal %q; want %d, SIGKILL %v", path, *r.Run.ExitCode, n.Job.Signal, code, killed)
	}
	wantJob(t, n.Job, s, path)
	return r
}

// wantJob compares the account of a job in a report with the job's story. The story may lack the beginning, or the end
// if the job was killed.
func wantJob(t testing.TB, got *reporter.Job, s story, path string) {
	t.Helper()
	if s.begun == 0 {
		return // the job was killed before its first output
	}
	if got.PID != s.pid || got.Start.After(s.begin.Add(rounding)) {
		t.Errorf("%s: process %d started at %v, want %d at %v", path, got.PID, got.Start, s.pid, s.begin)
	}
	if s.ended == 0 {
		return
	}
	if got.End.Before(s.end.Add(-rounding)) {
		t.Errorf("%s: the job ended at %v, want at least %v", path, got.End, s.end)
	}
	used := time.Duration((got.UserSeconds + got.SystemSeconds) * float64(time.Second))
	if used < s.cpu-rounding || used > s.cpu+beside {
		t.Errorf("%s: main process used %v of CPU time, want %v to %v", path, used, s.cpu, s.cpu+beside)
	}
	if all := time.Duration(got.CPUSeconds * float64(time.Second)); all < s.cpu-rounding || all > s.cpu+beside {
		t.Errorf("%s: job used %v of CPU time, want %v to %v", path, all, s.cpu, s.cpu+beside)
	}
	if wrote := int64(got.BlockWriteMB * (1 << 20) / 512); wrote < s.blocks || wrote > s.blocks+lastLine {
		t.Errorf("%s: %d blocks written, want %d to %d", path, wrote, s.blocks, s.blocks+lastLine)
	}
}

// reportsSaid returns the reports that stderr names, directly or by their pages. It omits reports that could not be
// written.
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

// writeTable writes a table into the documentation, unless only some of the trials were run.
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
		t.Fatalf("%s has no markers for the table %s", path, name)
	}
	clitest.Write(t, path, before+begin+text+end+after, 0o644)
}
