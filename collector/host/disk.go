package host

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/perfagent/perfagent/collector/series"
)

// DiskUsage is the fill of the file system at Path, in bytes (statfs(2)).
type DiskUsage struct {
	Path string
	// Used is blocks that hold something; Available is what users without
	// privileges may still write (reserved blocks are in neither).
	Used, Available uint64
}

// Percent is psutil's: used / (used + available to users), rounded to one
// decimal.
func (d DiskUsage) Percent() float64 {
	return series.Round1(float64(d.Used) / (float64(d.Used) + float64(d.Available)) * 100)
}

// statfsPatience is how long a Reading waits for the answers of the file systems.
// A local one needs microseconds; a network one whose server is gone blocks for
// ever, and is then waited for once, not in every Reading.
const statfsPatience = 200 * time.Millisecond

// diskSpace asks each file system on a goroutine of its own, so that one that
// hangs is absent from the Reading instead of stopping the sampling.
type diskSpace struct {
	asks     []*diskAsk
	patience time.Duration // statfsPatience, except in tests
	statfs   func(path string) (DiskUsage, error)
}

// diskAsk is one file system and the question under way, if any.
type diskAsk struct {
	path     string
	question chan struct{} // nil = nothing was asked yet
	answer   chan diskAnswer
	pending  bool
	late     bool // the question is an earlier Reading's
}

type diskAnswer struct {
	usage DiskUsage
	err   error
}

func newDiskSpace(paths []string, statfs func(path string) (DiskUsage, error)) *diskSpace {
	if statfs == nil {
		statfs = diskUsage
	}
	d := &diskSpace{patience: statfsPatience, statfs: statfs}
	for _, p := range paths {
		d.asks = append(d.asks, &diskAsk{path: p})
	}
	return d
}

// put puts the question, unless the last one is still open.
func (a *diskAsk) put(statfs func(string) (DiskUsage, error)) {
	if a.question == nil {
		a.question, a.answer = make(chan struct{}, 1), make(chan diskAnswer, 1)
		go a.serve(statfs)
	}
	if a.late = a.pending; a.pending {
		return
	}
	a.question <- struct{}{}
	a.pending = true
}

func (a *diskAsk) serve(statfs func(string) (DiskUsage, error)) {
	for range a.question {
		u, err := statfs(a.path)
		if err == nil && u.Used == 0 && u.Available == 0 {
			err = fmt.Errorf("%s: a file system without blocks", a.path)
		}
		a.answer <- diskAnswer{u, err}
	}
}

// paths are the file systems that are asked.
func (d *diskSpace) paths() []string {
	var out []string
	for _, a := range d.asks {
		out = append(out, a.path)
	}
	return out
}

// read asks all file systems at once. Those that answered are returned even when
// others failed; the error names the latter.
func (d *diskSpace) read() ([]DiskUsage, error) {
	for _, a := range d.asks {
		a.put(d.statfs)
	}
	// The answers of local file systems are here after this, and no timer is needed:
	// setting one wakes another thread.
	runtime.Gosched()
	d.wait()
	got := make([]DiskUsage, 0, len(d.asks))
	var errs []error
	for _, a := range d.asks {
		u, err := a.take()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		got = append(got, u)
	}
	return got, errors.Join(errs...)
}

// wait gives the file systems that were asked just now time to answer.
func (d *diskSpace) wait() {
	var timeout <-chan time.Time
	for _, a := range d.asks {
		if a.late || len(a.answer) > 0 {
			continue
		}
		if timeout == nil {
			timer := time.NewTimer(d.patience)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case ans := <-a.answer:
			a.answer <- ans // there is room: nothing else is under way
		case <-timeout:
			return
		}
	}
}

// take takes the answer, if it is there; one to an earlier Reading's question is
// good too.
func (a *diskAsk) take() (DiskUsage, error) {
	select {
	case ans := <-a.answer:
		a.pending = false
		return ans.usage, ans.err
	default:
		return DiskUsage{}, fmt.Errorf("statfs %s: no answer within %v", a.path, statfsPatience)
	}
}

// close ends the goroutines. One whose file system hangs ends with the process.
func (d *diskSpace) close() {
	for _, a := range d.asks {
		if a.question != nil {
			close(a.question)
			*a = diskAsk{path: a.path}
		}
	}
}
