package collector

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/collectortest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// pair holds the results of the two readers for a column: from the kernel's files, then from gopsutil. NaN means
// missing.
type pair [2]float64

// anything is a value that the tree does not determine.
var anything = math.Inf(1)

// departures holds, for each tree, the columns in which gopsutil differs from the kernel's files. All other columns are
// equal.
var departures = map[string]map[string]pair{
	// gopsutil reads the number of running tasks from stat, at another time. Without that line, it has no load.
	"healthy":                   {"procs_running": {3, 1}},
	"damaged-stat-empty":        {"procs_running": {1, absent}, "load_1m": {0.2, absent}},
	"damaged-stat-without-cpus": {"procs_running": {1, absent}, "load_1m": {0.2, absent}},
	"damaged-stat-nonsense":     {"procs_running": {1, absent}, "load_1m": {0.2, absent}},
	"damaged-loadavg-nonsense":  {"procs_running": {absent, 1}, "load_1m": {absent, 0.2}},
	// Without the file, gopsutil returns the load of the machine that runs perfagent.
	"container": {"procs_running": {absent, 1}, "load_1m": {absent, anything}},
	// The kernel reader skips a CPU with a damaged line.
	"damaged-stat-short-line": {
		"procs_running": {1, absent}, "load_1m": {0.2, absent}, "cpu_iowait_pct": {absent, 0}, "cpu_steal_pct": {absent, 0},
		"cpu_pct_per_cpu_avg": {absent, 33.3}, "cpu_pct_per_cpu_max": {absent, 33.3}, "cpu_pct_per_cpu_min": {absent, 33.3}},

	// gopsutil does not notice that more memory is available than the total.
	"memavailable-above-total": {"mem_percent": {87.5, absent}, "mem_used_mb": {6835.9375, absent}},

	// gopsutil cannot distinguish an empty list from an unreadable one.
	"loopback-names": noDisks(),
	// gopsutil does not list unused devices, so their first window is lost. Without the drive, it cannot recognize that
	// the hidden path counts the same bytes.
	"quiet-disks": {
		"disk_io_read_mb": {0.15625, 0.046875}, "disk_io_read_mb_per_second": {0.15625, 0.046875},
		"disk_io_write_mb": {0.3125, 0.09375}, "disk_io_write_mb_per_second": {0.3125, 0.09375}},

	// gopsutil mistakes the first two lines for headings.
	"netdev-without-headings": {
		"net_io_ext_recv_mb": {2.0 / (1 << 16), absent}, "net_io_ext_recv_mb_per_second": {3.1e-05, absent},
		"net_io_ext_sent_mb": {4.0 / (1 << 16), absent}, "net_io_ext_sent_mb_per_second": {6.1e-05, absent},
		"net_io_lo_recv_mb": {1.0 / (1 << 16), absent}, "net_io_lo_recv_mb_per_second": {1.5e-05, absent},
		"net_io_lo_sent_mb": {2.0 / (1 << 16), absent}, "net_io_lo_sent_mb_per_second": {3.1e-05, absent}},
}

// noDisks returns the departures of a host with idle disks, for which gopsutil has no values.
func noDisks() map[string]pair {
	return map[string]pair{
		"disk_io_read_mb": {0, absent}, "disk_io_read_mb_per_second": {0, absent},
		"disk_io_write_mb": {0, absent}, "disk_io_write_mb_per_second": {0, absent}}
}

// Over one window of each tree, the two readers measure the same values, except for departures.
func TestReader_BothReadersAgreeOnTrees(t *testing.T) {
	trees := check.Value(os.ReadDir(filepath.Join(collectortest.Root(t), "testdata/proc")))(t)

	for _, tree := range trees {
		t.Run(tree.Name(), func(t *testing.T) {
			proc, sys := writableTree(t, tree.Name())
			now := at(0)
			var readers [2]*host.Reader
			var states [2]CounterState
			for i := range readers {
				readers[i] = host.NewReader(host.Options{Proc: proc, Sys: sys, Gopsutil: i == 1,
					Now: func() host.Instant { return now }, Statfs: fullDisk})
				defer readers[i].Close()
				states[i] = NewCounterState(readers[i].Read())
			}

			advance(t, proc)
			now = at(time.Second)
			var samples [2]Sample
			for i, r := range readers {
				_, samples[i] = states[i].Next(r.Read(), FirstWindow)
			}
			got, want := differences(samples), departures[tree.Name()]
			for key, v := range want {
				if v[1] == anything && !math.IsNaN(got[key][1]) {
					got[key] = pair{got[key][0], anything}
				}
			}
			same(t, "columns that differ through gopsutil", got, want)
		})
	}
}

func fullDisk(path string) (host.DiskUsage, error) {
	return host.DiskUsage{Path: path, Used: 30, Available: 70}, nil
}

// differences returns the columns in which two samples differ; nil if there are none.
func differences(s [2]Sample) map[string]pair {
	var out map[string]pair
	for c := range NumColumns {
		v := pair{absent, absent}
		for i := range s {
			if s[i].Has(c) {
				v[i] = s[i].Values[c]
			}
		}
		if v[0] != v[1] && !(math.IsNaN(v[0]) && math.IsNaN(v[1])) {
			if out == nil {
				out = make(map[string]pair)
			}
			out[c.Key()] = v
		}
	}
	return out
}

// writableTree copies a host's procfs. Trees with one damaged file get the other files from the healthy host. Trees
// that are not about the load get a loadavg that agrees with /proc/stat.
func writableTree(t *testing.T, name string) (proc, sys string) {
	t.Helper()
	from, sys := collectortest.Tree(t, name)
	proc = t.TempDir()
	if strings.HasPrefix(name, "damaged-") {
		proc, sys = collectortest.CopyOfTree(t)
	}
	if name != "container" {
		write(t, proc, "loadavg", []byte("0.20 0.18 0.12 1/80 11206\n"))
	}
	err := filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil {
			write(t, proc, strings.TrimPrefix(path, from), data)
		}
		return err
	})
	must(t, err)
	return proc, sys
}

// advance simulates a second: it increases every counter that is read.
func advance(t *testing.T, proc string) {
	t.Helper()
	for name, columns := range map[string][]int{"stat": {1, 4}, "diskstats": {3, 5, 7, 9}, "net/dev": {1, 9}, "1/net/dev": {1, 9}} {
		data, err := os.ReadFile(filepath.Join(proc, name))
		if err != nil {
			continue
		}
		var out bytes.Buffer
		number := 0
		for line := range bytes.Lines(data) {
			number++
			counted := name == "diskstats" || bytes.HasPrefix(line, []byte("cpu")) || strings.HasSuffix(name, "dev") && bytes.ContainsRune(line, ':')
			if counted {
				line = raise(line, columns, uint64(number))
			}
			out.Write(line)
		}
		write(t, proc, name, out.Bytes())
	}
}

// raise adds a different number to each of some fields of a line, if they are counts.
func raise(line []byte, columns []int, by uint64) []byte {
	fields := strings.Fields(string(line))
	for i, column := range columns {
		if column >= len(fields) {
			continue
		}
		if n, err := strconv.ParseUint(fields[column], 10, 64); err == nil {
			fields[column] = fmt.Sprint(n + by*uint64(16*(i+1)))
		}
	}
	return []byte(strings.Join(fields, " ") + "\n")
}

// A pressure is unknown only if its own file is damaged.
func TestColumn_PressureIsAffectedByItsOwnFileOnly(t *testing.T) {
	proc, sys := collectortest.CopyOfTree(t)
	for _, file := range []string{"cpu", "memory", "io"} {
		write(t, proc, "pressure/"+file, []byte("lots\n"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rec := NewSampler(openTree(t, proc, sys), Options{Interval: time.Hour}).Run(ctx)

	for c, file := range map[Column]string{PSICPUSome: "cpu", PSIMemorySome: "memory", PSIMemoryFull: "memory",
		PSIIOSome: "io", PSIIOFull: "io"} {
		var why []string
		for _, f := range rec.Failures {
			if c.AffectedBy(f) {
				why = append(why, f.Why)
			}
		}
		check.True(t, len(why) == 1 && strings.Contains(why[0], filepath.Join(proc, "pressure", file)),
			"%s is affected by failures %q, want one that names pressure/%s", c.Key(), why, file)
	}
}

// A stall that is unknown in one Reading keeps its earlier value.
func TestAccountTracker_KeepsStallsMissingFromOneReading(t *testing.T) {
	reading := func(seconds int, memory float64) *host.Reading {
		p := &cgroup.Pressure{CPU: cgroup.Stall{Some: float64(seconds), Full: absent},
			Memory: cgroup.Stall{Some: memory, Full: memory}, IO: cgroup.Stall{Some: absent, Full: absent}}
		return &host.Reading{At: at(time.Duration(seconds) * time.Second), Pressure: p}
	}
	l, a := newAccountTracker(reading(0, 10), host.JobOptions{}), NoAccount()
	l, a = l.next(a, reading(1, 12), trackerInput{})
	_, a = l.next(a, reading(2, absent), trackerInput{})
	stall := &a.HostStall
	got := []float64{float64(stall.CPUSome), float64(stall.MemoryFull), float64(stall.IOFull)}
	same(t, "stalls", got, []float64{2, 2, absent})
}

// sandwich is a Reading through gopsutil between two Readings of the kernel's files.
type sandwich struct{ before, through, after *host.Reading }

// open returns the time from the first to the last Reading.
func (s *sandwich) open() time.Duration { return s.after.At.Mono - s.before.At.Mono }

// Both readers read the same host, under load: gopsutil's result must lie between the values of the kernel's files just
// before and just after.
func TestReader_BothReadersAgreeOnLiveHost(t *testing.T) {
	testenv.SkipIfShort(t, "some windows under load")
	dir := t.TempDir()
	kernel := host.NewReader(host.Options{DiskPaths: []string{dir}})
	defer kernel.Close()
	gopsutil := host.NewReader(host.Options{DiskPaths: []string{dir}, Gopsutil: true})
	defer gopsutil.Close()
	same(t, "names of the readers", []string{kernel.Name(), gopsutil.Name()}, []string{"auto", "gopsutil"})
	load(t)

	var last *sandwich
	for n, moved := 0, 0; n < 6; n++ {
		s := &sandwich{before: kernel.Read()}
		s.through = gopsutil.Read()
		s.after = kernel.Read()
		for _, r := range []*host.Reading{s.before, s.through, s.after} {
			delete(r.Failed, host.SourceDisk) // the load may delay the disk
			if len(r.Failed) > 0 {
				t.Fatal(r.Failed)
			}
		}
		if moved < 10 && (!lies(s.through.Memory.Percent(), s.before.Memory.Percent(), s.after.Memory.Percent(), 0.5) ||
			!lies(s.through.Load.Load1, s.before.Load.Load1, s.after.Load.Load1, 0)) { // other programs came and went
			n, moved = n-1, moved+1
			continue
		}
		checkGauges(t, s)
		checkCounters(t, s)
		if last != nil {
			checkWindow(t, last, s)
		}
		last = s
		time.Sleep(300 * time.Millisecond) // a window
	}
}

// between checks that v lies between the kernel's two values, in either order.
func between(t *testing.T, what string, v, before, after, slack float64) {
	t.Helper()
	check.True(t, lies(v, before, after, slack),
		"%s: %v, want it between %v before and %v after, from the kernel's files", what, v, before, after)
}

// checkGauges checks memory and disk usage, which move both ways between the three Readings.
func checkGauges(t *testing.T, s *sandwich) {
	t.Helper()
	same(t, "memory", s.through.Memory.Total, s.before.Memory.Total)
	between(t, "memory percent", s.through.Memory.Percent(), s.before.Memory.Percent(), s.after.Memory.Percent(), 0.5)
	between(t, "load", s.through.Load.Load1, s.before.Load.Load1, s.after.Load.Load1, 0)
	check.True(t, s.through.Load.Running >= 1,
		"gopsutil counts %v running tasks, want at least 1: this test is running", s.through.Load.Running)
	if d := s.through.Disk; len(d) == 1 && len(s.before.Disk) == 1 && len(s.after.Disk) == 1 {
		between(t, "disk percent", d[0].Percent(), s.before.Disk[0].Percent(), s.after.Disk[0].Percent(), 0.1)
	}
}

// checkCounters checks that gopsutil's counters lie between the kernel's. They must, because counters only grow.
// gopsutil does not list disks that were idle since boot.
func checkCounters(t *testing.T, s *sandwich) {
	t.Helper()
	for _, kind := range []host.DeviceKind{host.Disks, host.NICs} {
		names := 0
		for i, before := range s.before.Devices[kind] {
			after := findDevice(s.after.Devices[kind], before.Name, i)
			through := findDevice(s.through.Devices[kind], before.Name, i)
			if after == nil || through == nil && kind == host.Disks && before.In+before.Out == 0 {
				continue
			}
			if through == nil {
				t.Errorf("gopsutil does not list %s", before.Name)
				continue
			}
			names++
			same(t, "class of "+before.Name, through.Class, before.Class)
			between(t, before.Name+" in", float64(through.In), float64(before.In), float64(after.In), 0)
			between(t, before.Name+" out", float64(through.Out), float64(before.Out), float64(after.Out), 0)
		}
		check.True(t, names != 0, "no device of %s was compared, want at least one", kind.Source())
	}

	same(t, "CPUs", len(s.through.CPU), len(s.before.CPU))
	for i, c := range s.through.CPU {
		same(t, "name", c.Name, s.before.CPU[i].Name)
		for mode, v := range c.Seconds {
			slack := 0.0
			if m := host.CPUMode(mode); m == host.ModeIdle || m == host.ModeIowait { // the kernel moves time between the two
				slack = clockTick.Seconds()
			}
			between(t, c.Name+" "+host.CPUMode(mode).String(), v, s.before.CPU[i].Seconds[mode], s.after.CPU[i].Seconds[mode], slack)
		}
	}
}

// checkWindow checks that the window between two sandwiches through gopsutil lies in the outer window of the kernel's
// files, and contains the inner one.
func checkWindow(t *testing.T, a, b *sandwich) {
	t.Helper()
	_, inside := NewCounterState(a.after).Next(b.before, 0)
	_, through := NewCounterState(a.through).Next(b.through, 0)
	_, around := NewCounterState(a.before).Next(b.after, 0)
	for _, c := range Counters() {
		if c.Info().Scope == ScopeDevice && !around.Has(c) { // the host has no such device
			continue
		}
		between(t, c.Key(), through.Values[c], inside.Values[c], around.Values[c], 0)
	}

	// The windows of a percentage differ by the duration of the sandwiches and a tick.
	window := b.through.At.Mono - a.through.At.Mono
	slack := 100*float64(a.open()+b.open()+clockTick)/float64(window) + 0.1
	for _, c := range []Column{CPUAvg, CPUMin, CPUMax} {
		if math.Abs(through.Values[c]-around.Values[c]) > slack {
			t.Errorf("%s: %v from gopsutil, %v from the kernel's files; want a difference of at most %v in a window of %v", c.Key(),
				through.Values[c], around.Values[c], slack, window)
		}
	}
	check.True(t, through.Has(CPUAvg), "gopsutil's window has no CPU percentages")
}

// account is the expected result for a tree: the devices that perfagent and perf.py count, and the bytes since boot of
// both, in MiB and in the order of Counters.
type account struct {
	Disks, PerfPyDisks, NICs []string
	MB, PerfPyMB             []float64
}

func accountOf(r *host.Reading) account {
	return account{counted(r.Devices[host.Disks], host.Counted), counted(r.Devices[host.Disks], host.PerfPy), counted(r.Devices[host.NICs], host.Counted),
		bootTotals(r, false)[:6], bootTotals(r, true)[:6]}
}

// The results were computed by hand from the trees. They are whole MiB and include each byte once.
func TestBootTotals_CountEachByteOnce(t *testing.T) {
	for name, want := range map[string]account{
		// LVM on RAID on partitions: the bytes of dm-0 and dm-1 are also counted by md0, and the bytes of md0 by sda and sdb.
		"lvm-on-raid": {[]string{"sda", "sdb", "sr0"},
			[]string{"ram0", "loop0", "sda", "sdb", "md0", "dm-0", "dm-1", "zram0", "sr0"}, []string{"lo", "eth0"},
			[]float64{1403, 990, 2, 40, 2, 30}, []float64{4055, 2027, 2, 40, 2, 30}},
		"nvme-multipath": {[]string{"nvme0n1", "nvme1n1"},
			[]string{"nvme0c0n1", "nvme0c1n1", "nvme0n1", "nvme1n1", "dm-0"}, []string{"lo", "eth0"},
			[]float64{350, 100, 2, 40, 2, 30}, []float64{930, 180, 2, 40, 2, 30}},
		"nvme-multipath-before-6.3": {[]string{"nvme0c0n1", "nvme0c1n1", "nvme0n1", "nvme1n1"},
			[]string{"nvme0c0n1", "nvme0c1n1", "nvme0n1", "nvme1n1"}, []string{"lo", "eth0"},
			[]float64{350, 100, 2, 40, 2, 30}, []float64{350, 100, 2, 40, 2, 30}},
		// A physical host: the cards count, not the interfaces on top of them.
		"bond-vlan-bridge": {[]string{"vda"}, []string{"vda"}, []string{"lo", "eth0", "eth1", "wlan0"},
			[]float64{10, 20, 5, 32, 5, 301}, []float64{10, 20, 5, 241, 5, 1028}},
		// A virtual machine with a passed-through card: eth0 counts the traffic of enP1s1.
		"accelerated-networking": {[]string{"sda"}, []string{"sda"}, []string{"lo", "eth0"},
			[]float64{1, 2, 1, 600, 1, 500}, []float64{1, 2, 1, 1184, 1, 993}},
		// The ports of a switch have a device as well, but their bytes go through eth0.
		"switch-ports": {[]string{"mmcblk0", "mmcblk0boot0", "mtdblock0"}, []string{"mmcblk0", "mmcblk0boot0", "mtdblock0"},
			[]string{"lo", "eth0"}, []float64{2, 2, 1, 600, 1, 500}, []float64{2, 2, 1, 1770, 1, 1470}},
		"container": {[]string{"vda"}, []string{"vda"}, []string{"lo", "eth0"},
			[]float64{10, 20, 5, 10, 5, 100}, []float64{10, 20, 5, 10, 5, 100}},
		// The bridge counts without its members, and eth1 without its VLAN. A tunnel counts, because its destination is
		// unknown.
		"container-bridge": {[]string{"loop0"}, []string{"loop0"}, []string{"lo", "br0", "eth1", "tun0"},
			[]float64{5, 6, 1, 21, 1, 109}, []float64{5, 6, 1, 42, 1, 255}},
		"container-without-sysfs": {[]string{"vda", "nvme0n1", "xvda1", "mmcblk0"},
			[]string{"loop0", "vda", "nvme0n1", "md127", "dm-0", "xvda1", "mmcblk0"}, []string{"lo", "eth0", "eth1"},
			[]float64{47, 69, 5, 12, 5, 101}, []float64{61, 88, 5, 12, 5, 101}},
		"sysfs-without-blocks": {[]string{"vda"}, []string{"vda"}, []string{"lo", "eth0"},
			[]float64{10, 20, 1, 1, 1, 1}, []float64{10, 20, 1, 1, 1, 1}},
		"loopback-names": {[]string{}, []string{}, []string{"lo", "loopback0", "MyLoopBack", "LO", "lo0", "eth0", "eth0:1"},
			[]float64{0, 0, 2222, 18, 1111, 15}, []float64{0, 0, 2222, 18, 1111, 15}},
		"slash-in-name": {[]string{"cciss/c0d0", "cciss/c0d1"}, []string{"cciss/c0d0", "cciss/c0d1", "dm-0"}, []string{"lo", "eth0"},
			[]float64{107, 208, 1, 1, 1, 1}, []float64{113, 215, 1, 1, 1, 1}},
		"netdev-without-headings": {[]string{"vda"}, []string{"vda"}, []string{"lo", "eth0"},
			[]float64{10, 20, 5, 10, 5, 100}, []float64{10, 20, 5, 10, 5, 100}},
		// The interfaces of the host's process 1 count, not the reader's.
		"sidecar": {[]string{"vda"}, []string{"vda"}, []string{"lo", "eno1"},
			[]float64{10, 20, 50, 800, 50, 900}, []float64{10, 20, 50, 800, 50, 900}},
	} {
		r := fixture(t, name).Read()
		same(t, name+": failures", wideFailed(r), map[string]error{})
		same(t, name+": account", accountOf(r), want)
	}
}

// wideFailed returns the failures of the sources that every tree has.
func wideFailed(r *host.Reading) map[string]error {
	failed := maps.Clone(r.Failed)
	for _, source := range []string{host.SourceLoad, host.SourceSwap, host.SourcePressure} {
		delete(failed, source)
	}
	return failed
}

// FuzzReader reads whole trees. With any file contents, each source has either values or a reason for having none, and
// the Sample is valid.
func FuzzReader(f *testing.F) {
	read := func(tree, name string) []byte {
		data, _ := os.ReadFile(filepath.Join(collectortest.Root(f), "testdata/proc", tree, name)) // a tree may lack the file
		return data
	}

	for _, tree := range []string{"healthy", "lvm-on-raid", "loopback-names",
		"damaged-stat-short-line", "damaged-netdev-short-line", "damaged-diskstats-short-line", "damaged-meminfo-nonsense"} {
		f.Add(read(tree, "stat"), read(tree, "meminfo"), read(tree, "diskstats"), read(tree, "net/dev"))
	}
	proc := f.TempDir()
	_, sys := collectortest.Tree(f, "healthy")
	r := openTree(f, proc, sys)
	healthy := fixture(f, "healthy").Read()
	f.Fuzz(func(t *testing.T, stat, meminfo, diskstats, netdev []byte) {
		for name, data := range map[string][]byte{"stat": stat, "meminfo": meminfo, "diskstats": diskstats, "net/dev": netdev} {
			write(t, proc, name, data)
		}
		got := r.Read()
		for source, there := range map[string]bool{host.SourceCPU: got.CPU != nil, host.SourceMemory: got.Memory != nil,
			host.SourceDisk: len(got.Disk) > 0, host.SourceDiskIO: got.Devices[host.Disks] != nil, host.SourceNetwork: got.Devices[host.NICs] != nil} {
			if there == (got.Failed[source] != nil) {
				t.Fatalf("%s: has values: %v, failure: %v; want either values or a failure", source, there, got.Failed[source])
			}
			if err := got.Failed[source]; err != nil && strings.Contains(err.Error(), "damaged kernel file") /* how guard reports a panic */ {
				t.Fatal(err)
			}
		}
		got.At = at(1e9)
		base := *healthy
		base.At = at(0)
		_, s := NewCounterState(&base).Next(got, 0)
		must(t, checkSample(&s, nothingBefore()))
	})
}
