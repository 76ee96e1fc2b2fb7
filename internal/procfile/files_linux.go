package procfile

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Files reads kernel files repeatedly, and keeps them open: opening a file takes the kernel several times as long as
// reading it. An open file does not prevent the removal of its control group; reads then fail with ENODEV. Create Files
// with NewFiles. They are not safe for concurrent use.
type Files struct {
	buf     Buffer
	open    map[string]openFile // by path
	maxOpen int                 // 0 = not known yet; -1 = none
}

type openFile struct {
	fd  int
	raw bool // read it with RawPread
}

// NewFiles returns Files without open files. Call Close to close the files, or leave that to the garbage collector.
func NewFiles() *Files {
	f := &Files{open: make(map[string]openFile)}
	runtime.AddCleanup(f, closeAll, f.open)
	return f
}

// ReadKeepOpen reads the file at path and keeps it open if it may. All its lines must be shorter than half a page, and
// a file of procfs must be one that RawPread may read. The next read overwrites the result.
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
	if _, open := f.open[path]; open && err != nil {
		unix.Close(file.fd)
		delete(f.open, path)
	}
	return data, err
}

// ReadOnce reads the file at path without keeping it open. The next read overwrites the result.
func (f *Files) ReadOnce(path string, limit int) ([]byte, error) { return f.buf.Read(path, limit) }

// maxOpenFiles is how many files are kept open at most. Fewer files are kept open if the limit of open files is low. A
// host with eight sockets has about 50 files to read.
const maxOpenFiles = 80

// mayKeepOpen reports whether the file fd may stay open. A file in a copied tree, or on a file server, may be replaced
// with a new one of the same name, so it is opened each time. atOnce reports whether to read the file with RawPread. It
// is true only for procfs: for a file of a control group the kernel may have to sum over all CPUs and groups, and for a
// file of a device it queries the device.
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

// scarceFiles is the limit of open files below which the job may need every descriptor.
const scarceFiles = 64

// FilesAreScarce reports whether the limit of open files (ulimit -n) is so low that the job may need every descriptor.
func FilesAreScarce() bool {
	var limit unix.Rlimit
	return unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil && limit.Cur < scarceFiles
}

// Close closes all open files. A later ReadKeepOpen opens its file again.
func (f *Files) Close() {
	closeAll(f.open)
	clear(f.open)
}

func closeAll(files map[string]openFile) {
	for _, file := range files {
		unix.Close(file.fd)
	}
}
