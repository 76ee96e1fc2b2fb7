//go:build e2e

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/testenv"
)

// make install puts the release build into the given directory, and its version names the commit.
func TestE2E_Make_InstallsReleaseBuild(t *testing.T) {
	t.Parallel()
	mk := testenv.NeedsTool(t, "make", "apt-get install make")
	dir := t.TempDir()
	cmd := exec.Command(mk, "-C", "../..", "install", "BIN="+filepath.Join(dir, "built"), "DESTDIR="+dir, "PREFIX=/opt/some")
	cmd.Env = append(os.Environ(), "GOFLAGS=", "VCS=", "MAKEFLAGS=", "MAKELEVEL=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}

	got, err := exec.Command(filepath.Join(dir, "opt/some/bin/perfagent"), "version").Output()
	if err != nil || strings.Contains(string(got), "plain go build") {
		t.Errorf("version of the installed program = %q, %v; want a release build", got, err)
	}
	head, err := exec.Command("git", "rev-parse", "--verify", "HEAD").Output()
	if err != nil {
		t.Logf("the commit is not checked, because git cannot read this checkout: %v", err)
	} else if !strings.Contains(string(got), "("+strings.TrimSpace(string(head))) {
		t.Errorf("version %q lacks the commit %s", got, head)
	}
}
