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

// optionalSources are what a Reader keeps of the rare sources. What reads mounts puts them and what it may not
// read into mounts and gaps, for the Reading that is taken now.
type optionalSources struct {
	mounts  []Mount
	missing []series.Missing
	energy  energyReader
	thermal thermalReader
}

// readOptional reads the file systems of servers and the counters of energy. What reads them is made after
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

// readThermal reads how hot the CPUs are. A run that is over within the first second does without.
func (r *Reader) readThermal(out *Reading) {
	out.try(SourceThermal, func() (err error) { out.Thermal, err = r.optional.thermal.read(r, out.At.Mono); return err })
}

// forbidden reports whether a file is there, and is not for us.
func forbidden(err error) bool { return errors.Is(err, fs.ErrPermission) }

// openable returns an error if a file cannot be opened.
func openable(path string) error {
	fd, err := procfile.Open(path)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// count reads the number in a file that is read again and again.
func (s *scratch) count(path string) (uint64, error) {
	data, err := s.readKeepOpen(path)
	return numberIn(path, data, err)
}

// readCount reads the number in a file that is read now and then.
func readCount(path string) (uint64, error) {
	data, err := readStart(path, 64)
	return numberIn(path, data, err)
}

// numberIn returns the number that was read of a file; err is the error of the reading.
func numberIn(path string, data []byte, err error) (uint64, error) {
	n, ok := procfile.ParseCount(bytes.TrimSpace(data))
	if err == nil && !ok {
		err = fmt.Errorf("read %s: %.20q is not a count", path, data)
	}
	return n, err
}

// readStart reads at most the given number of bytes from the beginning of a small file.
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

// readWord reads the first line of a small file, such as a list of all CPUs; "" if there is none.
func readWord(path string) string {
	data, _ := readStart(path, 4096)
	line, _, _ := bytes.Cut(data, []byte{'\n'})
	return string(bytes.TrimSpace(line))
}
