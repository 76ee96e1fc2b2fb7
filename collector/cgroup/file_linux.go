package cgroup

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

const (
	// maxFile bounds the size of one file of a group. The longest, io.stat and the cpuset lists of the largest
	// hosts, stay far below it.
	maxFile = 256 << 10

	// maxTable bounds /proc/PID/mountinfo, and cgroup.procs of half a million processes.
	maxTable = 4 << 20
)

// A reader reads small kernel files, and keeps those open that are read in every sample.
type reader struct{ *procfile.Files }

func newReader() reader { return reader{procfile.NewFiles()} }

// value reads a file with a single value.
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

// keys reads values from a file of "key value" lines. Missing keys stay NaN; the first key must exist.
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
		return fmt.Errorf("read %s: no number for %s", path, keys[0])
	}
	return nil
}

// malformed returns an error for path that quotes its unexpected content.
func malformed(path string, data []byte) error {
	return fmt.Errorf("read %s: %w", path, unexpectedContent(data))
}

func unexpectedContent(data []byte) error {
	if len(data) > 40 {
		return fmt.Errorf("not understood: %q ... (%d bytes)", data[:40], len(data))
	}
	return fmt.Errorf("not understood: %q", data)
}

// exists reports whether a file exists, readable or not.
func exists(path string) bool { return unix.Access(path, unix.F_OK) == nil }

// existingPath returns path, or "" if the file does not exist, which is no failure: other versions of the kernel or
// sets of controllers lack it.
func existingPath(path string) string {
	if exists(path) {
		return path
	}
	return ""
}
