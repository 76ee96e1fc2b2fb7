package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/procfile"
)

// rareSources are what a Reader keeps of the rare sources. What reads mounts puts them and what it may not
// read into mounts and gaps, for the Reading that is taken now.
type rareSources struct {
	opened bool
	mounts []Mount
	gaps   []series.Gap
	energy energyReader
	heat   heatReader
}

func newRareSources(r *Reader) rareSources {
	return rareSources{
		opened: true,
		energy: energyReader{dir: filepath.Join(r.sys, "class", "powercap")},
		heat:   heatReader{sys: r.sys},
	}
}

func (s *rareSources) close() {
	s.energy.close()
	s.heat.close()
}

// forbidden reports whether a file is there, and is not for us.
func forbidden(err error) bool { return errors.Is(err, fs.ErrPermission) }

// A countFile is an open file of the kernel with one number in it.
type countFile struct {
	fd   int
	path string
}

func openCount(path string) (countFile, error) {
	fd, err := procfile.Open(path)
	return countFile{fd, path}, err
}

func (f countFile) close() { _ = unix.Close(f.fd) }

// read reads the number as it is now.
func (f countFile) read() (uint64, error) {
	var buf [32]byte
	for {
		n, err := unix.Pread(f.fd, buf[:], 0)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, &fs.PathError{Op: "read", Path: f.path, Err: err}
		}
		return parseNumber(buf[:n], f.path)
	}
}

// readCount reads the number in a file.
func readCount(path string) (uint64, error) {
	f, err := openCount(path)
	if err != nil {
		return 0, err
	}
	defer f.close()
	return f.read()
}

// readWord reads the first line of a small file, such as a list of all CPUs; "" if there is none.
func readWord(path string) string {
	fd, err := procfile.Open(path)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	var buf [4096]byte
	n, err := unix.Read(fd, buf[:])
	if err != nil {
		return ""
	}
	line, _, _ := bytes.Cut(buf[:n], []byte{'\n'})
	return string(bytes.TrimSpace(line))
}

func parseNumber(text []byte, path string) (uint64, error) {
	n, ok := procfile.ParseCount(bytes.TrimSpace(text))
	if !ok {
		return 0, fmt.Errorf("read %s: %.20q is not a count", path, text)
	}
	return n, nil
}
