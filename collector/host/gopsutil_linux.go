package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/shirou/gopsutil/v3/load"
	"github.com/shirou/gopsutil/v3/net"
)

// onlyGopsutil is whether the system can be read through gopsutil alone.
const onlyGopsutil = false

// readNet reads network interfaces from the file that the kernel's reader takes.
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

// readLoad reads the load. gopsutil takes no more than the means from /proc/loadavg; the tasks that
// run are those of /proc/stat. Whoever reads that file runs, so 0 is gopsutil's word for a file
// that does not tell.
func (g *gopsutil) readLoad() (*Load, error) {
	avg, err := load.AvgWithContext(g.roots)
	if err != nil {
		return nil, fmt.Errorf("gopsutil: %w", err)
	}
	if !isAmount(avg.Load1) {
		return nil, fmt.Errorf("gopsutil: a load of %v", avg.Load1)
	}
	tasks, err := load.MiscWithContext(g.roots)
	if err != nil {
		return nil, fmt.Errorf("gopsutil: %w", err)
	}
	if tasks.ProcsRunning <= 0 {
		return nil, errors.New("gopsutil named no running task")
	}
	return &Load{One: avg.Load1, Running: float64(tasks.ProcsRunning)}, nil
}
