// Package collectortest has helpers for the tests of package collector and the packages below it: the trees of kernel
// files in testdata, and a Python with psutil.
package collectortest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/testenv"
)

// Same reports a failure unless got and want are equal, with NaN equal to NaN. It ignores the buffers of a Reading.
func Same(t *testing.T, what string, got, want any) {
	t.Helper()
	buffers := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".buffers" }, cmp.Ignore())
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs(), buffers); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Root returns the root of the module that contains the working directory.
func Root(t testing.TB) string {
	t.Helper()
	return testenv.Repository(t, "")
}

// Tree returns the roots of the procfs and sysfs of the named host in testdata. The sysfs may not exist.
func Tree(t testing.TB, name string) (proc, sys string) {
	t.Helper()
	proc = filepath.Join(Root(t), "testdata", "proc", name)
	_, err := os.Stat(proc)
	check.Must(t, err)
	return proc, filepath.Join(Root(t), "testdata", "sys", name)
}

// CopyOfTree returns the tree of a healthy host with a writable copy of its procfs.
func CopyOfTree(t testing.TB) (proc, sys string) {
	t.Helper()
	healthy, sys := Tree(t, "healthy")
	proc = t.TempDir()
	check.Must(t, os.CopyFS(proc, os.DirFS(healthy)))
	return proc, sys
}

// OptionalDevices returns writable copies of the roots of a healthy host, with the files of the named archive in
// testdata/optional added.
func OptionalDevices(t testing.TB, name string) (proc, sys string) {
	t.Helper()
	proc, healthy := CopyOfTree(t)
	sys = t.TempDir()
	check.Must(t, os.CopyFS(sys, os.DirFS(healthy)))
	data, err := os.ReadFile(filepath.Join(Root(t), "testdata", "optional", name+".txt"))
	check.Must(t, err)

	roots := map[string]string{"proc": proc, "sys": sys}
	_, rest, _ := strings.Cut(string(data), "\n-- ")
	for file := range strings.SplitSeq(rest, "\n-- ") {
		path, text, ok := strings.Cut(file, " --\n")
		root, path, below := strings.Cut(path, "/")
		if !ok || !below || roots[root] == "" {
			t.Fatalf("archive %s has the file %q, want all files below proc or sys", name, path)
		}
		Write(t, roots[root], path, []byte(strings.TrimSuffix(text, "\n")+"\n"))
	}
	return proc, sys
}

// Write writes data to the file name of the tree at root.
func Write(t testing.TB, root, name string, data []byte) {
	t.Helper()
	path := filepath.Join(root, name)
	check.Must(t, os.MkdirAll(filepath.Dir(path), 0o777))
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// Python returns the path of a Python with psutil. If there is none, it skips the test, or fails it in CI.
func Python(t testing.TB) string {
	t.Helper()
	path := os.Getenv("PERFAGENT_TEST_PYTHON")
	if path == "" {
		path = filepath.Join(Root(t), ".tools/venv/bin/python")
	}
	path, err := filepath.Abs(path)
	check.Must(t, err)
	if err := exec.Command(path, "-c", "import psutil").Run(); err != nil {
		testenv.SkipOrFail(t, "needs a Python with psutil: make test installs it")
	}

	return path
}

// RunPython runs script and decodes its JSON output into into.
func RunPython(t *testing.T, into any, script string, args ...string) {
	t.Helper()
	cmd := exec.Command(Python(t), append([]string{"-c", script}, args...)...)
	cmd.Stderr = os.Stderr
	data, err := cmd.Output()
	check.Must(t, err)
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("output of the script: %v: %s", err, data)
	}
}
