package host

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/collectortest"
)

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
