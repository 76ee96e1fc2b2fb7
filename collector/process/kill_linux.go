package process

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// CloneEmpty returns a Tree of the same root that has read nothing yet, for another goroutine, which is to
// find the job's processes and to end them. It does not measure what they use.
func (t *Tree) CloneEmpty() *Tree {
	o := t.o
	o.Reaped = nil // each ended process is told once, and to t
	c := NewTree(o)
	c.noMemory, c.noIO = true, true

	return c
}

// Clone is Anew, with what is known from the newest scan of t: the copy finds those that were the job's
// then, whoever has adopted them since.
func (t *Tree) Clone() *Tree {
	c := t.CloneEmpty()
	c.all, c.scans, c.seq, c.starts = slices.Clone(t.all), t.scans, t.seq, maps.Clone(t.starts)
	for i := range c.all {
		c.all[i].statFD = 0 // the descriptor is t's
	}

	return c
}

// CountLiving scans the processes now, whatever the newest scan cost, and returns how many of the job's
// have not ended.
func (t *Tree) CountLiving() (int, error) {
	t.due.scan = 0
	use, err := t.Read()
	if err != nil {
		return 0, err
	}

	return int(use.Processes), nil
}

// Kill scans the processes now, sends KILL to each of the job's that has not ended, and returns how
// many there were. A process that is made meanwhile is met by the next call: only when there are none
// has the job ended. The error is that of a process that may not be killed.
func (t *Tree) Kill() (int, error) {
	living, err := t.CountLiving()
	if living == 0 || err != nil {
		return living, err
	}
	if err := t.dir.open(t.proc(), false); err != nil {
		return living, fmt.Errorf("kill the job's processes: %w", err)
	}
	defer t.dir.close()

	for _, p := range t.jobProcs {
		if p.dead() {
			continue
		}
		if errKill := t.kill(p); errKill != nil && !gone(errKill) {
			err = fmt.Errorf("kill process %d of the job: %w", p.pid, errKill)
		}
	}

	return living, err
}

// kill sends KILL to a process. The descriptor of the process is opened before its start is compared,
// so that no other process with its ID is killed. Kernels before Linux 5.3 and some containers have no
// such descriptors: there the ID is used, right after the comparison.
func (t *Tree) kill(p *proc) error {
	fd, errOpen := unix.PidfdOpen(int(p.pid), 0)
	if errOpen == nil {
		defer unix.Close(fd)
	}

	data, err := t.dir.read(p.pid, "stat")
	if err != nil {
		return err
	}
	if now, err := parseStat(data, p.pid); err != nil || now.start != p.start {
		return err
	}

	if errOpen == nil {
		err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
	if errOpen != nil || errors.Is(err, unix.ENOSYS) {
		err = unix.Kill(int(p.pid), unix.SIGKILL)
	}

	return err
}
