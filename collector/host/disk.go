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
	// Used is the size of all allocated blocks, Available the size of the blocks that unprivileged users can still
	// allocate. Neither includes free blocks that are reserved for root.
	Used, Available uint64
}

// Percent returns psutil's percentage, used / (used + available), rounded to one decimal.
func (d DiskUsage) Percent() float64 {
	return series.Round1(float64(d.Used) / (float64(d.Used) + float64(d.Available)) * 100)
}

// statfsTimeout is the longest time that a Reading waits for statfs. On a local file system statfs takes microseconds.
// If the server of a network file system is gone, it never returns, but only one Reading waits for it.
const statfsTimeout = 200 * time.Millisecond

// A diskUsageReader reads the usage of file systems. A file system that hangs is absent from the Reading and does not
// block sampling.
type diskUsageReader struct {
	files   []fileSystem
	timeout time.Duration          // statfsTimeout, except in tests
	prompt  func(path string) bool // timeout.IsLocalFS, or nil if statfs is replaced
}

// A fileSystem is one file system and its statfs call.
type fileSystem struct {
	path        string
	statfs      func() diskResult
	caller      *timeout.Caller[diskResult]
	overdue     bool // the call of an earlier Reading has not returned
	promptKnown bool // prompt was set by the first call that returned
	prompt      bool // statfs returns from memory, see timeout.IsLocalFS
}

type diskResult struct {
	usage  DiskUsage
	err    error
	prompt bool // set by the first call
}

// usageOf binds ask to path.
func usageOf(ask func(path string) (DiskUsage, error), path string) func() (DiskUsage, error) {
	return func() (DiskUsage, error) { return ask(path) }
}

func newDiskSpace(paths []string, usageOf func(path string) func() (DiskUsage, error)) *diskUsageReader {
	d := &diskUsageReader{timeout: statfsTimeout}
	d.files = make([]fileSystem, len(paths))
	for i, path := range paths {
		f := &d.files[i]
		usage := usageOf(path)
		statfs := func() (a diskResult) {
			a.usage, a.err = usage()
			a.prompt = !f.promptKnown && d.prompt != nil && d.prompt(path)
			if a.err == nil && a.usage.Used == 0 && a.usage.Available == 0 {
				a.err = fmt.Errorf("%s: a file system without blocks", path)
			}
			return a
		}
		*f = fileSystem{path: path, statfs: statfs, caller: timeout.NewCaller[diskResult]()}
	}
	return d
}

// read waits for the pending call until the deadline. If statfs is known to be prompt, read calls it directly. ok is
// false on a timeout.
func (f *fileSystem) read(deadline time.Time) (a diskResult, ok bool) {
	if f.prompt {
		return f.statfs(), true
	}

	limit := time.Until(deadline)
	if f.overdue {
		limit = 0
	}
	if a, ok = f.caller.Result(limit); ok && !f.promptKnown {
		f.promptKnown, f.prompt = true, a.prompt
	}
	return a, ok
}

// paths returns the paths of the file systems.
func (d *diskUsageReader) paths() []string {
	var out []string
	for _, f := range d.files {
		out = append(out, f.path)
	}
	return out
}

// read calls statfs on all file systems in parallel and appends the results to got. It does not wait for a call that is
// pending since an earlier Reading, but uses the result if the call has returned. The error names the file systems that
// failed or timed out.
func (d *diskUsageReader) read(got []DiskUsage) ([]DiskUsage, error) {
	deadline := time.Now().Add(d.timeout)
	for i := range d.files {
		f := &d.files[i]
		f.overdue = !f.prompt && !f.caller.Start(f.statfs)
	}

	var errs []error
	for i := range d.files {
		f := &d.files[i]
		a, ok := f.read(deadline)
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("statfs %s: no response within %v", f.path, statfsTimeout))
		case a.err != nil:
			errs = append(errs, a.err)
		default:
			got = append(got, a.usage)
		}
	}
	return got, errors.Join(errs...)
}

// FreeSpace is the space on a file system that this user can still use.
type FreeSpace struct {
	Path   string
	FreeMB float64 // MiB
	// ReserveMB is the part of FreeMB that is reserved for root. Samples exclude it.
	ReserveMB float64
	Inodes    series.Optional // files that can still be created; unknown if the file system has no such limit
}

// A CoreFile is a core dump that the kernel wrote.
type CoreFile struct {
	File  string
	MB    float64  // allocated MiB
	Paths []string // the requested directories on its file system
}

// FreeSpaces reads the free space of the file systems at paths in parallel, for at most statfsTimeout (200 ms): if the
// server of a network file system is gone, statfs never returns. It omits file systems that fail, time out or are
// read-only, and keeps the order of paths.
func FreeSpaces(paths []string) []FreeSpace {
	type answer struct {
		space FreeSpace
		err   error
	}
	callers := make([]*timeout.Caller[answer], len(paths))
	for i, path := range paths {
		callers[i] = timeout.NewCaller[answer]()
		callers[i].Start(func() (a answer) {
			a.space, a.err = freeSpace(path)
			return a
		})
	}

	deadline := time.Now().Add(statfsTimeout)
	var out []FreeSpace
	for _, caller := range callers {
		if a, ok := caller.Result(time.Until(deadline)); ok && a.err == nil {
			out = append(out, a.space)
		}
	}
	return out
}
