package host

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// diskUsage returns the usage of a file system.
func diskUsage(path string) (DiskUsage, error) {
	st, unit, err := statfs(path)
	if err != nil {
		return DiskUsage{}, err
	}
	return DiskUsage{Path: path, Used: (st.Blocks - min(st.Blocks, st.Bfree)) * unit, Available: st.Bavail * unit}, nil
}

// statfs calls statfs(2), and returns the bytes of a block with the result. Blocks are counted in
// f_frsize: gopsutil multiplies by f_bsize, which is 256 times too much on virtiofs and FUSE.
func statfs(path string) (st unix.Statfs_t, unit uint64, err error) {
	for err = unix.Statfs(path, &st); err == unix.EINTR; {
		err = unix.Statfs(path, &st)
	}
	if err != nil {
		return st, 0, fmt.Errorf("statfs %s: %w", path, err)
	}
	unit = uint64(st.Frsize)
	if unit == 0 { // before Linux 2.6 and on some network file systems
		unit = uint64(st.Bsize)
	}
	return st, unit, nil
}
