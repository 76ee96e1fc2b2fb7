package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
)

// perfagent exits with the job's exit code, or with 128+n after signal n, and the report contains the same code.
func TestRun_KeepsExitCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		job    []string
		code   int
		signal string
	}{
		{"exit 0", []string{"sh", "-c", "exit 0"}, 0, ""},
		{"exit 1", []string{"sh", "-c", "exit 1"}, 1, ""},
		{"exit 7", []string{"sh", "-c", "exit 7"}, 7, ""},
		{"exit 125, like a failure of perfagent", []string{"sh", "-c", "exit 125"}, 125, ""},
		{"exit 126", []string{"sh", "-c", "exit 126"}, 126, ""},
		{"exit 127, like a command not found", []string{"sh", "-c", "exit 127"}, 127, ""},
		{"exit 255", []string{"sh", "-c", "exit 255"}, 255, ""},
		{"killed by TERM", []string{"sh", "-c", "kill -TERM $$"}, 143, "SIGTERM"},
		{"killed by KILL", []string{"sh", "-c", "kill -KILL $$"}, 137, "SIGKILL"},
		{"killed by SEGV", []string{"sh", "-c", "ulimit -c 0; kill -SEGV $$"}, 139, "SIGSEGV"},
		{"killed by INT, not from a terminal", []string{"sh", "-c", "kill -INT $$"}, 130, "SIGINT"},
		{"killed by PIPE", []string{"sh", "-c", "kill -PIPE $$"}, 141, "SIGPIPE"},
		{"a script without #! is run by /bin/sh", []string{"./plain", "5"}, 5, ""},
		{"a script with #!", []string{"./script"}, 6, ""},
		{"an empty script", []string{"./empty"}, 0, ""},
		{"found in PATH", []string{"true"}, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := clitest.Perfagent(t, append([]string{"run", "--"}, c.job...)...)
			furnish(t, cmd.Dir)
			o := mustExit(t, c.code, cmd)
			lines := min(c.code, 1)
			if c.signal == "SIGPIPE" { // normal in a pipeline, so not reported
				lines = 0
			}
			if o.Out != "" || strings.Count(o.Err, "\n") != lines {
				t.Errorf("stdout %q, stderr %q; want no stdout and %d lines on stderr", o.Out, o.Err, lines)
			}
			r := o.Report(t)
			job := r.Nodes["0"].Job
			if r.Run.ExitCode == nil || *r.Run.ExitCode != c.code || r.Run.Signal != c.signal {
				t.Errorf("run: exit_code = %v, signal = %q, want %d and %q", r.Run.ExitCode, r.Run.Signal, c.code, c.signal)
			}
			if job == nil || *job.ExitCode != c.code || job.Signal != c.signal {
				t.Errorf("job: %+v, want exit code %d, signal %q", job, c.code, c.signal)
			}
		})
	}
}

// furnish fills dir with files that can be executed and files that cannot.
func furnish(t *testing.T, dir string) {
	t.Helper()
	for name, text := range map[string]string{"plain": "exit $1\n", "script": "#!/bin/sh\nexit 6\n", "empty": "",
		"binary": "\x7fELF\x00\x00 no program", "no-interpreter": "#!/no/such/interpreter\n"} {
		clitest.Write(t, filepath.Join(dir, name), text, 0o755)
	}
	clitest.Write(t, filepath.Join(dir, "not-executable"), "#!/bin/sh\nexit 6\n", 0o644)
	check.Must(t, os.Mkdir(filepath.Join(dir, "directory"), 0o755))
}

// plainPath contains only directories that all users may search. Others would change the error of a missing command.
const plainPath = "PATH=/usr/bin:/bin"

// If the command cannot be started, perfagent exits with the conventional exit code, names the command in one line, and
// leaves no files.
func TestRun_CommandThatCannotStart_GivesConventionalExitCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		code int
		word string
	}{
		{"not in PATH", []string{"--", "no-such-command-here"}, 127, "no-such-command-here"},
		{"no such file", []string{"--", "./no-such-file"}, 127, "./no-such-file"},
		{"empty name", []string{"--", ""}, 127, "not found"},
		{"missing interpreter", []string{"--", "./no-interpreter"}, 127, "./no-interpreter"},
		{"no permission", []string{"--", "./not-executable"}, 126, "./not-executable"},
		{"a directory", []string{"--", "./directory"}, 126, "./directory"},
		{"a damaged program", []string{"--", "./binary"}, 126, "./binary"},
		{"a file as parent directory", []string{"--", "./plain/x"}, 126, "./plain/x"},
		{"no command", []string{"--"}, 125, "no command"},
		{"no arguments", nil, 125, "no command: perfagent run [flags] -- COMMAND"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := clitest.Perfagent(t, append([]string{"run"}, c.args...)...)
			cmd = with(cmd, plainPath, "CI=true") // in CI, perfagent prints a line at the end of each job
			furnish(t, cmd.Dir)
			wantError(t, clitest.RunCommand(t, cmd), c.code, c.word)
			wantNothing(t, cmd.Dir)
		})
	}
}

// wantNothing checks that perfagent left no directory of reports in dir.
func wantNothing(t *testing.T, dir string) {
	t.Helper()
	if out := filepath.Join(dir, "perfagent-out"); clitest.Exists(out) {
		t.Errorf("perfagent-out exists and contains %q, want no directory", reportertest.InDir(t, out))
	}
}

// If the job cannot be started, perfagent writes no files to an existing --out directory, and keeps the files in it.
func TestRun_AddsNothingToExistingDirectoryIfJobCannotStart(t *testing.T) {
	cmd := insideCommand(t, "run", "--out", "o", "--run-id", "r", "--", "./binary")
	furnish(t, cmd.Dir)
	other := filepath.Join(cmd.Dir, "o", "r", "node-1.json")
	check.Must(t, os.MkdirAll(filepath.Dir(other), 0o755))
	clitest.Write(t, other, "{}", 0o644)
	cmd.perform(t).Want(t, 126)
	if got := reportertest.InDir(t, filepath.Join(cmd.Dir, "o")); len(got) != 1 || got[0] != "r/node-1.json" {
		t.Errorf("--out contains %q, want only r/node-1.json", got)
	}
}
