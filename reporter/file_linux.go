package reporter

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// nonblock keeps open(2) from waiting for a FIFO's writer.
const nonblock = unix.O_NONBLOCK

// openQuietly opens a file for reading. The kernel is asked not to note the time of
// that, which it grants to the owner of a file only.
func openQuietly(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock|unix.O_NOATIME, 0)
	if errors.Is(err, unix.EPERM) {
		return os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	}
	return f, err
}

// renameNew gives a file its name unless the name is taken (fs.ErrExist). File
// systems without that flag get the portable way.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return linkNew(from, to)
	}
	return err
}
