//go:build amd64 || arm64

package job

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxOrphansAtEnd bounds how many orphans are reaped after the main process has ended. Without it, a job that
	// leaves an endless number of dying processes would delay its exit code forever.
	maxOrphansAtEnd = 100_000

	// helperStarts is how many milliseconds Wait waits, after the job's end, for a helper that is being forked.
	helperStarts = 1000
)

// errUncounted is the reason for Status.Uncounted.
var errUncounted = errors.New("usage of the job's orphans is not counted: " +
	"only a process that perfagent takes over can adopt them")

// Wait waits for the job's main process to end and returns its status. Descendants that are still running are left
// alone.
//
// With Signals it also reaps every other child of this process, adds the usage of orphans, and stops when the job
// stops.
func (j *Job) Wait() Status {
	st := Status{PID: j.pid, Start: j.start}
	ws, err := j.waitFor(&st)
	if err != nil {
		st.End, st.ExitCode = time.Now(), 255
		st.Err = fmt.Errorf("wait for process %d: %w", j.pid, err)
	} else {
		j.conclude(&st, ws)
	}

	if j.family == nil {
		st.Uncounted = errUncounted
	}
	j.family.restoreSubreaper()
	close(j.done)
	st.CopyErr = j.streams.wait()
	return st
}

// waitFor waits for the end of the main process and returns its wait status. It adds the usage of all processes reaped
// until then to st.
func (j *Job) waitFor(st *Status) (syscall.WaitStatus, error) {
	for {
		j.block()
		j.readLastStat()
		pid, ws, ru, err := j.reap()
		switch {
		case err != nil:
			return 0, err
		case pid == 0:
		case pid != j.pid && !ws.Stopped():
			j.countOrphan(st, pid, ru)
		case pid == j.pid && ws.Stopped():
			j.mirrorStop(ws.StopSignal())
		case pid == j.pid:
			st.End = time.Now()
			j.count(st, pid, ru)
			return ws, nil
		}
	}
}

// block waits until a child may have changed, so that reap is worth a call. It reaps nothing.
func (j *Job) block() {
	if j.family == nil {
		waitable(unix.P_PID, j.pid, unix.WEXITED)
		return
	}

	const changed = unix.WEXITED | unix.WSTOPPED
	for pause := time.Millisecond; j.family.isStartingHelper(); pause = min(2*pause, 20*time.Millisecond) {
		if waitable(unix.P_PID, j.pid, changed|unix.WNOHANG) {
			return
		}
		time.Sleep(pause)
	}
	j.signals.awaitChild(changed)
}

// waitable waits until the child that kind and id select has changed as options ask; with WNOHANG it only checks. It
// does not reap the child. On an error it reports false; reap gets the same error.
func waitable(kind, id, options int) bool {
	changed, err := peekChild(kind, id, options)
	return err == nil && changed
}

// peekChild is waitid(2) with WNOWAIT, which does not reap the child.
func peekChild(kind, id, options int) (changed bool, err error) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(kind, id, &info, options|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return info.Signo != 0, err
		}
	}
}

// reap reaps one child that has ended or stopped; pid is 0 if there is none. Without Signals it reaps only the job's
// main process. It does the same while a helper is being forked, because any other child might be that helper.
func (j *Job) reap() (pid int, ws syscall.WaitStatus, ru syscall.Rusage, err error) {
	j.reaping.Lock()
	defer j.reaping.Unlock()
	if j.signals != nil {
		j.signals.collectLocked() // signals sent by the process that is about to be reaped
	}

	child, options, expecting := -1, syscall.WUNTRACED|syscall.WNOHANG, false
	if j.family == nil {
		child, options = j.pid, syscall.WNOHANG
	} else if expecting = j.family.isStartingHelper(); expecting {
		child = j.pid
	}

	for {
		pid, err = syscall.Wait4(child, &ws, options, &ru)
		if err != syscall.EINTR {
			break
		}
	}
	if expecting && err == syscall.ECHILD { // there may be other children
		return 0, ws, ru, nil
	}
	if err != nil || pid == j.pid && !ws.Stopped() {
		j.ended = true
		j.signals.detach()
	}
	return pid, ws, ru, err
}

// conclude fills in how the job ended, and reaps and counts the dead orphans.
func (j *Job) conclude(st *Status, ws syscall.WaitStatus) {
	st.ExitCode, st.Signal = exitOf(ws)
	if ws.Signaled() {
		st.Signo, st.CoreDumped = ws.Signal(), ws.CoreDump()
	}
	st.ReceivedSignals = j.signals.awaitReceived(st.Signo)
	st.FromTerminal = j.signals.sentByTerminal(st.Signo)

	if j.family != nil {
		j.reapOrphans(st)
	}
	st.Usage.MaxRSSFloor = j.floor
}

// reapOrphans reaps and counts the orphans that are dead at the job's end.
func (j *Job) reapOrphans(st *Status) {
	for range helperStarts { // while one is being forked, reap skips the orphans
		if !j.family.isStartingHelper() {
			break
		}
		time.Sleep(time.Millisecond)
	}

	for range maxOrphansAtEnd {
		pid, ws, ru, err := j.reap()
		if pid <= 0 || err != nil {
			allEnded := j.family.gone()
			j.mu.Lock()
			defer j.mu.Unlock()
			j.allEnded = allEnded
			return
		}
		if !ws.Stopped() {
			j.countOrphan(st, pid, ru)
		}
	}
}

// countOrphan adds pid, a dead child other than the job's main process, to st. It skips helpers and children from
// before the job, such as a daemon that a shell started before it executed us.
func (j *Job) countOrphan(st *Status, pid int, ru syscall.Rusage) {
	if j.family.forget(pid) {
		return
	}
	j.count(st, pid, ru)
	st.Orphans++
}

// count adds ru, the usage of the dead process pid of the job, to st.
func (j *Job) count(st *Status, pid int, ru syscall.Rusage) {
	st.Usage = st.Usage.Plus(usage(ru))
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reapedUsage = st.Usage
	j.keepEnded(pid, ru)
}
