package host

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/perfagent/perfagent/internal/procfile"
)

// readCPU reads the cpuN lines of /proc/stat. gopsutil creates a string for every line, including the line with
// thousands of interrupt counts, which doubles the cost (BenchmarkSources). It also drops a CPU silently if it cannot
// parse the line of that CPU.
func (r *Reader) readCPU(into []CPUTimes) ([]CPUTimes, error) {
	if r.gopsutil != nil {
		return r.gopsutil.readCPU()
	}
	return readParsed(&r.scratch, r.paths.stat, func(data []byte) ([]CPUTimes, error) {
		return parseStat(data, &r.cpuNames, into)
	})
}

// parseStat appends the CPUs of data, the content of /proc/stat, to cpus, which must be empty. The first line has the
// sum of all CPUs, and the lines of the CPUs follow directly. Old kernels lack the last columns.
func parseStat(data []byte, names *nameCache, cpus []CPUTimes) ([]CPUTimes, error) {
	_, data, _ = bytes.Cut(data, []byte{'\n'})
	if cpus == nil {
		cpus = make([]CPUTimes, 0, max(1, len(*names)))
	}
	for line := range bytes.Lines(data) {
		if !bytes.HasPrefix(line, []byte("cpu")) {
			break
		}
		var f [11][]byte
		n := procfile.SplitFields(line, f[:])
		if n < 8 {
			return nil, fmt.Errorf("line %q has %d fields", bytes.TrimSuffix(line, []byte{'\n'}), n)
		}
		var seconds [NumCPUModes + 2]float64 // in the order of CPUMode, then guest and guest_nice
		for i, field := range f[1:n] {
			ticks, ok := procfile.ParseCount(field)
			if !ok {
				return nil, fmt.Errorf("%s: %q is not a count", f[0], field)
			}
			seconds[i] = float64(ticks) / procfile.UserHZ
		}
		c := CPUTimes{Name: names.at(len(cpus), f[0]), Guest: seconds[NumCPUModes], GuestNice: seconds[NumCPUModes+1]}
		copy(c.Seconds[:], seconds[:])
		cpus = append(cpus, c)
	}

	if len(cpus) == 0 {
		return nil, errors.New("no line for a CPU")
	}
	return cpus, nil
}
