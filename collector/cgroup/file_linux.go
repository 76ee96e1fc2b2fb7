package cgroup

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

const (
	// maxFile bounds what is read of one file of a group. The longest, io.stat and cpuset lists of
	// the largest hosts, stay far below it.
	maxFile = 256 << 10

	// maxTable bounds /proc/PID/mountinfo, and cgroup.procs of half a million processes.
	maxTable = 4 << 20
)

// A reader reads small kernel files into a buffer that it keeps.
type reader struct {
	file procfile.Buffer

	// held are open files that are read again and again: opening a file of a group takes the kernel
	// several times as long as reading it. An open file keeps no group from being removed; reading
	// it then fails with ENODEV.
	held map[string]int
	room int // how many may be held
}

// again reads a file that is read in every sample.
func (r *reader) again(path string, limit int) ([]byte, error) {
	fd, open := r.held[path]
	if !open {
		var err error
		if fd, err = procfile.Open(path); err != nil {
			return nil, err
		}
		if r.mayHold(fd) {
			r.held[path] = fd
		} else {
			defer unix.Close(fd)
		}
	}

	data, err := r.file.ReadFrom(fd, path, limit)
	if err != nil {
		r.release(path)
	}
	return data, err
}

// maxHeld is how many files a group keeps open, if they are a small part of what this process may
// have.
const maxHeld = 40

// mayHold reports whether a file may stay open. A file of a copied tree may be replaced by another
// of the same name, and is opened each time.
func (r *reader) mayHold(fd int) bool {
	if r.held == nil {
		return false
	}
	if r.room == 0 {
		r.room = maxHeld
		var limit unix.Rlimit
		if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
			r.room = int(min(maxHeld, limit.Cur/8))
		}
		if r.room < maxHeld/4 { // where descriptors are scarce none is held
			r.room = -1
		}
	}

	var st unix.Statfs_t
	return len(r.held) < r.room && unix.Fstatfs(fd, &st) == nil &&
		(st.Type == unix.CGROUP_SUPER_MAGIC || st.Type == unix.CGROUP2_SUPER_MAGIC || st.Type == unix.PROC_SUPER_MAGIC)
}

// read returns the contents of a file, which the next read overwrites.
func (r *reader) read(path string, limit int) ([]byte, error) { return r.file.Read(path, limit) }

// release closes a file that was held.
func (r *reader) release(path string) {
	if fd, held := r.held[path]; held {
		unix.Close(fd)
		delete(r.held, path)
	}
}

// close closes all files that are held.
func (r *reader) close() {
	for path := range r.held {
		r.release(path)
	}
}

// number reads a file of one decimal number.
func (r *reader) number(path string) (float64, error) {
	data, err := r.again(path, maxFile)
	if err != nil {
		return nan, err
	}
	v, ok := parseNumber(data)
	if !ok {
		return nan, malformed(path, data)
	}
	return v, nil
}

// keys reads the values of a file of "key value" lines. Those that are missing stay NaN; the first
// of the keys must exist.
func (r *reader) keys(path string, keys []string, values []float64) error {
	for i := range values {
		values[i] = nan
	}
	data, err := r.again(path, maxFile)
	if err != nil {
		return err
	}
	parseKeys(data, keys, values)
	if values[0] != values[0] {
		return fmt.Errorf("read %s: no number for %s", path, keys[0])
	}
	return nil
}

// malformed returns an error that quotes what a file has instead of what it should have.
func malformed(path string, data []byte) error {
	if len(data) > 40 {
		return fmt.Errorf("read %s: not understood: %q ... (%d bytes)", path, data[:40], len(data))
	}
	return fmt.Errorf("read %s: not understood: %q", path, data)
}

// exists reports whether there is such a file, readable or not.
func exists(path string) bool { return unix.Access(path, unix.F_OK) == nil }

// ifThere returns the path, or "" if there is no such file: a version of the kernel or a set of
// controllers without it is not a failure.
func ifThere(path string) string {
	if exists(path) {
		return path
	}
	return ""
}
