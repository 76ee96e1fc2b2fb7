package host

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/procfile"
	"github.com/perfagent/perfagent/internal/timeout"
)

// A mountReader reads the counters that the client of a network file system keeps for each mount, when its pollTimer is
// due.
type mountReader struct {
	host   *Reader
	timer  pollTimer
	first  time.Duration     // when the mounts were first read
	ages   map[string]uint64 // ages of the mounts at the previous Reading, by ID
	caller *timeout.Caller[mountResult]

	client      []string           // one of these paths exists while the client is loaded in the kernel
	readMounts  func() mountResult // reads the mounts
	timeoutText string             // error on a timeout, without the duration
	rootOnly    series.Missing     // reported if only root may read the counters
}

// A mountResult is the result of reading the mounts.
type mountResult struct {
	mounts    []Mount
	forbidden bool
	took      time.Duration // CPU time, because elapsed time includes other processes on a busy host
	err       error
}

// measureRead runs read and measures its CPU time.
func measureRead(read func(*mountResult) error) (a mountResult) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begun := procfile.Clock(unix.CLOCK_THREAD_CPUTIME_ID)
	a.err = guard(func() error { return read(&a) })
	a.took = procfile.Clock(unix.CLOCK_THREAD_CPUTIME_ID) - begun
	return a
}

func (m *mountReader) read(at time.Duration, _ []Device) ([]Device, error) {
	if !m.timer.due(at, m.host.job.closing) {
		if m.timer.present {
			return nil, errNotDue
		}
		return nil, nil
	}

	again := m.timer.polled
	if !again {
		m.first = at
	}
	if !slices.ContainsFunc(m.client, exists) {
		m.timer.done(at, 0, false)
		return nil, nil
	}

	// The kernel keeps the counters in memory, but takes locks that the mount of a dead server may hold.
	limit := m.host.disks.timeout
	a, ok := m.caller.Call(limit, m.readMounts)
	if !ok {
		m.timer.done(at, 0, true)
		return nil, fmt.Errorf("%s within %v", m.timeoutText, limit)
	}
	m.timer.done(at, a.took, len(a.mounts) > 0)
	if a.forbidden {
		m.host.optional.missing = append(m.host.optional.missing, m.rootOnly)
	}

	m.markAdded(a.mounts, again, at)
	m.host.optional.mounts = append(m.host.optional.mounts, a.mounts...)
	var devs []Device
	for i := range a.mounts {
		devs = append(devs, a.mounts[i].device())
	}
	return devs, a.err
}

// markAdded sets Added for mounts that are younger than the previous Reading. again is false in the first Reading,
// which marks no mounts.
func (m *mountReader) markAdded(mounts []Mount, again bool, at time.Duration) {
	ages := make(map[string]uint64, len(mounts))
	for i := range mounts {
		mount := &mounts[i]
		before, was := m.ages[mount.ID]
		ages[mount.ID] = mount.Age
		switch {
		case was: // true if it was unmounted and mounted again with the same ID
			mount.Added = mount.Age < before
		case again: // false for an older mount that was not visible before
			mount.Added = float64(mount.Age) < (at - m.first).Seconds()
		}
	}
	m.ages = ages
}

// device returns the mount as a Device.
func (m *Mount) device() Device {
	d := Device{Name: m.ID, In: m.Read, Out: m.Written, Class: Counted}
	if m.Added {
		d.Class |= Added
	}
	return d
}
