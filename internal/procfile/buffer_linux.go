package procfile

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Open opens a file for reading. A FIFO in a copied tree does not block it. The
// error is an *fs.PathError.
func Open(path string) (fd int, err error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		switch err {
		case nil:
			return fd, nil
		case unix.EINTR:
		default:
			return -1, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// firstSize is the initial size of a Buffer. /proc/stat of a small host fits.
const firstSize = 8 << 10

// A Buffer is the memory that files are read into, one after the other. The zero value is ready.
// os.ReadFile would ask for the file's size, register the file with the network poller (which
// refuses it) and allocate the contents anew each time.
type Buffer struct{ data []byte }

// Read returns the contents of a file, which the next call overwrites. More than limit bytes are an
// error.
func (b *Buffer) Read(path string, limit int) ([]byte, error) {
	fd, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return b.ReadFrom(fd, path, limit)
}

// ReadFrom reads an open file from its beginning, wherever it was read before. The path is for
// errors.
func (b *Buffer) ReadFrom(fd int, path string, limit int) ([]byte, error) {
	return b.read(unix.Pread, fd, path, limit, 0)
}

// shortRead is half a page. A file of the kernel comes in pieces of at least a page, and of whole
// lines (fs/seq_file.c). So if its lines are shorter than half a page, as little as this is all of
// it.
const shortRead = 2048

// pread is pread(2), or PreadAtOnce.
type pread func(fd int, p []byte, offset int64) (int, error)

// read reads up to the end of a file, or up to a first piece of at most so many bytes.
func (b *Buffer) read(pread pread, fd int, path string, limit, whole int) ([]byte, error) {
	if b.data == nil {
		b.data = make([]byte, firstSize)
	}

	for n := 0; ; {
		m, err := pread(fd, b.data[n:], int64(n))
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		case m <= 0:
			return b.data[:n], nil
		}
		first := n == 0
		if n += m; n > limit {
			return nil, fmt.Errorf("read %s: more than %d bytes", path, limit)
		}
		if first && n <= whole {
			return b.data[:n], nil
		}
		if n == len(b.data) {
			b.data = append(b.data, make([]byte, len(b.data))...)
		}
	}
}
