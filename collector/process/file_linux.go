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
	// maxFile bounds what is read of one file of a process. /proc/PID/stat has 52 fields,
	// smaps_rollup 25 lines.
	maxFile = 4 << 10
	// maxPIDs is the kernel's limit of the number of processes.
	maxPIDs = 1 << 22
)

// contentError is the reason why the contents of a kernel file are not used.
type contentError string

func (d contentError) Error() string { return string(d) }

// A procDir is an open procfs. Its files are opened relative to it, by system calls that take their
// path from one buffer: reading a process does not allocate.
type procDir struct {
	fd   int
	load int    // descriptor of its loadavg, plus 1; 0 = not open
	root []byte // the path of the procfs, ends with a 0
	path []byte // of the file that is read, ends with a 0
	buf  []byte // what was read last
	list []byte // entries of the directory
	own  bool   // the procfs is that of this process's PID namespace
	held bool   // it stays open until letGo
}

// open opens the procfs, unless it is held. Our own may be held between scans, but not another: somebody may mount a
// new one in its place.
func (d *procDir) open(root string, hold bool) error {
	if d.held {
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
	d.fd, d.held = fd, hold && d.own
	return nil
}

// close closes the procfs, unless it is held.
func (d *procDir) close() {
	if !d.held {
		unix.Close(d.fd)
	}
}

// letGo closes what is held.
func (d *procDir) letGo() {
	if !d.held {
		return
	}
	if d.held = false; d.load > 0 {
		unix.Close(d.load - 1)
		d.load = 0
	}
	unix.Close(d.fd)
}

// read returns the contents of a file of a process, which the next read overwrites.
func (d *procDir) read(pid int32, name string) ([]byte, error) {
	fd, err := d.openFile(pid, name)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return d.readOpen(fd)
}

// readStart returns the first bytes of a file of a process, which the next read overwrites.
func (d *procDir) readStart(pid int32, name string) ([]byte, error) {
	fd, err := d.openFile(pid, name)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	n, err := d.fill(fd)
	return d.buf[:max(n, 0)], err
}

// readOpen reads an open file from its beginning. It takes one system call: the kernel hands these
// files over whole. It is one that the runtime's scheduler knows of, unlike procfile.PreadAtOnce: newer kernels do
// not answer for the stat of a process as long as that hangs in exec, and then signals are still relayed, and the
// job's end is seen, while the scan waits.
func (d *procDir) readOpen(fd int) ([]byte, error) {
	n, err := d.fill(fd)
	switch {
	case err != nil:
		return nil, err
	case n <= 0:
		return nil, contentError("it is empty")
	case n == len(d.buf):
		return nil, contentError("it is longer than 4095 bytes")
	}
	return d.buf[:n], nil
}

// fill reads an open file from its beginning into the buffer.
func (d *procDir) fill(fd int) (n int, err error) {
	for {
		if n, err = unix.Pread(fd, d.buf, 0); err != unix.EINTR {
			return n, err
		}
	}
}

// openFile opens a file of a process for reading.
func (d *procDir) openFile(pid int32, name string) (int, error) { return d.openAs(pid, name, 0) }

// openAs opens a file or a folder of a process.
func (d *procDir) openAs(pid int32, name string, flags uintptr) (int, error) {
	d.path = append(append(strconv.AppendInt(d.path[:0], int64(pid), 10), '/'), name...)
	d.path = append(d.path, 0)
	return openAt(d.fd, d.path, flags)
}

// openAt is unix.Openat for reading, without the copy of the path, which ends with a 0. A FIFO that
// somebody put into a copied tree does not block it.
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

// has reports whether a process has a file.
func (d *procDir) has(pid int32, name string) bool {
	_, err := d.read(pid, name)
	return !gone(err)
}

// exists reports whether a process exists. One that lacks a file may have ended, or the kernel has
// no such file.
func (d *procDir) exists(pid int32) bool { return d.has(pid, "stat") }

// gone reports whether err says that a process has ended since it was seen: its folder is gone, or
// its open file has nothing to say.
func gone(err error) bool { return err == unix.ENOENT || err == unix.ESRCH }

// denied reports whether err says that we may not read a file.
func denied(err error) bool { return err == unix.EACCES || err == unix.EPERM }

// newest returns the ID of the process or thread that began last, from the end of loadavg (proc(5)), or 0 if it is
// not known. The kernel tells it of the reader's own PID namespace, whichever procfs is read.
func (d *procDir) newest() int64 {
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

// pids appends the processes of the procfs to list, by ID. It fills in only their IDs and inodes.
func (d *procDir) pids(list []proc) ([]proc, error) {
	if d.held {
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

// appendPIDs appends the processes whose names are numbers in linux_dirent64 records.
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

// nextEntry returns the name and the inode of the first of linux_dirent64 records, and the records after it. The
// name is nil if there is none.
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

// sorted sorts by process ID, as the kernel does already, and keeps one of each: that with the
// later reading.
func sorted(list []proc) []proc {
	byPID := func(a, b proc) int {
		if a.pid != b.pid {
			return int(a.pid - b.pid)
		}
		return int(b.seq - a.seq)
	}
	for i := range list[min(1, len(list)):] { // a process is large to be copied
		if list[i].pid >= list[i+1].pid {
			slices.SortStableFunc(list, byPID)
			return slices.CompactFunc(list, func(a, b proc) bool { return a.pid == b.pid })
		}
	}
	return list
}
