package procfile

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Files reads kernel files repeatedly, and keeps them open: opening a file takes the kernel several times as long as
// reading it. An open file of a control group does not prevent its removal; reads then fail with ENODEV. Create it with
// NewFiles. It is not safe for concurrent use.
type Files struct {
	buf     Buffer
	open    map[string]openFile // by path
	maxOpen int                 // 0 = not known yet; -1 = none
}

type openFile struct {
	fd  int
	raw bool // it is read with RawPread
}

// NewFiles returns Files without open files. Close them, or leave that to the garbage collector.
func NewFiles() *Files {
	f := &Files{open: make(map[string]openFile)}
	runtime.AddCleanup(f, closeAll, f.open)
	return f
}

// ReadKeepOpen reads a file with lines shorter than half a page. A file of procfs must be valid for RawPread. The next
// read overwrites the result.
func (f *Files) ReadKeepOpen(path string, limit int) ([]byte, error) {
	file, open := f.open[path]
	if !open {
		fd, err := Open(path)
		if err != nil {
			return nil, err
		}
		file = openFile{fd, false}
		if keep, atOnce := f.mayKeepOpen(fd); keep {
			file.raw = atOnce
			f.open[path] = file
		} else {
			defer unix.Close(fd)
		}
	}

	call := unix.Pread
	if file.raw {
		call = RawPread
	}
	data, err := f.buf.read(call, file.fd, path, limit, shortRead)
	if err != nil {
		f.release(path)
	}
	return data, err
}

// ReadOnce reads a file without keeping it open. The next read overwrites the result.
func (f *Files) ReadOnce(path string, limit int) ([]byte, error) { return f.buf.Read(path, limit) }

// maxOpenFiles is how many files are kept open, unless that is a large part of the process's limit: the files of a host
// with eight sockets are 50.
const maxOpenFiles = 80

// mayKeepOpen reports whether a file may stay open. A file in a copied tree, or on a file server, may be replaced by
// another with the same name, and is opened each time. atOnce reports whether it is read with RawPread: files of
// control groups may take long, as the kernel sums over all CPUs and groups, and files of devices query the device.
func (f *Files) mayKeepOpen(fd int) (keep, atOnce bool) {
	if f.maxOpen == 0 {
		f.maxOpen = maxOpenFiles
		var limit unix.Rlimit
		if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
			f.maxOpen = int(min(maxOpenFiles, limit.Cur/8))
		}
		if f.maxOpen < maxOpenFiles/8 { // descriptors are scarce
			f.maxOpen = -1
		}
	}
	if len(f.open) >= f.maxOpen {
		return false, false
	}

	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return false, false
	}
	switch st.Type {
	case unix.PROC_SUPER_MAGIC:
		return true, true
	case unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.SYSFS_MAGIC:
		return true, false
	}
	return false, false
}

// IsOpen reports whether a file is kept open.
func (f *Files) IsOpen(path string) bool {
	_, open := f.open[path]
	return open
}

// release closes a file that was kept open.
func (f *Files) release(path string) {
	if file, open := f.open[path]; open {
		unix.Close(file.fd)
		delete(f.open, path)
	}
}

// Close closes all open files. Reads open them again.
func (f *Files) Close() {
	closeAll(f.open)
	clear(f.open)
}

func closeAll(files map[string]openFile) {
	for _, file := range files {
		unix.Close(file.fd)
	}
}
