//go:build !linux

package host

// freeSpace asks the system through gopsutil, which does not tell of inodes everywhere.
func freeSpace(path string) (FreeSpace, error) {
	u, err := diskUsage(path)
	return FreeSpace{Path: path, Free: float64(u.Available), Inodes: -1}, err
}
