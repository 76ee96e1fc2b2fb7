package procfile

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Files reads kernel files that are read again and again, and keeps them open: opening a file takes the kernel
// several times as long as reading it. An open file of a control group keeps no group from being removed;
// reading it then fails with ENODEV. It is made by NewFiles and is not safe for concurrent use.
type Files struct {
	file    Buffer
	open    map[string]openFile // by path
	maxOpen int                 // how many may be held; 0 = not known yet
}

type openFile struct {
	fd  int
	raw bool // it is a file that PreadAtOnce reads
}

// NewFiles returns Files that hold nothing yet. Close them, or leave that to the garbage collector.
func NewFiles() *Files {
	f := &Files{open: make(map[string]openFile)}
	runtime.AddCleanup(f, closeAll, f.open)
	return f
}

// ReadKeepOpen returns the contents of a file whose lines are shorter than half a page. A file of procfs must be one
// that PreadAtOnce reads. The next read overwrites the contents.
func (f *Files) ReadKeepOpen(path string, limit int) ([]byte, error) {
	file, open := f.open[path]
	if !open {
		fd, err := Open(path)
		if err != nil {
			return nil, err
		}
		file = openFile{fd, false}
		if hold, atOnce := f.mayHold(fd); hold {
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
	data, err := f.file.read(call, file.fd, path, limit, shortRead)
	if err != nil {
		f.release(path)
	}
	return data, err
}

// ReadOnce returns the contents of a file, and does not keep it open. The next read overwrites them.
func (f *Files) ReadOnce(path string, limit int) ([]byte, error) { return f.file.Read(path, limit) }

// maxOpenFiles is how many files are held open, if they are a small part of what this process may have: those of a
// host with eight sockets have 50.
const maxOpenFiles = 80

// mayHold reports whether a file may stay open. A file of a copied tree, or of a file server, may be replaced by
// another of the same name, and is opened each time. It also reports whether it is one that PreadAtOnce reads: those of
// control groups may take long, as the kernel sums them up over all CPUs and groups, and those of devices ask these.
func (f *Files) mayHold(fd int) (hold, atOnce bool) {
	if f.maxOpen == 0 {
		f.maxOpen = maxOpenFiles
		var limit unix.Rlimit
		if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
			f.maxOpen = int(min(maxOpenFiles, limit.Cur/8))
		}
		if f.maxOpen < maxOpenFiles/8 { // where descriptors are scarce none is held
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

// IsOpen reports whether a file is held open.
func (f *Files) IsOpen(path string) bool {
	_, held := f.open[path]
	return held
}

// release closes a file that was held.
func (f *Files) release(path string) {
	if file, held := f.open[path]; held {
		unix.Close(file.fd)
		delete(f.open, path)
	}
}

// Close closes all files that are held. Reading opens them again.
func (f *Files) Close() {
	closeAll(f.open)
	clear(f.open)
}

func closeAll(held map[string]openFile) {
	for _, file := range held {
		unix.Close(file.fd)
	}
}
