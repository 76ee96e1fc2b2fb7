package host

import (
	"cmp"
	"slices"
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

// gopsutil and psutil agree on every tree that gopsutil reads. The differences are in package collector's table of
// departures.
func TestReader_AgreesWithGopsutil(t *testing.T) {
	for _, name := range []string{"healthy", "lvm-on-raid", "bond-vlan-bridge", "container-bridge", "loopback-names", "sidecar"} {
		t.Run(name, func(t *testing.T) {
			want := openFixture(t, name).Read()
			proc, sys := collectortest.Tree(t, name)
			got := openThrough(t, proc, sys).Read()

			same(t, "cpu", got.CPU, want.CPU)
			same(t, "memory", got.Memory, want.Memory)
			same(t, "network", got.Devices[NICs], want.Devices[NICs])
			slices.SortFunc(want.Devices[Disks], func(a, b Device) int { return cmp.Compare(a.Name, b.Name) })
			if len(want.Devices[Disks]) > 0 {
				same(t, "disks", got.Devices[Disks], want.Devices[Disks])
			}
		})
	}
}

func TestReader_Name(t *testing.T) {
	for name, o := range map[string]Options{"auto": {}, "gopsutil": {Gopsutil: true}} {
		r := NewReader(o)
		same(t, "name", r.Name(), name)
		r.Close()
	}
}

// Whatever a file contains, and even if gopsutil panics, the other sources continue, and this one comes back by itself.
func TestGopsutil_DamagedFileCostsOnlyItsSource(t *testing.T) {
	also := map[string]string{SourceCPU: SourceLoad} // it reads the running tasks from stat, too
	for name, tt := range damages {
		t.Run(name, func(t *testing.T) {
			proc, sys := collectortest.CopyOfTree(t)
			r := openThrough(t, proc, sys)
			healthy := r.Read()
			spoil(t, proc, name, tt.file)

			got := r.Read()
			for source, err := range got.Failed {
				if source != tt.source && source != also[tt.source] {
					t.Errorf("%s is damaged, but %s failed, too: %v", tt.file, source, err)
				}
				if got.part(source) != "" {
					t.Errorf("source %s has values although it failed: %v", source, err)
				}
			}
			for _, c := range got.CPU {
				for _, v := range append(c.Seconds[:], c.Guest, c.GuestNice) {
					if !isAmount(v) {
						t.Errorf("CPU times %v, want finite numbers >= 0", c)
					}
				}
			}

			repair(t, proc, tt.file)
			again := r.Read()
			again.At, again.Disk = healthy.At, healthy.Disk
			same(t, "the Reading after the repair", again, healthy)
		})
	}
}

// Impossible numbers are errors: gopsutil accepts them.
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
		t.Run(name, func(t *testing.T) {
			proc, sys := collectortest.CopyOfTree(t)
			write(t, proc, tt.file, []byte(tt.text))
			got := openThrough(t, proc, sys).Read()
			if err := got.Failed[tt.source]; err == nil || !strings.Contains(err.Error(), tt.why) || !strings.Contains(err.Error(), "gopsutil") {
				t.Errorf("failure of %s: %v, want one that says %q", tt.source, err, tt.why)
			}
		})
	}
}
