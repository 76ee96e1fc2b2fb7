package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/shirou/gopsutil/v3/common"
	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/disk"
	"github.com/shirou/gopsutil/v3/mem"
	"github.com/shirou/gopsutil/v3/net"
)

// gopsutil reads a host through the gopsutil library. It is the only reader on systems other than Linux, and serves for
// comparison on Linux. It passes on the library's raw numbers unchanged, but rejects impossible ones. Numbers that the
// library computes differ from psutil's and are not used: its memory percentage counts buffers and page cache as free,
// its disk list mixes partitions with disks, and its CPU percentage shares one window among all callers. A test of
// package collector runs both readers and lists all other differences.
//
// The library's package cpu reads HOST_PROC/stat twice while it is initialized, even if gopsutil is not used. If that
// file hangs (lxcfs, or a FUSE daemon that has stopped), no command starts.
type gopsutil struct {
	proc     string
	hostProc bool            // as in Reader
	roots    context.Context // passes the roots of procfs and sysfs to the library
}

// newGopsutil returns a reader for the given roots of procfs and sysfs.
func newGopsutil(proc, sys string, hostProc bool) *gopsutil {
	env := common.EnvMap{common.HostProcEnvKey: proc, common.HostSysEnvKey: sys}
	return &gopsutil{
		proc:     proc,
		hostProc: hostProc,
		roots:    context.WithValue(context.Background(), common.EnvKey, env),
	}
}

// readCPU reads CPU times. The library drops a CPU if it cannot parse the line of that CPU.
func (g *gopsutil) readCPU() ([]CPUTimes, error) {
	stats, err := cpu.TimesWithContext(g.roots, true)
	if err != nil {
		return nil, fmt.Errorf("gopsutil: %w", err)
	}
	if len(stats) == 0 {
		return nil, errors.New("gopsutil returned no CPU")
	}

	out := make([]CPUTimes, len(stats))
	for i, s := range stats {
		out[i] = CPUTimes{Name: s.CPU, Guest: s.Guest, GuestNice: s.GuestNice, Seconds: [NumCPUModes]float64{
			s.User, s.Nice, s.System, s.Idle, s.Iowait, s.Irq, s.Softirq, s.Steal}}
		for _, v := range append(out[i].Seconds[:], s.Guest, s.GuestNice) {
			if !isAmount(v) {
				return nil, fmt.Errorf("gopsutil: %v seconds of %s", v, s.CPU)
			}
		}
	}
	return out, nil
}

// isAmount reports whether v is finite and not negative: the library also parses "NaN" and "-1".
func isAmount(v float64) bool { return v >= 0 && !math.IsInf(v, 0) }

// readMemory reads memory. It ignores the library's percentage, which counts the whole page cache as free.
func (g *gopsutil) readMemory() (Memory, error) {
	vm, err := mem.VirtualMemoryWithContext(g.roots)
	if err != nil {
		return Memory{}, fmt.Errorf("gopsutil: %w", err)
	}
	if vm.Total == 0 {
		return Memory{}, errors.New("gopsutil returned no memory")
	}
	if vm.Available > vm.Total {
		return Memory{}, fmt.Errorf("gopsutil: %d bytes of memory are available, of %d in all", vm.Available, vm.Total)
	}
	return Memory{Total: vm.Total, Available: vm.Available}, nil
}

// readDiskIO reads block devices, sorted by name. The library omits devices that have been idle since boot and treats
// an unreadable file as empty, so an empty list is an error.
func (g *gopsutil) readDiskIO() ([]Device, error) {
	stats, err := disk.IOCountersWithContext(g.roots)
	if err != nil {
		return nil, fmt.Errorf("gopsutil: %w", err)
	}
	if len(stats) == 0 {
		return nil, errors.New("gopsutil returned no disk")
	}

	devs := make([]Device, 0, len(stats))
	for name, s := range stats {
		devs = append(devs, Device{Name: name, In: s.ReadBytes / diskUnit, Out: s.WriteBytes / diskUnit})
	}
	slices.SortFunc(devs, func(a, b Device) int { return cmp.Compare(a.Name, b.Name) })
	return devs, nil
}

// nicsOf converts the library's network interfaces to Devices.
func nicsOf(stats []net.IOCountersStat, err error) ([]Device, error) {
	if err != nil {
		return nil, fmt.Errorf("gopsutil: %w", err)
	}
	if len(stats) == 0 {
		return nil, errors.New("gopsutil returned no network interface")
	}

	nics := make([]Device, len(stats))
	for i, s := range stats {
		nics[i] = Device{Name: s.Name, In: s.BytesRecv, Out: s.BytesSent}
	}
	return nics, nil
}

// gopsutilUsage returns the usage of a file system according to gopsutil.
func gopsutilUsage(path string) (DiskUsage, error) {
	u, err := disk.Usage(path)
	if err != nil {
		return DiskUsage{}, fmt.Errorf("gopsutil: disk usage of %s: %w", path, err)
	}
	return DiskUsage{Path: path, Used: u.Used, Available: u.Free}, nil
}
