package cgroup

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

const (
	// maxFile is the maximum size of a file of a group, in bytes. Even the longest files, io.stat and the cpuset lists of
	// the largest hosts, are far smaller.
	maxFile = 256 << 10

	// maxTable is the maximum size of /proc/PID/mountinfo and cgroup.procs, in bytes. It is enough for half a million
	// processes.
	maxTable = 4 << 20
)

// A reader reads small kernel files, and keeps the files open that every sample reads.
type reader struct{ *procfile.Files }

func newReader() reader { return reader{procfile.NewFiles()} }

// value reads the file at path, which contains a single value.
func (r *reader) value(path string, parse func(data []byte) (float64, bool)) (float64, error) {
	data, err := r.ReadKeepOpen(path, maxFile)
	if err != nil {
		return nan, err
	}
	v, ok := parse(data)
	if !ok {
		return nan, malformed(path, data)
	}
	return v, nil
}

// keys sets values from a file of "key value" lines. The value of a missing key is NaN; the first key must exist.
func (r *reader) keys(path string, keys []string, values []float64) error {
	for i := range values {
		values[i] = nan
	}
	data, err := r.ReadKeepOpen(path, maxFile)
	if err != nil {
		return err
	}
	parseKeys(data, keys, values)
	if values[0] != values[0] {
		return fmt.Errorf("read %s: %s has no number", path, keys[0])
	}
	return nil
}

// malformed returns an error that quotes data, the unexpected content of the file at path.
func malformed(path string, data []byte) error {
	return fmt.Errorf("read %s: %w", path, unexpectedContent(data))
}

func unexpectedContent(data []byte) error {
	if len(data) > 40 {
		return fmt.Errorf("not understood: %q ... (%d bytes)", data[:40], len(data))
	}
	return fmt.Errorf("not understood: %q", data)
}

// exists reports whether a file exists at path, even if it is not readable.
func exists(path string) bool { return unix.Access(path, unix.F_OK) == nil }

// existingPath returns path, or "" if the file does not exist. A missing file is not a failure: some kernels and some
// sets of controllers lack it.
func existingPath(path string) string {
	if exists(path) {
		return path
	}
	return ""
}
