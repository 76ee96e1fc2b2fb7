package host

import (
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/collectortest"
)

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
	if n := testing.AllocsPerRun(100, func() { r.readOptional(out); r.readThermal(out) }); n != 0 {
		t.Errorf("%v allocations per Reading for absent sources, want 0", n)
	}
	same(t, "optional devices", out.OptionalDevices, OptionalDevices{})
}
