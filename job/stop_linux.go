//go:build amd64 || arm64

package job

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// mirrorStop stops this process by the signal that stopped the job, if our parent
// is a shell with job control, which waits for us and would not notice that its
// job has stopped. It returns when we are continued. The SIGCONT that did so is
// relayed to the job like any other, unless the job had it already.
func (j *Job) mirrorStop(sig syscall.Signal) {
	if !underJobControl(sig) {
		return
	}
	// Nothing is relayed until our own handler is back: the next SIGTSTP must again
	// stop us only after the job.
	j.reaping.Lock()
	defer j.reaping.Unlock()
	if !j.stillStopped() {
		return
	}

	// A signal to the thread, not to the process: so that this very thread has
	// stopped before the call returns.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if sig == unix.SIGTSTP {
		// We catch this one. The kernel's own action is what is wanted: it spares
		// a group that no shell could continue.
		handler, _ := setDefault(sig)
		defer action(sig, &handler)
	}
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), sig)
}

// stillStopped reports whether the job is stopped now. If so, a SIGCONT that
// reached us earlier and has not been relayed yet must not continue it. The caller
// holds the lock of the signals.
func (j *Job) stillStopped() bool {
	p, ok := procfile.ReadProcess(j.pid)
	if ok && p.State != 'T' { // without /proc, wait4 has just said so
		return false
	}
	j.signals.forget(syscall.SIGCONT)
	// Nor must a SIGTSTP by which the job stopped its whole group, us included
	// (editors do), stop it again after it was continued.
	j.signals.forget(syscall.SIGTSTP)
	return true
}

// underJobControl reports whether our parent is what a shell with job control
// looks like to us: in our session and in another process group. A stop that the
// terminal sends goes to the whole group, so for such a one a shell further up,
// behind parents in our own group (a script, another perfagent), will do.
func underJobControl(sig syscall.Signal) bool {
	parent := 0
	for p := range procfile.Ancestors() {
		parent = p.PID
		group, err := unix.Getpgid(parent)
		if sig == unix.SIGSTOP || err != nil || group != unix.Getpgrp() {
			break
		}
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
