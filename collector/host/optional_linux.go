package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/procfile"
)

// optionalSources is the state of the optional sources. Readers of mounts append to mounts and missing, for the current
// Reading.
type optionalSources struct {
	mounts  []Mount
	missing []series.Missing
	energy  energyReader
	thermal thermalReader
}

// readOptional reads network file systems and energy counters. It opens their readers when it is first called, which is
// after the job has started.
func (r *Reader) readOptional(out *Reading) {
	r.optional.mounts, r.optional.missing = nil, nil
	for k := range deviceKinds {
		if !DeviceKind(k).isOptional() {
			continue
		}
		if r.devices[k] == nil {
			r.devices[k] = deviceKinds[k].open(r)
		}
		out.try(deviceKinds[k].source, func() (err error) {
			out.Devices[k], err = r.devices[k](out.At.Mono, nil)
			out.Skipped[k] = err == errNotDue
			if out.Skipped[k] {
				return nil
			}
			return err
		})
	}

	out.try(SourceEnergy, func() (err error) { out.Energy, err = r.optional.energy.read(r, out.At.Mono); return err })
	out.Mounts, out.Missing = r.optional.mounts, r.optional.missing
}

// readThermal reads the temperature of the CPUs. A run shorter than a second has none.
func (r *Reader) readThermal(out *Reading) {
	out.try(SourceThermal, func() (err error) { out.Thermal, err = r.optional.thermal.read(r, out.At.Mono); return err })
}

// isForbidden reports whether err means that we may not read a file that exists.
func isForbidden(err error) bool { return errors.Is(err, fs.ErrPermission) }

// checkOpen returns an error if a file cannot be opened for reading.
func checkOpen(path string) error {
	fd, err := procfile.Open(path)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// count reads the number in a file that is read often, and keeps it open.
func (s *scratch) count(path string) (uint64, error) {
	data, err := s.readKeepOpen(path)
	return numberIn(path, data, err)
}

// readCount reads the number in a file that is read rarely.
func readCount(path string) (uint64, error) {
	data, err := readStart(path, 64)
	return numberIn(path, data, err)
}

// numberIn parses data, the content of a file with one number; err is the error of reading it.
func numberIn(path string, data []byte, err error) (uint64, error) {
	n, ok := procfile.ParseCount(bytes.TrimSpace(data))
	if err == nil && !ok {
		err = fmt.Errorf("read %s: %.20q is not a count", path, data)
	}
	return n, err
}

// readStart reads at most the given number of bytes from the start of a small file.
func readStart(path string, most int) ([]byte, error) {
	fd, err := procfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	data := make([]byte, most)
	n, err := unix.Read(fd, data)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return data[:n], nil
}

// readWord returns the first line of a small file, such as a list of CPUs; "" if it cannot be read.
func readWord(path string) string {
	data, _ := readStart(path, 4096)
	line, _, _ := bytes.Cut(data, []byte{'\n'})
	return string(bytes.TrimSpace(line))
}
