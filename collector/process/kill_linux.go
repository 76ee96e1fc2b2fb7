package process

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// CloneEmpty returns a Tree with the same root that has read nothing yet and measures no memory or I/O. Another
// goroutine may use it to find and kill the job's processes.
func (t *Tree) CloneEmpty() *Tree {
	o := t.o
	o.Reaped = nil // it returns each ended process only once, and t needs them
	c := NewTree(o)
	c.Next = Request{NoMemory: true, NoIO: true, Now: true}
	return c
}

// Clone is like CloneEmpty, but copies the result of t's newest scan, so that the clone finds the processes that were
// in the job then, whichever process has adopted them since.
func (t *Tree) Clone() *Tree {
	c := t.CloneEmpty()
	c.all, c.scans, c.seq, c.starts = slices.Clone(t.all), t.scans, t.seq, maps.Clone(t.starts)
	for i := range c.all {
		c.all[i].statFD = 0 // the descriptor belongs to t
	}

	return c
}

// CountLiving scans the processes now, whatever the last scan cost, and returns how many processes of the job are not
// zombies.
func (t *Tree) CountLiving() (int, error) {
	t.Next.Now = true
	use, err := t.Read()
	if err != nil {
		return 0, err
	}
	return int(use.Processes), nil
}

// Kill scans the processes now, sends SIGKILL to each process of the job that is not a zombie, and returns how many
// there were. Processes that are forked meanwhile are found only by the next call, so call it until it returns 0. It
// returns an error if it is not permitted to kill one of them.
func (t *Tree) Kill() (int, error) {
	living, err := t.CountLiving()
	if living == 0 || err != nil {
		return living, err
	}
	if err := t.dir.open(t.o.Proc, false); err != nil {
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

// kill sends SIGKILL to p. It opens the pidfd before it compares the start time, so that it cannot kill a new process
// with the same ID. Kernels before Linux 5.3 and some containers have no pidfds; there, it uses the ID, right after the
// comparison.
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
