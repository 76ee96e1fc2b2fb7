package process

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// CloneEmpty returns a Tree with the same root that has read nothing yet, for another goroutine that finds and kills
// the job's processes. It measures no memory and no I/O.
func (t *Tree) CloneEmpty() *Tree {
	o := t.o
	o.Reaped = nil // it returns each ended process once, for t
	c := NewTree(o)
	c.noMemory, c.noIO = true, true

	return c
}

// Clone is CloneEmpty with the result of t's newest scan: the clone finds the processes that were the job's then,
// whichever process has adopted them since.
func (t *Tree) Clone() *Tree {
	c := t.CloneEmpty()
	c.all, c.scans, c.seq, c.starts = slices.Clone(t.all), t.scans, t.seq, maps.Clone(t.starts)
	for i := range c.all {
		c.all[i].statFD = 0 // the descriptor belongs to t
	}

	return c
}

// CountLiving scans the processes now, whatever the last scan cost, and returns how many of the job's are not zombies.
func (t *Tree) CountLiving() (int, error) {
	t.due.scan = 0
	use, err := t.Read()
	if err != nil {
		return 0, err
	}

	return int(use.Processes), nil
}

// Kill scans the processes now, sends SIGKILL to each of the job's that is not a zombie, and returns how many there
// were. Only the next call finds processes that are forked meanwhile: the job has ended once it returns 0. The error is
// of a process that may not be killed.
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
		if errKill := t.kill(p); errKill != nil && !isGone(errKill) {
			err = fmt.Errorf("kill process %d of the job: %w", p.pid, errKill)
		}
	}

	return living, err
}

// kill sends SIGKILL to a process. It opens the pidfd before it compares the start time, so that it kills no other
// process with the same ID. Kernels before Linux 5.3 and some containers have no pidfds: there it uses the ID, right
// after the comparison.
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
