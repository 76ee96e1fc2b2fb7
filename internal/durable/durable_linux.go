package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// OpenNoAtime is like Open but does not update the file's access time. The kernel allows this only to the owner of the
// file. For other users, OpenNoAtime is the same as Open.
func OpenNoAtime(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock|unix.O_NOATIME, 0)
	if errors.Is(err, unix.EPERM) {
		return Open(path)
	}
	return f, err
}

// renameNew renames a file. If the new name is taken, it returns fs.ErrExist. On file systems without RENAME_NOREPLACE,
// it uses linkNew.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return linkNew(from, to)
	}
	return err
}
