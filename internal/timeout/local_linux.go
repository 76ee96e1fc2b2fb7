package timeout

import "golang.org/x/sys/unix"

// IsLocalFS reports whether the kernel serves stat and statfs on the file system of path from memory, so that they need
// no timeout. These calls may hang on a network file system, and on a file system that a user's program serves.
func IsLocalFS(path string) bool {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return false
	}

	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC,
		unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC:
		return true
	}
	return false
}
