//go:build amd64 || arm64

package job

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// mirrorStop stops this process by sig, the signal that stopped the job, if our parent is a shell with job control. The
// shell waits for us and would otherwise not notice that its job has stopped. mirrorStop returns when we are continued.
// The SIGCONT that continues us is relayed to the job like any other, unless the job has received it already.
func (j *Job) mirrorStop(sig syscall.Signal) {
	if !underJobControl(sig) {
		return
	}
	// Relay nothing until our handler is restored: the next SIGTSTP must also stop us only after the job.
	j.reaping.Lock()
	defer j.reaping.Unlock()
	if !j.stillStopped() {
		return
	}

	// Signal the thread, not the process, so that this thread has stopped before the call returns.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if sig == unix.SIGTSTP {
		// We catch SIGTSTP, but need the kernel's default action: it does not stop a group that no shell could
		// continue.
		handler, _ := setDefault(sig)
		defer rtSigaction(sig, &handler)
	}
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), sig)
}

// stillStopped reports whether the job is stopped now. If so, a SIGCONT that reached us earlier but has not been
// relayed is dropped, because it must not continue the job. The caller holds the lock of the signals.
func (j *Job) stillStopped() bool {
	p, ok := procfile.ReadProcess(j.pid)
	if ok && p.State != 'T' { // without /proc, wait4 has just reported the stop
		return false
	}
	j.signals.forget(syscall.SIGCONT)
	// A SIGTSTP by which the job stopped its whole group, us included (as editors do), must not stop it again later.
	j.signals.forget(syscall.SIGTSTP)
	return true
}

// underJobControl reports whether our parent looks like a shell with job control: it is in our session and in another
// process group. The terminal stops the whole group, so for any signal except SIGSTOP the shell may be a more distant
// ancestor, above other processes of our group (a script, another perfagent).
func underJobControl(sig syscall.Signal) bool {
	parent := 0
	for p := range procfile.Ancestors() {
		parent = p.PID
		group, err := unix.Getpgid(parent)
		if sig == unix.SIGSTOP || err != nil || group != unix.Getpgrp() {
			break
		}
	}

	parentSession, err := unix.Getsid(parent)
	if err != nil {
		return false
	}
	session, err := unix.Getsid(0)
	if err != nil || session != parentSession {
		return false
	}
	group, err := unix.Getpgid(parent)
	return err == nil && group != unix.Getpgrp()
}

// Reraise ends this process by sig without a core file, so that its parent sees how the job died. It does not return.
// If the signal cannot kill us, because this is process 1, the exit code is 128+sig.
func Reraise(sig syscall.Signal) {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	// The kernel ignores that limit if core_pattern is a pipe.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)

	runtime.LockOSThread()
	if _, ok := setDefault(sig); ok || sig == syscall.SIGKILL { // SIGKILL always has the default action
		unblock(sig)
		_ = unix.Tgkill(os.Getpid(), unix.Gettid(), sig)
	}
	os.Exit(128 + int(sig))
}

// unblock lets sig be delivered to this thread.
func unblock(sig syscall.Signal) {
	var set unix.Sigset_t
	word, bit := place(sig)
	set.Val[word] |= 1 << bit
	_ = unix.PthreadSigmask(unix.SIG_UNBLOCK, &set, nil)
}

// place returns the word and the bit of sig in a signal set. A word has 32 or 64 bits.
func place(sig syscall.Signal) (word, bit int) {
	const bits = 8 * int(unsafe.Sizeof(unix.Sigset_t{}.Val[0]))
	return (int(sig) - 1) / bits, (int(sig) - 1) % bits
}
