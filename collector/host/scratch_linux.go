package host

import (
	"path/filepath"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/internal/procfile"
)

// maxProcFile bounds what is read of one kernel file. /proc/stat of the largest hosts, with a count
// for each interrupt, stays below it.
const maxProcFile = 1 << 20

// scratch is what a Reader reuses in the next Reading.
type scratch struct {
	file                          procfile.Buffer
	pressure                      *cgroup.HostPressure
	cpuNames, diskNames, nicNames nameCache
}

// close closes the files that are held open.
func (s *scratch) close() {
	if s.pressure != nil {
		s.pressure.Close()
	}
}

// readProc reads a file below the root of procfs into the Reader's buffer, which the next call
// overwrites.
func (r *Reader) readProc(name string) ([]byte, error) {
	return r.readFile(filepath.Join(r.proc, name))
}

func (r *Reader) readFile(path string) ([]byte, error) { return r.file.Read(path, maxProcFile) }

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
