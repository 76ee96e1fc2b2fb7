package host

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/procfile"
)

// diskUsage returns a function that reads the usage of the file system at path without allocating.
func diskUsage(path string) func() (DiskUsage, error) {
	mount := newMount(path)
	return func() (DiskUsage, error) {
		st, unit, err := mount.statfs()
		if err != nil {
			return DiskUsage{}, err
		}
		used := (st.Blocks - min(st.Blocks, st.Bfree)) * unit
		return DiskUsage{Path: path, Used: used, Available: st.Bavail * unit}, nil
	}
}

// A mount is a path for statfs, in the two forms that the system call needs.
type mount struct {
	path string
	name []byte // NUL-terminated
}

func newMount(path string) *mount { return &mount{path, append([]byte(path), 0)} }

// statfs calls statfs(2) and returns the result with the size of a block, f_frsize. gopsutil multiplies by f_bsize
// instead, and its sizes are 256 times too large on virtiofs and FUSE.
func (m *mount) statfs() (st unix.Statfs_t, unit uint64, err error) {
	for err = m.call(&st); err == unix.EINTR; {
		err = m.call(&st)
	}
	if err != nil {
		return st, 0, fmt.Errorf("statfs %s: %w", m.path, err)
	}
	return st, blockSize(&st), nil
}

// blockSize returns the size of a block in st. Some network file systems report only f_bsize.
func blockSize(st *unix.Statfs_t) uint64 { return cmp.Or(uint64(st.Frsize), uint64(st.Bsize)) }

// call is like unix.Statfs but does not copy the path. On 32-bit systems, which have a different system call, it calls
// unix.Statfs.
func (m *mount) call(st *unix.Statfs_t) error {
	if strconv.IntSize < 64 || strings.IndexByte(m.path, 0) >= 0 {
		return unix.Statfs(m.path, st)
	}
	_, _, errno := unix.Syscall(unix.SYS_STATFS, uintptr(unsafe.Pointer(&m.name[0])), uintptr(unsafe.Pointer(st)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// freeSpace reads the free space of the file system at path. It includes the blocks reserved for root if the user is
// root on the host. It returns an error if the file system is read-only or has no blocks.
func freeSpace(path string) (FreeSpace, error) {
	st, _, err := newMount(path).statfs()
	if err != nil {
		return FreeSpace{}, err
	}
	if st.Blocks == 0 || st.Flags&unix.ST_RDONLY != 0 {
		return FreeSpace{}, fmt.Errorf("statfs %s: it is read-only", path)
	}

	return newFreeSpace(path, &st, st.Bfree != st.Bavail && hostRoot()), nil
}

// newFreeSpace returns the free space reported by st. root reports whether this user may use the reserved blocks.
func newFreeSpace(path string, st *unix.Statfs_t, root bool) FreeSpace {
	mb := func(blocks uint64) float64 { return float64(blocks) * float64(blockSize(st)) / mib }
	r := FreeSpace{Path: path, FreeMB: mb(st.Bavail), Inodes: series.Unknown()}
	if root {
		r.FreeMB = mb(st.Bfree)
	}
	r.ReserveMB = r.FreeMB - mb(st.Bavail)
	if st.Files > 0 { // btrfs and other file systems create inodes on demand
		r.Inodes = series.Optional(st.Ffree)
	}
	return r
}

// hostRoot reports whether this user is root on the host. Root in a user namespace, as in a rootless container, may not
// use the reserved blocks.
func hostRoot() bool { return os.Geteuid() == 0 && procfile.InHostUserNamespace() }
