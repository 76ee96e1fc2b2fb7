package timeout

import "golang.org/x/sys/unix"

// IsLocalFS reports whether the file system of a path tells a file's status, and its own, from memory. Then asking
// needs no patience. A file system of a server, or of a program of the user's, may not answer for as long as that does
// not.
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
