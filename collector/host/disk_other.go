//go:build !linux

package host

import (
	"fmt"

	"github.com/shirou/gopsutil/v3/disk"
)

// diskUsage reads the usage of a file system through gopsutil.
func diskUsage(path string) (DiskUsage, error) {
	u, err := disk.Usage(path)
	if err != nil {
		return DiskUsage{}, fmt.Errorf("disk usage of %s: %w", path, err)
	}
	return DiskUsage{Path: path, Used: u.Used, Available: u.Free}, nil
}
