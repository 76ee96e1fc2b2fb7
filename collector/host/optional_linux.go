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

// optionalSources is the state of the optional sources. Their readers append to mounts and missing, which belong to the
// current Reading.
type optionalSources struct {
	mounts  []Mount
	missing []series.Missing
	energy  energyReader
	thermal thermalReader
}

// readOptional reads network file systems and energy counters. Its first call opens their readers and takes place after
// the job has started.
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

// readThermal reads the temperature and throttling of the CPUs. A run shorter than a second has neither.
func (r *Reader) readThermal(out *Reading) {
	out.try(SourceThermal, func() (err error) { out.Thermal, err = r.optional.thermal.read(r, out.At.Mono); return err })
}

// isForbidden reports whether err means that this user may not read an existing file.
func isForbidden(err error) bool { return errors.Is(err, fs.ErrPermission) }

// checkOpen returns an error if the file at path cannot be opened for reading.
func checkOpen(path string) error {
	fd, err := procfile.Open(path)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// count reads the number in the file at path, and keeps the file open.
func (s *scratch) count(path string) (uint64, error) {
	data, err := s.readKeepOpen(path)
	return numberIn(path, data, err)
}

// readCount reads the number in the file at path. It does not keep the file open.
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

// readStart reads at most most bytes from the start of the file at path, in one call.
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

// readWord returns the first line of the file at path, such as a list of CPUs; "" if the file cannot be read.
func readWord(path string) string {
	data, _ := readStart(path, 4096)
	line, _, _ := bytes.Cut(data, []byte{'\n'})
	return string(bytes.TrimSpace(line))
}
