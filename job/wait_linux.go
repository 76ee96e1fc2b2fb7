package job

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxLastRound bounds what is reaped after the main process ended, so that a
// job that leaves processes dying for ever cannot hold us.
const maxLastRound = 100_000

// Wait blocks until the job's main process has ended and returns its status. It
// reaps every child of this process meanwhile, adds the usage of orphans, and
// follows the job when it stops. Descendants still running are left alone.
func (j *Job) Wait() Status {
	st := Status{Pid: j.pid, Start: j.start}
	defer setSubreaper(j.reaper) // nobody would reap orphans from here on
	for {
		block()
		pid, ws, ru, err := j.reap()
		switch {
		case err != nil:
			st.End, st.ExitCode = time.Now(), 255
			st.Err = fmt.Errorf("wait for process %d: %w", j.pid, err)
			return st
		case pid == 0:
		case pid != j.pid && !ws.Stopped():
			st.Usage = st.Usage.plus(usage(ru))
			st.Orphans++
		case pid == j.pid && ws.Stopped():
			j.mirrorStop(ws.StopSignal())
		case pid == j.pid:
			st.End = time.Now()
			st.Usage = st.Usage.plus(usage(ru))
			j.conclude(&st, ws)
			return st
		}
	}
}

// block returns when a child has ended or stopped, and leaves it as it is.
func block() {
	for {
		err := unix.Waitid(unix.P_ALL, 0, &unix.Siginfo{}, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return // reap meets the same error, and returns it
		}
	}
}

// reap takes one child that has ended or stopped; pid is 0 when there is none.
// It holds the signals' lock: a process id that has been reaped may belong to
// another process at once, and must not be sent anything any more.
func (j *Job) reap() (pid int, ws syscall.WaitStatus, ru syscall.Rusage, err error) {
	unlock := j.signals.hold()
	defer unlock()
	for {
		pid, err = syscall.Wait4(-1, &ws, syscall.WUNTRACED|syscall.WNOHANG, &ru)
		if err != syscall.EINTR {
			break
		}
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
	for range maxLastRound {
		pid, ws, ru, err := j.reap()
		if pid <= 0 || err != nil {
			break
		}
		if !ws.Stopped() {
			st.Usage = st.Usage.plus(usage(ru))
			st.Orphans++
		}
	}
	st.Usage.MaxRSSFloor = j.floor
}

// mirrorStop stops us by the signal that stopped the job, when our parent is a
// shell with job control: it waits for us and would not see that its job has
// stopped. It returns when we are continued; the SIGCONT that did it is relayed
// to the job like any other, unless the job had it already.
func (j *Job) mirrorStop(sig syscall.Signal) {
	if !underJobControl() || !j.stillStopped() {
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
// us earlier and has not been relayed yet must not continue it.
func (j *Job) stillStopped() bool {
	unlock := j.signals.hold()
	defer unlock()
	if !stopped(j.pid) {
		return false
	}
	j.signals.forget(syscall.SIGCONT)
	return true
}

// underJobControl tells whether our parent is what a shell with job control
// looks like to us: in our session and in another process group.
func underJobControl() bool {
	parent := os.Getppid()
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
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true // no /proc: wait4 has just said so
	}
	// "pid (name) T ...": the name may hold anything, so look from its end.
	i := bytes.LastIndexByte(stat, ')')
	return i >= 0 && i+2 < len(stat) && stat[i+2] == 'T'
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
