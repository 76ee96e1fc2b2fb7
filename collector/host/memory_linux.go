package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/perfagent/perfagent/internal/procfile"
)

// readMemory reads the host's memory from /proc/meminfo, as psutil does. gopsutil creates strings for all fifty lines
// for the two numbers needed (BenchmarkSources), and its estimate for unusual kernels can underflow.
func (r *Reader) readMemory() (Memory, error) {
	if r.gopsutil != nil {
		return r.gopsutil.readMemory()
	}

	info, err := readParsed(&r.scratch, r.paths.meminfo, parseMeminfo)
	if err != nil {
		return Memory{}, err
	}

	total, available := info.bytes[memTotal], info.bytes[memAvailable]
	if available == 0 { // or missing, before Linux 3.14
		available, err = r.estimateAvailable(&info)
		if err != nil {
			return Memory{}, err
		}
	}

	if available > total { // seen in LXC
		available = min(info.bytes[memFree], total)
	}
	return Memory{Total: total, Available: available}, nil
}

// The keys of /proc/meminfo that are read.
const (
	memTotal = iota
	memFree
	memAvailable
	memCached
	memActiveFile
	memInactiveFile
	memReclaimable
	numMemKeys
)

var memKeys = [numMemKeys]string{
	"MemTotal", "MemFree", "MemAvailable", "Cached", "Active(file)", "Inactive(file)", "SReclaimable",
}

// meminfo holds the value of each of memKeys, in bytes, and whether the file has it.
type meminfo struct {
	bytes [numMemKeys]uint64
	has   [numMemKeys]bool
}

// parseMeminfo parses lines "Key: 123 kB". It ignores keys that are not in memKeys.
func parseMeminfo(data []byte) (meminfo, error) {
	var info meminfo
	for line := range bytes.Lines(data) {
		key, value, _ := bytes.Cut(line, []byte{':'})
		for i, k := range memKeys {
			if string(key) != k {
				continue
			}
			var f [1][]byte
			procfile.SplitFields(value, f[:])
			kb, ok := procfile.ParseCount(f[0])
			if !ok || kb > 1<<53 {
				return info, fmt.Errorf("%s: %q is not a number of kB", k, bytes.TrimSpace(value))
			}
			info.bytes[i], info.has[i] = kb<<10, true
		}
	}

	if info.bytes[memTotal] == 0 {
		return info, errors.New("no MemTotal")
	}
	return info, nil
}

// estimateAvailable returns psutil's estimate for kernels with a MemAvailable that is 0 or missing. It is free − low
// watermark + the part of page cache and reclaimable slab that can be dropped, at least 0. Without /proc/zoneinfo, or
// without the lines on page cache and slab, it is free + cached.
func (r *Reader) estimateAvailable(info *meminfo) (uint64, error) {
	fallback := info.bytes[memFree] + info.bytes[memCached]
	if !info.has[memActiveFile] || !info.has[memInactiveFile] || !info.has[memReclaimable] {
		return fallback, nil
	}
	path := filepath.Join(r.proc, "zoneinfo")
	data, err := r.readOnce(path) // its records, of many lines, are too long for ReadKeepOpen
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return fallback, nil
	}
	if err != nil {
		return 0, err
	}
	low, err := parseLowWatermark(data)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", path, err)
	}

	cache, slab := info.bytes[memActiveFile]+info.bytes[memInactiveFile], info.bytes[memReclaimable]
	sum := info.bytes[memFree] + cache - min(cache/2, low) + slab - min(slab/2, low)
	return sum - min(sum, low), nil
}

// parseLowWatermark returns the sum of the "low" lines of data, a /proc/zoneinfo, in bytes.
func parseLowWatermark(data []byte) (uint64, error) {
	var pages uint64
	for line := range bytes.Lines(data) {
		var f [3][]byte
		if procfile.SplitFields(line, f[:]) != 2 || string(f[0]) != "low" {
			continue
		}
		n, ok := procfile.ParseCount(f[1])
		if !ok || n > 1<<40 {
			return 0, fmt.Errorf("low watermark %q", f[1])
		}
		pages += n
	}
	return pages * uint64(os.Getpagesize()), nil
}
