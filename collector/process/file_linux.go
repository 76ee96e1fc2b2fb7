package process

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

const (
	// maxFile is the maximum size of a process's file. /proc/PID/stat has 52 fields, and smaps_rollup has 25 lines.
	maxFile = 4 << 10
	// maxPIDs is the kernel's limit on the number of processes.
	maxPIDs = 1 << 22
)

// A contentError is the reason why the content of a kernel file is not used.
type contentError string

func (d contentError) Error() string { return string(d) }

// A procDir is an open procfs. It builds each path, relative to the procfs, in the same buffer, so reading a process
// does not allocate.
type procDir struct {
	fd       int
	root     []byte // the path of the procfs, NUL-terminated
	path     []byte // the path of the file being read, NUL-terminated
	buf      []byte // content of the last file read
	list     []byte // entries of a directory
	own      bool   // it is the procfs of this process's PID namespace
	keepOpen bool   // it stays open until closeKept
}

// open opens the procfs unless it is already open. With hold, our own procfs stays open between scans. A copy is always
// reopened, because it may have been replaced.
func (d *procDir) open(root string, hold bool) error {
	if d.keepOpen {
		return nil
	}
	if d.buf == nil {
		d.path, d.buf, d.list = make([]byte, 0, 64), make([]byte, maxFile), make([]byte, 32<<10)
		d.own, d.root = root == "/proc", append([]byte(root), 0)
	}
	fd, err := openAt(unix.AT_FDCWD, d.root, unix.O_DIRECTORY)
	if err != nil {
		return &fs.PathError{Op: "open", Path: root, Err: err}
	}
	d.fd, d.keepOpen = fd, hold && d.own
	return nil
}

// close closes the procfs, unless it stays open between scans.
func (d *procDir) close() {
	if !d.keepOpen {
		unix.Close(d.fd)
	}
}

// closeKept closes the procfs if it was kept open between scans.
func (d *procDir) closeKept() {
	if d.keepOpen {
		d.keepOpen = false
		unix.Close(d.fd)
	}
}

// read reads the file name of process pid. If the file has maxFile bytes or more, the result is its beginning, with an
// error. The next read overwrites the result.
func (d *procDir) read(pid int32, name string) ([]byte, error) {
	fd, err := d.openFile(pid, name)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return d.readOpen(fd)
}

// readOpen reads the open file fd from its beginning with one system call, for which the kernel returns the whole file.
// Unlike procfile.RawPread, it informs the runtime's scheduler: newer kernels block a read of the stat of a process
// that hangs in exec, and perfagent must be able to relay signals and notice the end of the job meanwhile.
func (d *procDir) readOpen(fd int) ([]byte, error) {
	for {
		switch n, err := unix.Pread(fd, d.buf, 0); {
		case err == unix.EINTR:
		case err != nil:
			return nil, err
		case n <= 0:
			return nil, contentError("it is empty")
		case n == len(d.buf):
			return d.buf, contentError("it is longer than 4095 bytes")
		default:
			return d.buf[:n], nil
		}
	}
}

// openFile opens the file name of process pid for reading.
func (d *procDir) openFile(pid int32, name string) (int, error) { return d.openAs(pid, name, 0) }

// openAs opens the file or, with O_DIRECTORY in flags, the directory name of process pid.
func (d *procDir) openAs(pid int32, name string, flags uintptr) (int, error) {
	d.path = append(append(strconv.AppendInt(d.path[:0], int64(pid), 10), '/'), name...)
	d.path = append(d.path, 0)
	return openAt(d.fd, d.path, flags)
}

// openAt is unix.Openat for reading, with a NUL-terminated path that it does not copy. It does not block on a FIFO,
// which a copy of procfs may contain.
func openAt(dir int, path []byte, flags uintptr) (int, error) {
	flags |= unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK
	for {
		fd, _, errno := unix.Syscall6(unix.SYS_OPENAT,
			uintptr(dir), uintptr(unsafe.Pointer(&path[0])), flags, 0, 0, 0)
		switch errno {
		case 0:
			return int(fd), nil
		case unix.EINTR:
		default:
			return -1, errno
		}
	}
}

// has reports whether process pid has the file name.
func (d *procDir) has(pid int32, name string) bool {
	_, err := d.read(pid, name)
	return !isGone(err)
}

// exists reports whether process pid exists. If another file of the process is missing, exists distinguishes an ended
// process from a kernel without that file.
func (d *procDir) exists(pid int32) bool { return d.has(pid, "stat") }

// isGone reports whether err means that a process has ended since it was found: its directory is gone, or reads of its
// open files fail.
func isGone(err error) bool { return err == unix.ENOENT || err == unix.ESRCH }

// isDenied reports whether err means that we may not read the file.
func isDenied(err error) bool { return err == unix.EACCES || err == unix.EPERM }

// newestPID returns the ID of the newest process or thread, from the end of loadavg (proc(5)), or 0 if unknown. The
// kernel returns the newest ID in the PID namespace of the reader, so it is unknown for any other procfs.
func (d *procDir) newestPID() int64 {
	if !d.own {
		return 0
	}
	d.path = append(d.path[:0], "loadavg\x00"...)
	fd, err := openAt(d.fd, d.path, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)

	data, err := d.readOpen(fd)
	if err != nil {
		return 0
	}
	data = bytes.TrimSpace(data)
	id, ok := procfile.ParseCount(data[bytes.LastIndexByte(data, ' ')+1:])
	if !ok {
		return 0
	}

	return int64(id)
}

// pids appends the processes of the procfs to list, sorted by ID, with only their IDs and inodes set.
func (d *procDir) pids(list []proc) ([]proc, error) {
	if d.keepOpen {
		if _, err := unix.Seek(d.fd, 0, unix.SEEK_SET); err != nil {
			return list, err
		}
	}
	for {
		n, err := unix.Getdents(d.fd, d.list)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return list, err
		case n <= 0:
			return sorted(list), nil
		}
		list = appendPIDs(list, d.list[:n])
		if len(list) > maxPIDs {
			return list, contentError("more than " + strconv.Itoa(maxPIDs) + " processes are listed")
		}
	}
}

// appendPIDs appends the processes in records, which are linux_dirent64 records. The directory of a process has its ID
// as the name.
func appendPIDs(list []proc, records []byte) []proc {
	for {
		name, inode, rest := nextEntry(records)
		if name == nil {
			return list
		}
		if pid, ok := procfile.ParseCount(name); ok && pid > 0 && pid <= maxPIDs && name[0] != '0' {
			list = append(list, proc{pid: int32(pid), inode: inode})
		}
		records = rest
	}
}

// nextEntry returns the name and inode of the first linux_dirent64 record, and the remaining records. name is nil if
// there are no more records.
func nextEntry(records []byte) (name []byte, inode uint64, rest []byte) {
	const header = 19 // d_ino 8, d_off 8, d_reclen 2, d_type 1
	if len(records) <= header {
		return nil, 0, nil
	}
	size := int(binary.NativeEndian.Uint16(records[16:]))
	if size <= header || size > len(records) {
		return nil, 0, nil
	}
	name = records[header:size]
	if end := slices.Index(name, 0); end >= 0 {
		name = name[:end]
	}
	return name, binary.NativeEndian.Uint64(records), records[size:]
}

// sorted sorts list by process ID, if the kernel has not. Of two entries with the same ID, it keeps the one that was
// read later.
func sorted(list []proc) []proc {
	byPID := func(a, b proc) int {
		if a.pid != b.pid {
			return int(a.pid - b.pid)
		}
		return int(b.seq - a.seq)
	}
	for i := range list[min(1, len(list)):] { // do not copy elements, which are large
		if list[i].pid >= list[i+1].pid {
			slices.SortStableFunc(list, byPID)
			return slices.CompactFunc(list, func(a, b proc) bool { return a.pid == b.pid })
		}
	}
	return list
}
