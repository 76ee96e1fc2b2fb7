package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/shirou/gopsutil/v3/load"
	"github.com/shirou/gopsutil/v3/net"
)

// onlyGopsutil is true where gopsutil is the only reader.
const onlyGopsutil = false

// readNet reads network interfaces from the same file as Reader.readNet.
func (g *gopsutil) readNet() ([]Device, error) {
	stats, err := []net.IOCountersStat(nil), fs.ErrNotExist
	if g.hostProc {
		stats, err = net.IOCountersByFileWithContext(g.roots, true, filepath.Join(g.proc, "1", "net", "dev"))
	}
	if errors.Is(err, fs.ErrNotExist) {
		stats, err = net.IOCountersByFileWithContext(g.roots, true, filepath.Join(g.proc, "net", "dev"))
	}
	return nicsOf(stats, err)
}

// readLoad reads the load. The library reads only the means of /proc/loadavg, so the number of running tasks comes from
// /proc/stat. Because this process is running, 0 means that the file does not contain the number.
func (g *gopsutil) readLoad() (Load, error) {
	avg, err := load.AvgWithContext(g.roots)
	if err != nil {
		return Load{}, fmt.Errorf("gopsutil: %w", err)
	}
	if !isAmount(avg.Load1) {
		return Load{}, fmt.Errorf("gopsutil: a load of %v", avg.Load1)
	}
	tasks, err := load.MiscWithContext(g.roots)
	if err != nil {
		return Load{}, fmt.Errorf("gopsutil: %w", err)
	}
	if tasks.ProcsRunning <= 0 {
		return Load{}, errors.New("gopsutil returned no number of running tasks")
	}
	return Load{Load1: avg.Load1, Running: float64(tasks.ProcsRunning)}, nil
}
