package host

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/perfagent/perfagent/internal/procfile"
)

// readCPU reads the lines cpuN of /proc/stat. gopsutil makes a string of every line of the file,
// thousands of interrupts included, at twice the cost (see BenchmarkSources), and silently leaves
// out a CPU whose line it cannot read.
func (r *Reader) readCPU(into []CPUTimes) ([]CPUTimes, error) {
	if r.gopsutil != nil {
		return r.gopsutil.readCPU()
	}
	return parsed(&r.scratch, r.paths.stat, func(data []byte) ([]CPUTimes, error) {
		return parseStat(data, &r.cpuNames, into)
	})
}

// parseStat returns the CPUs of /proc/stat. They follow the line of their sum and precede
// everything else. Old kernels lack the last columns. The CPUs are appended to cpus, which is empty.
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
		var seconds [NumCPUModes + 2]float64 // in the order of CPUMode, then the guests'
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
		return nil, errors.New("no line of a CPU")
	}
	return cpus, nil
}
