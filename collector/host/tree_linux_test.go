package host

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/collectortest"
)

func TestReader_InfoDescribesHost(t *testing.T) {
	got := openFixture(t, "sidecar").Info()
	want := Info{Hostname: "node-17", BootID: "5a1f9c1e-3c43-4b0a-9d53-6b7a9a3f3f10", OS: got.OS, Kernel: "6.1.0-28-amd64",
		Arch: got.Arch, CPUModel: "AMD EPYC 7543 32-Core Processor", MemoryMB: 7812.5}
	same(t, "host", got, want)
}

func TestReader_ReadsAllSourcesOfHealthyHost(t *testing.T) {
	page := float64(os.Getpagesize())
	r := openFixture(t, "healthy").Read()
	want := &Reading{
		CPU:    []CPUTimes{cpuTicks("cpu0", 1000, 20, 300, 9000, 80, 0, 6, 4), cpuTicks("cpu1", 2000, 0, 500, 8000, 40, 1, 9, 0, 100)},
		Memory: &Memory{Total: 8_000_000 << 10, Available: 6_000_000 << 10},
		Devices: [NumDeviceKinds][]Device{
			Disks: []Device{{"vda", 20480, 40960, Counted | PerfPy}, {"vda1", 20480, 40960, 0}},
			NICs:  []Device{{"lo", 5 << 20, 5 << 20, Counted | Loopback | PerfPy}, {"eth0", 100 << 20, 10 << 20, Counted | PerfPy}},
		},
		Load: &Load{Load1: 0.2, Running: 3},
		VM:   &VMStat{SwapIn: 512 * page, SwapOut: 1024 * page, MajorFaults: 77, OOMKills: 2},
		Pressure: &cgroup.Pressure{CPU: cgroup.Stall{Some: 7, Full: nan}, Memory: cgroup.Stall{Some: 2, Full: 1},
			IO: cgroup.Stall{Some: 40, Full: 30}},
	}

	want.At, want.Disk = r.At, r.Disk
	same(t, "reading", r, want)
	check.True(t, len(r.Disk) == 1 && r.Disk[0].Used+r.Disk[0].Available != 0, "disks = %+v, want one with a size", r.Disk)
}

// damages describes the directories of testdata/proc that contain only a damaged file.
var damages = map[string]struct{ source, file, why string }{
	"stat-empty":            {SourceCPU, "stat", "no line for a CPU"},
	"stat-short-line":       {SourceCPU, "stat", `line "cpu1 2000 0 500" has 4 fields`},
	"stat-nonsense":         {SourceCPU, "stat", `cpu1: "NaN" is not a count`},
	"stat-without-cpus":     {SourceCPU, "stat", "no line for a CPU"},
	"meminfo-empty":         {SourceMemory, "meminfo", "no MemTotal"},
	"meminfo-nonsense":      {SourceMemory, "meminfo", `MemTotal: "lots kB" is not a number of kB`},
	"meminfo-negative":      {SourceMemory, "meminfo", `MemAvailable: "-1 kB" is not a number of kB`},
	"diskstats-short-line":  {SourceDiskIO, "diskstats", `" 254       0 vda 2560 11 20480 409" has 7 fields`},
	"diskstats-nonsense":    {SourceDiskIO, "diskstats", `device "vda": "20480" sectors read, "forty" written`},
	"netdev-empty":          {SourceNetwork, "net/dev", "no interface"},
	"netdev-headings-only":  {SourceNetwork, "net/dev", "no interface"},
	"netdev-short-line":     {SourceNetwork, "net/dev", "has 9 counters"},
	"netdev-nonsense":       {SourceNetwork, "net/dev", `eth0: "104857600" received, "-17" sent`},
	"netdev-without-colon":  {SourceNetwork, "net/dev", "has no name"},
	"netdev-missing":        {SourceNetwork, "net/dev", "no such file"},
	"stat-missing":          {SourceCPU, "stat", "no such file"},
	"meminfo-old":           {SourceMemory, "meminfo", "no MemAvailable (Linux 3.14 and newer have it)"},
	"meminfo-of-zero":       {SourceMemory, "meminfo", "no MemAvailable (Linux 3.14 and newer have it)"},
	"meminfo-missing":       {SourceMemory, "meminfo", "no such file"},
	"diskstats-unreadable":  {SourceDiskIO, "diskstats", "is a directory"},
	"loadavg-empty":         {SourceLoad, "loadavg", "fewer than 4 fields"},
	"loadavg-nonsense":      {SourceLoad, "loadavg", `"lots" is not a count of tasks`},
	"loadavg-missing":       {SourceLoad, "loadavg", "no such file"},
	"vmstat-empty":          {SourceSwap, "vmstat", "no line pswpin or pswpout"},
	"vmstat-nonsense":       {SourceSwap, "vmstat", `"-4" is not a count`},
	"vmstat-unreadable":     {SourceSwap, "vmstat", "is a directory"},
	"pressure-empty":        {SourcePressure, "pressure/memory", `not understood: ""`},
	"pressure-nonsense":     {SourcePressure, "pressure/memory", "not understood"},
	"meminfo-far-too-large": {SourceMemory, "meminfo", "more than 1048576 bytes"},
}

// spoil damages one file of a tree.
func spoil(t *testing.T, proc, name, file string) {
	t.Helper()
	path := filepath.Join(proc, file)
	switch {
	case strings.HasSuffix(name, "-missing"), strings.HasSuffix(name, "-unreadable"):
		must(t, os.Remove(path))
		if strings.HasSuffix(name, "-unreadable") {
			must(t, os.Mkdir(path, 0o777))
		}
	case name == "meminfo-old":
		write(t, proc, file, []byte("MemTotal: 8000000 kB\nMemFree: 1000000 kB\n"))
	case name == "meminfo-of-zero":
		write(t, proc, file, []byte("MemTotal: 8000000 kB\nMemFree: 1000000 kB\nMemAvailable: 0 kB\n"))
	case strings.HasSuffix(name, "-too-large"):
		write(t, proc, file, []byte(strings.Repeat("MemHuge: 1 kB\n", 1<<17)))
	default:
		data := check.Value(os.ReadFile(filepath.Join(collectortest.Root(t), "testdata/proc", "damaged-"+name, file)))(t)
		write(t, proc, file, data)
	}
}

func TestReader_DamagedFileAffectsOnlyItsSource(t *testing.T) {
	for name, tt := range damages {
		t.Run(name, func(t *testing.T) {
			proc, sys := collectortest.CopyOfTree(t)
			r := openHost(t, proc, sys)
			healthy := r.Read()
			spoil(t, proc, name, tt.file)
			got := r.Read()
			wantError(t, tt.source, got.Failed[tt.source], tt.why, filepath.Join(proc, tt.file))
			same(t, "number of failures", len(got.Failed), 1)
			same(t, "the other sources", got.without(tt.source), healthy.without(tt.source))
			same(t, "source with values from a damaged file", got.part(tt.source), "")
			repair(t, proc, tt.file)
			again := r.Read()
			again.At, again.Disk = healthy.At, healthy.Disk
			same(t, "the Reading after the repair", again, healthy)
		})
	}
}

// without returns a copy of the Reading without the given source, the time and the numbers of a real file system.
func (r *Reading) without(source string) Reading {
	c := *r
	c.At, c.Failed, c.Disk = Instant{}, nil, nil
	switch source {
	case SourceCPU:
		c.CPU = nil
	case SourceMemory:
		c.Memory = nil
	case SourceDiskIO:
		c.Devices[Disks] = nil
	case SourceNetwork:
		c.Devices[NICs] = nil
	case SourceLoad:
		c.Load = nil
	case SourceSwap:
		c.VM = nil
	case SourcePressure:
		p := *c.Pressure
		p.Memory = cgroup.Stall{} // only this file is damaged
		c.Pressure = &p
	}
	return c
}

// part returns source if the Reading has values of that source, else "".
func (r *Reading) part(source string) string {
	switch {
	case source == SourceCPU && r.CPU != nil, source == SourceMemory && r.Memory != nil,
		source == SourceDiskIO && r.Devices[Disks] != nil, source == SourceNetwork && r.Devices[NICs] != nil,
		source == SourceLoad && r.Load != nil, source == SourceSwap && r.VM != nil,
		source == SourcePressure && !math.IsNaN(r.Pressure.Memory.Full):
		return source
	}
	return ""
}

func TestReader_EmptyHostFailsEachSource(t *testing.T) {
	empty := t.TempDir()
	r := openHost(t, empty, empty)
	got := r.Read()
	if got.CPU != nil || got.Memory != nil || got.Devices[Disks] != nil || got.Devices[NICs] != nil ||
		got.Load != nil || got.VM != nil || got.Pressure != nil || len(got.Failed) != 7 {
		t.Errorf("Reading of an empty host = %+v, want no values and 7 failures", got)
	}
	h := r.Info()
	same(t, "host", h, Info{Hostname: h.Hostname, OS: h.OS, Arch: h.Arch})
}

// If another host's net/dev exists but may not be read, net/dev of the reader's namespace must not replace it.
func TestReader_SidecarDoesNotReadItsOwnNetwork(t *testing.T) {
	proc, sys := collectortest.CopyOfTree(t)
	must(t, os.MkdirAll(filepath.Join(proc, "1", "net", "dev"), 0o777))
	got := openHost(t, proc, sys).Read()
	check.True(t, got.Devices[NICs] == nil && got.Failed[SourceNetwork] != nil,
		"NICs = %v, failure = %v; want no NICs and a failure", got.Devices[NICs], got.Failed[SourceNetwork])
}

func TestClassCache_ClassifiesAgainAfterAMinute(t *testing.T) {
	proc, healthy := collectortest.CopyOfTree(t)
	sys := t.TempDir()
	must(t, os.CopyFS(sys, os.DirFS(healthy)))
	now := instant(0)
	r := NewReader(Options{Proc: proc, Sys: sys, Now: func() Instant { return now }})
	defer r.Close()
	same(t, "counted interfaces at first", namesOf(r.Read().Devices[NICs], Counted), []string{"lo", "eth0"})
	// Replace the card with a virtual interface of the same name.
	must(t, os.Remove(filepath.Join(sys, "class/net/eth0/device")))
	write(t, sys, "class/net/eth0/master/bridge/x", nil)
	now = instant(rescanInterval - 1)
	same(t, "counted interfaces within the minute", namesOf(r.Read().Devices[NICs], Counted), []string{"lo", "eth0"})
	now = instant(rescanInterval)
	same(t, "counted interfaces after the minute", namesOf(r.Read().Devices[NICs], Counted), []string{"lo"})

	must(t, os.RemoveAll(filepath.Join(sys, "class/net/eth0/master")))
	data := check.Value(os.ReadFile(filepath.Join(proc, "net/dev")))(t)
	write(t, proc, "net/dev", append(data, "  eth1: 1 0 0 0 0 0 0 0 2 0 0 0 0 0 0 0\n"...))
	same(t, "counted interfaces when one is added", namesOf(r.Read().Devices[NICs], Counted), []string{"lo", "eth0", "eth1"})
}

// Names of the last Reading are reused only if they are unchanged.
func TestNameCache_HasNamesOfNewestReading(t *testing.T) {
	var names nameCache
	for _, want := range [][]string{{"lo", "eth0"}, {"lo", "wan0"}, {"wan0"}, {"wan0", "eth0", "lo"}, {"lo", "eth0"}} {
		var file strings.Builder
		file.WriteString("a\nb\n")
		for _, name := range want {
			file.WriteString(name + ": 1 0 0 0 0 0 0 0 2 0 0 0 0 0 0 0\n")
		}
		nics := check.Value(parseNetDev([]byte(file.String()), &names, nil))(t)
		same(t, "names", namesOf(nics, 0), want)
	}
}

// repair replaces a damaged file with the file of the healthy tree.
func repair(t *testing.T, proc, file string) {
	t.Helper()
	must(t, os.RemoveAll(filepath.Join(proc, file)))
	mended := check.Value(os.ReadFile(filepath.Join(collectortest.Root(t), "testdata/proc/healthy", file)))(t)
	write(t, proc, file, mended)
}

// openFiles returns the targets of this process's file descriptors, by path in procfs.
func openFiles(t *testing.T) map[string]string {
	t.Helper()
	entries := check.Value(os.ReadDir("/proc/self/fd"))(t)

	files := map[string]string{}
	for _, e := range entries {
		path := "/proc/self/fd/" + e.Name()
		if to, err := os.Readlink(path); err == nil { // fails for the descriptor that ReadDir used
			files[path] = to
		}
	}

	return files
}

// A closed Reader has no open files and may be used again.
func TestReader_CloseClosesOpenFiles(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	must(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()

	before := openFiles(t)
	job := JobOptions{Source: JobFromTree, Tree: process.NewTree(process.Options{Root: os.Getpid()})}
	job.Group, job.GroupErr = cgroup.Find(cgroup.Options{})
	r := NewReader(Options{Job: job})

	for range 2 {
		r.Baseline()
		r.Final()
		time.Sleep(10 * time.Millisecond)
		if use := r.Final().Job; math.IsNaN(use.CPUSeconds) || use.Processes < 1 {
			t.Errorf("usage of the job = %+v, want known CPU seconds and at least 1 process", use)
		}
		r.Close()

		for path, to := range openFiles(t) {
			check.True(t, before[path] == to, "%s is still open after Close", to)
		}
	}
}
