//go:build !linux

package host

// freeSpace reads the free space through gopsutil, which does not know inodes everywhere.
func freeSpace(path string) (FreeSpace, error) {
	u, err := diskUsage(path)
	return FreeSpace{Path: path, Free: float64(u.Available), Inodes: -1}, err
}
