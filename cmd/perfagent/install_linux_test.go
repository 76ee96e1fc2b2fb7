package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

// The copy equals the running program, is executable for all users, and can be replaced while it runs.
func TestInstall_CopiesTheProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	copied := filepath.Join(dir, "perfagent")
	clitest.RunCommand(t, clitest.Command(t, "sh", "-c", `umask 077; exec "$0" install "$1"`, clitest.Binary(t), dir)).Want(t, 0)
	if clitest.Read(t, copied) != clitest.Read(t, clitest.Binary(t)) {
		t.Error("the installed program differs from the running one")
	}
	if info, err := os.Stat(copied); err != nil || info.Mode() != 0o755 {
		t.Errorf("mode of the installed program = %v (%v), want -rwxr-xr-x", info.Mode(), err)
	}

	// The copy replaces its own file.
	clitest.RunCommand(t, clitest.Command(t, copied, "install", dir)).Want(t, 0)
	clitest.RunCommand(t, clitest.Command(t, copied, "run", "--summary", "never", "--out", dir, "--", "sh", "-c", "exit 7")).Want(t, 7)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 { // the program and the run
		t.Errorf("directory contains %v (%v), want the program and the run", entries, err)
	}
}

func TestInstall_FailsWithOneLine(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"install"}, "perfagent install: one directory, please"},
		{[]string{"install", "a", "b"}, "perfagent install: one directory, please"},
		{[]string{"install", missing}, missing},
		{[]string{"install", missing}, syscall.ENOENT.Error()},
	} {
		o := clitest.RunCommand(t, clitest.Command(t, clitest.Binary(t), test.args...))
		if o.Code == 0 {
			t.Errorf("%q: exit code 0, want a failure", test.args)
		}
		o.WantLine(t, test.want)
	}
}
