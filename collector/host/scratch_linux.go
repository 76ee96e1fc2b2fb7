package host

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// maxProcFile is the maximum size of a kernel file, in bytes. Even on the largest hosts, /proc/stat, with a count for
// each interrupt, is smaller.
const maxProcFile = 1 << 20

// scratch holds the files and buffers that a Reader reuses between Readings.
type scratch struct {
	files                         *procfile.Files
	paths                         paths
	cpuNames, diskNames, nicNames nameCache
}

// paths are the files that each Reading reads.
type paths struct {
	stat, meminfo, diskstats, net, hostNet, loadavg, vmstat string

	pressure [3]string
}

func newScratch(proc string) scratch {
	return scratch{files: procfile.NewFiles(), paths: paths{
		stat: proc + "/stat", meminfo: proc + "/meminfo", diskstats: proc + "/diskstats", net: proc + "/net/dev",
		hostNet: proc + "/1/net/dev", loadavg: proc + "/loadavg", vmstat: proc + "/vmstat",
		pressure: [...]string{proc + "/pressure/cpu", proc + "/pressure/io", proc + "/pressure/memory"},
	}}
}

// close closes the open files.
func (s *scratch) close() { s.files.Close() }

// readKeepOpen reads the file at path and keeps it open for the next Reading. The next read overwrites the result.
func (s *scratch) readKeepOpen(path string) ([]byte, error) {
	return s.files.ReadKeepOpen(path, maxProcFile)
}

// readParsed reads the file at path with readKeepOpen and parses it.
func readParsed[T any](s *scratch, path string, parse func(data []byte) (T, error)) (v T, err error) {
	data, err := s.readKeepOpen(path)
	if err != nil {
		return v, err
	}
	if v, err = parse(data); err != nil {
		err = fmt.Errorf("read %s: %w", path, err)
	}
	return v, err
}

// A nameCache caches the names in a source's lines to save allocations. They are the same in nearly every Reading.
type nameCache []string

// at returns a cached string for name, the name in line i of a source.
func (c *nameCache) at(i int, name []byte) string {
	if i < len(*c) && (*c)[i] == string(name) {
		return (*c)[i]
	}
	s := string(name)
	*c = append((*c)[:min(i, len(*c))], s)
	return s
}

// Now reads the machine's three clocks.
func Now() Instant {
	return Instant{Wall: time.Now().Round(0), Mono: procfile.Clock(unix.CLOCK_MONOTONIC),
		Boot: procfile.Clock(unix.CLOCK_BOOTTIME)}
}
