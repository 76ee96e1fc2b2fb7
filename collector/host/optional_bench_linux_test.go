package host

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/collectortest"
)

// BenchmarkOptionalDevices measures optional sources: on a host without them the search after the job's start and each Reading, on
// a host with them a Reading in which all are due. The files are on a normal file system, so the kernel's cost of
// generating them is not included.
func BenchmarkOptionalDevices(b *testing.B) {
	for _, c := range []struct {
		name, host string
		change     func(*optionalHost)
	}{
		{"NFS/1", "nfs-4.1", nil}, {"NFS/100", "nfs-4.1", func(h *optionalHost) { h.multiply(b, 100) }},
		{"Lustre", "lustre-2.14", nil}, {"energy/2", "intel-four", nil}, {"heat/2", "intel", nil},
	} {
		h := openOptional(b, c.host)
		if c.change != nil {
			c.change(h)
		}
		h.begin()
		h.after(2 * time.Second)
		b.Run(c.name, func(b *testing.B) {
			defer collectortest.CPUPerOp(b)()
			for b.Loop() {
				h.now += 10 * time.Second // less than a minute: mountinfo and cores are not read each time
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

// multiply mounts the host's file system n times, each with a separate superblock.
func (h *optionalHost) multiply(tb testing.TB, n int) {
	for path, line := range map[string]string{h.mountstats(): "device fs.example", h.mountinfo(): "211 60 0:45"} {
		data, err := os.ReadFile(path)
		must(tb, err)
		at := bytes.Index(data, []byte(line))
		end := at + bytes.Index(data[at:], []byte("\ndevice"))
		if path == h.mountinfo() {
			end = at + bytes.IndexByte(data[at:], '\n')
		}
		block := data[at : end+1]
		var more []byte
		for i := range n - 1 {
			one := bytes.ReplaceAll(block, []byte("/home"), fmt.Appendf(nil, "/home%d", i))
			more = append(more, bytes.ReplaceAll(one, []byte(" 0:45 "), fmt.Appendf(nil, " 0:%d ", 100+i))...)
		}
		write(tb, filepath.Dir(path), filepath.Base(path), append(data, more...))
	}
}

// Without optional sources a Reading pays only a few comparisons for them.
func TestReader_AbsentSourcesCostNothing(t *testing.T) {
	proc, sys := collectortest.CopyOfTree(t)
	r := NewReader(Options{Proc: proc, Sys: sys})
	defer r.Close()
	out := &Reading{At: Now()}
	r.readOptional(out)
	r.vmBegun = out.At.Mono - time.Minute
	r.readThermal(out)
	if n := testing.AllocsPerRun(100, func() { r.readOptional(out); r.readThermal(out) }); n != 0 {
		t.Errorf("absent sources cost %v allocations per Reading, want 0", n)
	}
	same(t, "what is there", out.OptionalDevices, OptionalDevices{})
}
