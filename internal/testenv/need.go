// Package testenv checks for the requirements of tests: programs, privileges, time, and a free port. If something is
// missing, it skips the test with one line that names the requirement and how to meet it. "go test -v" shows that line.
// In CI (CI=true), a missing program fails the test instead, because scripts/test-tools.sh installs all programs.
package testenv

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// NeedsTool returns the path of the named program. install describes how to get it. Under -short, NeedsTool skips the
// test, because the remaining tests need nothing except Go and behave the same everywhere.
func NeedsTool(t testing.TB, name, install string) string {
	t.Helper()
	if testing.Short() {
		t.Skipf("needs %s: run it without -short, or make test", name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		SkipOrFail(t, "needs "+name+": "+install)
	}

	return path
}

// InCI is an environment variable that replaces CI in tests that run the program, because the program must not see CI.
const InCI = "PERFAGENT_TEST_CI"

// SkipOrFail skips the test, or fails it in CI. what is one line that names the missing item and explains how to get
// it.
func SkipOrFail(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" || os.Getenv(InCI) == "true" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// SkipIfShort skips the test under -short. what names the slow part of the test.
func SkipIfShort(t testing.TB, what string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("needs %s: run it without -short, or make test", what)
	}
}

// Rounds returns how often a test repeats its check: all, or short under -short.
func Rounds(all, short int) int {
	if testing.Short() {
		return short
	}
	return all
}

// NeedsRoot skips the test unless it runs as root. what names the purpose, such as "to mount a file system".
func NeedsRoot(t testing.TB, what string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skipf("needs root, %s: run the tests as root", what)
	}
}

// module returns the directory of go.mod.
var module = sync.OnceValues(func() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
})

// Repository returns the path of a file or directory in this repository. Its first call must precede any change of the
// working directory.
func Repository(t testing.TB, name string) string {
	t.Helper()
	root, err := module()
	if err != nil {
		t.Fatal(err)
	}

	return filepath.Join(root, filepath.FromSlash(name))
}

// interpreter returns the path of Python 3 itself. With a version manager, python3 is a script that runs Python 3, and
// would be counted as a process of the job.
var interpreter = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("python3", "-c", "import os, sys; print(os.path.realpath(sys.executable))").Output()
	return strings.TrimSpace(string(out)), err
})

// Python returns the path of a Python 3, which may have only its standard library.
func Python(t testing.TB) string {
	t.Helper()
	path, err := interpreter()
	if err != nil {
		SkipOrFail(t, "needs Python 3: apt-get install python3, or your system's package of it")
	}

	return path
}
