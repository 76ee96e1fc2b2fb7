package collector

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxProcFile bounds what is read of one kernel file. /proc/stat of the largest
// hosts, with a count for each interrupt, stays below it.
const maxProcFile = 1 << 20

// scratch is what a Reader uses again instead of making it anew.
type scratch struct {
	buf                           []byte // what readFile read last
	cpuNames, diskNames, nicNames nameCache
}

// readProc reads a file below the root of procfs into the Reader's buffer, which
// the next call overwrites.
func (r *Reader) readProc(name string) ([]byte, error) {
	return r.readFile(filepath.Join(r.proc, name))
}

// readFile reads a small file whose size stat(2) does not tell. os.ReadFile
// would ask for that size, register the file with the network poller (which
// refuses it) and allocate the contents anew each time.
func (r *Reader) readFile(path string) ([]byte, error) {
	fd, err := openFile(path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	if r.buf == nil {
		r.buf = make([]byte, 16<<10)
	}
	for n := 0; ; {
		m, err := unix.Read(fd, r.buf[n:])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		case m <= 0:
			return r.buf[:n], nil
		}
		if n += m; n < len(r.buf) {
			continue
		}
		if n >= maxProcFile {
			return nil, fmt.Errorf("read %s: more than %d bytes", path, maxProcFile)
		}
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
}

// openFile opens for reading. A FIFO that somebody put in a copied tree does not
// block it.
func openFile(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// nameCache keeps the names of a source's lines, which are the same in nearly
// every Reading, so that no Reading makes them anew.
type nameCache []string

// at is the name of line i.
func (c *nameCache) at(i int, name []byte) string {
	if i < len(*c) && (*c)[i] == string(name) {
		return (*c)[i]
	}
	s := string(name)
	*c = append((*c)[:min(i, len(*c))], s)
	return s
}

// splitFields puts the fields of a line into f, as far as they fit, and returns
// how many the line has.
func splitFields(line []byte, f [][]byte) int {
	n, start := 0, -1
	for i := 0; i <= len(line); i++ {
		if i < len(line) && line[i] != ' ' && line[i] != '\t' && line[i] != '\n' && line[i] != '\r' {
			if start < 0 {
				start = i
			}
			continue
		}
		if start < 0 {
			continue
		}
		if n < len(f) {
			f[n] = line[start:i]
		}
		n, start = n+1, -1
	}
	return n
}

// parseCount reads a decimal number; false if it is none or has more than 64 bits.
func parseCount(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 || n > (1<<64-1-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}
