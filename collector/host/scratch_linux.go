package host

import (
	"fmt"

	"github.com/perfagent/perfagent/internal/procfile"
)

// maxProcFile bounds what is read of one kernel file. /proc/stat of the largest hosts, with a count
// for each interrupt, stays below it.
const maxProcFile = 1 << 20

// scratch is what a Reader reuses in the next Reading.
type scratch struct {
	files                         *procfile.Files
	paths                         paths
	cpuNames, diskNames, nicNames nameCache
}

// paths are the files that are read in each Reading.
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

// close closes the files that are held open.
func (s *scratch) close() { s.files.Close() }

// readKeepOpen reads a file that is read in each Reading. The next read overwrites what it returns.
func (s *scratch) readKeepOpen(path string) ([]byte, error) {
	return s.files.ReadKeepOpen(path, maxProcFile)
}

// parsed returns what parse makes of a file that is read in each Reading.
func parsed[T any](s *scratch, path string, parse func(data []byte) (T, error)) (v T, err error) {
	data, err := s.readKeepOpen(path)
	if err != nil {
		return v, err
	}
	if v, err = parse(data); err != nil {
		err = fmt.Errorf("read %s: %w", path, err)
	}
	return v, err
}

// readFile reads a file that is read now and then. The next read overwrites what it returns.
func (r *Reader) readFile(path string) ([]byte, error) { return r.files.ReadOnce(path, maxProcFile) }

// A nameCache keeps the names of a source's lines, which are the same in nearly every Reading, so
// that no Reading makes them anew.
type nameCache []string

// at returns the name of line i.
func (c *nameCache) at(i int, name []byte) string {
	if i < len(*c) && (*c)[i] == string(name) {
		return (*c)[i]
	}
	s := string(name)
	*c = append((*c)[:min(i, len(*c))], s)
	return s
}
