package reporter

import (
	"errors"

	"golang.org/x/sys/unix"
)

// nonblock keeps open(2) from waiting for a FIFO's writer.
const nonblock = unix.O_NONBLOCK

// renameNew gives a file its name unless the name is taken (fs.ErrExist). File
// systems without that flag get the portable way.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return linkNew(from, to)
	}
	return err
}
