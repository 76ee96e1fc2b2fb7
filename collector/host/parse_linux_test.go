package host

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/internal/collectortest"
)

// addFiles seeds a fuzz target with the kernel file name of every tree, including damaged files.
func addFiles(f *testing.F, name string) {
	f.Helper()
	paths, err := filepath.Glob(filepath.Join(collectortest.Root(f), "testdata/proc/*", name))
	if err != nil || len(paths) < 5 {
		f.Fatalf("%d seeds for %s, error %v; want at least 5", len(paths), name, err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		must(f, err)
		f.Add(data)
	}
}

func checkDevices(t *testing.T, data []byte, devs []Device) {
	t.Helper()
	if devs == nil {
		t.Fatal("devices = nil without an error, want an empty list")
	}
	for _, d := range devs {
		if d.Name == "" || !bytes.Contains(data, []byte(d.Name)) {
			t.Fatalf("device name %q is empty or not in the file", d.Name)
		}
	}
}

// FuzzParsers checks that no parser panics, and that accepted values are plausible.
func FuzzParsers(f *testing.F) {
	for _, name := range []string{"stat", "meminfo", "net/dev", "diskstats"} {
		addFiles(f, name)
	}
	f.Add([]byte("0.20 0.18 0.12 3/80 11206\n"))
	f.Add([]byte("nr_free_pages 1\npswpin 512\npswpout 1024\noom_kill 2\n"))
	f.Add([]byte("6,1,5000,-;oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/a,task_memcg=/a/b,task=py,pid=4,uid=0\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var names nameCache
		if cpus, err := parseStat(data, &names, nil); err == nil {
			for _, c := range cpus {
				if !strings.HasPrefix(c.Name, "cpu") || !(c.Seconds[ModeUser] >= 0 && c.Seconds[ModeIdle] >= 0 && c.GuestNice >= 0) {
					t.Fatalf("CPU times = %+v, want a name cpu... and numbers >= 0", c)
				}
			}
		}
		if nics, err := parseNetDev(data, &names, nil); err == nil {
			checkDevices(t, data, nics)
		}
		if disks, err := parseDiskstats(data, &names, nil); err == nil {
			checkDevices(t, data, disks)
		}
		if m, err := parseMeminfo(data); err == nil && (m.Total == 0 || m.Available > m.Total) {
			t.Fatalf("memory = %+v without an error, want available <= total > 0", m)
		}
		if l, err := parseLoad(data); err == nil && (!(l.Load1 >= 0) || !(l.Running >= 0) || math.IsInf(l.Load1, 0)) {
			t.Fatalf("load = %+v, want finite numbers >= 0", l)
		}
		if vm, err := parseVMStat(data); err == nil && (!(vm.SwapIn >= 0) || !(vm.SwapOut >= 0) || vm.OOMKills < 0) {
			t.Fatalf("vmstat = %+v, want numbers >= 0", vm)
		}
		if v, when, ok := parseVictim(data); ok && (v.PID <= 0 || when < 0) {
			t.Fatalf("victim = %+v at %v, want a process ID > 0 and a time >= 0", v, when)
		}
	})
}

// A failure of one PSI file does not affect the others. The error of a kernel without PSI is fs.ErrNotExist.
func TestReader_ReadsPressureFilesIndependently(t *testing.T) {
	proc := t.TempDir()
	read := func() (cgroup.Pressure, bool, error) {
		r := Reader{scratch: newScratch(proc)}
		return r.readPressure()
	}
	if _, known, err := read(); known || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("kernel without PSI: known = %v, error = %v; want false, ErrNotExist", known, err)
	}
	line := "some avg10=0.00 avg60=0.00 avg300=0.00 total=3000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n"
	for _, name := range []string{"cpu", "memory", "io"} {
		write(t, proc, "pressure/"+name, []byte(line))
	}
	p, known, err := read()
	if err != nil || !known {
		t.Fatalf("known = %v, error = %v; want true, nil", known, err)
	}
	same(t, "pressure", p, cgroup.Pressure{CPU: cgroup.Stall{Some: 3, Full: nan}, Memory: cgroup.Stall{Some: 3, Full: 1},
		IO: cgroup.Stall{Some: 3, Full: 1}})
	for _, text := range []string{"", "some", "total=5\n", "some avg10=0 total=x\n", "full total=5\n"} {
		write(t, proc, "pressure/memory", []byte(text))
		p, known, err := read()
		if err == nil || !known || !strings.HasPrefix(err.Error(), "memory: read "+proc+"/pressure/memory: not understood") {
			t.Errorf("memory pressure %q: known = %v, error = %v; want true, and that it is not understood", text, known, err)
		}
		same(t, text, p, cgroup.Pressure{CPU: cgroup.Stall{Some: 3, Full: nan}, Memory: cgroup.Stall{Some: nan, Full: nan},
			IO: cgroup.Stall{Some: 3, Full: 1}})
	}
}
