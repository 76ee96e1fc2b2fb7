package procfile

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Open opens the file at path for reading. It does not block on a FIFO, which a copied tree may contain. The error is
// an *fs.PathError.
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

// Read reads the whole file at path. A file of more than limit bytes is an error. The next call overwrites the result.
func (b *Buffer) Read(path string, limit int) ([]byte, error) {
	fd, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return b.ReadFrom(fd, path, limit)
}

// ReadFrom is Read for the open file fd, from its beginning, whatever its offset is. path is used in errors.
func (b *Buffer) ReadFrom(fd int, path string, limit int) ([]byte, error) {
	return b.read(unix.Pread, fd, path, limit, 0)
}

// shortRead is half a page. The kernel returns a file in pieces of whole lines, as many as fit in a page
// (fs/seq_file.c). Therefore, if all lines are shorter than half a page, a first piece of at most half a page is the
// whole file.
const shortRead = 2048

// A pread is pread(2), or RawPread.
type pread func(fd int, p []byte, offset int64) (int, error)

// read reads to the end of the file fd. A first piece of at most whole bytes is taken as the whole file.
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

// maxFileSize is the largest file that ReadFile reads, in bytes.
const maxFileSize = 16 << 20

// ReadFile reads the kernel file at path, for a caller without a Buffer. It costs a fifth of os.ReadFile, which queries
// the file's size and registers the file with the network poller.
func ReadFile(path string) ([]byte, error) {
	b := Buffer{data: make([]byte, 2<<10)}
	return b.Read(path, maxFileSize)
}
