package host

import (
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

func TestReader_NameIsAutoOrGopsutil(t *testing.T) {
	for name, o := range map[string]Options{"auto": {}, "gopsutil": {Gopsutil: true}} {
		r := NewReader(o)
		same(t, "name", r.Name(), name)
		r.Close()
	}
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
		t.Run(name, func(t *testing.T) {
			proc, sys := collectortest.CopyOfTree(t)
			write(t, proc, tt.file, []byte(tt.text))
			got := openThrough(t, proc, sys).Read()
			if err := got.Failed[tt.source]; err == nil || !strings.Contains(err.Error(), tt.why) || !strings.Contains(err.Error(), "gopsutil") {
				t.Errorf("failure of %s = %v, want one that contains %q and gopsutil", tt.source, err, tt.why)
			}
		})
	}
}
