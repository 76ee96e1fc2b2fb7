package host

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/perfagent/perfagent/internal/procfile"
)

// readMemory reads the host's memory from /proc/meminfo, as psutil does. gopsutil creates strings for all fifty lines
// to get the two numbers (BenchmarkSources).
func (r *Reader) readMemory() (Memory, error) {
	if r.gopsutil != nil {
		return r.gopsutil.readMemory()
	}
	return readParsed(&r.scratch, r.paths.meminfo, parseMeminfo)
}

// parseMeminfo parses lines "Key: 123 kB". If MemAvailable exceeds MemTotal, as seen in LXC, it uses MemFree instead.
func parseMeminfo(data []byte) (Memory, error) {
	var m Memory
	var free uint64
	for line := range bytes.Lines(data) {
		key, value, _ := bytes.Cut(line, []byte{':'})
		var into *uint64
		switch string(key) {
		case "MemTotal":
			into = &m.Total
		case "MemFree":
			into = &free
		case "MemAvailable":
			into = &m.Available
		default:
			continue
		}
		var f [1][]byte
		procfile.SplitFields(value, f[:])
		kb, ok := procfile.ParseCount(f[0])
		if !ok || kb > 1<<53 {
			return Memory{}, fmt.Errorf("%s: %q is not a number of kB", key, bytes.TrimSpace(value))
		}
		*into = kb << 10
	}

	switch {
	case m.Total == 0:
		return Memory{}, errors.New("no MemTotal")
	case m.Available == 0: // missing, or unknown in a container
		return Memory{}, errors.New("no MemAvailable (Linux 3.14 and newer have it)")
	case m.Available > m.Total:
		m.Available = min(free, m.Total)
	}
	return m, nil
}
