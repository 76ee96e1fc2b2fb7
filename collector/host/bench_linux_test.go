package host

import (
	"testing"
	"time"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/disk"
	"github.com/shirou/gopsutil/v3/mem"
	"github.com/shirou/gopsutil/v3/net"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/collectortest"
)

// BenchmarkReading measures one Reading of this host, including its garbage.
func BenchmarkReading(b *testing.B) {
	r := NewReader(Options{})
	defer r.Close()
	r.Read()
	defer collectortest.CPUPerOp(b)()
	for b.Loop() {
		if out := r.Read(); len(out.Failed) > 0 {
			b.Fatal(out.Failed)
		}
	}
}

// gopsutilCalls are the library calls that would replace a Reading's sources.
var gopsutilCalls = []struct {
	name string
	call func() error
}{
	{"cpu", func() error { _, err := cpu.Times(true); return err }},
	{"memory", func() error { _, err := mem.VirtualMemory(); return err }},
	{"disk_io", func() error { _, err := disk.IOCounters(); return err }},
	{"disk", func() error { _, err := disk.Usage("/"); return err }},
	{"network", func() error { _, err := net.IOCounters(true); return err }},
}

// BenchmarkSources compares each source with gopsutil's call for it. In total, perfagent's sources take less than half
// the time and produce a fiftieth of the garbage.
func BenchmarkSources(b *testing.B) {
	r := NewReader(Options{})
	defer r.Close()
	ours := map[string]func() error{
		"cpu":     func() error { _, err := r.readCPU(nil); return err },
		"memory":  func() error { _, err := r.readMemory(); return err },
		"disk_io": func() error { _, err := r.readDiskIO(0, nil); return err },
		"disk":    func() error { _, err := r.disks.read(nil); return err },
		"network": func() error { _, err := r.readNet(0, nil); return err }}

	for _, c := range gopsutilCalls {
		for name, call := range map[string]func() error{"ours": ours[c.name], "gopsutil": c.call} {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				defer collectortest.CPUPerOp(b)()
				for b.Loop() {
					must(b, call())
				}
			})
		}
	}
}

// BenchmarkOptionalDevices measures optional sources. On a host without them, it measures the search after the job's
// start and each Reading; on a host with them, a Reading in which all are due. The files are on a normal file system,
// so the kernel's cost of generating them is not included.
func BenchmarkOptionalDevices(b *testing.B) {
	for _, name := range []string{"nfs-4.1", "lustre-2.14", "intel-four", "intel"} {
		h := openOptional(b, name)
		h.begin()
		h.after(2 * time.Second)
		b.Run(name, func(b *testing.B) {
			defer collectortest.CPUPerOp(b)()
			for b.Loop() {
				h.now += 10 * time.Second // less than a minute, so mountinfo and cores are not read each time
				out := &Reading{At: instant(h.now)}
				h.readOptional(out)
				h.readThermal(out)
			}
		})
	}

	proc, sys := collectortest.CopyOfTree(b)
	b.Run("absent/look", func(b *testing.B) {
		defer collectortest.CPUPerOp(b)()
		for b.Loop() {
			r := &Reader{proc: proc, sys: sys, hostProc: true, now: Now}
			r.readOptional(&Reading{At: Instant{Mono: time.Hour}})
		}
	})
	b.Run("absent/reading", func(b *testing.B) {
		r := NewReader(Options{Proc: proc, Sys: sys})
		defer r.Close()
		out := &Reading{At: Now()}
		r.readOptional(out)
		r.vmBegun = out.At.Mono - time.Minute
		r.readThermal(out)
		defer collectortest.CPUPerOp(b)()
		for b.Loop() {
			r.readOptional(out)
			r.readThermal(out)
		}
	})
}

// On a host without optional sources, they cost a Reading only a few comparisons.
func TestReader_AbsentSourcesNeedNoAllocations(t *testing.T) {
	proc, sys := collectortest.CopyOfTree(t)
	r := NewReader(Options{Proc: proc, Sys: sys})
	defer r.Close()
	out := &Reading{At: Now()}
	r.readOptional(out)
	r.vmBegun = out.At.Mono - time.Minute
	r.readThermal(out)
	n := testing.AllocsPerRun(100, func() { r.readOptional(out); r.readThermal(out) })
	check.True(t, n == 0, "%v allocations per Reading for absent sources, want 0", n)
	same(t, "optional devices", out.OptionalDevices, OptionalDevices{})
}
