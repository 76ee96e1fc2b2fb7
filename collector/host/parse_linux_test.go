package host

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/collectortest"
)

// fileOfOptional returns the content of a file of a host of testdata/optional.
func fileOfOptional(f *testing.F, name, path string) []byte {
	f.Helper()
	proc, sys := collectortest.OptionalDevices(f, name)
	root, path, _ := strings.Cut(path, "/")
	paths, _ := filepath.Glob(filepath.Join(map[string]string{"proc": proc, "sys": sys}[root], path))
	if len(paths) != 1 {
		f.Fatalf("%d files match %s, want 1", len(paths), path)
	}
	data := check.Value(os.ReadFile(paths[0]))(f)
	return data
}

// FuzzMountstats checks that, for any content of the two files, each superblock occurs once, has a path, and was in
// mountinfo, and that a second read of the same files gives the same result.
func FuzzMountstats(f *testing.F) {
	for _, name := range []string{"nfs-shared", "nfs-bound", "nfs-4.1", "nfs-rdma"} {
		f.Add(fileOfOptional(f, name, "proc/1/mountstats"), fileOfOptional(f, name, "proc/1/mountinfo"))
	}
	f.Fuzz(func(t *testing.T, stats, info []byte) {
		files := nfsFiles{stats: "mountstats", names: make(map[string]string)}
		read := func() ([]Mount, error) {
			entries, err := files.parse(stats)
			files.mountPoints = parseMountPoints(info)
			files.assignSuperblocks(entries)
			if len(files.names) > maxNames {
				t.Fatalf("%d cached names, want at most %d", len(files.names), maxNames)
			}
			return superblocks(entries), err
		}
		mounts, err := read()
		for i, m := range mounts {
			known := slices.ContainsFunc(files.mountPoints, func(s mountPoint) bool { return s.superblock == m.ID && s.fstype == m.Type })
			again := slices.ContainsFunc(mounts[:i], func(o Mount) bool { return o.ID == m.ID })
			if m.ID == "" || len(m.Paths) == 0 || !known || again || !isNFS([]byte(m.Type)) {
				t.Fatalf("mount = %+v, want one not seen before, with an ID and a path, among the mount points %+v",
					m, files.mountPoints)
			}
			for _, op := range m.Ops {
				if op.Name == "" || op.Calls == 0 {
					t.Fatalf("operation = %+v, want one with a name and calls", op)
				}
			}
		}
		twice, errTwice := read()
		same(t, "mounts of the second read", twice, mounts)
		if (err == nil) != (errTwice == nil) {
			t.Fatalf("error of first read = %v, of second read = %v; want errors in both or in neither", err, errTwice)
		}
	})
}

// FuzzLlite checks that the statistics of a Lustre mount are parsed or rejected, and that unknown lines change nothing.
func FuzzLlite(f *testing.F) {
	f.Add(fileOfOptional(f, "lustre-2.10", "proc/fs/lustre/llite/*/stats"))
	f.Add(fileOfOptional(f, "lustre-2.14", "sys/kernel/debug/lustre/llite/*/stats"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m, more Mount
		err := parseLlite(data, &m)
		errMore := parseLlite(append(append([]byte("ioctl 114 samples [reqs]\n"), data...), "\nsnapshot_time 1 secs.nsecs\n"...), &more)
		if (err == nil) != (errMore == nil) {
			t.Fatalf("error = %v, with unknown lines added = %v; want errors in both cases or in neither", err, errMore)
		}
		if err == nil {
			same(t, "mount with unknown lines added", more, m)
		}
		for _, op := range m.Ops {
			if op.Name == "" || op.Name == "openclosetime" {
				t.Fatalf("operation = %+v, want a name, and not one of an unknown line", op)
			}
		}
	})
}

// FuzzHeatAndEnergy checks that, for any content of the sysfs files of zones, sensors, counters and CPUs, the result is
// within bounds or there is an error.
func FuzzHeatAndEnergy(f *testing.F) {
	f.Add("package-0\n", "240422366267\n", "262143328850\n", "coretemp\n", "Package id 0\n", "55000\n", "0-1,4\n", "30\n")
	f.Add("dram", "1", "", "k10temp", "Tctl", "-1", "", "x")
	f.Add("psys", "", "0", "zenpower", "", "99999999999999999999", "65535-1", "18446744073709551615\n")
	proc, sys := collectortest.OptionalDevices(f, "amd")
	now := time.Duration(0)
	r := NewReader(Options{Proc: proc, Sys: sys, DiskPaths: []string{f.TempDir()}, Now: func() Instant { return instant(now) }})
	r.Baseline()
	f.Fuzz(func(t *testing.T, zone, energy, span, driver, label, temperature, list, count string) {
		for name, text := range map[string]string{
			"class/powercap/intel-rapl:0/name": zone, "class/powercap/intel-rapl:0/energy_uj": energy,
			"class/powercap/intel-rapl:0/max_energy_range_uj": span,
			"class/hwmon/hwmon0/name":                         driver, "class/hwmon/hwmon0/temp1_label": label, "class/hwmon/hwmon0/temp1_input": temperature,
			"devices/system/cpu/cpu0/topology/physical_package_id":                 zone,
			"devices/system/cpu/cpu0/topology/thread_siblings_list":                list,
			"devices/system/cpu/cpu0/topology/core_siblings_list":                  list,
			"devices/system/cpu/cpu0/thermal_throttle/package_throttle_count":      count,
			"devices/system/cpu/cpu0/thermal_throttle/core_throttle_count":         count,
			"devices/system/cpu/cpu3/thermal_throttle/core_throttle_count":         "1",
			"devices/system/cpu/cpu0/thermal_throttle/core_throttle_total_time_ms": temperature,
		} {
			write(t, sys, name, []byte(text))
		}
		r.optional.energy, r.optional.thermal = energyReader{}, thermalReader{}
		now += 2 * rescanInterval
		out := &Reading{At: r.now()}
		r.readOptional(out)
		r.readThermal(out)
		for source, err := range out.Failed {
			if strings.Contains(err.Error(), "damaged kernel file") { // how guard reports a panic
				t.Fatalf("reading %s panicked: %v", source, err)
			}
		}
		if h := out.Thermal; h != nil && h.Celsius <= 0 || h != nil && h.Celsius > maxCelsius {
			t.Fatalf("temperature = %v °C, want one above 0 and at most %d", h.Celsius, maxCelsius)
		}
		if e := out.Energy; e != nil && len(e.Zones) > 1 {
			t.Fatalf("zones of one file = %+v, want at most 1", e.Zones)
		}
	})
}

// addFiles seeds a fuzz target with the kernel file name of every tree, including damaged files.
func addFiles(f *testing.F, name string) {
	f.Helper()
	paths, err := filepath.Glob(filepath.Join(collectortest.Root(f), "testdata/proc/*", name))
	if err != nil || len(paths) < 5 {
		f.Fatalf("%d seeds for %s, error %v; want at least 5", len(paths), name, err)
	}
	for _, path := range paths {
		data := check.Value(os.ReadFile(path))(f)
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
		check.True(t, known, "memory pressure %q: known = false, want true", text)
		wantError(t, text, err, "memory: read "+proc+"/pressure/memory: not understood")
		same(t, text, p, cgroup.Pressure{CPU: cgroup.Stall{Some: 3, Full: nan}, Memory: cgroup.Stall{Some: nan, Full: nan},
			IO: cgroup.Stall{Some: 3, Full: 1}})
	}
}
