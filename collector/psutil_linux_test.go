package collector

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// treesScript prints what psutil says of each tree named on its command line.
const treesScript = `
import json, os, sys, warnings
import psutil
warnings.simplefilter("ignore")
out = {}
for tree in sys.argv[1:]:
    psutil.PROCFS_PATH = tree
    m = psutil.virtual_memory()
    d = psutil.disk_io_counters(perdisk=True, nowrap=False) if os.path.exists(tree + "/diskstats") else {}
    n = psutil.net_io_counters(pernic=True, nowrap=False)
    out[tree] = {
        "memory": [m.total, m.available, m.percent],
        "cpu": [list(c)[:10] for c in psutil.cpu_times(percpu=True)],
        "disks": {k: [v.read_bytes, v.write_bytes] for k, v in d.items()},
        "nics": {k: [v.bytes_recv, v.bytes_sent] for k, v in n.items()},
    }
print(json.dumps(out))
`

// psutilTree is what treesScript says of a tree.
type psutilTree struct {
	Memory [3]float64
	CPU    [][]float64
	Disks  map[string][2]uint64
	NICs   map[string][2]uint64
}

// runPython runs a script and decodes what it prints.
func runPython(t *testing.T, into any, script string, args ...string) {
	t.Helper()
	cmd := exec.Command(python(t), append([]string{"-c", script}, args...)...)
	cmd.Stderr = os.Stderr
	data, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
}

func TestTreesReadAsPsutilReadsThem(t *testing.T) {
	dirs, err := filepath.Glob("../testdata/proc/*")
	if err != nil || len(dirs) < 20 {
		t.Fatalf("%d trees, %v", len(dirs), err)
	}
	var trees []string
	for _, dir := range dirs {
		base := filepath.Base(dir)
		// psutil cuts the first two lines of net/dev off, whatever they are, and wants all columns of the host's own kernel.
		if !strings.HasPrefix(base, "damaged-") && base != "netdev-without-headings" && base != "kernel-2.6" {
			trees = append(trees, dir)
		}
	}
	want := map[string]psutilTree{}
	runPython(t, &want, treesScript, trees...)
	for _, tree := range trees {
		t.Run(filepath.Base(tree), func(t *testing.T) {
			r := fixture(t, filepath.Base(tree))
			r.hostProc = false // psutil knows nothing of another host's process 1
			same(t, "psutil and we", ours(t, r, want[tree].Disks), want[tree])
		})
	}
}

// ours is a Reading in psutil's words. disks has psutil's own, for trees where it
// would look at this host's /sys.
func ours(t *testing.T, r *Reader, disks map[string][2]uint64) psutilTree {
	t.Helper()
	got := r.Read()
	if failed := wideFailed(got); len(failed) > 0 {
		t.Fatal(failed)
	}
	out := psutilTree{Memory: [3]float64{float64(got.Memory.Total), float64(got.Memory.Available), got.Memory.Percent()},
		Disks: map[string][2]uint64{}, NICs: map[string][2]uint64{}}
	for _, c := range got.CPU {
		out.CPU = append(out.CPU, append(c.Seconds[:], c.Guest, c.GuestNice))
	}
	for _, d := range got.Devices[Disks] {
		out.Disks[d.Name] = [2]uint64{d.In * diskUnit, d.Out * diskUnit}
	}
	if _, err := os.Stat(filepath.Join(r.proc, "diskstats")); err != nil {
		out.Disks = disks
	}
	for _, d := range got.Devices[NICs] {
		out.NICs[d.Name] = [2]uint64{d.In, d.Out}
	}
	return out
}

// percentScript prints psutil's percents between two trees.
const percentScript = `
import json, sys
import psutil
psutil.PROCFS_PATH = sys.argv[1]
psutil.cpu_percent(percpu=True)
psutil.PROCFS_PATH = sys.argv[2]
print(json.dumps(psutil.cpu_percent(percpu=True)))
`

// Thousands of CPUs with windows of all lengths, many of them on a tie of the
// rounding, where the last bit of psutil's sums decides.
func TestPercentsArePsutilsToTheDigit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var trees [2]strings.Builder
	for i := range trees {
		trees[i].WriteString("cpu  0 0 0 0 0 0 0 0 0 0\n")
	}
	const cpus = 4000
	for n := range cpus {
		top := uint64(1) << (1 + rng.IntN(12))
		fmt.Fprintf(&trees[0], "cpu%d", n)
		fmt.Fprintf(&trees[1], "cpu%d", n)
		for range 10 {
			before := rng.Uint64N(1 << (1 + rng.IntN(34)))
			after := before + rng.Uint64N(top)
			if rng.IntN(20) == 0 {
				after = before - rng.Uint64N(1+min(before, 50))
			}
			fmt.Fprintf(&trees[0], " %d", before)
			fmt.Fprintf(&trees[1], " %d", after)
		}
		trees[0].WriteByte('\n')
		trees[1].WriteByte('\n')
	}
	var dirs []string
	var readings [][]CPUTimes
	for i := range trees {
		dir := t.TempDir()
		write(t, dir, "stat", []byte(trees[i].String()))
		dirs = append(dirs, dir)
		readings = append(readings, openTree(t, dir, dir).Read().CPU)
	}
	var want []float64
	runPython(t, &want, percentScript, dirs...)
	if len(want) != cpus || len(readings[0]) != cpus {
		t.Fatalf("%d CPUs in psutil, %d here", len(want), len(readings[0]))
	}
	wrong := 0
	for i := range want {
		got, ok := busyPercent(readings[0][i], readings[1][i])
		// guest alone can grow past user in these random windows: psutil then leaves 0..100, and nobody measured that.
		if want[i] < 0 || want[i] > 100 {
			continue
		}
		if !ok {
			got = 0
		}
		if got != want[i] {
			wrong++
			t.Errorf("cpu%d: %v, psutil %v: %+v %+v", i, got, want[i], readings[0][i], readings[1][i])
		}
		if wrong > 5 {
			t.Fatal("and so on")
		}
	}
}
