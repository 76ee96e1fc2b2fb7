package collector

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// diskUsage asks statfs(2). Blocks are counted in f_frsize: gopsutil multiplies
// by f_bsize, which is 256 times too much on virtiofs and FUSE.
func diskUsage(path string) (DiskUsage, error) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(path, &st)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return DiskUsage{}, fmt.Errorf("statfs %s: %w", path, err)
		}
		break
	}
	unit := uint64(st.Frsize)
	if unit == 0 { // before Linux 2.6 and on some network file systems
		unit = uint64(st.Bsize)
	}
	return DiskUsage{Path: path, Used: (st.Blocks - min(st.Blocks, st.Bfree)) * unit, Available: st.Bavail * unit}, nil
}
