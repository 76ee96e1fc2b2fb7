package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// OpenNoAtime is Open without an update of the file's access time, which the kernel grants to
// the owner of a file only.
func OpenNoAtime(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock|unix.O_NOATIME, 0)
	if errors.Is(err, unix.EPERM) {
		return Open(path)
	}
	return f, err
}

// renameNew renames a file unless the new name is taken (fs.ErrExist). File systems without
// that flag get the portable way.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return linkNew(from, to)
	}
	return err
}
