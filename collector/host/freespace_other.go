//go:build !linux

package host

import "github.com/perfagent/perfagent/collector/series"

// freeSpace reads the free space through gopsutil, which does not know inodes everywhere.
func freeSpace(path string) (FreeSpace, error) {
	u, err := gopsutilUsage(path)
	return FreeSpace{Path: path, FreeMB: float64(u.Available) / mib, Inodes: series.Unknown()}, err
}
