package job

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxLastRound bounds what is reaped after the main process ended, so that a
// job that leaves processes dying for ever cannot hold us.
const maxLastRound = 100_000

// helperStarts is how many milliseconds a helper that is just being made is waited for when
// the job has ended.
const helperStarts = 1000

// Wait blocks until the job's main process has ended and returns its status. It
// reaps every child of this process meanwhile, adds the usage of orphans, and
// follows the job when it stops. Descendants still running are left alone.
func (j *Job) Wait() Status {
	st := Status{Pid: j.pid, Start: j.start}
	defer setSubreaper(j.reaper) // nobody would reap orphans from here on
	for {
		j.block()
		pid, ws, ru, err := j.reap()
		switch {
		case err != nil:
			st.End, st.ExitCode = time.Now(), 255
			st.Err = fmt.Errorf("wait for process %d: %w", j.pid, err)
			return st
		case pid == 0:
		case pid != j.pid && !ws.Stopped():
			j.countOrphan(&st, pid, ru)
		case pid == j.pid && ws.Stopped():
			j.mirrorStop(ws.StopSignal())
		case pid == j.pid:
			st.End = time.Now()
			j.count(&st, ru)
			j.conclude(&st, ws)
			return st
		}
	}
}

// block returns when reap may have something to do, and leaves it as it is.
func (j *Job) block() {
	const changed = unix.WEXITED | unix.WSTOPPED | unix.WNOWAIT
	for pause := time.Millisecond; j.expectsHelper(); pause = min(2*pause, 20*time.Millisecond) {
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_PID, j.pid, &info, changed|unix.WNOHANG, nil); err == nil && info.Signo != 0 {
			return
		}
		time.Sleep(pause)
	}
	for {
		if err := unix.Waitid(unix.P_ALL, 0, &unix.Siginfo{}, changed, nil); err != unix.EINTR {
			return // reap meets the same error, and returns it
		}
	}
}

// reap takes one child that has ended or stopped; pid is 0 when there is none.
// It holds the signals' lock: a process id that has been reaped may belong to
// another process at once, and must not be sent anything any more. While a helper is
// expected none is taken but the job's main process: it might be the helper.
func (j *Job) reap() (pid int, ws syscall.WaitStatus, ru syscall.Rusage, err error) {
	unlock := j.signals.hold()
	defer unlock()
	child, expecting := -1, j.expectsHelper()
	if expecting {
		child = j.pid
	}
	for {
		pid, err = syscall.Wait4(child, &ws, syscall.WUNTRACED|syscall.WNOHANG, &ru)
		if err != syscall.EINTR {
			break
		}
	}
	if expecting && err == syscall.ECHILD { // there may be others
		return 0, ws, ru, nil
	}
	if pid == j.pid && !ws.Stopped() {
		j.signals.detach()
	}
	return pid, ws, ru, err
}

// conclude fills in how the job ended, and counts the orphans that are dead.
func (j *Job) conclude(st *Status, ws syscall.WaitStatus) {
	st.ExitCode = ws.ExitStatus()
	if ws.Signaled() {
		st.Signo = ws.Signal()
		st.Signal = signalName(st.Signo)
		st.ExitCode = 128 + int(st.Signo)
		st.CoreDumped = ws.CoreDump()
		st.FromTerminal = j.signals.sentByTerminal(st.Signo)
	}
	st.Sent = j.signals.sentUntil(st.Signo)
	for range helperStarts { // or none but the main process is reaped
		if !j.expectsHelper() {
			break
		}
		time.Sleep(time.Millisecond)
	}
	for range maxLastRound {
		pid, ws, ru, err := j.reap()
		if pid <= 0 || err != nil {
			j.noteChildless(err)
			break
		}
		if !ws.Stopped() {
			j.countOrphan(st, pid, ru)
		}
	}
	st.Usage.MaxRSSFloor = j.floor
}

// noteChildless notes whether no process of the job goes on: we have no children but those
// that are not the job's.
func (j *Job) noteChildless(err error) {
	left, ok := children()
	j.mu.Lock()
	defer j.mu.Unlock()
	foreign := func(pid int) bool { return slices.Contains(j.others, pid) }
	j.childless = err == syscall.ECHILD || ok && !j.nameless && len(slices.DeleteFunc(left, foreign)) == 0
}

// countOrphan adds a dead child that is not the job's main process. Children that
// this process had before the job (a shell that started a daemon and then executed
// us) are not the job's.
func (j *Job) countOrphan(st *Status, pid int, ru syscall.Rusage) {
	if j.forget(pid) {
		return
	}
	j.count(st, ru)
	st.Orphans++
}

// count adds what a dead process of the job used.
func (j *Job) count(st *Status, ru syscall.Rusage) {
	st.Usage = st.Usage.plus(usage(ru))
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reaped = st.Usage
}

// children lists the child processes that we have now, each of which is one thread's; not ok
// where the kernel does not say (CONFIG_PROC_CHILDREN).
func children() (pids []int, ok bool) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil, false
	}
	for _, task := range tasks {
		data, err := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		if err != nil && task.Name() != strconv.Itoa(os.Getpid()) {
			continue // a thread that has ended gave its children to another
		}
		if err != nil {
			return nil, false
		}
		for _, f := range bytes.Fields(data) {
			if pid, err := strconv.Atoi(string(f)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids, true
}

// mirrorStop stops us by the signal that stopped the job, when our parent is a
// shell with job control: it waits for us and would not see that its job has
// stopped. It returns when we are continued; the SIGCONT that did it is relayed
// to the job like any other, unless the job had it already.
func (j *Job) mirrorStop(sig syscall.Signal) {
	if !underJobControl(sig) {
		return
	}
	// Nothing is relayed until our own handler is back: the next SIGTSTP is again to stop
	// us only after the job.
	unlock := j.signals.hold()
	defer unlock()
	if !j.stillStopped() {
		return
	}
	// A signal to the thread, not to the process: so that this very thread
	// has stopped before the call returns.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if sig == unix.SIGTSTP {
		// We catch this one. The kernel's own action is what is wanted:
		// it spares a group that nobody could continue.
		handler, ok := setDefault(sig)
		if !ok {
			sig = unix.SIGSTOP
		}
		defer handler.restore(sig)
	}
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), sig)
}

// stillStopped tells whether the job is stopped now; then a SIGCONT that reached
// us earlier and has not been relayed yet must not continue it. The caller holds the
// signals' lock.
func (j *Job) stillStopped() bool {
	if !stopped(j.pid) {
		return false
	}
	j.signals.forget(syscall.SIGCONT)
	// Nor must a SIGTSTP by which the job stopped its whole group, us included
	// (editors do), stop it again after it was continued.
	j.signals.forget(syscall.SIGTSTP)
	return true
}

// underJobControl tells whether our parent is what a shell with job control
// looks like to us: in our session and in another process group. A stop that the
// terminal sends goes to the whole group, so for such a one a shell further up,
// behind parents in our own group (a script, another perfagent), will do.
func underJobControl(sig syscall.Signal) bool {
	parent := os.Getppid()
	for range 64 {
		if group, err := unix.Getpgid(parent); sig == unix.SIGSTOP || err != nil || group != unix.Getpgrp() {
			break
		}
		parent = parentOf(parent)
	}
	theirs, err := unix.Getsid(parent)
	if err != nil {
		return false
	}
	ours, err := unix.Getsid(0)
	if err != nil || ours != theirs {
		return false
	}
	group, err := unix.Getpgid(parent)
	return err == nil && group != unix.Getpgrp()
}

// stopped tells whether the process is in a job-control stop right now.
func stopped(pid int) bool {
	f := stat(pid)
	if f == nil {
		return true // no /proc: wait4 has just said so
	}
	return f[0] == "T"
}

// parentOf is a process's parent, 0 where that is not known.
func parentOf(pid int) int {
	f := stat(pid)
	if len(f) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(f[1])
	return parent
}

// stat is the fields of /proc/PID/stat from the third on: state, parent, group…
func stat(pid int) []string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	// "pid (name) T ...": the name may hold anything, so look from its end.
	i := bytes.LastIndexByte(data, ')')
	if err != nil || i < 0 {
		return nil
	}
	f := strings.Fields(string(data[i+1:]))
	if len(f) == 0 {
		return nil
	}
	return f
}

// usage puts the kernel's account into our units.
func usage(ru syscall.Rusage) Usage {
	seconds := func(tv syscall.Timeval) float64 { return time.Duration(tv.Nano()).Seconds() }
	return Usage{
		UserSeconds:         seconds(ru.Utime),
		SystemSeconds:       seconds(ru.Stime),
		MaxRSS:              int64(ru.Maxrss) * 1024,
		MinorFaults:         int64(ru.Minflt),
		MajorFaults:         int64(ru.Majflt),
		BlockInput:          int64(ru.Inblock),
		BlockOutput:         int64(ru.Oublock),
		VoluntarySwitches:   int64(ru.Nvcsw),
		InvoluntarySwitches: int64(ru.Nivcsw),
	}
}

// signalName is the name of a signal, also of the real-time ones.
func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return "SIGRTMIN+" + strconv.Itoa(int(sig)-34)
}

// subreaper tells whether orphans below us become our children.
func subreaper() (bool, error) {
	var on int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&on)), 0, 0, 0)
	return on != 0, err
}

// setSubreaper asks for orphans, or no longer does.
func setSubreaper(on bool) {
	var arg uintptr
	if on {
		arg = 1
	}
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, arg, 0, 0, 0)
}
