//go:build !linux

package host

import "github.com/shirou/gopsutil/v3/net"

// onlyGopsutil reports whether gopsutil is the only reader on this system.
const onlyGopsutil = true

func (r *Reader) readCPU([]CPUTimes) ([]CPUTimes, error) { return r.gopsutil.readCPU() }
func (r *Reader) readMemory() (Memory, error)            { return r.gopsutil.readMemory() }
func (r *Reader) readDiskIO([]Device) ([]Device, error)  { return r.gopsutil.readDiskIO() }
func (r *Reader) readNet([]Device) ([]Device, error)     { return r.gopsutil.readNet() }
func diskUsage(path string) func() (DiskUsage, error)    { return usageOf(gopsutilUsage, path) }

// readNet reads network interfaces.
func (g *gopsutil) readNet() ([]Device, error) {
	return nicsOf(net.IOCountersWithContext(g.roots, true))
}
