package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// mustExit runs a prepared process, which must exit with the given code.
func mustExit(t testing.TB, code int, cmd *exec.Cmd) clitest.Outcome {
	t.Helper()
	o := clitest.RunCommand(t, cmd)
	o.Want(t, code)
	return o
}

// mustRun runs perfagent, which must exit with the given code.
func mustRun(t testing.TB, code int, args ...string) clitest.Outcome {
	t.Helper()
	return mustExit(t, code, clitest.Perfagent(t, args...))
}

// mustEnd waits for a started process, which must exit with the given code.
func mustEnd(p *clitest.Process, code int) clitest.Outcome {
	p.T.Helper()
	o, _ := p.End()
	o.Want(p.T, code)
	return o
}

// untilLines waits until the only file that pattern matches has more than n lines, and returns its path.
func untilLines(t testing.TB, pattern string, n int) (path string) {
	t.Helper()
	clitest.WaitUntil(t, fmt.Sprintf("%s has more than %d lines", pattern, n), func() bool {
		paths, _ := filepath.Glob(pattern)
		if len(paths) != 1 {
			return false
		}
		path = paths[0]
		return strings.Count(clitest.Read(t, path), "\n") > n
	})
	return path
}

// encoded returns the text of a report.
func encoded(t testing.TB, r *reporter.Report) []byte {
	t.Helper()
	data, err := reporter.Encode(r)
	check.Must(t, err)
	return data
}

// If OUT is not writable, the report is written to the temporary directory. One line has the reason and the path.
func TestRun_WritesReportElsewhereIfDirectoryIsUnwritable(t *testing.T) {
	t.Parallel()
	file := func(t *testing.T, dir string) string {
		return clitest.Write(t, filepath.Join(dir, "file"), "mine", 0o644)
	}
	for _, c := range []struct {
		name string
		out  func(t *testing.T, dir string) string
	}{
		{"a file", file},
		{"below a file", func(t *testing.T, dir string) string { return filepath.Join(file(t, dir), "deep/er") }},
		{"unwritable even for root", func(*testing.T, string) string { return "/proc/nowhere" }},
		{"name too long", func(*testing.T, string) string { return strings.Repeat("x", 300) }},
		{"read-only file system", func(t *testing.T, _ string) string { return clitest.ReadOnly(t) }},
		{"loop of symlinks", func(t *testing.T, dir string) string {
			check.Must(t, os.Symlink("loop", filepath.Join(dir, "loop")))
			return "loop"
		}},
	} {
		for temporary, tmp := range map[string]string{"writable": t.TempDir(), "unwritable": "/proc/nowhere"} {
			t.Run(c.name+"/"+temporary+" temporary directory", func(t *testing.T) {
				t.Parallel()
				cmd := clitest.Perfagent(t, "run", "--out", "", "--summary", "never", "--", "sh", "-c", "echo job; exit 7")
				cmd.Args[3] = c.out(t, cmd.Dir)
				o := mustExit(t, 7, with(cmd, "TMPDIR="+tmp))
				if o.Out != "job\n" {
					t.Errorf("stdout %q, want \"job\\n\"", o.Out)
				}
				if text, err := os.ReadFile(filepath.Join(cmd.Dir, "file")); err == nil && string(text) != "mine" {
					t.Errorf("the file in the way of OUT has %q, want \"mine\"", text)
				}
				if tmp == "/proc/nowhere" {
					o.WantLine(t, "no report file", tmp)
					return
				}
				r, path := reportertest.ReadSingle(t, tmp)
				o.WantLine(t, path)
				if reportertest.Reasons(r.Nodes["0"], "report") == "" {
					t.Errorf("missing %v, want an entry for the report, with the reason for its path", r.Nodes["0"].Missing)
				}
			})
		}
	}
}

// The summary is shown even if no report can be written.
func TestSummary_IsShownWithoutReport(t *testing.T) {
	o := insideWith(t, []string{"TMPDIR=/proc/nowhere"}, "run", "--summary", "always", "--out", "/proc/nowhere", "--",
		"sh", "-c", "exit 7")
	if o.Want(t, 7); !strings.Contains(o.Err, "exit 7") || !strings.Contains(o.Err, "no report file") {
		t.Errorf("stderr %q lacks \"exit 7\" or \"no report file\"", o.Err)
	}
}

// A sidecar that cannot write a report fails at the start.
func TestSidecar_FailsIfReportCannotBeWritten(t *testing.T) {
	o := insideWith(t, []string{"TMPDIR=/proc/nowhere"}, "sidecar", "--out", "/proc/nowhere")
	o.Want(t, 1)
	clitest.WantLines(t, o.Err, 1, 2)
}

func TestRun_WritesReportElsewhereIfDiskIsFullAtStart(t *testing.T) {
	t.Parallel()
	out, tmp := clitest.Mount(t, "size=1m", 0), t.TempDir()
	clitest.Fill(t, out)
	cmd := clitest.Perfagent(t, "run", "--summary", "never", "--out", out, "--", "sh", "-c", "exit 7")
	o := mustExit(t, 7, with(cmd, "TMPDIR="+tmp))
	_, path := reportertest.ReadSingle(t, tmp)
	o.WantLine(t, "create ", path, "no space", "--out names another place")
	if left, _ := os.ReadDir(out); len(left) != 1 {
		t.Errorf("files on the full disk: %v, want only the filler", left)
	}
}

// fillingUp starts cmd, a perfagent run without its job, and fills the disk of its output after a second. The temporary
// directory is on the same disk if tmpFull is set. fillingUp returns the outcome, the temporary directory and the
// journal.
func fillingUp(t *testing.T, tmpFull bool, cmd *exec.Cmd) (o clitest.Outcome, tmp, journal string) {
	t.Helper()
	out, tmp := clitest.Mount(t, "size=1m", 0), t.TempDir()
	if tmpFull {
		tmp = out
	}
	cmd.Args = append(cmd.Args, "--interval", "10ms", "--summary", "never", "--out", out, "--",
		"sh", "-c", "echo ready; read x; sleep 2; exit 7")
	stdin, end := clitest.Pipe(t)
	cmd.Stdin = stdin
	l := clitest.StartProcess(t, with(cmd, "TMPDIR="+tmp))
	l.Expect("ready")
	journal = untilLines(t, filepath.Join(out, "*", "node-0.jsonl"), 120)
	clitest.Fill(t, out)
	end.Close()
	return mustEnd(l, 7), tmp, journal
}

// If the disk fills up during the job, the report goes to the temporary directory; if that is also full, the journal
// remains.
func TestRun_KeepsReportOrJournalIfDiskFillsUp(t *testing.T) {
	t.Parallel()
	for _, tmpFull := range []bool{false, true} {
		t.Run(fmt.Sprint("temporary directory full: ", tmpFull), func(t *testing.T) {
			t.Parallel()
			o, tmp, journal := fillingUp(t, tmpFull, clitest.Perfagent(t, "run"))
			if tmpFull {
				o.WantLine(t, "no space", journal)
				o = call("show", journal)
				if o.Want(t, 0); !strings.Contains(o.Out, "Still running or lost") {
					t.Errorf("show lacks \"Still running or lost\": %q", o.Out)
				}
				return
			}
			report, path := reportertest.ReadSingle(t, tmp)
			o.WantLine(t, "no space", path)
			n := report.Nodes["0"]
			if n.Sampling.Samples < 10 || n.Sampling.Samples+n.Sampling.MissedTicks < 100 || reportertest.Reasons(n, "journal") == "" {
				t.Errorf("sampling %+v, want at least 10 samples and 100 ticks; missing %v, want journal", n.Sampling, n.Missing)
			}
		})
	}
}

func TestRun_NestedRunHasSeparateReport(t *testing.T) {
	t.Parallel()
	o := mustExit(t, 5, clitest.Script(t, "sh", `$P run -- $P run -- sh -c 'exit 5'`))
	out := filepath.Join(o.Dir, "perfagent-out")
	paths := reportertest.InDir(t, out)
	if len(paths) != 2 || filepath.Base(paths[0]) != "node-0.2.json" || filepath.Base(paths[1]) != "node-0.json" ||
		filepath.Dir(paths[0]) != filepath.Dir(paths[1]) {
		t.Fatalf("reports %q, want node-0.2.json and node-0.json of one run", paths)
	}
	inner, outer := reportertest.ReadFile(t, filepath.Join(out, paths[0])), reportertest.ReadFile(t, filepath.Join(out, paths[1]))
	if inner.Run.Command[0] != "sh" || outer.Run.Command[0] == "sh" || *inner.Run.ExitCode != 5 || *outer.Run.ExitCode != 5 || inner.Run.ID != outer.Run.ID {
		t.Errorf("inner run %+v, outer %+v; want the same ID and exit code 5, sh inside", inner.Run, outer.Run)
	}
}

// Concurrent agents of one run and node in one directory are ranks of one node, and its report has all of them.
func TestRun_ConcurrentAgentsAreRanksOfOneNode(t *testing.T) {
	t.Parallel()
	const agents = 6
	dir := t.TempDir()
	r, w := clitest.Pipe(t)
	var running []*clitest.Process
	for range agents {
		cmd := clitest.Perfagent(t, "run", "--out", dir, "--run-id", "same", "--interval", "20ms", "--", "sh", "-c", "echo ready $$; read x; exit 3")
		cmd.Stdin = r
		running = append(running, clitest.StartProcess(t, cmd))
	}
	var got, want []int
	for _, l := range running {
		want = append(want, l.PID("ready"))
	}
	w.Close()
	for _, l := range running {
		mustEnd(l, 3)
	}
	report, path := reportertest.ReadSingle(t, dir)
	for _, rank := range report.Nodes["0"].Ranks {
		got = append(got, rank.PID)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the ranks in %s are the processes %v, want %v", path, got, want)
	}
}

// An existing report is never replaced.
func TestRun_NeverOverwritesReport(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"node-0.json", "node-0.2.json", "node-0.3.json"} {
		insideIn(t, dir, "run", "--run-id", "r", "--", "sh", "-c", fmt.Sprintf("exit %d", i+1)).Want(t, i+1)
		r := reportertest.ReadFile(t, filepath.Join(dir, "perfagent-out/r", name))
		if *r.Run.ExitCode != i+1 {
			t.Errorf("%s: exit code %d, want %d", name, *r.Run.ExitCode, i+1)
		}
	}
}

// The permissions of files follow the umask.
func TestRun_ReportFollowsUmask(t *testing.T) {
	t.Parallel()
	o := mustExit(t, 0, clitest.Script(t, "sh", `umask 077; $P run --run-id r -- true; cd perfagent-out/r; stat -c %a . node-0.json`))
	if o.Out != "700\n600\n" {
		t.Errorf("modes %q, want 700 for the directory, 600 for the report", o.Out)
	}
}
