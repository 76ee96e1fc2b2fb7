package marks

import (
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/timeout"
)

// A changeDetector detects changes of a file on a file system that responds promptly. Each check is one system call in
// the calling goroutine.
type changeDetector struct {
	path []byte     // NUL-terminated
	able bool       // the file system responds promptly
	last fileStatus // at the last check
}

// A fileStatus differs after each change of a file. The zero value means that the file does not exist.
type fileStatus struct {
	inode, size, device uint64
	modified            unix.StatxTimestamp
}

// newChangeDetector returns a changeDetector that has checked path once. It is able if the file system of path's
// directory is local and so responds promptly.
func newChangeDetector(path string) *changeDetector {
	able := strconv.IntSize == 64 && strings.IndexByte(path, 0) < 0 && timeout.IsLocalFS(filepath.Dir(path))
	g := &changeDetector{path: append([]byte(path), 0), able: able}
	g.isUnchanged()
	return g
}

// isUnchanged reports whether the file is unchanged since the last check. It returns false if that is unknown.
func (g *changeDetector) isUnchanged() bool {
	if !g.able {
		return false
	}

	now, known := g.status()
	was := g.last
	g.last = now
	return known && now == was
}

// status returns the file's status, and false if it is unknown. Unlike unix.Statx, it does not copy the path.
func (g *changeDetector) status() (fileStatus, bool) {
	var st unix.Statx_t
	const wanted = unix.STATX_INO | unix.STATX_SIZE | unix.STATX_MTIME
	_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(unix.AT_FDCWD&(1<<64-1)), uintptr(unsafe.Pointer(&g.path[0])),
		unix.AT_SYMLINK_NOFOLLOW, wanted, uintptr(unsafe.Pointer(&st)), 0)
	switch {
	case errno == unix.ENOENT:
		return fileStatus{}, true
	case errno != 0 || st.Mask&wanted != wanted:
		return fileStatus{}, false
	}
	return fileStatus{st.Ino, st.Size, uint64(st.Dev_major)<<32 | uint64(st.Dev_minor), st.Mtime}, true
}
