//go:build !linux

package host

import (
	"time"

	"github.com/shirou/gopsutil/v3/net"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/collector/series"
)

// onlyGopsutil is true where gopsutil is the only reader.
const onlyGopsutil = true

// diskUnit is the unit of a disk's counters, in bytes. gopsutil returns bytes.
const diskUnit = 1

func (r *Reader) readCPU([]CPUTimes) ([]CPUTimes, error) { return r.gopsutil.readCPU() }
func (r *Reader) readMemory() (Memory, error)            { return r.gopsutil.readMemory() }
func diskUsage(path string) func() (DiskUsage, error)    { return usageOf(gopsutilUsage, path) }

func (r *Reader) readDiskIO(time.Duration, []Device) ([]Device, error) {
	return r.gopsutil.readDiskIO()
}
func (r *Reader) readNet(time.Duration, []Device) ([]Device, error) { return r.gopsutil.readNet() }

// readNet reads network interfaces.
func (g *gopsutil) readNet() ([]Device, error) {
	return nicsOf(net.IOCountersWithContext(g.roots, true))
}

// classifyBlocks counts every device, because this system does not report which devices are stacked.
func (r *Reader) classifyBlocks(devs []Device) []DeviceClass {
	classes := make([]DeviceClass, len(devs))
	for i := range classes {
		classes[i] = Counted | PerfPy
	}
	return classes
}

// freeSpace reads the free space through gopsutil. It omits inodes, which gopsutil does not report on every system.
func freeSpace(path string) (FreeSpace, error) {
	u, err := gopsutilUsage(path)
	return FreeSpace{Path: path, FreeMB: float64(u.Available) / mib, Inodes: series.Unknown()}, err
}

// FindCoreFiles finds nothing, because perfagent does not support core files on this system.
func FindCoreFiles([]string, time.Time) (cores []CoreFile, written bool) { return nil, false }

// processStart is the origin of the monotonic clock, which Go exposes only as differences.
var processStart = time.Now()

// Now reads the clocks. This system has no boot clock, so a suspend looks like a step of the wall clock.
func Now() Instant {
	mono := time.Since(processStart)
	return Instant{Wall: time.Now().Round(0), Mono: mono, Boot: mono}
}

// describe does nothing, because Info already has all that this system reports.
func (r *Reader) describe(*Info) {}

// scratch is empty, because a Reader keeps no files or buffers on this system.
type scratch struct{}

func newScratch(string) scratch { return scratch{} }

func (s *scratch) close() {}

// The sources below exist only on Linux, so they are not reported as missing on this system.

func (r *Reader) readLoad() (l Load, err error)                            { return l, errAbsent }
func (r *Reader) readVM() (v VMStat, err error)                            { return v, errAbsent }
func (r *Reader) readPressure() (p cgroup.Pressure, known bool, err error) { return p, false, nil }

func affinity(int) int { return 0 }

func (j *jobTree) readSelfLimits([]int, treeRequest) selfLimits { return selfLimits{} }

type helper struct{}

func newHelper() *helper { return nil }

func (j *jobReader) selfUsage() process.Usage { return process.Usage{} }

type optionalSources struct{}

func (r *Reader) readOptional(*Reading) {}
func (r *Reader) readThermal(*Reading)  {}

func openRDMA(*Reader) deviceReader   { return noDevices }
func openNFS(*Reader) deviceReader    { return noDevices }
func openLustre(*Reader) deviceReader { return noDevices }

func noDevices(time.Duration, []Device) ([]Device, error) { return nil, nil }

type kernelLog struct{}

func openKernelLog() *kernelLog { return nil }
func (*kernelLog) close()       {}

// WatchDeaths, Victims, LargestTasks and resolveVictims do nothing, because this system does not report OOM kills.
func (r *Reader) WatchDeaths()                     {}
func (r *Reader) Victims(Instant) ([]Victim, bool) { return nil, false }
func (r *Reader) LargestTasks() []Task             { return nil }
func (r *Reader) resolveVictims()                  {}
