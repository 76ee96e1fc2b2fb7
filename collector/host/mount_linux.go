package host

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/patience"
)

// A mountReader reads what a client of servers counts of each mount, at a pace. What is special to a client are the
// functions and texts.
type mountReader struct {
	host  *Reader
	pace  pace
	first time.Duration // when it was read first
	asked *patience.Asker[mountAnswer]

	there  func() bool                                       // reports whether the client is loaded
	answer func() mountAnswer                                // reads the mounts
	fresh  func(a mountAnswer, again bool, at time.Duration) // says which are new since the Reading before
	late   string                                            // the error if the answer does not come, without the time
	closed series.Gap                                        // if only root may read them
}

// A mountAnswer is what was read of mounts.
type mountAnswer struct {
	mounts    []Mount
	ages      []uint64
	forbidden bool
	took      time.Duration // of CPU time: on a busy host the clock tells how long others ran
	err       error
}

// answered returns what read reads, with what that took.
func answered(read func(*mountAnswer) error) (a mountAnswer) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begun := clock(unix.CLOCK_THREAD_CPUTIME_ID)
	a.err = guard(func() error { return read(&a) })
	a.took = clock(unix.CLOCK_THREAD_CPUTIME_ID) - begun
	return a
}

func (m *mountReader) read(at time.Duration, _ []Device) ([]Device, error) {
	if !m.pace.due(at, m.host.job.closing) {
		if m.pace.there {
			return nil, errNotDue
		}
		return nil, nil
	}

	again := m.pace.begun
	if !again {
		m.first = at
	}
	if !m.there() {
		m.pace.done(at, 0, false)
		return nil, nil
	}

	// The kernel writes them from memory, but takes locks that a mount of a dead server may hold.
	limit := m.host.disks.patience
	a, ok := m.asked.Ask(limit, m.answer)
	if !ok {
		m.pace.done(at, 0, true)
		return nil, fmt.Errorf("%s within %v", m.late, limit)
	}
	m.pace.done(at, a.took, len(a.mounts) > 0)
	if a.forbidden {
		m.host.rare.gaps = append(m.host.rare.gaps, m.closed)
	}

	m.fresh(a, again, at)
	m.host.rare.mounts = append(m.host.rare.mounts, a.mounts...)
	var devs []Device
	for i := range a.mounts {
		devs = append(devs, a.mounts[i].device())
	}
	return devs, a.err
}

// device returns the mount as a device.
func (m *Mount) device() Device {
	d := Device{Name: m.ID, In: m.Read, Out: m.Written, Class: Counted}
	if m.Fresh {
		d.Class |= Fresh
	}
	return d
}
