package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// If OUT is not writable, the report is written to the temporary directory. One line has the reason and the path.
func TestRun_WritesReportElsewhereIfDirectoryIsUnwritable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		out  func(t *testing.T, dir string) string
	}{
		{"a file", func(t *testing.T, dir string) string {
			return clitest.Write(t, filepath.Join(dir, "file"), "mine", 0o644)
		}},
		{"below a file", func(t *testing.T, dir string) string {
			return filepath.Join(clitest.Write(t, filepath.Join(dir, "file"), "mine", 0o644), "deep/er")
		}},
		{"unwritable even for root", func(*testing.T, string) string { return "/proc/nowhere" }},
		{"name too long", func(*testing.T, string) string { return strings.Repeat("x", 300) }},
		{"read-only file system", func(t *testing.T, _ string) string { return clitest.ReadOnly(t) }},
		{"loop of symlinks", func(t *testing.T, dir string) string {
			if err := os.Symlink("loop", filepath.Join(dir, "loop")); err != nil {
				t.Fatal(err)
			}
			return "loop"
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tmp := t.TempDir()
			cmd := clitest.Perfagent(t, "run", "--out", "", "--summary", "never", "--", "sh", "-c", "echo job; exit 7")
			cmd.Args[3] = c.out(t, cmd.Dir)
			cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
			o := clitest.RunCommand(t, cmd)
			o.Want(t, 7)
			if o.Out != "job\n" {
				t.Errorf("stdout %q, want \"job\\n\"", o.Out)
			}
			r, path := reportertest.ReadSingle(t, tmp)
			o.WantLine(t, path)
			if !slices.ContainsFunc(r.Nodes["0"].Missing, func(m reporter.Missing) bool { return m.What == "report" }) {
				t.Errorf("missing %v, want an entry for the report, with the reason for its path", r.Nodes["0"].Missing)
			}
			if text, err := os.ReadFile(filepath.Join(cmd.Dir, "file")); err == nil && string(text) != "mine" {
				t.Errorf("the file in the way of OUT has %q, want \"mine\"", text)
			}
		})
		t.Run(c.name+"/unwritable temporary directory", func(t *testing.T) {
			t.Parallel()
			cmd := clitest.Perfagent(t, "run", "--summary", "never", "--out", "", "--", "sh", "-c", "echo job; exit 7")
			cmd.Args[5] = c.out(t, cmd.Dir)
			cmd.Env = append(cmd.Env, "TMPDIR=/proc/nowhere")
			o := clitest.RunCommand(t, cmd)
			o.Want(t, 7)
			o.WantLine(t, "no report file", "/proc/nowhere")
			if o.Out != "job\n" {
				t.Errorf("stdout %q, want \"job\\n\"", o.Out)
			}
		})
	}
}

// The summary is shown even if no report can be written.
func TestSummary_IsShownWithoutReport(t *testing.T) {
	cmd := insideCommand(t, "run", "--summary", "always", "--out", "/proc/nowhere", "--", "sh", "-c", "exit 7")
	cmd.Env = append(cmd.Env, "TMPDIR=/proc/nowhere")
	o := cmd.perform(t)
	o.Want(t, 7)
	if !strings.Contains(o.Err, "exit 7") || !strings.Contains(o.Err, "no report file") {
		t.Errorf("stderr %q lacks \"exit 7\" or \"no report file\"", o.Err)
	}
}

// A sidecar that cannot write a report fails at the start.
func TestSidecar_FailsIfReportCannotBeWritten(t *testing.T) {
	cmd := insideCommand(t, "sidecar", "--out", "/proc/nowhere")
	cmd.Env = append(cmd.Env, "TMPDIR=/proc/nowhere")
	o := cmd.perform(t)
	o.Want(t, 1)
	clitest.WantLines(t, o.Err, 1, 2)
}

func TestRun_CreatesMissingDirectories(t *testing.T) {
	o := inside(t, "run", "--out", "a/b/c", "--run-id", "r", "--", "true")
	o.Want(t, 0)
	if _, path := reportertest.ReadSingle(t, filepath.Join(o.Dir, "a/b/c")); !strings.HasSuffix(path, "a/b/c/r/node-0.json") {
		t.Errorf("report at %s, want it in a/b/c/r/node-0.json", path)
	}
}

func TestRun_WritesReportElsewhereIfDiskIsFullAtStart(t *testing.T) {
	t.Parallel()
	out, tmp := clitest.Mount(t, "size=1m", 0), t.TempDir()
	clitest.Fill(t, out)
	cmd := clitest.Perfagent(t, "run", "--summary", "never", "--out", out, "--", "sh", "-c", "exit 7")
	cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
	o := clitest.RunCommand(t, cmd)
	o.Want(t, 7)
	_, path := reportertest.ReadSingle(t, tmp)
	o.WantLine(t, "create ", path, "no space", "--out names another place")
	if left, _ := os.ReadDir(out); len(left) != 1 {
		t.Errorf("files on the full disk: %v, want only the filler", left)
	}
}

// If the disk fills up during the job, the report goes to the temporary directory; if that is also full, the journal
// remains.
func TestRun_KeepsReportOrJournalIfDiskFillsUp(t *testing.T) {
	t.Parallel()
	for _, tmpFull := range []bool{false, true} {
		t.Run(fmt.Sprint("temporary directory full: ", tmpFull), func(t *testing.T) {
			t.Parallel()
			out, tmp := clitest.Mount(t, "size=1m", 0), t.TempDir()
			if tmpFull {
				tmp = out
			}
			r, w := clitest.Pipe(t)
			cmd := clitest.Perfagent(t, "run", "--summary", "never", "--out", out, "--interval", "10ms", "--", "sh", "-c", "echo ready $$; read x; sleep 2; exit 7")
			cmd.Stdin = r
			cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
			l := clitest.StartProcess(t, cmd)
			l.PID("ready")
			var journal string
			clitest.WaitUntil(t, "samples are in the journal", func() bool {
				paths := reportertest.InDir(t, out)
				if len(paths) != 1 {
					return false
				}
				journal = filepath.Join(out, paths[0])
				text, _ := os.ReadFile(journal)
				return strings.Count(string(text), "\n") > 4
			})
			clitest.Fill(t, out)
			w.Close()
			o, _ := l.End()
			o.Want(t, 7)
			if tmpFull {
				o.WantLine(t, "no space", journal)
				o = call("show", journal)
				o.Want(t, 0)
				if !strings.Contains(o.Out, "Still running or lost") {
					t.Errorf("show lacks \"Still running or lost\": %q", o.Out)
				}
				return
			}
			report, path := reportertest.ReadSingle(t, tmp)
			o.WantLine(t, "no space", path)
			if n := report.Nodes["0"]; n.Sampling.Samples < 10 || n.Sampling.Samples+n.Sampling.MissedTicks < 100 || !slices.ContainsFunc(n.Missing, func(m reporter.Missing) bool { return m.What == "journal" }) {
				t.Errorf("sampling %+v, want at least 10 samples and 100 ticks; missing %v, want journal",
					n.Sampling, n.Missing)
			}
		})
	}
}

func TestRun_NestedRunHasSeparateReport(t *testing.T) {
	t.Parallel()
	o := clitest.RunCommand(t, clitest.Script(t, "sh", `$P run -- $P run -- sh -c 'exit 5'`))
	o.Want(t, 5)
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
	want := make(map[int]bool)
	for range agents {
		cmd := clitest.Perfagent(t, "run", "--out", dir, "--run-id", "same", "--interval", "20ms", "--", "sh", "-c", "echo ready $$; read x; exit 3")
		cmd.Stdin = r
		running = append(running, clitest.StartProcess(t, cmd))
	}
	for _, l := range running {
		want[l.PID("ready")] = true
	}
	w.Close()
	for _, l := range running {
		o, _ := l.End()
		o.Want(t, 3)
	}
	r0, path := reportertest.ReadSingle(t, dir)
	ranks := r0.Nodes["0"].Ranks
	for name, rank := range ranks {
		if !want[rank.PID] {
			t.Errorf("rank %s is process %d, want a different job for each rank", name, rank.PID)
		}
		delete(want, rank.PID)
	}
	if len(ranks) != agents || len(want) != 0 {
		t.Errorf("%s has %d ranks, want %d; no rank for the processes %v", path, len(ranks), agents, want)
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
	o := clitest.RunCommand(t, clitest.Script(t, "sh", `umask 077; $P run --run-id r -- true; stat -c %a perfagent-out/r perfagent-out/r/node-0.json`))
	if o.Want(t, 0); o.Out != "700\n600\n" {
		t.Errorf("modes %q, want 700 for the directory, 600 for the report", o.Out)
	}
}
