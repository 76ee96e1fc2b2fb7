package procfile

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Open opens a file for reading. A FIFO in a copied tree does not block it. The error is an *fs.PathError.
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

// A Buffer is reusable memory for reading files. The zero value is ready. os.ReadFile would query the file's size,
// register the file with the network poller (which rejects it) and allocate memory each time.
type Buffer struct{ data []byte }

// Read reads a whole file. The next call overwrites the result. More than limit bytes are an error.
func (b *Buffer) Read(path string, limit int) ([]byte, error) {
	fd, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return b.ReadFrom(fd, path, limit)
}

// ReadFrom reads an open file from its beginning, whatever its offset. path is for errors.
func (b *Buffer) ReadFrom(fd int, path string, limit int) ([]byte, error) {
	return b.read(unix.Pread, fd, path, limit, 0)
}

// shortRead is half a page. A kernel file arrives in pieces of at least a page, and of whole lines (fs/seq_file.c). So
// if its lines are shorter than half a page, a first piece of at most this size is the whole file.
const shortRead = 2048

// A pread is pread(2), or RawPread.
type pread func(fd int, p []byte, offset int64) (int, error)

// read reads to the end of a file, or only its first piece if that has at most whole bytes.
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
