package collector

import (
	"errors"
	"fmt"
	"time"
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
	return round1(float64(d.Used) / float64(d.Used+d.Available) * 100)
}

// statfsPatience is how long a Reading waits for a file system's answer. A local
// one needs microseconds; a network one whose server is gone blocks for ever.
const statfsPatience = 200 * time.Millisecond

// diskSpace asks each file system on a goroutine of its own, so that one that
// hangs is absent from the Reading instead of stopping the sampling.
type diskSpace struct {
	asks []*diskAsk
}

// diskAsk is one file system and the question under way, if any.
type diskAsk struct {
	path     string
	question chan struct{}
	answer   chan diskAnswer
	pending  bool
}

type diskAnswer struct {
	usage DiskUsage
	err   error
}

func newDiskSpace(paths []string) *diskSpace {
	d := &diskSpace{}
	for _, p := range paths {
		a := &diskAsk{path: p, question: make(chan struct{}, 1), answer: make(chan diskAnswer, 1)}
		d.asks = append(d.asks, a)
		go a.serve()
	}
	return d
}

func (a *diskAsk) serve() {
	for range a.question {
		u, err := diskUsage(a.path)
		a.answer <- diskAnswer{u, err}
	}
}

// read asks every file system. Those that answered are returned even when
// others failed; the error names the latter.
func (d *diskSpace) read() ([]DiskUsage, error) {
	var got []DiskUsage
	var errs []error
	for _, a := range d.asks {
		u, err := a.ask()
		if err == nil && u.Used+u.Available == 0 {
			err = fmt.Errorf("%s: a file system without blocks", a.path)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		got = append(got, u)
	}
	return got, errors.Join(errs...)
}

func (a *diskAsk) ask() (DiskUsage, error) {
	if !a.pending {
		a.question <- struct{}{}
		a.pending = true
	}
	select {
	case ans := <-a.answer:
		a.pending = false
		return ans.usage, ans.err
	case <-time.After(statfsPatience):
		return DiskUsage{}, fmt.Errorf("statfs %s: no answer within %v", a.path, statfsPatience)
	}
}

func (d *diskSpace) close() {
	for _, a := range d.asks {
		close(a.question)
	}
}
