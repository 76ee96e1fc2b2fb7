package collector

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// same compares whole values; NaN is NaN.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// ticks makes the times of a CPU from the columns of /proc/stat.
func ticks(name string, n ...float64) CPUTimes {
	var f [10]float64
	for i, v := range n {
		f[i] = v / 100
	}
	return CPUTimes{name, [NumCPUModes]float64(f[:NumCPUModes]), f[8], f[9]}
}

// at is the moment d after an arbitrary start, on clocks that agree.
func at(d time.Duration) Instant {
	return Instant{Wall: time.Unix(1_767_225_600, 0).Add(d), Mono: time.Hour + d, Boot: time.Hour + d}
}

// fixture opens a tree of testdata as a host of its own.
func fixture(t testing.TB, name string) *Reader {
	t.Helper()
	proc := filepath.Join("..", "testdata", "proc", name)
	if _, err := os.Stat(proc); err != nil {
		t.Fatal(err)
	}
	return openTree(t, proc, filepath.Join("..", "testdata", "sys", name))
}

func openTree(t testing.TB, proc, sys string) *Reader {
	t.Helper()
	r := NewReader(ReaderOptions{Proc: proc, Sys: sys, DiskPaths: []string{t.TempDir()}})
	r.disks.patience = time.Minute // these answer, however busy the machine is
	t.Cleanup(r.Close)
	return r
}

// hostTree is a copy of the healthy fixture that a test may spoil.
func hostTree(t testing.TB) (proc, sys string) {
	t.Helper()
	proc = t.TempDir()
	if err := os.CopyFS(proc, os.DirFS("../testdata/proc/healthy")); err != nil {
		t.Fatal(err)
	}
	return proc, "../testdata/sys/healthy"
}

// write replaces a file of a tree.
func write(t testing.TB, root, name string, data []byte) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// summary is what a Recording says of a column.
type summary struct {
	Count        int64
	Seconds, Max float64
}

func summaryOf(rec *Recording, c Column) summary {
	st := rec.Summaries[c].Stat()
	return summary{st.Count, st.Weight, st.Max}
}

// counted lists the devices that have all bits of a class.
func counted(devs []Device, class Class) []string {
	names := []string{}
	for _, d := range devs {
		if d.Class&class == class {
			names = append(names, d.Name)
		}
	}
	return names
}

// python finds the Python that has psutil. Without it the test is skipped, but
// never in CI.
func python(t testing.TB) string {
	t.Helper()
	path := os.Getenv("PERFAGENT_TEST_PYTHON")
	if path == "" {
		path = "../.tools/venv/bin/python"
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if err = exec.Command(path, "-c", "import psutil").Run(); err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("no Python with psutil at %s: %v", path, err)
	}
	t.Skip("no Python with psutil; to install it, run: make test")
	return ""
}

// absent is the value of a column that was not measured.
var absent = math.NaN()
