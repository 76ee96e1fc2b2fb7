package collector

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shirou/gopsutil/v3/common"
	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/mem"
	"github.com/shirou/gopsutil/v3/net"

	"github.com/perfagent/perfagent/collector/cgroup"
)

// account is what a tree says: the devices in our sums and in perf.py's, and the
// bytes since boot of both, in MiB and in the order of Counters.
type account struct {
	Disks, PerfPyDisks, NICs []string
	MB, PerfPyMB             [6]float64
}

func accountOf(r *Reading) account {
	return account{counted(r.Devices[Disks], Counted), counted(r.Devices[Disks], PerfPy), counted(r.Devices[NICs], Counted),
		bootTotals(r, false), bootTotals(r, true)}
}

// The answers are worked out by hand from the trees: whole MiB, each byte once.
func TestEachByteIsCountedOnce(t *testing.T) {
	tests := map[string]account{
		// LVM on RAID on partitions: the bytes of dm-0 and dm-1 are those of md0, and its are sda's and sdb's.
		"lvm-on-raid": {[]string{"sda", "sdb", "sr0"},
			[]string{"ram0", "loop0", "sda", "sdb", "md0", "dm-0", "dm-1", "zram0", "sr0"}, []string{"lo", "eth0"},
			[6]float64{1403, 990, 2, 40, 2, 30}, [6]float64{4055, 2027, 2, 40, 2, 30}},
		"nvme-multipath": {[]string{"nvme0n1", "nvme1n1"},
			[]string{"nvme0c0n1", "nvme0c1n1", "nvme0n1", "nvme1n1", "dm-0"}, []string{"lo", "eth0"},
			[6]float64{350, 100, 2, 40, 2, 30}, [6]float64{930, 180, 2, 40, 2, 30}},
		"nvme-multipath-before-6.3": {[]string{"nvme0c0n1", "nvme0c1n1", "nvme0n1", "nvme1n1"},
			[]string{"nvme0c0n1", "nvme0c1n1", "nvme0n1", "nvme1n1"}, []string{"lo", "eth0"},
			[6]float64{350, 100, 2, 40, 2, 30}, [6]float64{350, 100, 2, 40, 2, 30}},
		// A physical host: the cards, whatever stands on them.
		"bond-vlan-bridge": {[]string{"vda"}, []string{"vda"}, []string{"lo", "eth0", "eth1", "wlan0"},
			[6]float64{10, 20, 5, 32, 5, 301}, [6]float64{10, 20, 5, 241, 5, 1028}},
		// A virtual machine with a card lent to it: eth0 counts what went through enP1s1.
		"accelerated-networking": {[]string{"sda"}, []string{"sda"}, []string{"lo", "eth0"},
			[6]float64{1, 2, 1, 600, 1, 500}, [6]float64{1, 2, 1, 1184, 1, 993}},
		// A switch's ports have a device too, and their bytes go through eth0.
		"switch-ports": {[]string{"mmcblk0", "mmcblk0boot0", "mtdblock0"}, []string{"mmcblk0", "mmcblk0boot0", "mtdblock0"},
			[]string{"lo", "eth0"}, [6]float64{2, 2, 1, 600, 1, 500}, [6]float64{2, 2, 1, 1770, 1, 1470}},
		"container": {[]string{"vda"}, []string{"vda"}, []string{"lo", "eth0"},
			[6]float64{10, 20, 5, 10, 5, 100}, [6]float64{10, 20, 5, 10, 5, 100}},
		// The bridge and not its members; eth1 and not the VLAN on it; a tunnel says nothing of where it goes.
		"container-bridge": {[]string{"loop0"}, []string{"loop0"}, []string{"lo", "br0", "eth1", "tun0"},
			[6]float64{5, 6, 1, 21, 1, 109}, [6]float64{5, 6, 1, 42, 1, 255}},
		"container-without-sysfs": {[]string{"vda", "nvme0n1", "xvda1", "mmcblk0"},
			[]string{"loop0", "vda", "nvme0n1", "md127", "dm-0", "xvda1", "mmcblk0"}, []string{"lo", "eth0", "eth1"},
			[6]float64{47, 69, 5, 12, 5, 101}, [6]float64{61, 88, 5, 12, 5, 101}},
		"sysfs-without-blocks": {[]string{"vda"}, []string{"vda"}, []string{"lo", "eth0"},
			[6]float64{10, 20, 1, 1, 1, 1}, [6]float64{10, 20, 1, 1, 1, 1}},
		"loopback-names": {[]string{}, []string{}, []string{"lo", "loopback0", "MyLoopBack", "LO", "lo0", "eth0", "eth0:1"},
			[6]float64{0, 0, 2222, 18, 1111, 15}, [6]float64{0, 0, 2222, 18, 1111, 15}},
		"slash-in-name": {[]string{"cciss/c0d0", "cciss/c0d1"}, []string{"cciss/c0d0", "cciss/c0d1", "dm-0"}, []string{"lo", "eth0"},
			[6]float64{107, 208, 1, 1, 1, 1}, [6]float64{113, 215, 1, 1, 1, 1}},
		"no-diskstats": {[]string{"cciss/c0d0", "sda"}, []string{"cciss/c0d0", "dm-0", "sda", "zram0"}, []string{"lo", "eth0"},
			[6]float64{1020, 530, 1, 1, 1, 1}, [6]float64{1925, 935, 1, 1, 1, 1}},
		"kernel-2.6": {[]string{"hda"}, []string{"hda"}, []string{"lo", "eth0"},
			[6]float64{100, 200, 1, 1, 1, 1}, [6]float64{100, 200, 1, 1, 1, 1}},
		"netdev-without-headings": {[]string{"vda"}, []string{"vda"}, []string{"lo", "eth0"},
			[6]float64{10, 20, 5, 10, 5, 100}, [6]float64{10, 20, 5, 10, 5, 100}},
		// The interfaces of the host's process 1, not of who reads.
		"sidecar": {[]string{"vda"}, []string{"vda"}, []string{"lo", "eno1"},
			[6]float64{10, 20, 50, 800, 50, 900}, [6]float64{10, 20, 50, 800, 50, 900}},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			r := fixture(t, name).Read()
			same(t, "failures", wideFailed(r), map[string]error{})
			same(t, "account", accountOf(r), want)
		})
	}
}

// wideFailed are the failures of the sources that every tree has.
func wideFailed(r *Reading) map[string]error {
	failed := maps.Clone(r.Failed)
	for _, source := range []string{SourceLoad, SourceSwap, SourcePressure} {
		delete(failed, source)
	}
	return failed
}

func TestHostOfATree(t *testing.T) {
	got := fixture(t, "sidecar").Host()
	want := Host{Hostname: "node-17", BootID: "5a1f9c1e-3c43-4b0a-9d53-6b7a9a3f3f10", OS: got.OS, Kernel: "6.1.0-28-amd64",
		Arch: got.Arch, CPUModel: "AMD EPYC 7543 32-Core Processor", MemoryMB: 7812.5}
	same(t, "host", got, want)
}

func TestReadingOfATree(t *testing.T) {
	page := float64(os.Getpagesize())
	r := openTree(t, "../testdata/proc/healthy", "../testdata/sys/healthy").Read()
	want := &Reading{
		CPU:    []CPUTimes{ticks("cpu0", 1000, 20, 300, 9000, 80, 0, 6, 4), ticks("cpu1", 2000, 0, 500, 8000, 40, 1, 9, 0, 100)},
		Memory: &Memory{Total: 8_000_000 << 10, Available: 6_000_000 << 10},
		Devices: [NumKinds][]Device{
			Disks: []Device{{"vda", 20480, 40960, Counted | PerfPy}, {"vda1", 20480, 40960, 0}},
			NICs:  []Device{{"lo", 5 << 20, 5 << 20, Counted | Loopback | PerfPy}, {"eth0", 100 << 20, 10 << 20, Counted | PerfPy}},
		},
		Load: &Load{One: 0.2, Running: 3},
		VM:   &VMStat{SwapIn: 512 * page, SwapOut: 1024 * page, OOMKills: 2},
		Pressure: &cgroup.Pressure{CPU: cgroup.Stall{Some: 7, Full: absent}, Memory: cgroup.Stall{Some: 2, Full: 1},
			IO: cgroup.Stall{Some: 40, Full: 30}},
	}
	want.At, want.Disk = r.At, r.Disk
	same(t, "reading", r, want)
	if len(r.Disk) != 1 || r.Disk[0].Used+r.Disk[0].Available == 0 {
		t.Errorf("disk: %+v", r.Disk)
	}
}

// A kernel of old lacks the columns of steal and guest.
func TestShortLinesOfOldKernels(t *testing.T) {
	r := fixture(t, "kernel-2.6").Read()
	same(t, "cpu", r.CPU, []CPUTimes{ticks("cpu0", 1000, 20, 300, 9000, 80, 0, 6)})
}

// gopsutil, which reads these sources on other systems, says the same of every
// tree that it reads as psutil does.
func TestTreesReadAsGopsutilReadsThem(t *testing.T) {
	for _, name := range []string{"healthy", "lvm-on-raid", "bond-vlan-bridge", "container-bridge", "loopback-names", "memavailable-missing"} {
		t.Run(name, func(t *testing.T) {
			r := fixture(t, name)
			got := r.Read()
			ctx := context.WithValue(t.Context(), common.EnvKey, common.EnvMap{common.HostProcEnvKey: r.proc})
			times, err := cpu.TimesWithContext(ctx, true)
			if err != nil {
				t.Fatal(err)
			}
			var cpus []CPUTimes
			for _, s := range times {
				cpus = append(cpus, CPUTimes{Name: s.CPU, Guest: s.Guest, GuestNice: s.GuestNice, Seconds: [NumCPUModes]float64{
					s.User, s.Nice, s.System, s.Idle, s.Iowait, s.Irq, s.Softirq, s.Steal}})
			}
			same(t, "cpu", got.CPU, cpus)
			vm, err := mem.VirtualMemoryWithContext(ctx)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "memory", *got.Memory, Memory{Total: vm.Total, Available: vm.Available})
			stats, err := net.IOCountersByFileWithContext(ctx, true, filepath.Join(r.proc, "net/dev"))
			if err != nil {
				t.Fatal(err)
			}
			var nics []Device
			for i, s := range stats {
				nics = append(nics, Device{s.Name, s.BytesRecv, s.BytesSent, got.Devices[NICs][i].Class})
			}
			same(t, "network", got.Devices[NICs], nics)
		})
	}
}

// damages are the folders of testdata/proc that hold nothing but a damaged file.
var damages = map[string]struct{ source, file, why string }{
	"stat-empty":            {SourceCPU, "stat", "no line of a CPU"},
	"stat-short-line":       {SourceCPU, "stat", `line "cpu1 2000 0 500" has 4 fields`},
	"stat-nonsense":         {SourceCPU, "stat", `cpu1: "NaN" is not a count`},
	"stat-without-cpus":     {SourceCPU, "stat", "no line of a CPU"},
	"meminfo-empty":         {SourceMemory, "meminfo", "no MemTotal"},
	"meminfo-nonsense":      {SourceMemory, "meminfo", `MemTotal: "lots kB" is not a number of kB`},
	"meminfo-negative":      {SourceMemory, "meminfo", `MemAvailable: "-1 kB" is not a number of kB`},
	"diskstats-short-line":  {SourceDiskIO, "diskstats", `" 254       1 vda1 2560 11 20480 409 5120 13 40960 819" has 11 fields`},
	"diskstats-nonsense":    {SourceDiskIO, "diskstats", `device "vda": "20480" sectors read, "forty" written`},
	"netdev-empty":          {SourceNetwork, "net/dev", "no interface"},
	"netdev-headings-only":  {SourceNetwork, "net/dev", "no interface"},
	"netdev-short-line":     {SourceNetwork, "net/dev", "has 9 counters"},
	"netdev-nonsense":       {SourceNetwork, "net/dev", `eth0: "104857600" received, "-17" sent`},
	"netdev-without-colon":  {SourceNetwork, "net/dev", "has no name"},
	"netdev-missing":        {SourceNetwork, "net/dev", "no such file"},
	"stat-missing":          {SourceCPU, "stat", "no such file"},
	"meminfo-missing":       {SourceMemory, "meminfo", "no such file"},
	"diskstats-unreadable":  {SourceDiskIO, "diskstats", "is a directory"},
	"loadavg-empty":         {SourceLoad, "loadavg", "fewer than 4 fields"},
	"loadavg-nonsense":      {SourceLoad, "loadavg", `"lots" is no number of tasks`},
	"loadavg-missing":       {SourceLoad, "loadavg", "no such file"},
	"vmstat-empty":          {SourceSwap, "vmstat", "no line pswpin or pswpout"},
	"vmstat-nonsense":       {SourceSwap, "vmstat", `"-4" is no count`},
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
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "-unreadable") {
			if err := os.Mkdir(path, 0o777); err != nil {
				t.Fatal(err)
			}
		}
	case strings.HasSuffix(name, "-too-large"):
		write(t, proc, file, []byte(strings.Repeat("MemHuge: 1 kB\n", 1<<17)))
	default:
		data, err := os.ReadFile(filepath.Join("../testdata/proc", "damaged-"+name, file))
		if err != nil {
			t.Fatal(err)
		}
		write(t, proc, file, data)
	}
}

func TestDamagedFileCostsItsSourceOnly(t *testing.T) {
	for name, tt := range damages {
		t.Run(name, func(t *testing.T) {
			proc, sys := hostTree(t)
			r := openTree(t, proc, sys)
			healthy := r.Read()
			spoil(t, proc, name, tt.file)
			got := r.Read()
			err := got.Failed[tt.source]
			if err == nil || !strings.Contains(err.Error(), tt.why) || !strings.Contains(err.Error(), filepath.Join(proc, tt.file)) {
				t.Errorf("failure of %s: %v, want one that names %s and says %q", tt.source, err, tt.file, tt.why)
			}
			if len(got.Failed) != 1 {
				t.Errorf("other sources failed too: %v", got.Failed)
			}
			same(t, "the other sources", got.without(tt.source), healthy.without(tt.source))
			if part := got.part(tt.source); part != "" {
				t.Errorf("%s is there: %s", tt.source, part)
			}
			if err := os.RemoveAll(filepath.Join(proc, tt.file)); err != nil {
				t.Fatal(err)
			}
			mended, err := os.ReadFile(filepath.Join("../testdata/proc/healthy", tt.file))
			if err != nil {
				t.Fatal(err)
			}
			write(t, proc, tt.file, mended)
			again := r.Read()
			again.At, again.Disk = healthy.At, healthy.Disk
			same(t, "the Reading after the repair", again, healthy)
		})
	}
}

// without is the Reading less one source, its moment and what a real file system
// says.
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
		c.Pressure = nil
	}
	return c
}

// part says what a Reading has of a source; "" = it is absent.
func (r *Reading) part(source string) string {
	switch {
	case source == SourceCPU && r.CPU != nil, source == SourceMemory && r.Memory != nil,
		source == SourceDiskIO && r.Devices[Disks] != nil, source == SourceNetwork && r.Devices[NICs] != nil,
		source == SourceLoad && r.Load != nil, source == SourceSwap && r.VM != nil, source == SourcePressure && r.Pressure != nil:
		return source
	}
	return ""
}

func TestHostWithoutAnythingIsAbsentInEveryPart(t *testing.T) {
	empty := t.TempDir()
	r := openTree(t, empty, empty)
	got := r.Read()
	if got.CPU != nil || got.Memory != nil || got.Devices[Disks] != nil || got.Devices[NICs] != nil ||
		got.Load != nil || got.VM != nil || got.Pressure != nil || len(got.Failed) != 7 {
		t.Errorf("got %+v", got)
	}
	h := r.Host()
	same(t, "host", h, Host{Hostname: h.Hostname, OS: h.OS, Arch: h.Arch})
}

// Under another host's procfs a file net/dev that belongs to the reader must not
// stand in for one that the host has and we may not read.
func TestSidecarDoesNotFallBackToItsOwnNetwork(t *testing.T) {
	proc, sys := hostTree(t)
	if err := os.MkdirAll(filepath.Join(proc, "1", "net", "dev"), 0o777); err != nil {
		t.Fatal(err)
	}
	got := openTree(t, proc, sys).Read()
	if got.Devices[NICs] != nil || got.Failed[SourceNetwork] == nil {
		t.Errorf("net: %v, failure: %v", got.Devices[NICs], got.Failed[SourceNetwork])
	}
}

func TestClassesAreLookedUpAgain(t *testing.T) {
	proc, _ := hostTree(t)
	sys := t.TempDir()
	if err := os.CopyFS(sys, os.DirFS("../testdata/sys/healthy")); err != nil {
		t.Fatal(err)
	}
	now := at(0)
	r := NewReader(ReaderOptions{Proc: proc, Sys: sys, Now: func() Instant { return now }})
	defer r.Close()
	same(t, "at first", counted(r.Read().Devices[NICs], Counted), []string{"lo", "eth0"})
	// The card is taken away from under its name: a virtual one has it now.
	if err := os.Remove(filepath.Join(sys, "class/net/eth0/device")); err != nil {
		t.Fatal(err)
	}
	write(t, sys, "class/net/eth0/master/bridge/x", nil)
	now = at(topologyAge - 1)
	same(t, "within the minute", counted(r.Read().Devices[NICs], Counted), []string{"lo", "eth0"})
	now = at(topologyAge)
	same(t, "after the minute", counted(r.Read().Devices[NICs], Counted), []string{"lo"})

	if err := os.RemoveAll(filepath.Join(sys, "class/net/eth0/master")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(proc, "net/dev"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, proc, "net/dev", append(data, "  eth1: 1 0 0 0 0 0 0 0 2 0 0 0 0 0 0 0\n"...))
	same(t, "when one appears", counted(r.Read().Devices[NICs], Counted), []string{"lo", "eth0", "eth1"})
}

// The names of the last Reading are used again only where they are still the same.
func TestNamesAreThoseOfTheNewestReading(t *testing.T) {
	var names nameCache
	for _, want := range [][]string{{"lo", "eth0"}, {"lo", "wan0"}, {"wan0"}, {"wan0", "eth0", "lo"}, {"lo", "eth0"}} {
		var file strings.Builder
		file.WriteString("a\nb\n")
		for _, name := range want {
			file.WriteString(name + ": 1 0 0 0 0 0 0 0 2 0 0 0 0 0 0 0\n")
		}
		nics, err := parseNetDev([]byte(file.String()), &names)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "names", counted(nics, 0), want)
	}
}
