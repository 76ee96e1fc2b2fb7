package host

import (
	"errors"
	"fmt"
	"time"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/timeout"
)

// DiskUsage is the usage of the file system at Path, in bytes (statfs(2)).
type DiskUsage struct {
	Path string
	// Used counts the blocks that hold something, Available those that unprivileged users may still
	// write. Reserved blocks are in neither.
	Used, Available uint64
}

// Percent returns psutil's percentage, used / (used + available to users), rounded to one decimal.
func (d DiskUsage) Percent() float64 {
	return series.Round1(float64(d.Used) / (float64(d.Used) + float64(d.Available)) * 100)
}

// statfsTimeout is how long a Reading waits for file systems to answer. A local one needs
// microseconds. A network one whose server is gone blocks forever; it is waited for once, not in
// every Reading.
const statfsTimeout = 200 * time.Millisecond

// diskUsageReader asks file systems for their usage. One that hangs is absent from the Reading and does
// not stop the sampling.
type diskUsageReader struct {
	files   []fileSystem
	timeout time.Duration          // statfsPatience, except in tests
	prompt  func(path string) bool // patience.Prompt, or nil where the questions are not the kernel's
}

// A fileSystem is asked again and again.
type fileSystem struct {
	path   string
	statfs func() diskResult
	caller *timeout.Caller[diskResult]
	late   bool // the open question is an earlier Reading's
	known  bool // whether it is prompt
	prompt bool // it answers from memory, see patience.Prompt
}

type diskResult struct {
	usage  DiskUsage
	err    error
	prompt bool // in the first answer
}

// usageOf returns the question for the usage of the file system at a path.
func usageOf(ask func(path string) (DiskUsage, error), path string) func() (DiskUsage, error) {
	return func() (DiskUsage, error) { return ask(path) }
}

func newDiskSpace(paths []string, usageOf func(path string) func() (DiskUsage, error)) *diskUsageReader {
	d := &diskUsageReader{timeout: statfsTimeout}
	d.files = make([]fileSystem, len(paths))
	for i, path := range paths {
		f := &d.files[i]
		usage := usageOf(path)
		question := func() (a diskResult) {
			a.usage, a.err = usage()
			a.prompt = !f.known && d.prompt != nil && d.prompt(path)
			if a.err == nil && a.usage.Used == 0 && a.usage.Available == 0 {
				a.err = fmt.Errorf("%s: a file system without blocks", path)
			}
			return a
		}
		*f = fileSystem{path: path, statfs: question, caller: timeout.NewCaller[diskResult]()}
	}
	return d
}

// read returns the answer to the question that was asked, or asks one that is answered promptly.
func (f *fileSystem) read(deadline time.Time) (a diskResult, ok bool) {
	if f.prompt {
		return f.statfs(), true
	}

	limit := time.Until(deadline)
	if f.late {
		limit = 0
	}
	if a, ok = f.caller.Result(limit); ok && !f.known {
		f.known, f.prompt = true, a.prompt
	}
	return a, ok
}

// paths returns the file systems that are asked.
func (d *diskUsageReader) paths() []string {
	var out []string
	for _, f := range d.files {
		out = append(out, f.path)
	}
	return out
}

// read asks all file systems at once. It returns those that answered even if others failed; the
// error names the latter. It does not wait for one that has not answered an earlier Reading yet,
// but takes its late answer: that is as good as another.
func (d *diskUsageReader) read(got []DiskUsage) ([]DiskUsage, error) {
	deadline := time.Now().Add(d.timeout)
	for i := range d.files {
		f := &d.files[i]
		f.late = !f.prompt && !f.caller.Start(f.statfs)
	}

	var errs []error
	for i := range d.files {
		f := &d.files[i]
		a, ok := f.read(deadline)
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("statfs %s: no answer within %v", f.path, statfsTimeout))
		case a.err != nil:
			errs = append(errs, a.err)
		default:
			got = append(got, a.usage)
		}
	}
	return got, errors.Join(errs...)
}
