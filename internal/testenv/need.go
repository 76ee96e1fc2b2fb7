// Package need says what a test needs that the machine may lack: programs, rights, time, a free port. Where it is
// lacking, the test is skipped, with one line that says what it needs and how to get it; "go test -v" shows that line.
// In CI (CI=true) a program that is lacking fails the test instead, because scripts/test-tools.sh installs them all.
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

// NeedsTool returns the path of a program that a test needs. install says how to get it. Under -short the test is
// skipped: what runs then is the same wherever it runs, and needs nothing but Go.
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

// InCI is a variable that stands for CI=true in tests of the program, which must not see CI itself.
const InCI = "PERFAGENT_TEST_CI"

// SkipOrFail skips a test, or fails it in CI. what says in one line what the test needs and how to get it.
func SkipOrFail(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" || os.Getenv(InCI) == "true" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// SkipIfShort skips a test under -short. what says what the test takes its time for.
func SkipIfShort(t testing.TB, what string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("needs %s: run it without -short, or make test", what)
	}
}

// Rounds returns how often a test repeats its proof: all rounds, or fewer under -short.
func Rounds(all, short int) int {
	if testing.Short() {
		return short
	}
	return all
}

// NeedsRoot skips a test unless it runs as root. what says what only root may do.
func NeedsRoot(t testing.TB, what string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skipf("needs root, %s: run the tests as root", what)
	}
}

// module is the directory of go.mod.
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

// Repository returns the path of a file or directory of this repository. The first call must come before a test
// changes the working directory.
func Repository(t testing.TB, name string) string {
	t.Helper()
	root, err := module()
	if err != nil {
		t.Fatal(err)
	}

	return filepath.Join(root, filepath.FromSlash(name))
}

// interpreter is Python 3 itself. A version manager's python3 is a script that runs it, and would be counted among a
// job's processes.
var interpreter = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("python3", "-c", "import os, sys; print(os.path.realpath(sys.executable))").Output()
	return strings.TrimSpace(string(out)), err
})

// Python returns the path of Python 3. Only its standard library is promised.
func Python(t testing.TB) string {
	t.Helper()
	path, err := interpreter()
	if err != nil {
		SkipOrFail(t, "needs Python 3: apt-get install python3, or your system's package of it")
	}

	return path
}
