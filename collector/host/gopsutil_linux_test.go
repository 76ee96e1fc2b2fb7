package host

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shirou/gopsutil/v3/mem"
	"github.com/shirou/gopsutil/v3/net"
	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/series"
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

// perfagent does not publish the numbers that gopsutil derives from the same counters.
func TestReader_DiffersFromGopsutilWhereIntended(t *testing.T) {
	proc, sys := collectortest.Tree(t, "healthy")
	r := openThrough(t, proc, sys)
	vm, err := mem.VirtualMemoryWithContext(r.gopsutil.roots)
	if err != nil {
		t.Fatal(err)
	}
	got := r.Read()
	same(t, "percent of memory", []float64{got.Memory.Percent(), series.Round1(vm.UsedPercent)}, []float64{25, 31.2})
	same(t, "disks that are listed", namesOf(got.Devices[Disks], 0), []string{"vda", "vda1"})
	same(t, "disks that count", namesOf(got.Devices[Disks], Counted), []string{"vda"})

	proc, sys = collectortest.Tree(t, "sidecar")
	r = openThrough(t, proc, sys)
	own, err := net.IOCountersWithContext(r.gopsutil.roots, true)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "interfaces of the reader", []string{own[0].Name, own[1].Name}, []string{"lo", "eth0"})
	same(t, "interfaces of the host", namesOf(r.Read().Devices[NICs], Counted), []string{"lo", "eno1"})
}

// gopsutil counts the blocks of a file system with f_bsize ≠ f_frsize, as virtiofs and other FUSE file systems, 256
// times too large. The percentage is the same.
func TestDiskUsage_CountsBlocksOfFUSE(t *testing.T) {
	dir := t.TempDir()
	mountBlocks(t, dir, 1<<20, 4<<10)
	ours, err := diskUsage(dir)()
	if err != nil {
		t.Fatal(err)
	}
	same(t, "by statfs", ours, DiskUsage{dir, 600 * 4 << 10, 300 * 4 << 10})

	theirs, err := gopsutilUsage(dir)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "by gopsutil", theirs, DiskUsage{dir, 600 << 20, 300 << 20})
	same(t, "percent", theirs.Percent(), ours.Percent())
}

// The FUSE requests that get a response (linux/fuse.h).
const (
	fuseInit   = 26
	fuseStatfs = 17
)

// mountBlocks mounts a file system of 1000 blocks, 600 of them used, 100 reserved.
func mountBlocks(t *testing.T, dir string, bsize, frsize uint32) {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("needs root and /dev/fuse: modprobe fuse: %v", err)
	}
	if err := unix.Mount("blocks", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd)); err != nil {
		unix.Close(fd)
		t.Skipf("needs the right to mount: run the tests as root: %v", err)
	}

	served := make(chan struct{})
	go func() {
		defer close(served)
		serveBlocks(fd, bsize, frsize)
	}()
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
		<-served
		unix.Close(fd)
	})
}

// serveBlocks responds until the file system is unmounted.
func serveBlocks(fd int, bsize, frsize uint32) {
	request := make([]byte, 1<<17)
	for {
		n, err := unix.Read(fd, request)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n < 40 {
			return // ENODEV
		}

		le := binary.LittleEndian
		var body []byte
		failure := -int32(unix.ENOSYS)
		switch le.Uint32(request[4:]) { // opcode
		case fuseInit:
			failure, body = 0, make([]byte, 64)
			le.PutUint32(body[0:], 7)
			le.PutUint32(body[4:], 31)
			le.PutUint32(body[20:], 4096) // max_write
		case fuseStatfs:
			failure, body = 0, make([]byte, 80)
			for i, blocks := range []uint64{1000, 400, 300, 10, 5} { // all, free, available; files, free
				le.PutUint64(body[8*i:], blocks)
			}
			le.PutUint32(body[40:], bsize)
			le.PutUint32(body[44:], 255) // namelen
			le.PutUint32(body[48:], frsize)
		}

		answer := le.AppendUint32(nil, uint32(16+len(body)))
		answer = le.AppendUint32(answer, uint32(failure))
		answer = append(answer, request[8:16]...) // unique
		_, _ = unix.Write(fd, append(answer, body...))
	}
}
