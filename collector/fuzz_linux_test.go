package collector

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// addFiles seeds a fuzz target with a kernel file of every tree, damaged ones
// included.
func addFiles(f *testing.F, name string) {
	f.Helper()
	paths, err := filepath.Glob("../testdata/proc/*/" + name)
	if err != nil || len(paths) < 5 {
		f.Fatalf("%d seeds of %s, %v", len(paths), name, err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

// FuzzDiskstats: each line that is not blank is one device, and its name and
// numbers stand in it.
func FuzzDiskstats(f *testing.F) {
	addFiles(f, "diskstats")
	f.Fuzz(func(t *testing.T, data []byte) {
		var names nameCache
		devs, err := parseDiskstats(data, &names)
		if err != nil {
			if devs != nil {
				t.Fatalf("devices beside the error %v", err)
			}
			return
		}
		checkDevices(t, data, devs)
		again, err := parseDiskstats(data, &names)
		if err != nil || len(again) != len(devs) {
			t.Fatalf("%d devices at first, then %d, %v", len(devs), len(again), err)
		}
		for i := range devs {
			if devs[i] != again[i] {
				t.Fatalf("%+v, then %+v", devs[i], again[i])
			}
		}
	})
}

func checkDevices(t *testing.T, data []byte, devs []Device) {
	t.Helper()
	if devs == nil {
		t.Fatal("no devices and no error")
	}
	for _, d := range devs {
		if d.Name == "" || !bytes.Contains(data, []byte(d.Name)) {
			t.Fatalf("a device %q that the file does not name", d.Name)
		}
	}
}

// FuzzParsers: no parser panics, and what it accepts makes sense.
func FuzzParsers(f *testing.F) {
	for _, name := range []string{"stat", "meminfo", "zoneinfo", "net/dev"} {
		addFiles(f, name)
	}
	f.Add([]byte("0.20 0.18 0.12 3/80 11206\n"))
	f.Add([]byte("nr_free_pages 1\npswpin 512\npswpout 1024\noom_kill 2\n"))
	f.Add([]byte("6,1,5000,-;oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/a,task_memcg=/a/b,task=py,pid=4,uid=0\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var names nameCache
		if cpus, err := parseStat(data, &names); err == nil {
			for _, c := range cpus {
				if !strings.HasPrefix(c.Name, "cpu") || !(c.Seconds[ModeUser] >= 0 && c.Seconds[ModeIdle] >= 0 && c.GuestNice >= 0) {
					t.Fatalf("%+v", c)
				}
			}
		}
		if nics, err := parseNetDev(data, &names); err == nil {
			checkDevices(t, data, nics)
		}
		if info, err := parseMeminfo(data); err == nil && info.bytes[memTotal] == 0 {
			t.Fatal("memory of 0 bytes")
		}
		_, _ = parseLowWatermark(data) // must not panic
		if l, err := parseLoad(data); err == nil && (!(l.One >= 0) || !(l.Running >= 0) || math.IsInf(l.One, 0)) {
			t.Fatalf("%+v", l)
		}
		if vm, err := parseVMStat(data); err == nil && (!(vm.SwapIn >= 0) || !(vm.SwapOut >= 0) || vm.OOMKills < 0) {
			t.Fatalf("%+v", vm)
		}
		if v, when, ok := parseVictim(data); ok && (v.PID <= 0 || when < 0) {
			t.Fatalf("%+v at %v", v, when)
		}
	})
}

// FuzzReader reads whole trees: whatever stands in the files, each source is there
// or has its reason, and a Sample of it is sound.
func FuzzReader(f *testing.F) {
	read := func(tree, name string) []byte {
		data, _ := os.ReadFile(filepath.Join("../testdata/proc", tree, name)) // not every tree has every file
		return data
	}
	for _, tree := range []string{"healthy", "lvm-on-raid", "memavailable-missing", "loopback-names", "kernel-2.6",
		"damaged-stat-short-line", "damaged-netdev-short-line", "damaged-diskstats-short-line", "damaged-meminfo-nonsense"} {
		f.Add(read(tree, "stat"), read(tree, "meminfo"), read(tree, "diskstats"), read(tree, "net/dev"), read(tree, "zoneinfo"))
	}
	proc := f.TempDir()
	r := openTree(f, proc, "../testdata/sys/healthy")
	healthy := fixture(f, "healthy").Read()
	f.Fuzz(func(t *testing.T, stat, meminfo, diskstats, netdev, zoneinfo []byte) {
		for name, data := range map[string][]byte{"stat": stat, "meminfo": meminfo, "diskstats": diskstats, "net/dev": netdev, "zoneinfo": zoneinfo} {
			write(t, proc, name, data)
		}
		got := r.Read()
		for source, there := range map[string]bool{SourceCPU: got.CPU != nil, SourceMemory: got.Memory != nil,
			SourceDisk: len(got.Disk) > 0, SourceDiskIO: got.Devices[Disks] != nil, SourceNetwork: got.Devices[NICs] != nil} {
			if there == (got.Failed[source] != nil) {
				t.Fatalf("%s: there: %v, failure: %v", source, there, got.Failed[source])
			}
			if err := got.Failed[source]; err != nil && strings.Contains(err.Error(), "damaged kernel file") /* guard's word for a panic */ {
				t.Fatal(err)
			}
		}
		got.At = at(1e9)
		base := *healthy
		base.At = at(0)
		_, s := Begin(&base).Next(got, 0)
		if err := checkSample(&s, nothingBefore()); err != nil {
			t.Fatal(err)
		}
	})
}
