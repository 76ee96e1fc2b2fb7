package host

import (
	"errors"
	"fmt"
	"time"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/patience"
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

// statfsPatience is how long a Reading waits for file systems to answer. A local one needs
// microseconds. A network one whose server is gone blocks forever; it is waited for once, not in
// every Reading.
const statfsPatience = 200 * time.Millisecond

// diskSpace asks file systems for their usage. One that hangs is absent from the Reading and does
// not stop the sampling.
type diskSpace struct {
	files    []fileSystem
	patience time.Duration // statfsPatience, except in tests
}

// A fileSystem is asked again and again.
type fileSystem struct {
	path     string
	question func() diskAnswer
	asked    *patience.Asker[diskAnswer]
	late     bool // the open question is an earlier Reading's
}

type diskAnswer struct {
	usage DiskUsage
	err   error
}

// usageOf returns the question for the usage of the file system at a path.
func usageOf(ask func(path string) (DiskUsage, error), path string) func() (DiskUsage, error) {
	return func() (DiskUsage, error) { return ask(path) }
}

func newDiskSpace(paths []string, usageOf func(path string) func() (DiskUsage, error)) *diskSpace {
	d := &diskSpace{patience: statfsPatience}
	for _, path := range paths {
		usage := usageOf(path)
		question := func() (a diskAnswer) {
			a.usage, a.err = usage()
			if a.err == nil && a.usage.Used == 0 && a.usage.Available == 0 {
				a.err = fmt.Errorf("%s: a file system without blocks", path)
			}
			return a
		}
		d.files = append(d.files, fileSystem{path: path, question: question, asked: patience.New[diskAnswer]()})
	}
	return d
}

// paths returns the file systems that are asked.
func (d *diskSpace) paths() []string {
	var out []string
	for _, f := range d.files {
		out = append(out, f.path)
	}
	return out
}

// read asks all file systems at once. It returns those that answered even if others failed; the
// error names the latter. It does not wait for one that has not answered an earlier Reading yet,
// but takes its late answer: that is as good as another.
func (d *diskSpace) read(got []DiskUsage) ([]DiskUsage, error) {
	deadline := time.Now().Add(d.patience)
	for i := range d.files {
		f := &d.files[i]
		f.late = !f.asked.Start(f.question)
	}

	var errs []error
	for _, f := range d.files {
		limit := time.Until(deadline)
		if f.late {
			limit = 0
		}
		a, ok := f.asked.Answer(limit)
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("statfs %s: no answer within %v", f.path, statfsPatience))
		case a.err != nil:
			errs = append(errs, a.err)
		default:
			got = append(got, a.usage)
		}
	}
	return got, errors.Join(errs...)
}
