package host

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/collectortest"
)

// openThrough opens a host that is read through gopsutil.
func openThrough(t testing.TB, proc, sys string) *Reader {
	t.Helper()
	r := NewReader(Options{Proc: proc, Sys: sys, DiskPaths: []string{t.TempDir()}, Gopsutil: true, Now: eachSecond()})
	t.Cleanup(r.Close)
	return r
}

// gopsutil accepts impossible numbers, but for the Reader they are errors.
func TestGopsutil_RejectsImpossibleNumbers(t *testing.T) {
	for name, tt := range map[string]struct{ file, text, source, why string }{
		"NaN":       {"stat", "cpu 1\ncpu0 NaN 0 0 0 0 0 0\nprocs_running 1\n", SourceCPU, "NaN seconds of cpu0"},
		"negative":  {"stat", "cpu 1\ncpu0 1 0 -5 0 0 0 0\nprocs_running 1\n", SourceCPU, "-0.05 seconds of cpu0"},
		"infinite":  {"loadavg", "Inf 0 0 1/2 3\n", SourceLoad, "a load of +Inf"},
		"no task":   {"stat", "cpu 1\ncpu0 1 0 5 0 0 0 0\n", SourceLoad, "no number of running tasks"},
		"no CPU":    {"stat", "cpu 1\nprocs_running 1\n", SourceCPU, "no CPU"},
		"no memory": {"meminfo", "MemFree: 1 kB\n", SourceMemory, "no memory"},
		"available": {"meminfo", "MemTotal: 1 kB\nMemAvailable: 2 kB\n", SourceMemory, "2048 bytes of memory are available, of 1024 in all"},
		"no disk":   {"diskstats", "", SourceDiskIO, "no disk"},
		"no NIC":    {"net/dev", "a\nb\n", SourceNetwork, "no network interface"},
	} {
		proc, sys := collectortest.CopyOfTree(t)
		write(t, proc, tt.file, []byte(tt.text))
		wantError(t, name, openThrough(t, proc, sys).Read().Failed[tt.source], tt.why, "gopsutil")
	}
}

// treesScript prints psutil's numbers for each tree given on the command line.
const treesScript = `
import json, sys, warnings
import psutil
warnings.simplefilter("ignore")
out = {}
for tree in sys.argv[1:]:
    psutil.PROCFS_PATH = tree
    m = psutil.virtual_memory()
    d = psutil.disk_io_counters(perdisk=True, nowrap=False)
    n = psutil.net_io_counters(pernic=True, nowrap=False)
    out[tree] = {
        "memory": [m.total, m.available, m.percent],
        "cpu": [list(c)[:10] for c in psutil.cpu_times(percpu=True)],
        "disks": {k: [v.read_bytes, v.write_bytes] for k, v in d.items()},
        "nics": {k: [v.bytes_recv, v.bytes_sent] for k, v in n.items()},
    }
print(json.dumps(out))
`

// A psutilTree is the result of treesScript for a tree.
type psutilTree struct {
	Memory [3]float64
	CPU    [][]float64
	Disks  map[string][2]uint64
	NICs   map[string][2]uint64
}

func TestReader_AgreesWithPsutil(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(collectortest.Root(t), "testdata/proc/*"))
	if err != nil || len(dirs) < 20 {
		t.Fatalf("%d trees, error %v; want at least 20", len(dirs), err)
	}
	var trees []string
	for _, dir := range dirs {
		base := filepath.Base(dir)
		// psutil always skips the first two lines of net/dev.
		if !strings.HasPrefix(base, "damaged-") && base != "netdev-without-headings" {
			trees = append(trees, dir)
		}
	}

	want := map[string]psutilTree{}
	collectortest.RunPython(t, &want, treesScript, trees...)
	for _, tree := range trees {
		t.Run(filepath.Base(tree), func(t *testing.T) {
			r := openFixture(t, filepath.Base(tree))
			r.hostProc = false // psutil does not read another host's process 1
			same(t, "numbers compared with psutil's", ours(t, r), want[tree])
		})
	}
}

// ours takes a Reading and converts it to psutil's form.
func ours(t *testing.T, r *Reader) psutilTree {
	t.Helper()
	got := r.Read()
	if failed := failedOf(got); len(failed) > 0 {
		t.Fatalf("failures = %v, want none", failed)
	}
	out := psutilTree{Memory: [3]float64{float64(got.Memory.Total), float64(got.Memory.Available), got.Memory.Percent()},
		Disks: map[string][2]uint64{}, NICs: map[string][2]uint64{}}
	for _, c := range got.CPU {
		out.CPU = append(out.CPU, append(c.Seconds[:], c.Guest, c.GuestNice))
	}
	for _, d := range got.Devices[Disks] {
		out.Disks[d.Name] = [2]uint64{d.In * diskUnit, d.Out * diskUnit}
	}
	for _, d := range got.Devices[NICs] {
		out.NICs[d.Name] = [2]uint64{d.In, d.Out}
	}
	return out
}
